"""Dense: every output from every input."""

from __future__ import annotations

from typing import Any

import jax

from supremum.nn.functional import dense
from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer
from supremum.nn.layer import Layer


class Dense(Layer):
    """`x @ kernel + bias` over the last axis.

    Args:
        units: number of outputs.
        use_bias: whether to add a bias.
        kernel_initializer: for the kernel, shape (inputs, units).
        bias_initializer: for the bias, shape (units,).
        dtype: the dtype policy.
    """

    def __init__(
        self,
        units: int,
        *,
        use_bias: bool = True,
        kernel_initializer: Initializer = GLOROT_UNIFORM,
        bias_initializer: Initializer = ZEROS,
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype=dtype)
        self.units = units
        self.use_bias = use_bias
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernel and bias."""
        self.kernel = self.add_weight("kernel", (input_shape[-1], self.units), self._kernel_initializer)
        self.bias = self.add_weight("bias", (self.units,), self._bias_initializer) if self.use_bias else None

    def call(self, x: jax.Array) -> jax.Array:
        """The product, in the compute dtype."""
        return dense(x, self.kernel.value, None if self.bias is None else self.bias.value)
