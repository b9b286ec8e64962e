"""Activations by the names of Keras, for `activation=` of layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.errors import OperandError, UnknownNameError, shown
from supremum.nn.functional.activations import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    rounded_once,
    sigmoid,
    silu,
    softmax,
    tanh,
)
from supremum.nn.logits_registry import record_function

ActivationFunction: TypeAlias = Callable[[Any], Any]
"""A function of an array that returns an array of the same shape."""


def _rounded(function: ActivationFunction) -> Callable[[Any, Any], jax.Array]:
    return lambda x, dtype: rounded_once(function, x, dtype)


NAMED: dict[str, Callable[[Any, Any], jax.Array]] = {
    "celu": _rounded(jax.nn.celu),
    "elu": lambda x, dtype: elu(x, dtype=dtype),
    "exponential": _rounded(jnp.exp),
    "gelu": lambda x, dtype: gelu(x, approximate=False, dtype=dtype),
    "glu": _rounded(jax.nn.glu),
    "hard_sigmoid": _rounded(jax.nn.hard_sigmoid),
    "hard_silu": _rounded(jax.nn.hard_silu),
    "hard_swish": _rounded(jax.nn.hard_silu),
    "hard_tanh": _rounded(jax.nn.hard_tanh),
    "leaky_relu": lambda x, dtype: leaky_relu(x, 0.2, dtype=dtype),
    "linear": lambda x, _: x,
    "log_sigmoid": _rounded(jax.nn.log_sigmoid),
    "log_softmax": lambda x, dtype: log_softmax(x, dtype=dtype),
    "mish": _rounded(jax.nn.mish),
    "relu": lambda x, _: relu(x),
    "relu6": _rounded(jax.nn.relu6),
    "selu": _rounded(jax.nn.selu),
    "sigmoid": lambda x, dtype: sigmoid(x, dtype=dtype),
    "silu": lambda x, dtype: silu(x, dtype=dtype),
    "softmax": lambda x, dtype: softmax(x, dtype=dtype),
    "softplus": _rounded(jax.nn.softplus),
    "softsign": _rounded(jax.nn.soft_sign),
    "sparse_plus": _rounded(jax.nn.sparse_plus),
    "sparse_sigmoid": _rounded(jax.nn.sparse_sigmoid),
    "squareplus": _rounded(jax.nn.squareplus),
    "swish": lambda x, dtype: silu(x, dtype=dtype),
    "tanh": lambda x, dtype: tanh(x, dtype=dtype),
}
"""Functions of an array and the dtype of the result, by name, with Keras' default options."""


def check_activation(activation: Any) -> Any:
    """Check an argument `activation=`, and return it.

    Args:
        activation: a function of an array; a name of Keras, such as `"relu"`; or None.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> check_activation("rleu")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown activation 'rleu': did you mean 'relu'?
    """
    if isinstance(activation, str) and activation not in NAMED:
        raise UnknownNameError("activation", activation, NAMED)
    if activation is not None and not isinstance(activation, str) and not callable(activation):
        raise OperandError(
            f"an activation must be a name or a function of an array, got {shown(activation)}; use 'relu', or "
            "jax.nn.relu"
        )
    return activation


def activated(activation: ActivationFunction | str | None, x: Any, dtype: Any = None) -> Any:
    """Apply an activation.

    Args:
        activation: as `check_activation` returns it. A name is computed in at least float32 and rounded once; a
            function gets the values as they are.
        x: the values.
        dtype: the dtype of the result of a name; None for the dtype of `x`.

    >>> activated("softsign", jnp.asarray([1.0, -3.0]))
    Array([ 0.5 , -0.75], dtype=float32)
    """
    if activation is None:
        return x
    if isinstance(activation, str):
        return NAMED[activation](x, dtype)
    return record_function(activation, x, activation(x))
