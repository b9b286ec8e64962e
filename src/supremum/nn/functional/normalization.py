"""Normalization, with statistics in at least float32 and results that are rounded once.

Flax FLIP, default dtypes, "Half-precision dtypes", "Batch statistics" and "Complex number support".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from supremum.argument_checks import whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import as_array, common_dtype, promote_dtype, refuse_none, shape_of
from supremum.nn.functional.moments import checked_epsilon, standardize
from supremum.nn.functional.shape_checks import MOST, Ints, as_axes, broadcasts
from supremum.promotion import promote_types


def normalize(
    x: Any, mean: Any, variance: Any, scale: Any = None, offset: Any = None, *, epsilon: float, dtype: Any = None
) -> jax.Array:
    """Center values, divide by the deviation, then scale and shift; computed in at least float32, rounded once.

    Args:
        x: values.
        mean: the mean to subtract, or None; all arrays must broadcast to the shape of `x`.
        variance: the variance, real.
        scale: the factor after normalizing, or None.
        offset: the shift after scaling, or None.
        epsilon: added to the variance; it must be large enough for a finite slope at variance 0.
        dtype: the dtype of the result; None for the result type of `x`, `scale` and `offset`, at least inexact. Complex
            arrays are never truncated.

    Returns:
        An array of the shape of `x`.

    Raises:
        ArgumentError: for an `epsilon` that is not positive or too small, arrays that do not broadcast to the shape of
            `x`, or a `dtype` that is not inexact; a `ValueError`.
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
            # Only dtypes from float32 up, which all rule sets join in the same way, if at all.
            wide = promote_types(wide, at_least_float32(common_dtype(statistic)), rules="jax")
    x, mean, scale, offset = promote_dtype(x, mean, scale, offset, dtype=wide)
    (variance,) = promote_dtype(variance, dtype=as_format(wide).component.dtype)
    if as_format(variance.dtype).category == "complex":
        raise OperandError(f"the variance must be real, got {variance.dtype}; use variance.real")
    names = {"mean": mean, "variance": variance, "scale": scale, "offset": offset}
    for name, array in names.items():
        if array is not None and not broadcasts(array.shape, x.shape):
            raise ArgumentError(f"{name} must broadcast to the shape of x, {x.shape}, got shape {array.shape}")
    # With one combined factor, the gradient needs one sum over rows instead of two in sequence.
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
        scale: the factor after normalizing, of the shape of `x` over `axes`, or None.
        offset: the shift after scaling, of the same shape, or None.
        axes: the axes to normalize over.
        epsilon: added to the variance.
        dtype: the dtype of the result; None for the result type of `x`, `scale` and `offset`, at least inexact.

    Returns:
        An array of the shape of `x`; the computation is in at least float32 and rounds once.

    Raises:
        ArgumentError: for axes out of range, a scale or offset of a different shape, or an argument that `normalize`
            refuses; a `ValueError`.

    >>> layer_norm(jnp.asarray([[1, 2, 3]], jnp.float16), jnp.ones(3, jnp.float16))
    Array([[-1.225,  0.   ,  1.225]], dtype=float16)
    """
    return _norm(x, scale, offset, axes, epsilon, dtype)


def rms_norm(x: Any, scale: Any = None, *, axes: Ints = (-1,), epsilon: float = 1e-6, dtype: Any = None) -> jax.Array:
    """Divide each example by its root mean square (Zhang and Sennrich, 2019).

    Args:
        x: values of any dtype.
        scale: the factor after dividing, of the shape of `x` over `axes`, or None.
        axes: the axes to normalize over.
        epsilon: added to the mean square.
        dtype: the dtype of the result; None for the result type of `x` and `scale`, at least inexact.

    Returns:
        An array of the shape of `x`; the computation is in at least float32 and rounds once.

    Raises:
        ArgumentError: for axes out of range, a scale of a different shape, or an argument that `normalize` refuses; a
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
        offset: the shift after scaling, shape (channels,), or None.
        groups: the number of groups of channels.
        epsilon: added to the variance.
        dtype: the dtype of the result; None for the result type of `x`, `scale` and `offset`, at least inexact.

    Returns:
        An array of the shape of `x`; the computation is in at least float32 and rounds once.

    Raises:
        ArgumentError: for fewer than two axes, groups that do not divide the channels, a scale or offset of a different
            shape, or an argument that `normalize` refuses; a `ValueError`.

    >>> group_norm(jnp.asarray([[1, 3, 10, 30]], jnp.float32), groups=2).round(3)
    Array([[-1.,  1., -1.,  1.]], dtype=float32)
    """
    shape = shape_of("x", x)
    if len(shape) < 2:
        raise ArgumentError(f"group_norm needs x of shape (batch, *space, channels), got {shape}; add a batch axis")
    channels = shape[-1]
    groups = whole_number("groups", groups, 0, MOST)
    if groups < 1 or channels % groups:
        raise ArgumentError(f"groups must divide the {channels} channels, got {groups}")
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
        offset: the shift after scaling, shape (channels,), or None.
        epsilon: added to the variance.
        dtype: the dtype of the result; None for the result type of `x`, `scale` and `offset`, at least inexact.

    Returns:
        An array of the shape of `x`; the computation is in at least float32 and rounds once.

    Raises:
        ArgumentError: for fewer than three axes, a scale or offset of a different shape, or an argument that
            `normalize` refuses; a `ValueError`.

    >>> instance_norm(jnp.asarray([[[1, 10], [3, 30]]], jnp.float32)).round(3)
    Array([[[-1., -1.],
            [ 1.,  1.]]], dtype=float32)
    """
    shape = shape_of("x", x)
    if len(shape) < 3:
        raise ArgumentError(
            f"instance_norm needs x of shape (batch, *space, channels), got {shape}; without space every value is its "
            "own mean; use layer_norm to normalize over channels"
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
        variance: one real number per channel, likewise.
        scale: the factor after normalizing, one number per channel, or None.
        offset: the shift after scaling, one number per channel, or None.
        axis: the axis of the channels.
        epsilon: added to the variance.
        dtype: the dtype of the result; None for the result type of `x`, `scale` and `offset`, at least inexact.

    Returns:
        An array of the shape of `x`; the computation is in at least float32 and the dtypes of the statistics, and
        rounds once.

    Raises:
        ArgumentError: for an axis out of range, arrays that are not one number per channel, or an argument that
            `normalize` refuses; a `ValueError`.

    >>> batch_norm(jnp.ones((2, 1), jnp.bfloat16), jnp.zeros(1), jnp.ones(1), epsilon=1e-6)
    Array([[1],
           [1]], dtype=bfloat16)
    """
    shape = shape_of("x", x)
    axes = as_axes("axis", axis, len(shape))
    if len(axes) != 1:
        raise ArgumentError(f"axis must be one number, the axis of the channels, got {shown(axis)}; use axis=-1")
    arrays = _along(axes, shape, mean=mean, variance=variance, scale=scale, offset=offset)
    return normalize(x, *arrays, epsilon=epsilon, dtype=dtype)


def _norm(
    x: Any,
    scale: Any,
    offset: Any,
    axes: Ints,
    epsilon: Any,
    dtype: Any,
    *,
    shape: tuple[int, ...] | None = None,
    over: tuple[int, ...] | None = None,
    centered: bool = True,
) -> jax.Array:
    """Standardize values, then scale and shift them; computed in at least float32, rounded once.

    Args:
        x: values.
        scale: the factor after standardizing, of the shape of `x` over `axes`, or None.
        offset: the shift after scaling, of the same shape, or None.
        axes: the axes of scale and offset.
        epsilon: added to the variance.
        dtype: the dtype of the result; None for the result type.
        shape: the shape to standardize `x` in; None for the shape of `x`.
        over: the axes of that shape to standardize over; None for `axes`.
        centered: whether to subtract the mean.
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
    """Reshape arrays over some axes of a shape, with length 1 for the other axes."""
    want = tuple(shape[axis] for axis in axes)
    for name, array in arrays.items():
        if array is not None and shape_of(name, array) != want:
            raise ArgumentError(
                f"{name} must have shape {want}, that of x over axes {axes}, got {jnp.shape(array)} for x of shape "
                f"{shape}"
            )
    spread = [length if axis in axes else 1 for axis, length in enumerate(shape)]
    return [None if array is None else as_array(name, array).reshape(spread) for name, array in arrays.items()]
