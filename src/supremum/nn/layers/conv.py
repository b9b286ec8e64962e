"""Convolution in one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import jax

from supremum.errors import ArgumentError
from supremum.nn.functional.convolution import CONV_PADDINGS, conv
from supremum.nn.functional.padding import Padding, as_padding
from supremum.nn.functional.shape_checks import positive_int, positive_ints, window_size
from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer
from supremum.nn.input_spec import InputSpec
from supremum.nn.layer import Layer, LayerOptions
from supremum.nn.regularizers import RegularizerFunction, as_regularizer


class Conv(Layer):
    """A convolution, channels last; the kernel's size says in how many dimensions.

    Args:
        filters: number of output channels.
        kernel_size: size of the window, one number per dimension of space.
        strides: the step of the window, one number or one per dimension of space; None for 1.
        padding: `"SAME"`, `"VALID"`, `"CIRCULAR"`, `"CAUSAL"` in one dimension, a number of zeros on every side, or
            pairs of numbers for each dimension of space.
        input_dilation: the distance between neighbouring inputs, with zeros between them.
        kernel_dilation: the distance between neighbouring weights.
        groups: how many groups the channels are split into; each has filters of its own.
        use_bias: whether to add a bias; one before a batch normalisation would have no effect.
        kernel_initializer: for the kernel, shape (*kernel_size, channels / groups, filters).
        bias_initializer: for the bias, shape (filters,).
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for options that make no sense or do not fit the inputs; a `ValueError`.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Sequence[int],
        *,
        strides: int | Sequence[int] | None = None,
        padding: Padding = "SAME",
        input_dilation: int | Sequence[int] = 1,
        kernel_dilation: int | Sequence[int] = 1,
        groups: int = 1,
        use_bias: bool = True,
        kernel_initializer: Initializer = GLOROT_UNIFORM,
        bias_initializer: Initializer = ZEROS,
        kernel_regularizer: RegularizerFunction | str | None = None,
        bias_regularizer: RegularizerFunction | str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.input_spec = InputSpec()
        self.filters = positive_int("filters", filters)
        self.kernel_size = window_size("kernel_size", kernel_size)
        count = len(self.kernel_size)
        self.strides = positive_ints("strides", 1 if strides is None else strides, count)
        self.padding = as_padding(padding, count, CONV_PADDINGS)
        self.input_dilation = positive_ints("input_dilation", input_dilation, count)
        self.kernel_dilation = positive_ints("kernel_dilation", kernel_dilation, count)
        self.groups = positive_int("groups", groups)
        if self.filters % self.groups:
            raise ArgumentError(f"{filters} filters do not split into {groups} groups: give filters={groups}")
        self.use_bias = use_bias
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self._kernel_regularizer = as_regularizer(kernel_regularizer)
        self._bias_regularizer = as_regularizer(bias_regularizer)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernel and bias."""
        channels = channels_of(self, input_shape, self.kernel_size)
        if channels % self.groups:
            raise ArgumentError(f"{channels} channels do not split into {self.groups} groups: give groups=1")
        shape = (*self.kernel_size, channels // self.groups, self.filters)
        self.kernel = self.add_weight("kernel", shape, self._kernel_initializer, regularizer=self._kernel_regularizer)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", (self.filters,), self._bias_initializer, regularizer=self._bias_regularizer
            )
        self.input_spec = InputSpec(ndim=len(input_shape), axes={-1: channels})

    def call(self, x: jax.Array) -> jax.Array:
        """The convolution, in the compute dtype."""
        return conv(
            x,
            self.kernel.value,
            None if self.bias is None else self.bias.value,
            strides=self.strides,
            padding=self.padding,
            input_dilation=self.input_dilation,
            kernel_dilation=self.kernel_dilation,
            groups=self.groups,
            dtype=self.compute_dtype,
        )


def channels_of(layer: Layer, input_shape: tuple[int, ...], kernel_size: tuple[int, ...]) -> int:
    """The number of channels of images that a layer of convolutions takes.

    Args:
        layer: the layer.
        input_shape: the images' shape.
        kernel_size: the size of the window.

    Raises:
        ArgumentError: if they have not as many dimensions of space as the window; a `ValueError`.
    """
    count = len(kernel_size)
    if len(input_shape) != count + 2:
        raise ArgumentError(
            f"{type(layer).__name__} with kernel_size {kernel_size} takes inputs of shape (batch, "
            f"{count} dimensions of space, channels), not {input_shape}"
        )
    return input_shape[-1]
