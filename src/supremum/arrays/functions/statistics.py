"""Quantiles, histograms and counts, composed of functions that the rules decide.

The first parameter of each function is the namespace. `median`, `nansum` and `nanmean` are reductions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from supremum.argument_checks import chosen, flag, whole_number
from supremum.arrays.array_types import Axes
from supremum.arrays.backends import Backend, CallPlan, Raw
from supremum.arrays.functions.compositions import as_inexact
from supremum.arrays.pass_through_function import PassThroughFunction
from supremum.arrays.promoting_function import Arguments, PromotingFunction
from supremum.arrays.reduction_kernels import in_rows
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import Format, as_format
from supremum.typing import ArrayLike

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")
_LARGEST = 2**63 - 1


def quantile(
    xp: ModuleType, x: ArrayLike, q: ArrayLike, /, *, axis: Axes = None, method: str = "linear",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The values below which a part of all elements are, in the dtype in which the rules interpolate between elements.

    Args:
        xp: the namespace.
        x: an array of real numbers.
        q: the part, from 0 to 1: a number, or an array whose dimensions come first in the result.
        axis: the dimension, or several; None for all.
        method: between two elements, `"linear"` interpolates, `"midpoint"` takes their mean, and `"lower"`, `"higher"`
            and `"nearest"` take one of them, in its dtype.
        keepdims: whether the dimensions stay, with length one.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.quantile(np.array([1, 2, 4], "float32"), 0.75)
    Array(3., dtype=float32)
    """
    return _quantile(xp, x, q, 1, axis, method, flag("keepdims", keepdims))


def percentile(
    xp: ModuleType, x: ArrayLike, q: ArrayLike, /, *, axis: Axes = None, method: str = "linear",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The same as `quantile`, with parts from 0 to 100.

    Args:
        xp: the namespace.
        x: an array of real numbers.
        q: the part, from 0 to 100: a number, or an array whose dimensions come first in the result.
        axis: as for `quantile`.
        method: as for `quantile`.
        keepdims: as for `quantile`.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _quantile(xp, x, q, 100, axis, method, flag("keepdims", keepdims))


def _quantile(xp: ModuleType, x: Any, q: Any, whole: int, axis: Any, method: str, keepdims: bool) -> Any:
    """The quantile of a part of a whole."""
    chosen("method", method, _METHODS)
    array = xp.asarray(x)
    row = _real("quantiles", array)
    rows, shape = in_rows(xp, array, axis, keepdims=keepdims)
    ordered = xp.sort(rows, axis=0)
    last = ordered.shape[0] - 1
    if last < 0:
        raise ArgumentError("quantiles need at least one element, got an empty array")
    if type(q) in (int, float):
        parts, front = q, ()
        is_valid = 0 <= q <= whole
    else:
        parts = xp.asarray(q)
        front, parts = parts.shape, xp.reshape(parts, (-1,))
        is_valid = parts.backend.is_traced(parts.unwrap()) or bool(xp.all(xp.logical_and(parts >= 0, parts <= whole)))
    if not is_valid:
        raise ArgumentError(f"q must be from 0 to {whole}, got {shown(q)}")
    at = (parts if whole == 1 else parts / whole) * last
    if type(q) in (int, float):
        below, above, weight = _places(math.floor, math.ceil, round, method, at)
        low, high = ordered[below], ordered[above]
    else:
        below, above, weight = _places(xp.floor, xp.ceil, xp.round, method, at)
        low, high = (xp.take(ordered, xp.astype(each, _index_dtype(xp)), axis=0) for each in (below, above))
        weight = xp.reshape(weight, (-1,) + (1,) * (ordered.ndim - 1))
    result = low if method in ("lower", "higher", "nearest") else _between(xp, low, high, weight)
    if row.is_inexact:
        result = xp.where(xp.isnan(ordered[-1]), ordered[-1], result)
    return xp.reshape(result, (*front, *shape))


def _real(what: str, array: Any) -> Format:
    """The format of an array of real numbers."""
    row = as_format(array.dtype)
    if row.category == "complex":
        raise OperandError(f"{what} are of real numbers, got {row}; use xp.real(x)")
    return row


def _index_dtype(xp: Any) -> Any:
    """The dtype of the library's indices."""
    return xp.__array_namespace_info__().default_dtypes()["indexing"]


def _places(
    floor: Callable[[Any], Any], ceil: Callable[[Any], Any], nearest: Callable[[Any], Any], method: str, at: Any
) -> tuple[Any, Any, Any]:
    """The positions of the elements around a place in ascending elements, and the weight of the upper one."""
    below = {"higher": ceil, "nearest": nearest}.get(method, floor)(at)
    weight = at - below
    return below, ceil(at), weight * 0 + 0.5 if method == "midpoint" else weight


def _between(xp: ModuleType, low: Any, high: Any, weight: Any) -> Any:
    """Values between others, computed from the nearer one, so that a weight of 1 returns the upper one."""
    start, end = as_inexact(xp, low), as_inexact(xp, high)
    step = end - start
    if isinstance(weight, float):
        return end - step * (1 - weight) if weight >= 0.5 else start + step * weight
    return xp.where(weight >= 0.5, end - step * (1 - weight), start + step * weight)


def bincount(xp: ModuleType, x: ArrayLike, /, weights: ArrayLike | None = None, *, minlength: int = 0) -> Any:
    """How often each integer occurs, or the sums of its weights, in the dtype that the rules decide for `sum`.

    The length of the result depends on the values, so JAX cannot trace it.

    Args:
        xp: the namespace.
        x: a vector of integers that are not negative, or of bools.
        weights: a vector of the same length; None to count.
        minlength: the least length of the result.

    Raises:
        ArgumentError: for negative integers.
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.bincount(np.array([0, 2, 2]), np.array([1, 2, 3], "float32"))
    Array([1., 0., 5.], dtype=float32)
    """
    array = xp.asarray(x)
    category = as_format(array.dtype).category
    if category not in ("bool", "integer") or array.ndim != 1:
        raise OperandError(f"bincount needs a vector of integers or bools, got {array.dtype}{list(array.shape)}")
    if category == "bool":
        array = xp.astype(array, _index_dtype(xp))
    if array.size and int(xp.min(array)) < 0:
        raise ArgumentError("bincount needs integers that are not negative; use xp.unique(x, return_counts=True)")
    length = int(xp.max(array)) + 1 if array.size else 0
    return _count_bins(xp, array, weights, max(whole_number("minlength", minlength, 0, _LARGEST), length))


def _count_bins(xp: ModuleType, places: Any, weights: Any, length: int) -> Any:
    """The counts, or the sums of weights, of the integers below a length."""
    if weights is None:
        return _COUNTS.call(places, length=length)
    weight_array = xp.asarray(weights)
    if weight_array.shape != places.shape:
        raise ArgumentError(f"the weights must have the shape {places.shape} of the values, got {weight_array.shape}")
    return _SUMS.call(places, weight_array, length=length)


def _count_arguments(x: Any, /, *, length: int) -> None:
    """The arguments of the function that counts."""


def _weight_arguments(x: Any, weights: Any, /, *, length: int) -> Arguments:
    return (x, weights), {"length": length}


def _bins(backend: Backend, *, length: int) -> Callable[..., Any]:
    function = backend.function("bincount")
    # JAX can trace it for a known length, and accepts one.
    return partial(function, minlength=length, **({"length": length} if backend.in_jax else {}))


def _sums_of_bins(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    function, xp = _bins(backend, length=plan.options["length"]), backend.xp
    if as_format(plan.compute[1]).category != "complex":
        return lambda x, weights: function(x, weights=weights)
    # NumPy and PyTorch have real weights only.
    return lambda x, weights: function(x, weights=xp.real(weights)) + 1j * function(x, weights=xp.imag(weights))


_COUNTS = PassThroughFunction("bincount", _count_arguments, _bins)
_SUMS = PromotingFunction("sum", _weight_arguments, _sums_of_bins, name="bincount", promoted=slice(1, 2))


def histogram(
    xp: ModuleType,
    x: ArrayLike,
    /,
    bins: ArrayLike = 10,
    *,
    range: Sequence[ArrayLike] | None = None,  # noqa: A002 (NumPy's name)
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[Any, Any]:
    """How many elements are in each of several intervals, and the edges of the intervals.

    Args:
        xp: the namespace.
        x: an array of real numbers.
        bins: the number of intervals of equal width, or their edges.
        range: the lowest and the highest edge; None for the smallest and the largest element.
        density: whether to divide the counts by their sum and the widths.
        weights: an array of the same shape, whose sums replace the counts; the rules decide them like `sum`.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.histogram(np.array([1, 2, 2, 4], "float32"), bins=3)
    (Array([1, 2, 1], dtype=int64), Array([1., 2., 3., 4.], dtype=float32))
    """
    array = xp.asarray(x)
    _real("histograms", array)
    flat = as_inexact(xp, xp.reshape(array, (-1,)))
    edges = _edges(xp, flat, bins, range)
    limits, count = as_inexact(xp, edges), edges.shape[0] - 1
    # The positions are arrays of one dtype, about which all rules agree.
    above = xp.searchsorted(limits, flat, side="right")
    above = above - xp.ones_like(above)
    above = xp.where(flat == limits[-1], xp.full_like(above, count - 1), above)
    is_counted = xp.logical_and(flat >= limits[0], flat <= limits[-1])
    above = xp.where(is_counted, above, xp.full_like(above, count))  # the others are counted apart
    weighed = None if weights is None else xp.asarray(weights)
    if weighed is not None and weighed.shape != array.shape:
        raise ArgumentError(f"the weights must have the shape {array.shape} of the values, got {weighed.shape}")
    counts = _count_bins(xp, above, None if weighed is None else xp.reshape(weighed, (-1,)), count + 1)[:count]
    if density:
        return counts / (edges[1:] - edges[:-1]) / xp.sum(counts), edges
    return counts, edges


def _edges(xp: ModuleType, flat: Any, bins: Any, limits: Sequence[Any] | None) -> Any:
    """The edges of the intervals of a histogram."""
    if isinstance(bins, str):
        raise ArgumentError(
            f"bins must be a number or edges, got {shown(bins)}; use np.histogram_bin_edges(np.asarray(x), {bins!r})"
        )
    if np.ndim(bins):
        edges = xp.asarray(bins)
        if edges.ndim != 1 or edges.shape[0] < 2:
            raise ArgumentError(f"the edges must be a vector of at least two, got shape {edges.shape}")
        if not edges.backend.is_traced(edges.unwrap()) and bool(xp.any(edges[1:] < edges[:-1])):
            raise ArgumentError("the edges must ascend")
        return edges
    count = whole_number("bins", bins, 1, _LARGEST)
    low, high = limits if limits is not None else (xp.min(flat), xp.max(flat)) if flat.size else (0, 1)
    low, high = (xp.asarray(each, dtype=flat.dtype) for each in (low, high))
    if not flat.backend.is_traced(flat.unwrap()):
        if not bool(xp.isfinite(low)) or not bool(xp.isfinite(high)):
            raise ArgumentError(f"the range must be finite, got {low} to {high}; use range=(low, high)")
        if bool(low > high):
            raise ArgumentError(f"the range must ascend, got {low} to {high}")
    is_point, half = low == high, xp.asarray(0.5, dtype=flat.dtype)
    low, high = xp.where(is_point, low - half, low), xp.where(is_point, high + half, high)
    return xp.linspace(low, high, count + 1, dtype=flat.dtype)


STATISTICS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (bincount, histogram, percentile, quantile)
}
"""The functions of the namespace, by name."""
