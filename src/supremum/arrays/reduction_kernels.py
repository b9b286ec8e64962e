"""Reductions by a library's function, in the dtype to accumulate in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from supremum.arrays.backends import Backend, Plan, Raw
from supremum.arrays.backends.kernels import reduces_alike
from supremum.formats import as_format

# Functions with an argument for the dtype to accumulate in; the others accumulate in the dtype of their argument.
_SUMS = ("sum", "prod", "cumulative_sum", "cumulative_prod")


def reduction(backend: Backend, plan: Plan) -> Callable[[Raw], Raw]:
    """The reduction of a plan, for an array in the dtype of its computation.

    Args:
        backend: the library.
        plan: the plan; its options are those of the standard's function.
    """
    name, dtype, alike = plan.operation.name, plan.compute[0], reduces_alike(backend, plan)
    # Without the options that have their defaults, the call takes less time.
    given = {key: value for key, value in plan.options.items() if value is not None and value is not False}
    options = {key: value for key, value in given.items() if key != "dtype"}
    if name == "mean" and not as_format(dtype).is_inexact and not alike:
        return partial(_mean_of_integers, backend, dtype=backend.native_dtype(dtype), **options)
    if name in _SUMS and not alike:
        options["dtype"] = backend.native_dtype(dtype)
    function = backend.function(name)
    return partial(function, **options) if options else function


def _mean_of_integers(backend: Backend, x: Raw, *, dtype: Any, axis: Any = None, keepdims: bool = False) -> Raw:
    """The mean of integers, rounded towards zero as in C."""
    xp = backend.xp
    total = xp.sum(x, axis=axis, keepdims=keepdims, dtype=dtype)
    count = max(1, prod(x.shape)) // max(1, prod(total.shape))
    quotient = xp.floor_divide(total, count)
    is_cut = (total < 0) & (quotient * count != total)
    return xp.where(is_cut, quotient + 1, quotient)
