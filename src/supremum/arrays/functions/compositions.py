"""Functions of NumPy composed of functions of the standard, each of which the rules decide.

The first parameter of each function is the namespace. They have NumPy's meaning and the same code for all libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from supremum.argument_checks import chosen, flag, whole_number
from supremum.arrays.array_types import Axes
from supremum.arrays.wrapped import NUMBERS
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.typing import ArrayLike

PerAxis: TypeAlias = "ArrayLike | Mapping[int, ArrayLike]"
"""A number, or (before, after), for all dimensions; or one of them for each, in a list or by dimension."""


def as_inexact(xp: ModuleType, x: ArrayLike) -> Any:
    """An array of floats or complex numbers: integers and bools in the dtype of their quotient with 1.

    Args:
        xp: the namespace.
        x: an array or a number.

    Raises:
        PromotionError: if the rules divide no integers.
    """
    array = xp.asarray(x)
    return array if as_format(array.dtype).is_inexact else xp.divide(array, 1)


def hstack(xp: ModuleType, arrays: Sequence[ArrayLike], /) -> Any:
    """Arrays joined along their second dimension, or along the only one, in the dtype that `concat` decides.

    Args:
        xp: the namespace.
        arrays: the arrays; 0-d ones become vectors of one element.

    Raises:
        PromotionError: if the rules refuse.
    """
    rows = [with_dimensions(xp, each, 1) for each in arrays]
    return xp.concat(rows, axis=0 if rows and rows[0].ndim == 1 else 1)


def vstack(xp: ModuleType, arrays: Sequence[ArrayLike], /) -> Any:
    """Arrays joined along their first dimension, in the dtype that `concat` decides.

    Args:
        xp: the namespace.
        arrays: the arrays; vectors become matrices of one row.

    Raises:
        PromotionError: if the rules refuse.
    """
    return xp.concat([with_dimensions(xp, each, 2) for each in arrays], axis=0)


def with_dimensions(xp: ModuleType, x: ArrayLike, count: int) -> Any:
    """An array with at least `count` dimensions; the third one is for channels and comes last, as in NumPy.

    Args:
        xp: the namespace.
        x: an array or a number.
        count: how many dimensions.
    """
    array = xp.asarray(x)
    missing = count - array.ndim
    if missing <= 0:
        return array
    after = 1 if count == 3 and array.ndim else 0
    return xp.reshape(array, (1,) * (missing - after) + array.shape + (1,) * after)


def isclose(
    xp: ModuleType, x1: ArrayLike, x2: ArrayLike, /, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Whether elements are equal within tolerances: `abs(x1 - x2) <= atol + rtol * abs(x2)`, as the rules decide it.

    Args:
        xp: the namespace.
        x1: an array or a number.
        x2: an array or a number; integers are converted to floats.
        rtol: the tolerance relative to `x2`.
        atol: the absolute tolerance.
        equal_nan: whether NaN equals NaN.

    Raises:
        PromotionError: if the rules refuse.
    """
    a, b = xp.asarray(x1), xp.asarray(x2)
    # A Python number takes the dtype of the array.
    reference: Any = x2 if type(x2) in NUMBERS else as_inexact(xp, b)
    if type(x2) in (bool, int):
        reference = float(reference)
    # Rules that do not combine some integers with floats, or do not subtract bools, divide them.
    value = as_inexact(xp, a) if type(x2) in (bool, int) or a.dtype == b.dtype else a
    # Not all rules have bitwise functions of bools.
    is_near = xp.logical_and(abs(value - reference) <= atol + rtol * abs(reference), xp.isfinite(b))
    result = xp.logical_or(is_near, a == b)
    are_nan = flag("equal_nan", equal_nan) and xp.logical_and(xp.isnan(a), xp.isnan(b))
    return result if are_nan is False else xp.logical_or(result, are_nan)


def allclose(
    xp: ModuleType, x1: ArrayLike, x2: ArrayLike, /, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Whether all elements are equal within tolerances, as a 0-d array, with the arguments of `isclose`.

    Args:
        xp: the namespace.
        x1: an array or a number.
        x2: an array or a number.
        rtol: the tolerance relative to `x2`.
        atol: the absolute tolerance.
        equal_nan: whether NaN equals NaN.

    Raises:
        PromotionError: if the rules refuse.
    """
    return xp.all(isclose(xp, x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan))


_LARGEST = 2**63 - 1
_BY_INDICES = ("edge", "reflect", "symmetric", "wrap")


def pad(
    xp: ModuleType, x: ArrayLike, pad_width: PerAxis, /, mode: str = "constant", *, constant_values: PerAxis = 0
) -> Any:
    """An array with elements added before and after it along each dimension, in its dtype.

    Args:
        xp: the namespace.
        x: the array.
        pad_width: how many elements to add: a number, or (before, after) for all dimensions, or for each.
        mode: `"constant"`, or `"edge"`, `"reflect"`, `"symmetric"` or `"wrap"`, as in NumPy.
        constant_values: the added elements, like `pad_width`; the rules store them in the dtype of `x`.

    Raises:
        InPlaceError: if the rules do not store the constants in the dtype of `x`.

    >>> import numpy as np, supremum
    >>> supremum.arrays.namespace("numpy").pad(
    ...     np.array([1, 2], "int8"), (1, 2), constant_values=7
    ... )
    Array([7, 1, 2, 7, 7], dtype=int8)
    """
    array = xp.asarray(x)
    pairs = _pairs("pad_width", pad_width, array.ndim)
    widths = [tuple(whole_number("pad_width", width, 0, _LARGEST) for width in pair) for pair in pairs]
    if chosen("mode", mode, ("constant", *_BY_INDICES)) == "constant":
        constants = _pairs("constant_values", constant_values, array.ndim)
        for axis, (pair, values) in enumerate(zip(widths, constants, strict=True)):
            array = _between(xp, array, axis, pair, values)
        return array
    for axis, pair in enumerate(widths):
        if pair != (0, 0):
            places = np.pad(np.arange(array.shape[axis]), pair, mode)  # pyright: ignore[reportArgumentType, reportCallIssue]
            array = xp.take(array, places, axis=axis)
    return array


def _between(xp: ModuleType, array: Any, axis: int, widths: Sequence[int], values: Sequence[Any]) -> Any:
    """An array between constants."""
    one = xp.reshape(array, (-1,))[:1] if array.size else xp.zeros(1, dtype=array.dtype)
    shape = array.shape[:axis], array.shape[axis + 1 :]
    before, after = (
        # Every dtype holds 0; the rules may store no other int, for example in bools.
        xp.broadcast_to(xp.full_like(one, value) if value else xp.zeros_like(one), (*shape[0], width, *shape[1]))
        for width, value in zip(widths, values, strict=True)
    )
    return xp.concat([before, array, after], axis=axis)


def _pairs(name: str, value: Any, count: int) -> list[tuple[Any, Any]]:
    """A pair of values for each dimension, of one value, one pair, or a pair for each."""
    if isinstance(value, Mapping):
        by_axis: dict[int, Any] = {normalize_axis_index(axis, count): each for axis, each in value.items()}
        return [_pairs(name, by_axis.get(axis, 0), 1)[0] for axis in range(count)]
    if not isinstance(value, (list, tuple)) and np.ndim(value) == 0:
        return [(value, value)] * count
    parts: list[Any] = value.tolist() if isinstance(value, np.ndarray) else list(value)
    if len(parts) == 1 and isinstance(parts[0], (list, tuple)):
        parts = list(parts[0])
    nested = [tuple(each) if isinstance(each, (list, tuple)) else (each,) for each in parts]
    if not any(isinstance(each, (list, tuple)) for each in parts):
        if len(parts) in (1, 2):
            return [(parts[0], parts[-1])] * count
    elif len(nested) == count and all(len(each) in (1, 2) for each in nested):
        return [(each[0], each[-1]) for each in nested]
    raise ArgumentError(
        f"{name} must be a number, a pair, or a pair for each of {count} dimensions, got {shown(value)}"
    )


def unique(
    xp: ModuleType,
    x: ArrayLike,
    /,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    equal_nan: bool = True,
) -> Any:
    """The distinct elements in ascending order. Their number depends on the values, so JAX cannot trace it.

    Args:
        xp: the namespace.
        x: an array.
        return_index: whether to return the position of the first of each, too.
        return_inverse: whether to return the position of each element of `x` in the result, too.
        return_counts: whether to return how many there are of each, too.
        equal_nan: whether all NaNs are one element.

    Returns:
        The elements, or a tuple with the other results that were asked for.
    """
    array = xp.asarray(x)
    flat = xp.reshape(array, (-1,))
    order = xp.argsort(flat, stable=True)
    ordered = xp.take(flat, order)
    differs = ordered[1:] != ordered[:-1]
    if flag("equal_nan", equal_nan) and as_format(array.dtype).is_inexact:
        are_nan = xp.logical_and(xp.isnan(ordered[1:]), xp.isnan(ordered[:-1]))
        differs = xp.logical_and(differs, xp.logical_not(are_nan))
    is_first = xp.concat([xp.ones(min(1, flat.size), dtype="bool"), differs])
    (starts,) = xp.nonzero(is_first)
    results = [ordered[starts]]
    if flag("return_index", return_index):
        results.append(order[starts])
    if flag("return_inverse", return_inverse):
        places = xp.cumulative_sum(xp.astype(is_first, starts.dtype), axis=0, dtype=starts.dtype) - 1
        results.append(xp.reshape(xp.take(places, xp.argsort(order)), array.shape))
    if flag("return_counts", return_counts):
        results.append(xp.diff(starts, append=xp.full(1, flat.size, dtype=starts.dtype)))
    return results[0] if len(results) == 1 else tuple(results)


def interp(
    xp: ModuleType, x: ArrayLike, points: ArrayLike, values: ArrayLike, /, *, left: ArrayLike | None = None,
    right: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Values of a piecewise linear function, in the dtype in which the rules compute them.

    Args:
        xp: the namespace.
        x: where.
        points: the ascending places at which the function is known.
        values: its values there.
        left: the result below the first point; None for the first value.
        right: the result above the last point; None for the last value.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.interp(
    ...     np.array([0.5, 9.0], "float32"),
    ...     np.array([0, 1, 2], "float32"),
    ...     np.array([0, 10, 20], "float32"),
    ... )
    Array([ 5., 20.], dtype=float32)
    """
    at, known, heights = (as_inexact(xp, each) for each in (x, points, values))
    for name, each in (("x", at), ("points", known)):
        if as_format(each.dtype).category == "complex":
            raise OperandError(f"interp: {name} must be real numbers, got {each.dtype}; use xp.real({name})")
    if known.ndim != 1 or known.shape != heights.shape or known.size == 0:
        raise ArgumentError(f"points and values must be vectors of one length, got {known.shape} and {heights.shape}")
    last = known.shape[0] - 1
    # The positions are arrays of one dtype, about which all rules agree.
    above = xp.searchsorted(known, at, side="right")
    zero, one = xp.zeros_like(above), xp.ones_like(above)
    lower = xp.clip(above - one, zero, xp.full_like(above, max(last - 1, 0)))
    upper = xp.clip(lower + one, zero, xp.full_like(above, last))
    start, end, low, high = known[lower], known[upper], heights[lower], heights[upper]
    slope = (high - low) / (end - start)
    result = slope * (at - start) + low
    if last:  # infinite values have no usable slope on one side
        result = xp.where(xp.isnan(result), slope * (at - end) + high, result)
    is_level = xp.logical_and(low == high, xp.logical_not(xp.isnan(at)))
    result = xp.where(xp.logical_or(at == start, is_level), low, result)
    result = xp.where(at >= known[-1], heights[-1], result)
    result = xp.where(at > known[-1], heights[-1] if right is None else right, result)
    return xp.where(at < known[0], heights[0] if left is None else left, result)


def gradient(xp: ModuleType, x: ArrayLike, /, *spacing: ArrayLike, axis: Axes = None, edge_order: int = 1) -> Any:
    """Derivatives by central differences inside and one-sided differences at both ends, as the rules compute them.

    Args:
        xp: the namespace.
        x: the values of a function on a grid.
        spacing: the distance of the points, one for all dimensions or one for each; or the points of each dimension.
        axis: the dimension, or several; None for all.
        edge_order: 1 or 2, the order of the differences at the ends.

    Returns:
        An array, or a tuple of one for each dimension.

    Raises:
        PromotionError: if the rules refuse.
    """
    array = as_inexact(xp, x)
    axes = normalize_axis_tuple(range(array.ndim) if axis is None else axis, array.ndim)
    whole_number("edge_order", edge_order, 1, 2)
    points: tuple[Any, ...] = spacing
    steps = points * len(axes) if len(points) == 1 and np.ndim(points[0]) == 0 else points or (1.0,) * len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"gradient takes no spacing, one, or one for each of {len(axes)} dimensions, got {len(steps)}")
    results = tuple(_derivative(xp, array, step, each, edge_order) for step, each in zip(steps, axes, strict=True))
    return results[0] if len(results) == 1 else results


def _derivative(xp: ModuleType, array: Any, step: Any, axis: int, order: int) -> Any:
    """The derivative along a dimension."""
    count = array.shape[axis]
    if count <= order:
        raise ArgumentError(f"gradient needs at least {order + 1} elements along dimension {axis}, got {count}")

    def part(start: int | None, stop: int | None) -> Any:
        return array[(slice(None),) * axis + (slice(start, stop),)]

    def weighted_sum(parts: Sequence[Any], weights: Sequence[Any]) -> Any:
        return sum((weight * each for weight, each in zip(weights[1:], parts[1:], strict=True)), weights[0] * parts[0])

    if np.ndim(step) == 0:
        before = after = step
        middle = (part(2, None) - part(None, -2)) / (2.0 * step)
    else:
        points = as_inexact(xp, step)
        if points.shape != (count,):
            raise ArgumentError(f"the points along dimension {axis} must be a vector of {count}, got {points.shape}")
        before = after = xp.reshape(points[1:] - points[:-1], (-1,) + (1,) * (array.ndim - axis - 1))
        h, g = before[:-1], after[1:]
        parts = part(None, -2), part(1, -1), part(2, None)
        middle = weighted_sum(parts, (-g / (h * (h + g)), (g - h) / (h * g), h / (g * (h + g))))
        before, after = before[:2], after[-2:]
    firsts, lasts = (part(0, 1), part(1, 2), part(2, 3)), (part(-1, None), part(-2, -1), part(-3, -2))
    h, g = (before, before) if np.ndim(step) == 0 else (before[0], before[-1])
    first = (firsts[1] - firsts[0]) / h if order == 1 else weighted_sum(firsts, _at_end(h, g))
    h, g = (after, after) if np.ndim(step) == 0 else (after[-1], after[0])
    last = (lasts[0] - lasts[1]) / h if order == 1 else -weighted_sum(lasts, _at_end(h, g))
    return xp.concat([first, middle, last], axis=axis)


def _at_end(h: Any, g: Any) -> tuple[Any, Any, Any]:
    """The weights of three elements in the derivative at the first, with their distances."""
    return -(2.0 * h + g) / (h * (h + g)), (h + g) / (h * g), -h / (g * (h + g))


def norm(
    xp: ModuleType, x: ArrayLike, /, ord: float | str | None = None, *, axis: Axes = None,  # noqa: A002
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The norm of vectors or matrices, in the dtype of its elements, or as the rules divide integers.

    Args:
        xp: the namespace.
        x: an array.
        ord: the order; None for the Euclidean norm of all elements.
        axis: a dimension of vectors, or two of matrices; None for all.
        keepdims: whether the dimensions stay, with length one.

    Raises:
        PromotionError: if the rules divide no integers.
    """
    array = as_inexact(xp, x)
    if axis is None and ord is None:
        return xp.linalg.vector_norm(array, axis=None, keepdims=keepdims)
    axes = normalize_axis_tuple(range(array.ndim) if axis is None else axis, array.ndim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ArgumentError(f"the order of a norm of vectors must be a number, got {shown(ord)}")
        return xp.linalg.vector_norm(array, axis=axes[0], ord=2 if ord is None else ord, keepdims=keepdims)
    if len(axes) != 2:
        raise ArgumentError(f"a norm is of one or two dimensions, got {len(axes)}; use axis=")
    matrices = xp.moveaxis(array, axes, (-2, -1))
    result = xp.linalg.matrix_norm(matrices, ord="fro" if ord is None else ord, keepdims=keepdims)
    return xp.moveaxis(result, (-2, -1), axes) if keepdims else result


COMPOSED_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (allclose, gradient, hstack, interp, isclose, pad, unique, vstack)
} | {"linalg.norm": norm}
"""The functions by name, with their extension."""
