"""Mean, variance, and values standardized by them, accurate for rows of large and of equal values.

spec/flax-flip-default-dtypes.md, "Half-precision dtypes", "Batch statistics" and "Complex number support".
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

    The squares are of distances from a first estimate of the mean, so that they do not cancel, and what that estimate
    is off by is taken out of both: the corrected two-pass algorithm of Chan, Golub and LeVeque, 1983, "Algorithms for
    Computing the Sample Variance". Without it rows of equal large values would come out of a norm as ±1.

    Args:
        x: values of any dtype; integers count as float32.
        axes: the axes to reduce.
        mask: bool, of a shape that broadcasts to that of `x`: which values count; None for all.
        keepdims: whether the reduced axes stay, with length 1.

    Returns:
        The mean, complex where `x` is, and the variance, which is real: the mean of (x - mean)·conj(x - mean). Where no
        value counts both are 0.

    Raises:
        ArgumentError: for axes that are not there or named twice, or a mask of another shape; a `ValueError`.
        OperandError: for a mask that is not bool; a `TypeError`.

    >>> moments(jnp.asarray([-6e4, 6e4], jnp.float16), -1)
    (Array(0., dtype=float32), Array(3.6e+09, dtype=float32))
    """
    (x,) = promote_dtype(x, dtype=at_least_float32(common_dtype(x)))
    axes = as_axes("axes", axes, x.ndim)
    flag("keepdims", keepdims)
    count: Any = max(math.prod(x.shape[axis] for axis in axes), 1)
    if mask is not None:
        mask = _checked_mask(mask, x.shape)
        count = jnp.maximum(jnp.sum(mask, axes, keepdims=True, dtype=at_least_float32(x.real.dtype)), 1)
        x = jnp.where(mask, x, 0)  # before anything else, or a NaN there would be one in the gradient

    def average(values: jax.Array) -> jax.Array:
        return jnp.sum(values, axes, keepdims=True) / count

    # Neither result depends on the estimate, so neither do gradients.
    estimate = lax.stop_gradient(average(x))
    distance = x - estimate if mask is None else jnp.where(mask, x - estimate, 0)
    error = average(distance)
    variance = jnp.maximum(average(squared(distance)) - squared(error), 0)
    mean = estimate + error
    return (mean, variance) if keepdims else (jnp.squeeze(mean, axes), jnp.squeeze(variance, axes))


def joint_moments(
    mean: jax.Array, variance: jax.Array, count: Any, axis_name: str
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean and variance of what several devices have, of those of each (Chan, Golub and LeVeque, 1983).

    Args:
        mean: of the values of this device.
        variance: of them, biased.
        count: how many there are, of a shape that broadcasts to the mean's.
        axis_name: the axis of the devices, in `jax.shard_map` or `jax.vmap`.

    Returns:
        Mean, variance and number of the values of all devices.
    """
    count = jnp.asarray(count, variance.dtype)
    total = lax.psum(count, axis_name)
    share = count / jnp.maximum(total, 1)
    joint = lax.psum(share * mean, axis_name)
    return joint, lax.psum(share * (variance + squared(mean - joint)), axis_name), total


def has_axis(axis_name: str) -> bool:
    """Whether there are devices along an axis of this name here."""
    try:
        lax.axis_index(axis_name)
    except NameError:
        return False
    return True


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def standardize(x: jax.Array, axes: tuple[int, ...], epsilon: float, centered: bool) -> tuple[jax.Array, jax.Array]:
    """Values less their mean, divided by the root of their variance.

    The derivative is written out, for it is short: what JAX makes of the two passes of `moments` sums over rows again
    and again, and takes 2.5 times as long on CPU.

    Args:
        x: values of at least float32.
        axes: the axes to reduce, each once, from 0.
        epsilon: added to the variance.
        centered: whether the mean is subtracted; if not, values are divided by the root of their mean square.

    Returns:
        The result, of the shape of `x`, and what the differences were multiplied by, with reduced axes of length 1.
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
    # The change of the logarithm of the deviation: of a mean of x·conj(x), half of that is the mean of Re(conj(x)·dx).
    growth = _average(_real_product(result, change), axes)
    moved = change - _average(change, axes) if centered else change
    return (result, factor), (factor * (moved - result * growth), -lax.square(factor) * growth)


def _average(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    return jnp.sum(x, axes, keepdims=True) / max(math.prod(x.shape[axis] for axis in axes), 1)


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
        raise OperandError(f"a mask is bool, not {mask.dtype}: say which numbers count, as in mask != 0")
    if not broadcasts(mask.shape, shape):
        raise ArgumentError(f"a mask of shape {mask.shape} does not broadcast to that of x, {shape}")
    return jnp.broadcast_to(mask, shape)


def checked_epsilon(epsilon: Any, dtype: DType) -> float:
    """The epsilon, refused where 1 / sqrt(epsilon) or its slope is not finite, which makes constant values NaN."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, Real):
        raise ArgumentError(f"epsilon is a positive number, such as 1e-6, not {shown(epsilon)}")
    largest = as_format(dtype).max
    least = largest ** (-2 / 3)
    if not least <= float(epsilon) <= largest:
        raise ArgumentError(
            f"epsilon={epsilon} is outside of {least:.1e} to {largest:.1e}, where 1 / sqrt(epsilon) and its slope are "
            f"finite in {dtype}: give epsilon=1e-6"
        )
    return float(epsilon)
