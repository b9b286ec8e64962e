"""Inputs in a few words, for errors."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from supremum.errors import UnknownDtypeError, listed, shown
from supremum.formats import as_format


def described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Arguments as their dtypes and shapes, in their structure, those that are not arrays as they are.

    >>> described((np.ones((2, 3), np.float16), [1.5]), {"mask": None})
    'float16[2,3], [1.5], mask=None'
    """
    plain = [_described(arg) for arg in args]
    named = [f"{name}={_described(value)}" for name, value in kwargs.items()]
    return listed(plain + named) or "nothing"


class _Word(str):
    """A string that is shown as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _described(tree: Any) -> str:
    try:
        return shown(jax.tree.map(_leaf, tree))
    except (ValueError, TypeError):  # containers that JAX cannot look into
        return type(tree).__name__


def _leaf(leaf: Any) -> _Word:
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return _Word(shown(leaf)[:40])
    try:
        named = str(as_format(dtype))
    except UnknownDtypeError:
        named = str(dtype)
    return _Word(f"{named}[{','.join(map(str, np.shape(leaf)))}]")
