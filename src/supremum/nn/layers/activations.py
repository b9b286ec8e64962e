"""Activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import jax

from supremum.nn.functional import elu, gelu, leaky_relu, relu, sigmoid, silu, softmax, tanh
from supremum.nn.layer import Layer, LayerOptions
from supremum.nn.logits_registry import record_function


class Activation(Layer):
    """A function of each value.

    Args:
        function: such as `jax.nn.gelu`; it is given inputs in the compute dtype.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def __init__(self, function: Callable[[jax.Array], jax.Array], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.function = function

    def call(self, x: jax.Array) -> jax.Array:
        """The function's value."""
        return record_function(self.function, x, self.function(x))


class ReLU(Activation):
    """The positive part of each value.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def __init__(self, **options: Unpack[LayerOptions]) -> None:
        super().__init__(relu, **options)


class LeakyReLU(Layer):
    """Each value where it is positive, and `negative_slope` times it where it is not.

    Args:
        negative_slope: the factor of negative values.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def __init__(self, negative_slope: float = 0.01, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.negative_slope = negative_slope

    def call(self, x: Any) -> jax.Array:
        """The function's value, in the compute dtype."""
        return leaky_relu(x, self.negative_slope, dtype=self.compute_dtype)


class ELU(Layer):
    """Each value where it is positive, and `alpha * (exp(x) - 1)` where it is not.

    Args:
        alpha: the factor of negative values.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def __init__(self, alpha: float = 1.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.alpha = alpha

    def call(self, x: Any) -> jax.Array:
        """The function's value, in the compute dtype."""
        return elu(x, self.alpha, dtype=self.compute_dtype)


class GELU(Layer):
    """Each value times the probability that a normal number is smaller.

    Args:
        approximate: whether to take the approximation by a hyperbolic tangent.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def __init__(self, *, approximate: bool = True, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.approximate = approximate

    def call(self, x: Any) -> jax.Array:
        """The function's value, in the compute dtype."""
        return gelu(x, approximate=self.approximate, dtype=self.compute_dtype)


class SiLU(Layer):
    """Each value times its sigmoid, also known as swish.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def call(self, x: Any) -> jax.Array:
        """The function's value, in the compute dtype."""
        return silu(x, dtype=self.compute_dtype)


class Sigmoid(Layer):
    """`1 / (1 + exp(-x))` of each value.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def call(self, x: Any) -> jax.Array:
        """The function's value, in the compute dtype."""
        return sigmoid(x, dtype=self.compute_dtype)


class Tanh(Layer):
    """The hyperbolic tangent of each value.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def call(self, x: Any) -> jax.Array:
        """The function's value, in the compute dtype."""
        return tanh(x, dtype=self.compute_dtype)


class Softmax(Layer):
    """The exponentials along an axis, divided by their sum; computed in at least float32.

    Args:
        axis: the axis.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def __init__(self, axis: int = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = axis

    def call(self, x: Any) -> jax.Array:
        """The function's value, in the compute dtype."""
        return softmax(x, self.axis, dtype=self.compute_dtype)
