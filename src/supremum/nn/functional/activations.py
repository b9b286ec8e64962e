"""Activations, computed in at least float32 and rounded once.

In float16, JAX's activations are off by up to hundreds of units in the last place for small results, and the gradient
of its `gelu` is NaN from 300 on, because a square overflows (measured with JAX 0.10.2 on CPU).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from supremum.argument_checks import flag, real_number
from supremum.formats import as_format, at_least_float32
from supremum.mixed_precision import is_array
from supremum.nn.functional.dtype_promotion import common_dtype, promote_and_widen, promote_arrays, refuse_complex
from supremum.nn.functional.masks import as_boolean
from supremum.nn.functional.shape_checks import as_axes, check_broadcasts
from supremum.nn.logits_registry import Origin, record
from supremum.typing import ArrayLike, DTypeLike


def relu(x: ArrayLike) -> jax.Array:
    """The positive part of each value; integers stay integers.

    Args:
        x: values of any real dtype.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        OperandError: for complex values, which have no sign; a `TypeError`.

    >>> relu(jnp.asarray([-1, 2], "int8"))
    Array([0, 2], dtype=int8)
    """
    refuse_complex("relu", x=x)
    (array,) = promote_arrays(x, inexact=False)
    return jax.nn.relu(array) if as_format(array.dtype).signed else array


def leaky_relu(x: ArrayLike, negative_slope: float = 0.01, *, dtype: DTypeLike | None = None) -> jax.Array:
    """Compute `x` if `x > 0`, else `negative_slope * x`, for each value.

    Args:
        x: values of any real dtype.
        negative_slope: the factor for `x <= 0`.
        dtype: the dtype of the result; None for the dtype of `x`, or at least float32 for integers and bools.

    Returns:
        An array of the shape of `x` in that dtype.

    Raises:
        OperandError: for complex values, which have no sign; a `TypeError`.

    >>> leaky_relu(jnp.asarray([-100.0, 1.0]))
    Array([-1.,  1.], dtype=float32)
    """
    negative_slope = _factor("negative_slope", negative_slope, x)
    refuse_complex("leaky_relu", dtype=dtype, x=x)
    return round_once(lambda wide: jax.nn.leaky_relu(wide, negative_slope), x, dtype)


def elu(x: ArrayLike, alpha: float = 1.0, *, dtype: DTypeLike | None = None) -> jax.Array:
    """Compute `x` if `x > 0`, else `alpha * (exp(x) - 1)`, for each value.

    Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units", 2016.

    Args:
        x: values of any real dtype.
        alpha: the factor for `x <= 0`.
        dtype: as for `leaky_relu`.

    Returns:
        An array of the shape of `x` in that dtype.

    Raises:
        OperandError: for complex values, which have no sign; a `TypeError`.

    >>> elu(jnp.array([-100.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    alpha = _factor("alpha", alpha, x)
    refuse_complex("elu", dtype=dtype, x=x)
    return round_once(lambda wide: jax.nn.elu(wide, alpha), x, dtype)


def gelu(x: ArrayLike, *, approximate: bool = True, dtype: DTypeLike | None = None) -> jax.Array:
    """Multiply each value by the probability that a normal random number is smaller.

    Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.

    Args:
        x: values of any real dtype.
        approximate: whether to use the approximation with a hyperbolic tangent.
        dtype: as for `leaky_relu`.

    Returns:
        An array of the shape of `x` in that dtype.

    Raises:
        OperandError: for complex values, which have no order; a `TypeError`.

    >>> gelu(jnp.array([-100.0, 0.0, 100.0], "bfloat16"))
    Array([-0, 0, 100], dtype=bfloat16)
    """
    flag("approximate", approximate)
    refuse_complex("gelu", dtype=dtype, x=x)
    return round_once(lambda wide: jax.nn.gelu(wide, approximate=approximate), x, dtype)


def silu(x: ArrayLike, *, dtype: DTypeLike | None = None) -> jax.Array:
    """Multiply each value by its sigmoid; also known as swish.

    Args:
        x: values of any dtype.
        dtype: as for `leaky_relu`.

    Returns:
        An array of the shape of `x` in that dtype.

    >>> silu(jnp.array([0.0, 100.0]))
    Array([  0., 100.], dtype=float32)
    """
    return round_once(jax.nn.silu, x, dtype)


def sigmoid(x: ArrayLike, *, dtype: DTypeLike | None = None) -> jax.Array:
    """Compute `1 / (1 + exp(-x))` for each value.

    Args:
        x: values of any dtype.
        dtype: as for `leaky_relu`.

    Returns:
        An array of the shape of `x` in that dtype. `training.BinaryCrossentropy` uses the logits `x` instead of it.

    >>> sigmoid(jnp.array([0, 100], "float16"))
    Array([0.5, 1. ], dtype=float16)
    """
    output = round_once(jax.nn.sigmoid, x, dtype)
    logits = x if isinstance(x, jax.Array) else promote_arrays(x)[0]
    return record(output, Origin("sigmoid", logits, ()))


def tanh(x: ArrayLike, *, dtype: DTypeLike | None = None) -> jax.Array:
    """The hyperbolic tangent of each value.

    Args:
        x: values of any dtype.
        dtype: as for `leaky_relu`.

    Returns:
        An array of the shape of `x` in that dtype.

    >>> tanh(jnp.array([0.0, 100.0]))
    Array([0., 1.], dtype=float32)
    """
    return round_once(jnp.tanh, x, dtype)


def round_once(function: Callable[[jax.Array], jax.Array], x: ArrayLike, dtype: DTypeLike | None) -> jax.Array:
    """Apply a function in at least float32, and round the result once.

    Args:
        function: a function of an array.
        x: values of any dtype.
        dtype: the dtype of the result; None for the dtype of `x`, or at least float32 for integers and bools.
    """
    target, (wide,) = promote_and_widen(x, dtype=dtype)
    return function(wide).astype(target)


def _factor(name: str, value: Any, x: Any) -> Any:
    if not is_array(value):
        return real_number(name, value)
    common_dtype(value)  # raises if the array, which may be trainable, does not hold numbers
    check_broadcasts(name, value.shape, jnp.shape(x))
    return value


Axes: TypeAlias = int | tuple[int, ...]


def softmax(
    x: ArrayLike, axis: Axes = -1, *, mask: ArrayLike | None = None, dtype: DTypeLike | None = None
) -> jax.Array:
    """Compute `exp(x) / sum(exp(x))`, which adds up to one.

    Results and gradients are computed in at least float32 and rounded once, so float16 rows may have any length and any
    finite values.

    Args:
        x: values of a real dtype; integers and bools become at least float32.
        axis: the axis or axes to normalize over.
        mask: booleans that broadcast to the shape of `x`; values at False get zero. A row without True, or with only
            `-inf`, gets zeros and zero gradients.
        dtype: the dtype of the result; None for the dtype of `x`.

    Returns:
        An array of the shape of `x`. Without a mask, `training.CategoricalCrossentropy` uses the logits `x` instead of
        it.

    Raises:
        OperandError: for complex values, which have no order and no softmax, or a mask that is not boolean.
        ArgumentError: for an axis out of range, or a mask that does not broadcast; a `ValueError`.

    >>> softmax(jnp.asarray([6e4, 6e4, 0.0], "float16"))
    Array([0.5, 0.5, 0. ], dtype=float16)
    >>> softmax(
    ...     jnp.asarray([1.0, 2.0, 3.0]), mask=jnp.asarray([True, False, True])
    ... ).round(2)
    Array([0.12, 0.  , 0.88], dtype=float32)
    """
    logits = x
    x, axes, mask = _checked("softmax", x, axis, mask, dtype)
    _, weights, total = _exponentials(x, axes, mask)
    output = (weights / total).astype(x.dtype)
    if mask is not None:
        return output
    return record(output, Origin("softmax", logits if isinstance(logits, jax.Array) else x, axes))


def log_softmax(
    x: ArrayLike, axis: Axes = -1, *, mask: ArrayLike | None = None, dtype: DTypeLike | None = None
) -> jax.Array:
    """The logarithm of `softmax`, `x - log(sum(exp(x)))`; arguments and errors are the same.

    A difference out of range of the result's dtype, such as between 6e4 and -6e4 in float16, rounds to `-inf`; use
    `dtype="float32"` to avoid that. Masked values become the smallest number of the result's dtype instead of `-inf`,
    so their product with zero is zero. A row that is masked completely becomes zeros.

    >>> log_softmax(jnp.zeros(4)).round(3)
    Array([-1.386, -1.386, -1.386, -1.386], dtype=float32)
    """
    x, axes, mask = _checked("log_softmax", x, axis, mask, dtype)
    shifted, _, total = _exponentials(x, axes, mask)
    logarithms = (shifted - jnp.log(total)).astype(x.dtype)
    if mask is None:
        return logarithms
    smallest = jnp.asarray(as_format(x.dtype).min, x.dtype)
    empty = ~jnp.any(jnp.broadcast_to(mask, x.shape), axes, keepdims=True)
    return jnp.where(mask, logarithms, jnp.where(empty, jnp.zeros_like(smallest), smallest))


def _checked(
    operation: str, x: Any, axis: Axes, mask: Any, dtype: Any
) -> tuple[jax.Array, tuple[int, ...], jax.Array | None]:
    refuse_complex(operation, dtype=dtype, x=x)
    (x,) = promote_arrays(x, dtype=dtype)
    axes = as_axes("axis", axis, x.ndim)
    if mask is not None:
        mask = as_boolean(mask, f"the mask of {operation}", "use mask.astype(bool), or add it to x")
        check_broadcasts(f"the mask of {operation}", mask.shape, x.shape)
    return x, axes, mask


def _exponentials(
    x: jax.Array, axes: tuple[int, ...], mask: jax.Array | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The values minus their maximum, the exponentials of these, and their sum; an empty sum counts as one."""
    wide = x.astype(at_least_float32(x.dtype))
    if mask is not None:
        wide = jnp.where(mask, wide, -jnp.inf)
    top = lax.stop_gradient(jnp.max(wide, axes, keepdims=True, initial=-jnp.inf))
    shifted = wide - jnp.where(top == -jnp.inf, jnp.zeros_like(top), top)
    weights = jnp.exp(shifted)
    total = jnp.sum(weights, axes, keepdims=True)
    return shifted, weights, jnp.where(total == 0, jnp.ones_like(total), total)
