"""Activations by the names of Keras, for `activation=` of layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.nn.functional import activations
from supremum.nn.logits_registry import record_function
from supremum.nn.named_options import as_option
from supremum.typing import DTypeLike

ActivationFunction: TypeAlias = Callable[[Any], Any]
"""A function of an array that returns an array of the same shape."""


def _round_once(function: ActivationFunction) -> Callable[..., Any]:
    def run(x: Any, dtype: Any) -> jax.Array:
        return activations.round_once(function, x, dtype)

    return run


def _keep_dtype(function: ActivationFunction) -> Callable[..., Any]:
    def run(x: Any, dtype: Any) -> Any:  # noqa: ARG001
        return function(x)

    return run


_OF_JAX = (
    "celu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "log_sigmoid", "mish", "relu6", "selu",
    "softplus", "sparse_plus", "sparse_sigmoid", "squareplus",
)  # fmt: skip
"""The functions of `jax.nn` that have the names and the defaults of Keras."""

NAMED: dict[str, Callable[..., Any]] = {
    **{name: _round_once(getattr(jax.nn, name)) for name in _OF_JAX},
    "elu": activations.elu,
    "exponential": _round_once(jnp.exp),
    "gelu": partial(activations.gelu, approximate=False),
    "leaky_relu": partial(activations.leaky_relu, negative_slope=0.2),
    "linear": _keep_dtype(lambda x: x),
    "log_softmax": activations.log_softmax,
    "relu": _keep_dtype(activations.relu),
    "sigmoid": activations.sigmoid,
    "silu": activations.silu,
    "softmax": activations.softmax,
    "softsign": _round_once(jax.nn.soft_sign),
    "swish": activations.silu,
    "tanh": activations.tanh,
}
"""Functions of an array, and of `dtype=` for the result, by name, with Keras' default options."""


def check_activation(activation: object) -> Any:
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
    if activation is not None:
        as_option("activation", activation, NAMED, "'relu', or jax.nn.relu")
    return activation


def activate(activation: ActivationFunction | str, x: jax.Array, dtype: DTypeLike | None = None) -> Any:
    """Apply an activation.

    Args:
        activation: as `check_activation` returns it. A name is computed in at least float32 and rounded once; a
            function gets the values as they are.
        x: the values.
        dtype: the dtype of the result of a name; None for the dtype of `x`.

    >>> activate("softsign", jnp.asarray([1.0, -3.0]))
    Array([ 0.5 , -0.75], dtype=float32)
    """
    if isinstance(activation, str):
        return NAMED[activation](x, dtype=dtype)
    return record_function(activation, x, activation(x))
