"""Describe inputs in error messages."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from supremum.errors import UnknownDtypeError, listed, shown
from supremum.formats import as_format


def described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Describe arguments in their structure: arrays by dtype and shape, anything else as it is.

    >>> described((np.ones((2, 3), np.float16), [1.5]), {"mask": None})
    'float16[2,3], [1.5], mask=None'
    """
    plain = [_described(arg) for arg in args]
    named = [f"{name}={_described(value)}" for name, value in kwargs.items()]
    return listed(plain + named) or "nothing"


class _Unquoted(str):
    """A string with a `repr` that has no quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _described(tree: Any) -> str:
    try:
        return shown(jax.tree.map(_leaf, tree))
    except (ValueError, TypeError):  # JAX cannot flatten every container
        return type(tree).__name__


def _leaf(leaf: Any) -> _Unquoted:
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return _Unquoted(shown(leaf)[:40])
    try:
        named = str(as_format(dtype))
    except UnknownDtypeError:
        named = str(dtype)
    return _Unquoted(f"{named}[{','.join(map(str, np.shape(leaf)))}]")
