"""What type checkers know about layers: the arguments of every constructor, and of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar

from supremum.nn.regularizers import RegularizerFunction
from supremum.nn.symbolic import SymbolicValue
from supremum.typing import PyTree

S = TypeVar("S", bound=SymbolicValue)
R_co = TypeVar("R_co", covariant=True)
SymbolicInput: TypeAlias = S | Sequence[S] | Mapping[str, S]


class Computes(Protocol[R_co]):
    """A layer in the eyes of type checkers: calling it returns what its `call` returns."""

    def call(self, *args: PyTree, **kwargs: PyTree) -> R_co:
        """As for `Layer`."""
        ...


class LayerOptions(TypedDict, total=False):
    """The keyword arguments of every layer, documented in `Layer`."""

    dtype: Any
    param_dtype: Any
    autocast: bool
    strict: bool
    trainable: bool
    activity_regularizer: RegularizerFunction | str | None
    name: str | None
    input_shape: Sequence[int | None] | None
