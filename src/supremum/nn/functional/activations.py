"""Activations, computed in at least float32 and rounded once.

In float16, JAX's activations are off by up to hundreds of units in the last place for small results, and the gradient
of its `gelu` is NaN from 300 on, because a square overflows (measured with JAX 0.10.2 on CPU).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from supremum.argument_checks import flag, real_number
from supremum.errors import ArgumentError
from supremum.formats import at_least_float32
from supremum.mixed_precision import is_array
from supremum.nn.functional.dtype_promotion import common_dtype, promote_dtype
from supremum.nn.functional.real_only import ordered_format
from supremum.nn.functional.shape_checks import broadcasts
from supremum.nn.logits_registry import Origin, record

_REAL_PARTS = "use x.real or a different activation"


def relu(x: Any) -> jax.Array:
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
    (x,) = promote_dtype(x, inexact=False)
    return jax.nn.relu(x) if ordered_format("relu", x.dtype, _REAL_PARTS).signed else x


def leaky_relu(x: Any, negative_slope: float = 0.01, *, dtype: Any = None) -> jax.Array:
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
    return _rounded_once(lambda wide: jax.nn.leaky_relu(wide, negative_slope), x, dtype, "leaky_relu")


def elu(x: Any, alpha: float = 1.0, *, dtype: Any = None) -> jax.Array:
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
    """
    alpha = _factor("alpha", alpha, x)
    return _rounded_once(lambda wide: jax.nn.elu(wide, alpha), x, dtype, "elu")


def gelu(x: Any, *, approximate: bool = True, dtype: Any = None) -> jax.Array:
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
    """
    flag("approximate", approximate)
    return _rounded_once(lambda wide: jax.nn.gelu(wide, approximate=approximate), x, dtype, "gelu")


def silu(x: Any, *, dtype: Any = None) -> jax.Array:
    """Multiply each value by its sigmoid; also known as swish.

    Args:
        x: values of any dtype.
        dtype: as for `leaky_relu`.

    Returns:
        An array of the shape of `x` in that dtype.
    """
    return _rounded_once(jax.nn.silu, x, dtype)


def sigmoid(x: Any, *, dtype: Any = None) -> jax.Array:
    """Compute `1 / (1 + exp(-x))` for each value.

    Args:
        x: values of any dtype.
        dtype: as for `leaky_relu`.

    Returns:
        An array of the shape of `x` in that dtype. `training.BinaryCrossentropy` uses the logits `x` instead of it.
    """
    output = _rounded_once(jax.nn.sigmoid, x, dtype)
    logits = x if isinstance(x, jax.Array) else promote_dtype(x)[0]
    return record(output, Origin("sigmoid", logits, ()))


def tanh(x: Any, *, dtype: Any = None) -> jax.Array:
    """The hyperbolic tangent of each value.

    Args:
        x: values of any dtype.
        dtype: as for `leaky_relu`.

    Returns:
        An array of the shape of `x` in that dtype.
    """
    return _rounded_once(jnp.tanh, x, dtype)


def _rounded_once(function: Callable[[jax.Array], jax.Array], x: Any, dtype: Any, ordered: str = "") -> jax.Array:
    target = common_dtype(x, dtype=dtype)
    (wide,) = promote_dtype(x, dtype=at_least_float32(target))
    if ordered:
        ordered_format(ordered, target, _REAL_PARTS)
    return function(wide).astype(target)


def _factor(name: str, value: Any, x: Any) -> Any:
    if not is_array(value):
        return real_number(name, value)
    common_dtype(value)  # raises if the array, which may be trainable, does not hold numbers
    if not broadcasts(value.shape, jnp.shape(x)):
        raise ArgumentError(f"{name} must broadcast to the shape of x, {jnp.shape(x)}, got shape {value.shape}")
    return value
