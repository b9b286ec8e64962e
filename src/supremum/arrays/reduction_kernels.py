"""Reductions by a library's function, in the dtype to accumulate in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from types import ModuleType
from typing import Any

from numpy.lib.array_utils import normalize_axis_tuple

from supremum.arrays.array_types import Axes
from supremum.arrays.backends import Backend, CallPlan, Raw
from supremum.arrays.backends.kernels import reduces_alike
from supremum.formats import as_format
from supremum.operations import as_operation
from supremum.typing import SupportsArray

# Functions with an argument for the dtype to accumulate in; the others accumulate in the dtype of their argument.
_SUMS = ("sum", "prod", "cumulative_sum", "cumulative_prod")


def reduction(backend: Backend, plan: CallPlan) -> Callable[[Raw], Raw]:
    """The reduction of a plan, for an array in the dtype of its computation.

    Args:
        backend: the library.
        plan: the plan; its options are those of the standard's function.
    """
    name, dtype, alike = plan.operation.name, plan.compute[0], reduces_alike(backend, plan)
    # Without the options that have their defaults, the call takes less time.
    non_defaults = {key: value for key, value in plan.options.items() if value is not None and value is not False}
    options = {key: value for key, value in non_defaults.items() if key != "dtype"}
    if name == "mean" and not as_format(dtype).is_inexact and not alike:
        sums = partial(_sum_and_count, backend, dtype=backend.native_dtype(dtype), **options)
        if as_format(plan.result.dtype).is_inexact:
            return partial(_float_mean_of_integers, backend, sums, backend.native_dtype(plan.result.dtype))
        return partial(_mean_of_integers, backend, sums)
    if name in _SUMS and not alike:
        options["dtype"] = backend.native_dtype(dtype)
    function = backend.function(name)
    return partial(function, **options) if options else function


def _sum_and_count(
    backend: Backend, x: Raw, *, dtype: Any, axis: Any = None, keepdims: bool = False
) -> tuple[Raw, int]:
    """The sums of a mean, and how many elements are in each."""
    total = backend.xp.sum(x, axis=axis, keepdims=keepdims, dtype=dtype)
    return total, prod(x.shape) // max(1, prod(total.shape))


def _mean_of_integers(backend: Backend, sums: Callable[[Raw], tuple[Any, int]], x: Raw) -> Raw:
    """The mean of integers, rounded towards zero as in C."""
    xp, (total, length) = backend.xp, sums(x)
    count = max(1, length)
    quotient = xp.floor_divide(total, count)
    is_cut = (total < 0) & (quotient * count != total)
    return xp.where(is_cut, quotient + 1, quotient)


def _float_mean_of_integers(backend: Backend, sums: Callable[[Raw], tuple[Any, int]], dtype: Any, x: Raw) -> Raw:
    """The mean of integers that are added as integers and divided as floats."""
    total, count = sums(x)
    return backend.xp.astype(total, dtype) / count


def sum_without_nan(backend: Backend, plan: CallPlan) -> Callable[[Raw], Raw]:
    """The sum of the elements that are not NaN; the parameters are those of `reduction`."""
    total = reduction(backend, _plan_of("sum", plan))
    return total if not as_format(plan.compute[0]).is_inexact else lambda x: total(_without_nan(backend, x))


def mean_without_nan(backend: Backend, plan: CallPlan) -> Callable[[Raw], Raw]:
    """The mean of the elements that are not NaN; the parameters are those of `reduction`."""
    computed = plan.compute[0]
    if not as_format(computed).is_inexact:
        return reduction(backend, _plan_of("mean", plan))
    xp, native = backend.xp, backend.native_dtype(computed)
    options = {name: value for name, value in plan.options.items() if name != "dtype"}

    def mean(x: Raw) -> Raw:
        count = xp.sum(xp.astype(~xp.isnan(x), native), dtype=native, **options)
        return xp.sum(_without_nan(backend, x), dtype=native, **options) / count

    return mean


def _without_nan(backend: Backend, x: Raw) -> Raw:
    return backend.xp.where(backend.xp.isnan(x), backend.xp.zeros_like(x), x)


def median(backend: Backend, plan: CallPlan) -> Callable[[Raw], Raw]:
    """The mean of the one or two elements in the middle, or NaN if an element is NaN.

    Args:
        backend: the library.
        plan: the plan; its options are those of the mean.
    """
    xp, (axis, keepdims) = backend.xp, plan.options.values()
    mean = reduction(backend, replace(_plan_of("mean", plan), options={"axis": 0}))

    def middle(x: Raw) -> Raw:
        rows, shape = in_rows(xp, x, axis, keepdims=keepdims)
        ordered = xp.sort(rows, axis=0)
        count = ordered.shape[0]
        result = mean(ordered[max(count - 1, 0) // 2 : count // 2 + 1])
        if count and as_format(plan.compute[0]).is_inexact:
            result = xp.where(xp.isnan(ordered[-1]), ordered[-1], result)
        return xp.reshape(result, shape)

    return middle


def _plan_of(name: str, plan: CallPlan) -> CallPlan:
    """The plan of a reduction that is part of the function of a plan."""
    return replace(plan, operation=as_operation(name))


def in_rows(xp: ModuleType, x: SupportsArray, axis: Axes, *, keepdims: bool) -> tuple[Any, tuple[int, ...]]:
    """An array with the dimensions of a reduction joined as its first one, and the shape of the result.

    Args:
        xp: a namespace of the standard.
        x: an array of that namespace.
        axis: the dimensions of the reduction, as for `sum`.
        keepdims: whether they stay, with length one.
    """
    count = len(x.shape)
    reduced = normalize_axis_tuple(range(count) if axis is None else axis, count)
    kept = tuple(i for i in range(count) if i not in reduced)
    lengths = tuple(x.shape[i] for i in kept)
    rows = xp.reshape(xp.permute_dims(x, (*reduced, *kept)), (prod(x.shape[i] for i in reduced), *lengths))
    return rows, tuple(1 if i in reduced else x.shape[i] for i in range(count) if keepdims or i in kept)
