"""The adapter for mutable objects of Flax nnx: modules, optimizers, random streams and variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flax import nnx

from supremum.jaxprs.mutable_arguments import Adapter


def _split(objects: Sequence[Any]) -> tuple[Any, Any]:
    structure, state = nnx.split(tuple(objects))
    return structure, state


NNX = Adapter(
    holds=lambda value: isinstance(value, (nnx.Pytree, nnx.Variable)),
    split=_split,
    merge=nnx.merge,
    update=lambda objects, state: nnx.update(tuple(objects), state),
)
"""Uses `split`, `merge` and `update` of nnx."""
