"""Transposed convolution in one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import jax

from supremum.nn.functional.convolution import TRANSPOSED_PADDINGS, conv_transpose
from supremum.nn.layers.conv import BaseConv, ConvOptions


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
