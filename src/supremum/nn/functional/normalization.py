"""Mean and variance, and normalization, accurate for rows of large or equal values.

Statistics are in at least float32, and results are rounded once. Flax FLIP, default dtypes, "Half-precision dtypes",
"Batch statistics" and "Complex number support".
"""

from __future__ import annotations

import math
from functools import partial
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from supremum.argument_checks import flag, whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import as_array, common_dtype, promote_arrays, refuse_none, shape_of
from supremum.nn.functional.masks import as_boolean
from supremum.nn.functional.shape_checks import MOST, Ints, as_axes, check_broadcasts
from supremum.promotion import promote_types
from supremum.typing import ArrayLike, DTypeLike


def moments(
    x: ArrayLike, axes: Ints, *, mask: ArrayLike | None = None, keepdims: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Mean and biased variance over some axes, in at least float32.

    This is the corrected two-pass algorithm of Chan, Golub and LeVeque, 1983, "Algorithms for Computing the Sample
    Variance". It squares distances from a first estimate of the mean, to avoid cancellation, and then corrects mean and
    variance for the error of the estimate. Without it, a norm would turn rows of equal large values into ±1.

    Args:
        x: values of any dtype; integers count as float32.
        axes: the axes to reduce.
        mask: booleans that broadcast to the shape of `x`, True for values that count; None for all.
        keepdims: whether the reduced axes stay, with length 1.

    Returns:
        The mean, complex if `x` is, and the variance, which is real: the mean of (x - mean)·conj(x - mean). Both are 0
        if no value counts.

    Raises:
        ArgumentError: for axes that are repeated or out of range, or a mask that does not broadcast; a `ValueError`.
        OperandError: for a mask that is not bool; a `TypeError`.

    >>> moments(jnp.asarray([-6e4, 6e4], jnp.float16), -1)
    (Array(0., dtype=float32), Array(3.6e+09, dtype=float32))
    """
    (x,) = promote_arrays(x, dtype=at_least_float32(common_dtype(x)))
    axes = as_axes("axes", axes, x.ndim)
    flag("keepdims", keepdims)
    count = None
    if mask is not None:
        mask = as_boolean(mask, "the mask", "use mask != 0")
        check_broadcasts("the mask", mask.shape, x.shape)
        mask = jnp.broadcast_to(mask, x.shape)
        count = jnp.maximum(jnp.sum(mask, axes, keepdims=True, dtype=at_least_float32(x.real.dtype)), 1)
        x = jnp.where(mask, x, 0)  # first, or a masked NaN would reach the gradient
    # The results do not depend on the estimate, so gradients do not either.
    estimate = lax.stop_gradient(_average(x, axes, count))
    distance = x - estimate if mask is None else jnp.where(mask, x - estimate, 0)
    error = _average(distance, axes, count)
    variance = jnp.maximum(_average(squared(distance), axes, count) - squared(error), 0)
    mean = estimate + error
    return (mean, variance) if keepdims else (jnp.squeeze(mean, axes), jnp.squeeze(variance, axes))


def joint_moments(
    mean: jax.Array, variance: jax.Array, count: jax.Array | int, axis_name: str
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Combine the means and variances of several devices (Chan, Golub and LeVeque, 1983).

    Args:
        mean: the mean of this device's values.
        variance: the biased variance of this device's values.
        count: the number of this device's values, of a shape that broadcasts to the mean's.
        axis_name: the axis of the devices, in `jax.shard_map` or `jax.vmap`.

    Returns:
        The mean, variance and number of all devices' values.
    """
    count = jnp.asarray(count, variance.dtype)
    total = lax.psum(count, axis_name)
    share = count / jnp.maximum(total, 1)
    joint = lax.psum(share * mean, axis_name)
    return joint, lax.psum(share * (variance + squared(mean - joint)), axis_name), total


def has_axis(axis_name: str) -> bool:
    """Whether a device axis of this name is in scope."""
    try:
        lax.axis_index(axis_name)
    except NameError:
        return False
    return True


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def standardize(x: jax.Array, axes: tuple[int, ...], epsilon: float, centered: bool) -> tuple[jax.Array, jax.Array]:
    """Subtract the mean from values and divide by the root of their variance.

    The derivative is explicit because it is short. JAX's derivative of the two passes of `moments` sums over rows many
    times and takes 2.5 times as long on CPU.

    Args:
        x: values of at least float32.
        axes: the axes to reduce, from 0, without repetition.
        epsilon: added to the variance.
        centered: whether to subtract the mean; if not, values are divided by the root of their mean square.

    Returns:
        The result, of the shape of `x`, and the factor of the differences, with reduced axes of length 1.
    """
    if centered:
        mean, variance = moments(x, axes, keepdims=True)
        factor = lax.rsqrt(variance + epsilon)
        return (x - mean) * factor, factor
    factor = lax.rsqrt(_average(squared(x), axes) + epsilon)
    return x * factor, factor


@standardize.defjvp
def _(
    axes: tuple[int, ...], epsilon: float, centered: bool, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    (change,) = tangents
    result, factor = standardize(*primals, axes, epsilon, centered)
    # The derivative of the deviation's logarithm; for a mean of x·conj(x) it has the mean of Re(conj(x)·dx).
    growth = _average(_real_product(result, change), axes)
    moved = change - _average(change, axes) if centered else change
    return (result, factor), (factor * (moved - result * growth), -lax.square(factor) * growth)


def _average(x: jax.Array, axes: tuple[int, ...], count: Any = None) -> jax.Array:
    count = max(math.prod(x.shape[axis] for axis in axes), 1) if count is None else count
    return jnp.sum(x, axes, keepdims=True) / count


def _real_product(x: jax.Array, y: jax.Array) -> jax.Array:
    """The real part of conj(x)·y."""
    if as_format(x.dtype).category == "complex":
        return lax.real(x) * lax.real(y) + lax.imag(x) * lax.imag(y)
    return x * y


def squared(x: jax.Array) -> jax.Array:
    """x·conj(x), real."""
    if as_format(x.dtype).category == "complex":
        return lax.square(lax.real(x)) + lax.square(lax.imag(x))
    return lax.square(x)


def check_epsilon(epsilon: object, dtype: DType) -> float:
    """Check that 1 / sqrt(epsilon) and its slope are finite, since constant values would otherwise become NaN."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, Real):
        raise ArgumentError(f"epsilon must be a positive number, got {shown(epsilon)}; use epsilon=1e-6")
    largest = as_format(dtype).max
    least = largest ** (-2 / 3)
    if not least <= float(epsilon) <= largest:
        raise ArgumentError(
            f"epsilon must be from {least:.1e} to {largest:.1e}, where 1 / sqrt(epsilon) and its slope are finite in "
            f"{dtype}, got {epsilon}; use epsilon=1e-6"
        )
    return float(epsilon)


def normalize(
    x: ArrayLike,
    mean: ArrayLike | None,
    variance: ArrayLike,
    scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    *,
    epsilon: float,
    dtype: DTypeLike | None = None,
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
    values, center, factors, shift = promote_arrays(x, mean, scale, offset, dtype=wide)
    (variance,) = promote_arrays(variance, dtype=as_format(wide).component.dtype)
    if as_format(variance.dtype).category == "complex":
        raise OperandError(f"the variance must be real, got {variance.dtype}; use variance.real")
    for name, array in {"mean": center, "variance": variance, "scale": factors, "offset": shift}.items():
        if array is not None:
            check_broadcasts(name, array.shape, values.shape)
    # With one combined factor, the gradient needs one sum over rows instead of two in sequence.
    factor = lax.rsqrt(variance + check_epsilon(epsilon, variance.dtype))
    factor = factor if factors is None else factor * factors
    result = (values if center is None else values - center) * factor
    result = result if shift is None else result + shift
    return result.astype(target)


def layer_norm(
    x: ArrayLike,
    scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    *,
    axes: Ints = (-1,),
    epsilon: float = 1e-6,
    dtype: DTypeLike | None = None,
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


def rms_norm(
    x: ArrayLike,
    scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    *,
    axes: Ints = (-1,),
    epsilon: float = 1e-6,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Divide each example by its root mean square (Zhang and Sennrich, 2019).

    Args:
        x: values of any dtype.
        scale: the factor after dividing, of the shape of `x` over `axes`, or None.
        offset: the shift after scaling, of the same shape, or None.
        axes: the axes to normalize over.
        epsilon: added to the mean square.
        dtype: the dtype of the result; None for the result type of `x`, `scale` and `offset`, at least inexact.

    Returns:
        An array of the shape of `x`; the computation is in at least float32 and rounds once.

    Raises:
        ArgumentError: for axes out of range, a scale or offset of a different shape, or an argument that `normalize`
            refuses; a `ValueError`.

    >>> rms_norm(jnp.asarray([3, 4], jnp.bfloat16), epsilon=1e-6)
    Array([0.847656, 1.13281], dtype=bfloat16)
    """
    return _norm(x, scale, offset, axes, epsilon, dtype, centered=False)


def group_norm(
    x: ArrayLike,
    scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    *,
    groups: int,
    epsilon: float = 1e-6,
    dtype: DTypeLike | None = None,
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
    x: ArrayLike,
    scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    *,
    epsilon: float = 1e-6,
    dtype: DTypeLike | None = None,
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
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    scale: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-3,
    dtype: DTypeLike | None = None,
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

    >>> batch_norm(
    ...     jnp.ones((2, 1), jnp.bfloat16), jnp.zeros(1), jnp.ones(1), epsilon=1e-6
    ... )
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
    (x,) = promote_arrays(x, dtype=at_least_float32(target))
    axes = tuple(sorted(as_axes("axes", axes, x.ndim)))
    scale, offset = _along(axes, x.shape, scale=scale, offset=offset)
    rows = x if shape is None else x.reshape(shape)
    result, _ = standardize(rows, over or axes, check_epsilon(epsilon, x.real.dtype), centered)
    scale, offset = promote_arrays(scale, offset, dtype=result.dtype)
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
