"""Dense: every output from every input."""

from __future__ import annotations

from typing import Any, Unpack

import jax

from supremum.errors import ArgumentError
from supremum.nn.functional.products import dense
from supremum.nn.functional.shape_checks import positive_int
from supremum.nn.input_spec import InputSpec
from supremum.nn.layers.kernel_layer import KernelLayer, KernelOptions


class Dense(KernelLayer):
    """`x @ kernel + bias` over the last axis; inputs may be a `jax.experimental.sparse.BCOO`.

    Args:
        units: number of outputs.
        use_bias: whether to add a bias.
        kernel_initializer: for the kernel, shape (inputs, units).
        bias_initializer: for the bias, shape (units,).
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for options that make no sense, and inputs without axes; a `ValueError`.
    """

    def __init__(self, units: int, *, use_bias: bool = True, **options: Unpack[KernelOptions]) -> None:
        super().__init__(**options)
        self.units = positive_int("units", units)
        self.use_bias = use_bias

    def build(self, input_shape: Any) -> None:
        """Add kernel and bias."""
        shape = getattr(input_shape, "shape", input_shape)  # of a sparse input it is a structure that has a shape
        if not shape:
            raise ArgumentError("Dense takes inputs of shape (..., n), not a number: give x[None]")
        self.add_kernel_and_bias((shape[-1], self.units), (self.units,) if self.use_bias else None)
        self.input_spec = InputSpec(min_ndim=1, axes={-1: shape[-1]})

    def call(self, x: Any) -> jax.Array:
        """The product, in the compute dtype."""
        return dense(x, *self.kernel_and_bias(), dtype=self.compute_dtype)
