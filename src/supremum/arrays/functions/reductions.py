"""Reductions. Each function returns the operand of a call and its checked options; see `PromotingFunction`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from supremum.argument_checks import flag, real_number, whole_number
from supremum.arrays.array_types import Axes
from supremum.arrays.backends.base import Build
from supremum.arrays.promoting_function import Arguments, ReducingFunction
from supremum.arrays.reduction_kernels import mean_without_nan, median, reduction, sum_without_nan
from supremum.errors import ArgumentError
from supremum.formats import argument_dtype, as_format
from supremum.typing import ArrayLike, DTypeLike

# The largest number of dimensions of NumPy's arrays; other libraries have the same limit or a lower one.
_MOST_AXES: Final = 64


def _axis(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_axis, cast("Sequence[Any]", value)))
    return None if value is None else whole_number("axis", value, -_MOST_AXES, _MOST_AXES)


def _dtype(value: Any) -> Any:
    return None if value is None else argument_dtype(value)


def _sum_arguments(
    x: ArrayLike, /, *, axis: Axes = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Arguments:
    return (x,), {"axis": _axis(axis), "dtype": _dtype(dtype), "keepdims": flag("keepdims", keepdims)}


def _cumulative_arguments(
    x: ArrayLike, /, *, axis: Axes = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Arguments:
    initial = flag("include_initial", include_initial)
    return (x,), {"axis": _axis(axis), "dtype": _dtype(dtype), "include_initial": initial}


def _reduction_arguments(x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False) -> Arguments:
    return (x,), {"axis": _axis(axis), "keepdims": flag("keepdims", keepdims)}


def _variance_arguments(
    x: ArrayLike, /, *, axis: Axes = None, correction: float = 0.0, dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Arguments:  # fmt: skip
    divisor, target = real_number("correction", correction), _dtype(dtype)
    if target is not None and not as_format(target).is_inexact:
        raise ArgumentError(
            f"dtype must be a float or complex dtype, got {target}; leave it out, and use .astype('{target}') after it"
        )
    return (x,), {"axis": _axis(axis), "correction": divisor, "dtype": target, "keepdims": flag("keepdims", keepdims)}


def _reduction(
    operation: str, arguments: Callable[..., Arguments], what: str, more: str = "", build: Build = reduction,
    name: str = "",
) -> ReducingFunction:  # fmt: skip
    last = f"\n        {more}" if more else ""
    doc = f"""{what}, in the dtype that the rules in force decide for `{operation}`.

    Args:
        x: an array.
        axis: the dimension, or several; None for all.{last}

    The Python array API standard describes the other options.

    Raises:
        PromotionError: if the rules refuse.
        RuntimeDtypeError: if the library does not compute it in the dtype that the rules decide.
    """
    return ReducingFunction(operation, arguments, build, name=name, doc=doc)


_DTYPE: Final = "dtype: the dtype of the result; None for the dtype that the rules decide."
_DIVISOR: Final = f"correction: subtracted from the number of elements in the divisor.\n        {_DTYPE}"
_ALL = (
    _reduction("sum", _sum_arguments, "The sum", _DTYPE),
    _reduction("prod", _sum_arguments, "The product", _DTYPE),
    _reduction("cumulative_sum", _cumulative_arguments, "The cumulative sums", _DTYPE),
    _reduction("cumulative_prod", _cumulative_arguments, "The cumulative products", _DTYPE),
    _reduction("mean", _sum_arguments, "The mean", _DTYPE),
    _reduction("var", _variance_arguments, "The variance", _DIVISOR),
    _reduction("std", _variance_arguments, "The standard deviation", _DIVISOR),
    _reduction("any", _reduction_arguments, "Whether any element is true"),
    _reduction("all", _reduction_arguments, "Whether all elements are true"),
    _reduction("min", _reduction_arguments, "The smallest element"),
    _reduction("max", _reduction_arguments, "The largest element"),
    _reduction("mean", _reduction_arguments, "The median", build=median, name="median"),
    _reduction("sum", _sum_arguments, "The sum of the elements that are not NaN", _DTYPE, sum_without_nan, "nansum"),
    _reduction(
        "mean", _sum_arguments, "The mean of the elements that are not NaN", _DTYPE, mean_without_nan, "nanmean"
    ),
)
REDUCTION_FUNCTIONS: dict[str, ReducingFunction] = {function.name: function for function in _ALL}
"""The reductions of the namespace, by name."""
