"""Layers with an activation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import jax

from supremum.nn.functional import elu, gelu, leaky_relu, relu, sigmoid, silu, softmax, tanh
from supremum.nn.layer import Layer, LayerOptions
from supremum.nn.logits_registry import record_function


class Activation(Layer):
    """Apply a function to each value.

    Args:
        function: a function such as `jax.nn.gelu`; it gets inputs in the compute dtype.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def __init__(self, function: Callable[[jax.Array], jax.Array], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.function = function

    def call(self, x: jax.Array) -> jax.Array:
        """Apply the function."""
        return record_function(self.function, x, self.function(x))


class ReLU(Activation):
    """The positive part of each value.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def __init__(self, **options: Unpack[LayerOptions]) -> None:
        super().__init__(relu, **options)


class LeakyReLU(Layer):
    """Compute `x` if `x > 0`, else `negative_slope * x`, for each value.

    Args:
        negative_slope: the factor for `x <= 0`.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def __init__(self, negative_slope: float = 0.01, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.negative_slope = negative_slope

    def call(self, x: Any) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return leaky_relu(x, self.negative_slope, dtype=self.compute_dtype)


class ELU(Layer):
    """Compute `x` if `x > 0`, else `alpha * (exp(x) - 1)`, for each value.

    Args:
        alpha: the factor for `x <= 0`.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def __init__(self, alpha: float = 1.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.alpha = alpha

    def call(self, x: Any) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return elu(x, self.alpha, dtype=self.compute_dtype)


class GELU(Layer):
    """Multiply each value by the probability that a normal random number is smaller.

    Args:
        approximate: whether to use the approximation with a hyperbolic tangent.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def __init__(self, *, approximate: bool = True, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.approximate = approximate

    def call(self, x: Any) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return gelu(x, approximate=self.approximate, dtype=self.compute_dtype)


class SiLU(Layer):
    """Multiply each value by its sigmoid; also known as swish.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def call(self, x: Any) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return silu(x, dtype=self.compute_dtype)


class Sigmoid(Layer):
    """Compute `1 / (1 + exp(-x))` for each value.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def call(self, x: Any) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return sigmoid(x, dtype=self.compute_dtype)


class Tanh(Layer):
    """The hyperbolic tangent of each value.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def call(self, x: Any) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return tanh(x, dtype=self.compute_dtype)


class Softmax(Layer):
    """Divide the exponentials along an axis by their sum; computed in at least float32.

    Args:
        axis: the axis.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def __init__(self, axis: int = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = axis

    def call(self, x: Any) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return softmax(x, self.axis, dtype=self.compute_dtype)
