"""Convolution and its transpose in one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Unpack

import jax

from supremum.errors import ArgumentError
from supremum.nn.functional import (
    CONV_PADDINGS,
    TRANSPOSED_PADDINGS,
    Ints,
    Padding,
    as_padding,
    conv,
    conv_transpose,
    positive_int,
    positive_ints,
    window_size,
)
from supremum.nn.input_spec import InputSpec
from supremum.nn.layers.kernel_layer import KernelLayer, KernelOptions


class ConvOptions(KernelOptions, total=False):
    """The keyword arguments of both kinds of convolution, documented in `Conv` and `ConvTranspose`."""

    strides: Ints | None
    padding: Padding
    kernel_dilation: Ints
    groups: int
    use_bias: bool


class BaseConv(KernelLayer):
    """What a convolution and its transpose share."""

    _paddings: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        filters: int,
        kernel_size: Sequence[int],
        *,
        strides: Ints | None = None,
        padding: Padding = "SAME",
        kernel_dilation: Ints = 1,
        groups: int = 1,
        use_bias: bool = True,
        **options: Unpack[KernelOptions],
    ) -> None:
        super().__init__(**options)
        self.filters = positive_int("filters", filters)
        self.kernel_size = window_size("kernel_size", kernel_size)
        count = len(self.kernel_size)
        self.strides = positive_ints("strides", 1 if strides is None else strides, count)
        self.padding = as_padding(padding, count, self._paddings)
        self.kernel_dilation = positive_ints("kernel_dilation", kernel_dilation, count)
        self.groups = positive_int("groups", groups)
        if self.filters % self.groups:
            raise ArgumentError(f"{filters} filters do not split into {groups} groups: give filters={groups}")
        self.use_bias = use_bias

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernel and bias."""
        count = len(self.kernel_size)
        if len(input_shape) != count + 2:
            raise ArgumentError(
                f"{type(self).__name__} with kernel_size {self.kernel_size} takes inputs of shape (batch, "
                f"{count} dimensions of space, channels), not {input_shape}"
            )
        channels = input_shape[-1]
        if channels % self.groups:
            raise ArgumentError(f"{channels} channels do not split into {self.groups} groups: give groups=1")
        first, last = self._kernel_axes(channels)
        bias_shape = (self.filters,) if self.use_bias else None
        self.add_kernel_and_bias((*self.kernel_size, first // self.groups, last), bias_shape)
        self.input_spec = InputSpec(ndim=len(input_shape), axes={-1: channels})

    def _kernel_axes(self, channels: int) -> tuple[int, int]:
        """What the last two axes of the kernel are for, before the first of them is split into groups."""
        return channels, self.filters


class Conv(BaseConv):
    """A convolution, channels last; the kernel's size says in how many dimensions.

    Args:
        filters: number of output channels.
        kernel_size: size of the window, one number per dimension of space.
        strides: the step of the window, one number or one per dimension of space; None for 1.
        padding: `"SAME"`, `"VALID"`, `"CIRCULAR"`, `"CAUSAL"` in one dimension, a number of zeros on every side, or
            pairs of numbers for each dimension of space.
        input_dilation: the distance between neighboring inputs, with zeros between them.
        kernel_dilation: the distance between neighboring weights.
        groups: how many groups the channels are split into; each has filters of its own.
        use_bias: whether to add a bias; one before a batch normalization would have no effect.
        kernel_initializer: for the kernel, shape (*kernel_size, channels / groups, filters).
        bias_initializer: for the bias, shape (filters,).
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for options that make no sense or do not fit the inputs; a `ValueError`.
    """

    _paddings = CONV_PADDINGS

    def __init__(
        self, filters: int, kernel_size: Sequence[int], *, input_dilation: Ints = 1, **options: Unpack[ConvOptions]
    ) -> None:
        super().__init__(filters, kernel_size, **options)
        self.input_dilation = positive_ints("input_dilation", input_dilation, len(self.kernel_size))

    def call(self, x: jax.Array) -> jax.Array:
        """The convolution, in the compute dtype."""
        return conv(
            x,
            *self.kernel_and_bias(),
            strides=self.strides,
            padding=self.padding,
            input_dilation=self.input_dilation,
            kernel_dilation=self.kernel_dilation,
            groups=self.groups,
            dtype=self.compute_dtype,
        )


class ConvTranspose(BaseConv):
    """A transposed convolution, channels last, which makes space larger; the kernel's size says in how many dimensions.

    Args:
        filters: number of output channels.
        kernel_size: size of the window, one number per dimension of space.
        strides: how many outputs there are to an input, one number or one per dimension of space; None for 1.
        padding: `"SAME"`, `"VALID"`, `"CIRCULAR"`, or the zeros to add around the inputs, which lie `strides` apart: a
            number, or pairs of numbers for each dimension of space.
        kernel_dilation: the distance between neighboring weights.
        groups: how many groups the channels are split into; each has filters of its own.
        transpose_kernel: whether to flip the kernel in space and swap its last two axes; the layer is then the gradient
            of `Conv` with the same kernel.
        use_bias: whether to add a bias; one before a batch normalization would have no effect.
        kernel_initializer: for the kernel, shape (*kernel_size, channels / groups, filters), or
            (*kernel_size, filters / groups, channels) with `transpose_kernel`.
        bias_initializer: for the bias, shape (filters,).
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for options that make no sense or do not fit the inputs; a `ValueError`.
    """

    _paddings = TRANSPOSED_PADDINGS

    def __init__(
        self,
        filters: int,
        kernel_size: Sequence[int],
        *,
        transpose_kernel: bool = False,
        **options: Unpack[ConvOptions],
    ) -> None:
        super().__init__(filters, kernel_size, **options)
        self.transpose_kernel = transpose_kernel

    def _kernel_axes(self, channels: int) -> tuple[int, int]:
        return (self.filters, channels) if self.transpose_kernel else super()._kernel_axes(channels)

    def call(self, x: jax.Array) -> jax.Array:
        """The transposed convolution, in the compute dtype."""
        return conv_transpose(
            x,
            *self.kernel_and_bias(),
            strides=self.strides,
            padding=self.padding,
            kernel_dilation=self.kernel_dilation,
            groups=self.groups,
            transpose_kernel=self.transpose_kernel,
            dtype=self.compute_dtype,
        )
