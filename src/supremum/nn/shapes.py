"""Layers without weights: activations, pooling, reshaping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from supremum.nn.functional import max_pool
from supremum.nn.layer import Layer


class Activation(Layer):
    """A function of each value.

    Args:
        function: such as `jax.nn.gelu`.
        dtype: the dtype policy.
    """

    def __init__(self, function: Callable[[jax.Array], jax.Array], *, dtype: Any = None) -> None:
        super().__init__(dtype=dtype)
        self.function = function

    def call(self, x: jax.Array) -> jax.Array:
        """The function's value."""
        return self.function(x)


class ReLU(Activation):
    """The positive part of each value.

    Args:
        dtype: the dtype policy.
    """

    def __init__(self, *, dtype: Any = None) -> None:
        super().__init__(jax.nn.relu, dtype=dtype)


class MaxPool(Layer):
    """The largest value of each window, channels last.

    Args:
        window: size of the window, one number per dimension of space.
        strides: one step per dimension of space; None for windows that touch.
        padding: `"SAME"` or `"VALID"`.
        dtype: the dtype policy.
    """

    def __init__(
        self,
        window: tuple[int, ...],
        *,
        strides: tuple[int, ...] | None = None,
        padding: str = "VALID",
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype=dtype)
        self.window = window
        self.strides = strides or window
        self.padding = padding

    def call(self, x: jax.Array) -> jax.Array:
        """The maxima."""
        return max_pool(x, self.window, strides=self.strides, padding=self.padding)


class Flatten(Layer):
    """Everything but the batch in one axis.

    Args:
        dtype: the dtype policy.
    """

    def call(self, x: jax.Array) -> jax.Array:
        """The same values, shape (batch, -1)."""
        return x.reshape(x.shape[0], -1)
