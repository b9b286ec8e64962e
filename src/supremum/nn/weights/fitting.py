"""Casts of weights to the dtype of a variable, which by default must be exact."""

from __future__ import annotations

import numpy as np

from supremum.arrays import converted
from supremum.formats import Format, as_format
from supremum.nn.weights.steps import Array


def dtype_problem(array: Array, wanted: Format, cast: bool) -> str:
    """The reason why an array cannot be cast to the format of a variable; empty if it can.

    Args:
        array: the array.
        wanted: the format of the variable.
        cast: whether to round.

    >>> float16 = as_format("float16")
    >>> dtype_problem(np.array([0.5, 2.0]), float16, cast=False)
    ''
    >>> dtype_problem(np.array([0.1]), float16, cast=False)
    'float16 cannot hold 0.1 exactly; cast=True rounds it'
    >>> dtype_problem(np.array([1e6]), float16, cast=True)
    'float16 cannot hold 1000000.0; give the layer a wider variable dtype'
    """
    found = as_format(array.dtype)
    if found == wanted or (found.is_inexact == wanted.is_inexact and wanted.holds(found)):
        return ""
    if found.category != wanted.category:
        return f"the variable is {wanted}"
    inexact = first_inexact(array, wanted)
    if not inexact:
        return ""
    if found.category != "float":
        return f"{wanted} cannot hold {inexact} exactly"
    if not cast:
        return f"{wanted} cannot hold {inexact} exactly; cast=True rounds it"
    lost = first_lost(array, wanted)
    return f"{wanted} cannot hold {lost}; give the layer a wider variable dtype" if lost else ""


def first_inexact(array: Array, wanted: Format) -> str:
    """The first value of an array that a cast would change; empty if there is none."""
    with np.errstate(all="ignore"):
        after = converted(converted(array, wanted.dtype), array.dtype).reshape(-1)
        before = array.reshape(-1)
        changed = (before != after) & ~((before != before) & (after != after))  # NaN differs from itself
    return str(before[changed][0]) if np.any(changed) else ""


def first_lost(array: Array, wanted: Format) -> str:
    """The first value that a cast would make infinite or NaN, or finite again; empty if there is none.

    >>> (
    ...     first_lost(np.array([1.0, 1e6]), as_format("float16")),
    ...     first_lost(np.array([0.1]), as_format("float16")),
    ... )
    ('1000000.0', '')
    """
    wide = as_format("float64").dtype
    with np.errstate(all="ignore"):
        before = converted(array, wide).reshape(-1)
        after = converted(converted(array, wanted.dtype), wide).reshape(-1)
        is_kept = (np.isnan(before) == np.isnan(after)) & (np.isinf(before) == np.isinf(after))
        if not wanted.inf:  # some of these formats saturate at their largest number
            is_kept &= ~(np.abs(before) > wanted.max)
    return "" if is_kept.all() else str(before[~is_kept][0])
