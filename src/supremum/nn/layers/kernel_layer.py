"""The base of layers with a kernel and a bias."""

from __future__ import annotations

from typing import Any, Unpack

import jax

from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer
from supremum.nn.inputs import InputSpec
from supremum.nn.layer import Layer, LayerOptions
from supremum.nn.regularizers import RegularizerFunction, as_regularizer


class KernelOptions(LayerOptions, total=False):
    """The keyword arguments of every layer with a kernel, documented in `KernelLayer`."""

    kernel_initializer: Initializer
    bias_initializer: Initializer
    kernel_regularizer: RegularizerFunction | str | None
    bias_regularizer: RegularizerFunction | str | None


class KernelLayer(Layer):
    """A layer with a kernel and an optional bias.

    Args:
        kernel_initializer: for the kernel.
        bias_initializer: for the bias.
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def __init__(
        self,
        *,
        kernel_initializer: Initializer = GLOROT_UNIFORM,
        bias_initializer: Initializer = ZEROS,
        kernel_regularizer: RegularizerFunction | str | None = None,
        bias_regularizer: RegularizerFunction | str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.input_spec = InputSpec()
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = as_regularizer(kernel_regularizer)
        self.bias_regularizer = as_regularizer(bias_regularizer)

    def add_kernel_and_bias(
        self,
        shape: tuple[int, ...],
        bias_shape: tuple[int, ...] | None,
        initializer: Initializer | None = None,
        bias_initializer: Initializer | None = None,
    ) -> None:
        """Add the weights `kernel` and `bias`.

        Args:
            shape: the shape of the kernel.
            bias_shape: the shape of the bias; None for no bias.
            initializer: for the kernel; None for the layer's `kernel_initializer`.
            bias_initializer: for the bias; None for the layer's `bias_initializer`.
        """
        initializer = initializer or self.kernel_initializer
        bias_initializer = bias_initializer or self.bias_initializer
        self.kernel = self.add_weight("kernel", shape, initializer, regularizer=self.kernel_regularizer)
        self.bias: Any = None
        if bias_shape is not None:
            self.bias = self.add_weight("bias", bias_shape, bias_initializer, regularizer=self.bias_regularizer)

    def kernel_and_bias(self) -> tuple[jax.Array, jax.Array | None]:
        """The values of kernel and bias, in the compute dtype inside `call`."""
        return self.kernel.value, None if self.bias is None else self.bias.value
