"""Dense: every output from every input."""

from __future__ import annotations

from typing import Any, Unpack

import jax

from supremum.errors import ArgumentError
from supremum.nn.functional.products import dense
from supremum.nn.functional.shape_checks import positive_int
from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer
from supremum.nn.input_spec import InputSpec
from supremum.nn.layer import Layer, LayerOptions
from supremum.nn.regularizers import RegularizerFunction, as_regularizer


class Dense(Layer):
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

    def __init__(
        self,
        units: int,
        *,
        use_bias: bool = True,
        kernel_initializer: Initializer = GLOROT_UNIFORM,
        bias_initializer: Initializer = ZEROS,
        kernel_regularizer: RegularizerFunction | str | None = None,
        bias_regularizer: RegularizerFunction | str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.input_spec = InputSpec()
        self.units = positive_int("units", units)
        self.use_bias = use_bias
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self._kernel_regularizer = as_regularizer(kernel_regularizer)
        self._bias_regularizer = as_regularizer(bias_regularizer)

    def build(self, input_shape: Any) -> None:
        """Add kernel and bias."""
        shape = getattr(input_shape, "shape", input_shape)  # of a sparse input it is a structure that has a shape
        if not shape:
            raise ArgumentError("Dense takes inputs of shape (..., n), not a number: give x[None]")
        self.kernel = self.add_weight(
            "kernel", (shape[-1], self.units), self._kernel_initializer, regularizer=self._kernel_regularizer
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", (self.units,), self._bias_initializer, regularizer=self._bias_regularizer
            )
        self.input_spec = InputSpec(min_ndim=1, axes={-1: shape[-1]})

    def call(self, x: Any) -> jax.Array:
        """The product, in the compute dtype."""
        bias = None if self.bias is None else self.bias.value
        return dense(x, self.kernel.value, bias, dtype=self.compute_dtype)
