"""Mean and variance, and standardized values, accurate for rows of large or equal values.

Flax FLIP, default dtypes, "Half-precision dtypes", "Batch statistics" and "Complex number support".
"""

from __future__ import annotations

import math
from functools import partial
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from supremum.argument_checks import flag
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import as_array, common_dtype, promote_dtype
from supremum.nn.functional.shape_checks import Ints, as_axes, broadcasts


def moments(x: Any, axes: Ints, *, mask: Any = None, keepdims: bool = False) -> tuple[jax.Array, jax.Array]:
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
    (x,) = promote_dtype(x, dtype=at_least_float32(common_dtype(x)))
    axes = as_axes("axes", axes, x.ndim)
    flag("keepdims", keepdims)
    count = None
    if mask is not None:
        mask = _checked_mask(mask, x.shape)
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
    mean: jax.Array, variance: jax.Array, count: Any, axis_name: str
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


def _checked_mask(mask: Any, shape: tuple[int, ...]) -> jax.Array:
    mask = as_array("mask", mask)
    if as_format(mask.dtype).category != "bool":
        raise OperandError(f"the mask must be boolean, got {mask.dtype}; use mask != 0")
    if not broadcasts(mask.shape, shape):
        raise ArgumentError(f"the mask must broadcast to the shape of x, {shape}, got {mask.shape}")
    return jnp.broadcast_to(mask, shape)


def checked_epsilon(epsilon: Any, dtype: DType) -> float:
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
