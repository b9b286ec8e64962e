"""Normalization: statistics in at least float32, and results that are rounded once.

spec/flax-flip-default-dtypes.md, "Half-precision dtypes", "Batch statistics" and "Complex number support".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from supremum.argument_checks import whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import (
    as_array,
    common_dtype,
    promote_dtype,
    refuse_none,
    shape_of,
)
from supremum.nn.functional.moments import checked_epsilon, standardize
from supremum.nn.functional.shape_checks import MOST, Ints, as_axes, broadcasts
from supremum.promotion import promote_types


def normalize(
    x: Any, mean: Any, variance: Any, scale: Any = None, offset: Any = None, *, epsilon: float, dtype: Any = None
) -> jax.Array:
    """Values centered, brought to unit variance, then scaled and shifted; computed in at least float32, rounded once.

    Args:
        x: values.
        mean: what to subtract, of a shape that broadcasts to that of `x`, as the other arrays; None for nothing.
        variance: the variance, real.
        scale: the factor after normalizing, or None.
        offset: the shift after that, or None.
        epsilon: added to the variance, large enough for the slope at a variance of 0 to be finite.
        dtype: of the result; None for the result type of `x`, `scale` and `offset`, at least inexact. No complex
            array is truncated.

    Returns:
        An array of the shape of `x`.

    Raises:
        ArgumentError: for an `epsilon` that is not positive or too small, arrays whose shapes do not broadcast to that
            of `x`, or a `dtype` that is not inexact; a `ValueError`.
        OperandError: for a complex variance; a `TypeError`.

    >>> normalize(jnp.asarray([1, 3], jnp.bfloat16), 2.0, 1.0, epsilon=1e-6)
    Array([-1, 1], dtype=bfloat16)
    """
    refuse_none(x=x, variance=variance)
    target = common_dtype(x, scale, offset, dtype=dtype)
    if mean is not None:
        target = common_dtype(mean, dtype=target)
    wide = at_least_float32(target)
    for statistic in (mean, variance):
        if statistic is not None:
            # The dtypes from float32 up, which all rules that join them join alike.
            wide = promote_types(wide, at_least_float32(common_dtype(statistic)), rules="jax")
    x, mean, scale, offset = promote_dtype(x, mean, scale, offset, dtype=wide)
    (variance,) = promote_dtype(variance, dtype=as_format(wide).component.dtype)
    if as_format(variance.dtype).category == "complex":
        raise OperandError(f"a variance is real, not {variance.dtype}: give variance.real")
    names = {"mean": mean, "variance": variance, "scale": scale, "offset": offset}
    for name, array in names.items():
        if array is not None and not broadcasts(array.shape, x.shape):
            raise ArgumentError(f"{name} has shape {array.shape}, which does not broadcast to that of x, {x.shape}")
    # One factor for each value: its gradient then needs one sum over rows, not two after one another.
    factor = lax.rsqrt(variance + checked_epsilon(epsilon, variance.dtype))
    factor = factor if scale is None else factor * scale
    result = (x if mean is None else x - mean) * factor
    result = result if offset is None else result + offset
    return result.astype(target)


def layer_norm(
    x: Any, scale: Any = None, offset: Any = None, *, axes: Ints = (-1,), epsilon: float = 1e-6, dtype: Any = None
) -> jax.Array:
    """Normalize each example by its own mean and variance (Ba, Kiros and Hinton, 2016).

    Args:
        x: values of any dtype.
        scale: the factor after normalizing, of the shape that `x` has over `axes`, or None.
        offset: the shift after that, of the same shape, or None.
        axes: the axes to normalize over.
        epsilon: added to the variance.
        dtype: of the result; None for the result type of `x`, `scale` and `offset`, at least inexact.

    Returns:
        An array of the shape of `x`; everything before its rounding is computed in at least float32.

    Raises:
        ArgumentError: for axes that are not there, a scale or offset of another shape, or what `normalize` refuses; a
            `ValueError`.

    >>> layer_norm(jnp.asarray([[1, 2, 3]], jnp.float16), jnp.ones(3, jnp.float16))
    Array([[-1.225,  0.   ,  1.225]], dtype=float16)
    """
    return _norm(x, scale, offset, axes, epsilon, dtype)


def rms_norm(x: Any, scale: Any = None, *, axes: Ints = (-1,), epsilon: float = 1e-6, dtype: Any = None) -> jax.Array:
    """Divide each example by its root mean square (Zhang and Sennrich, 2019).

    Args:
        x: values of any dtype.
        scale: the factor after that, of the shape that `x` has over `axes`, or None.
        axes: the axes to normalize over.
        epsilon: added to the mean square.
        dtype: of the result; None for the result type of `x` and `scale`, at least inexact.

    Returns:
        An array of the shape of `x`; everything before its rounding is computed in at least float32.

    Raises:
        ArgumentError: for axes that are not there, a scale of another shape, or what `normalize` refuses; a
            `ValueError`.

    >>> rms_norm(jnp.asarray([3, 4], jnp.bfloat16), epsilon=1e-6)
    Array([0.847656, 1.13281], dtype=bfloat16)
    """
    return _norm(x, scale, None, axes, epsilon, dtype, centered=False)


def group_norm(
    x: Any, scale: Any = None, offset: Any = None, *, groups: int, epsilon: float = 1e-6, dtype: Any = None
) -> jax.Array:
    """Normalize groups of neighboring channels, each by its mean and variance over space (Wu and He, 2018).

    Args:
        x: values of any dtype, shape (batch, *space, channels).
        scale: the factor after normalizing, shape (channels,), or None.
        offset: the shift after that, shape (channels,), or None.
        groups: into how many groups the channels fall.
        epsilon: added to the variance.
        dtype: of the result; None for the result type of `x`, `scale` and `offset`, at least inexact.

    Returns:
        An array of the shape of `x`; everything before its rounding is computed in at least float32.

    Raises:
        ArgumentError: for fewer than two axes, groups that do not divide the channels, a scale or offset of another
            shape, or what `normalize` refuses; a `ValueError`.

    >>> group_norm(jnp.asarray([[1, 3, 10, 30]], jnp.float32), groups=2).round(3)
    Array([[-1.,  1., -1.,  1.]], dtype=float32)
    """
    shape = shape_of("x", x)
    if len(shape) < 2:
        raise ArgumentError(f"group_norm takes x of shape (batch, *space, channels), not {shape}: give it a batch axis")
    channels = shape[-1]
    groups = whole_number("groups", groups, 0, MOST)
    if groups < 1 or channels % groups:
        raise ArgumentError(f"{groups} groups do not divide {channels} channels: give groups= a divisor of {channels}")
    split = (*shape[:-1], groups, channels // groups)
    over = (*range(1, len(shape) - 1), len(shape))
    return _norm(x, scale, offset, -1, epsilon, dtype, shape=split, over=over)


def instance_norm(
    x: Any, scale: Any = None, offset: Any = None, *, epsilon: float = 1e-6, dtype: Any = None
) -> jax.Array:
    """Normalize each channel of each example by its mean and variance over space (Ulyanov and others, 2016).

    Args:
        x: values of any dtype, shape (batch, *space, channels).
        scale: the factor after normalizing, shape (channels,), or None.
        offset: the shift after that, shape (channels,), or None.
        epsilon: added to the variance.
        dtype: of the result; None for the result type of `x`, `scale` and `offset`, at least inexact.

    Returns:
        An array of the shape of `x`; everything before its rounding is computed in at least float32.

    Raises:
        ArgumentError: for fewer than three axes, a scale or offset of another shape, or what `normalize` refuses; a
            `ValueError`.

    >>> instance_norm(jnp.asarray([[[1, 10], [3, 30]]], jnp.float32)).round(3)
    Array([[[-1., -1.],
            [ 1.,  1.]]], dtype=float32)
    """
    shape = shape_of("x", x)
    if len(shape) < 3:
        raise ArgumentError(
            f"instance_norm takes x of shape (batch, *space, channels), not {shape}: without axes of space every value "
            "is its own mean; layer_norm normalizes over channels"
        )
    return _norm(x, scale, offset, -1, epsilon, dtype, over=tuple(range(1, len(shape) - 1)))


def batch_norm(
    x: Any,
    mean: Any,
    variance: Any,
    scale: Any = None,
    offset: Any = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-3,
    dtype: Any = None,
) -> jax.Array:
    """Normalize each channel by statistics of the batch, or running ones (Ioffe and Szegedy, 2015).

    Args:
        x: values of any dtype.
        mean: one number per channel, from `moments` or a running average.
        variance: likewise, real.
        scale: the factor after normalizing, one number per channel, or None.
        offset: the shift after that, likewise.
        axis: the axis of the channels.
        epsilon: added to the variance.
        dtype: of the result; None for the result type of `x`, `scale` and `offset`, at least inexact.

    Returns:
        An array of the shape of `x`, rounded once from at least float32 and the dtypes of the statistics.

    Raises:
        ArgumentError: for an axis that is not there, arrays that are not one number per channel, or what `normalize`
            refuses; a `ValueError`.

    >>> batch_norm(jnp.ones((2, 1), jnp.bfloat16), jnp.zeros(1), jnp.ones(1), epsilon=1e-6)
    Array([[1],
           [1]], dtype=bfloat16)
    """
    shape = shape_of("x", x)
    axes = as_axes("axis", axis, len(shape))
    if len(axes) != 1:
        raise ArgumentError(f"axis is that of the channels, one number, not {shown(axis)}: give axis=-1")
    arrays = _along(axes, shape, mean=mean, variance=variance, scale=scale, offset=offset)
    return normalize(x, *arrays, epsilon=epsilon, dtype=dtype)


def _norm(
    x: Any,
    scale: Any,
    offset: Any,
    axes: Any,
    epsilon: Any,
    dtype: Any,
    *,
    shape: tuple[int, ...] | None = None,
    over: tuple[int, ...] | None = None,
    centered: bool = True,
) -> jax.Array:
    """Values standardized, then scaled and shifted; computed in at least float32, rounded once.

    Args:
        x: values.
        scale: the factor after that, of the shape that `x` has over `axes`, or None.
        offset: what is added after that, likewise.
        axes: the axes that scale and offset have.
        epsilon: added to the variance.
        dtype: of the result; None for the result type.
        shape: the shape that `x` has while it is standardized; None for its own.
        over: the axes of that shape to standardize over; None for `axes`.
        centered: whether the mean is subtracted.
    """
    target = common_dtype(x, scale, offset, dtype=dtype)
    (x,) = promote_dtype(x, dtype=at_least_float32(target))
    axes = tuple(sorted(as_axes("axes", axes, x.ndim)))
    scale, offset = _along(axes, x.shape, scale=scale, offset=offset)
    rows = x if shape is None else x.reshape(shape)
    result, _ = standardize(rows, over or axes, checked_epsilon(epsilon, x.real.dtype), centered)
    scale, offset = promote_dtype(scale, offset, dtype=result.dtype)
    result = result.reshape(x.shape)
    result = result if scale is None else result * scale
    return (result if offset is None else result + offset).astype(target)


def _along(axes: tuple[int, ...], shape: tuple[int, ...], **arrays: Any) -> list[Any]:
    """Arrays over some axes of a shape, with axes of length 1 for the others."""
    want = tuple(shape[axis] for axis in axes)
    for name, array in arrays.items():
        if array is not None and shape_of(name, array) != want:
            raise ArgumentError(
                f"{name} has shape {jnp.shape(array)}, but x of shape {shape} has {want} over axes {axes}: "
                f"give {name} the shape {want}"
            )
    spread = [length if axis in axes else 1 for axis, length in enumerate(shape)]
    return [None if array is None else as_array(name, array).reshape(spread) for name, array in arrays.items()]
