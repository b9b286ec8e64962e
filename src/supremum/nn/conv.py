"""Convolution in one, two or three dimensions."""

from __future__ import annotations

from typing import Any

import jax

from supremum.nn.functional import conv
from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer
from supremum.nn.layer import Layer


class Conv(Layer):
    """A convolution, channels last; the kernel's size says in how many dimensions.

    Args:
        filters: number of output channels.
        kernel_size: size of the window, one number per dimension of space.
        strides: one step per dimension of space; None for steps of 1.
        padding: `"SAME"` or `"VALID"`.
        use_bias: whether to add a bias; one before a batch normalisation would have no effect.
        kernel_initializer: for the kernel, shape (*kernel_size, channels, filters).
        bias_initializer: for the bias, shape (filters,).
        dtype: the dtype policy.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: tuple[int, ...],
        *,
        strides: tuple[int, ...] | None = None,
        padding: str = "SAME",
        use_bias: bool = True,
        kernel_initializer: Initializer = GLOROT_UNIFORM,
        bias_initializer: Initializer = ZEROS,
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype=dtype)
        self.filters = filters
        self.kernel_size = kernel_size
        self.strides = strides or (1,) * len(kernel_size)
        self.padding = padding
        self.use_bias = use_bias
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernel and bias."""
        if len(input_shape) != len(self.kernel_size) + 2:
            raise ValueError(
                f"Conv with kernel_size {self.kernel_size} takes inputs of shape (batch, "
                f"{len(self.kernel_size)} dimensions of space, channels), not {input_shape}"
            )
        shape = (*self.kernel_size, input_shape[-1], self.filters)
        self.kernel = self.add_weight("kernel", shape, self._kernel_initializer)
        self.bias = self.add_weight("bias", (self.filters,), self._bias_initializer) if self.use_bias else None

    def call(self, x: jax.Array) -> jax.Array:
        """The convolution, in the compute dtype."""
        bias = None if self.bias is None else self.bias.value
        return conv(x, self.kernel.value, bias, strides=self.strides, padding=self.padding)
