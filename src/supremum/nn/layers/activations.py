"""Layers with an activation, and layers around a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import jax

from supremum import argument_checks
from supremum.nn.functional import elu, gelu, leaky_relu, relu, sigmoid, silu, softmax, tanh
from supremum.nn.functional.named_activations import ActivationFunction, activate, check_activation
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions
from supremum.typing import PyTree


class Activation(Layer):
    """Apply a function to each value.

    Args:
        function: a function such as `jax.nn.gelu`, which gets inputs in the compute dtype; or a name, such as
            `"softplus"`, with Keras' options, computed in at least float32 and rounded once.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Activation(jnp.cos, dtype="mixed_bfloat16")(jnp.zeros(2))
    Array([1, 1], dtype=bfloat16)
    """

    def __init__(self, function: ActivationFunction | str, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.function: ActivationFunction | str = check_activation(function)

    def call(self, x: jax.Array) -> jax.Array:
        """Apply the function."""
        return activate(self.function, x, self.compute_dtype)


class Lambda(Layer):
    """A layer that calls a function.

    Args:
        function: a function of the inputs, which are in the compute dtype, such as
            `functools.partial(jnp.moveaxis, source=1, destination=2)`.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        OperandError: for anything but a function; a `TypeError`.

    >>> import jax.numpy as jnp
    >>> Lambda(lambda x: x.clip(0, 1), dtype="mixed_bfloat16")(jnp.array([-1.0, 0.5]))
    Array([0, 0.5], dtype=bfloat16)
    """

    def __init__(self, function: Callable[..., Any], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.function: Callable[..., Any] = argument_checks.function("function", function, "jnp.square")

    def call(self, *inputs: PyTree) -> Any:
        """Call the function."""
        return self.function(*inputs)


class ReLU(Activation):
    """The positive part of each value.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> ReLU()(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """

    def __init__(self, **options: Unpack[LayerOptions]) -> None:
        super().__init__(relu, **options)


class LeakyReLU(Layer):
    """Compute `x` if `x > 0`, else `negative_slope * x`, for each value.

    Args:
        negative_slope: the factor for `x <= 0`.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> LeakyReLU(0.5)(jnp.array([-1.0, 2.0]))
    Array([-0.5,  2. ], dtype=float32)
    """

    def __init__(self, negative_slope: float = 0.01, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.negative_slope = negative_slope

    def call(self, x: jax.Array) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return leaky_relu(x, self.negative_slope, dtype=self.compute_dtype)


class ELU(Layer):
    """Compute `x` if `x > 0`, else `alpha * (exp(x) - 1)`, for each value.

    Args:
        alpha: the factor for `x <= 0`.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> ELU()(jnp.array([-100.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.alpha = alpha

    def call(self, x: jax.Array) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return elu(x, self.alpha, dtype=self.compute_dtype)


class GELU(Layer):
    """Multiply each value by the probability that a normal random number is smaller.

    Args:
        approximate: whether to use the approximation with a hyperbolic tangent.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> GELU()(jnp.array([-100.0, 0.0, 100.0]))
    Array([ -0.,   0., 100.], dtype=float32)
    """

    def __init__(self, *, approximate: bool = True, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.approximate = approximate

    def call(self, x: jax.Array) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return gelu(x, approximate=self.approximate, dtype=self.compute_dtype)


class SiLU(Layer):
    """Multiply each value by its sigmoid; also known as swish.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> SiLU()(jnp.array([0.0, 100.0]))
    Array([  0., 100.], dtype=float32)
    """

    def call(self, x: jax.Array) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return silu(x, dtype=self.compute_dtype)


class Sigmoid(Layer):
    """Compute `1 / (1 + exp(-x))` for each value.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Sigmoid(dtype="mixed_float16")(jnp.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float16)
    """

    def call(self, x: jax.Array) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return sigmoid(x, dtype=self.compute_dtype)


class Tanh(Layer):
    """The hyperbolic tangent of each value.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Tanh()(jnp.array([0.0, 100.0]))
    Array([0., 1.], dtype=float32)
    """

    def call(self, x: jax.Array) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return tanh(x, dtype=self.compute_dtype)


class Softmax(Layer):
    """Divide the exponentials along an axis by their sum; computed in at least float32.

    Args:
        axis: the axis.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Softmax(dtype="mixed_float16")(jnp.array([[0.0, 0.0]]))
    Array([[0.5, 0.5]], dtype=float16)
    """

    def __init__(self, axis: int = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = axis

    def call(self, x: jax.Array) -> jax.Array:
        """Apply the function, with a result in the compute dtype."""
        return softmax(x, self.axis, dtype=self.compute_dtype)
