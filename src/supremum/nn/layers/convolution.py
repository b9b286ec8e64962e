"""Convolution and transposed convolution, in any number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

import jax

from supremum.errors import ArgumentError
from supremum.nn import functional
from supremum.nn.functional.convolution import (
    CONV_PADDINGS,
    TRANSPOSED_PADDINGS,
    Padding,
    Pads,
    as_padding,
    check_space,
)
from supremum.nn.functional.shape_checks import Ints, positive_int, positive_ints, window_size
from supremum.nn.inputs import InputSpec, InputSpecs
from supremum.nn.layers.products import ProductLayer, ProductOptions


class ConvOptions(ProductOptions, total=False):
    """The keyword arguments of `Conv` and `ConvTranspose`, documented there."""

    strides: Ints | None
    padding: Padding
    kernel_dilation: Ints
    groups: int
    use_bias: bool


class BaseConv(ProductLayer):
    """The common base of `Conv` and `ConvTranspose`."""

    _paddings: ClassVar[tuple[str, ...]]
    transpose_kernel = False

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
        **options: Unpack[ProductOptions],
    ) -> None:
        super().__init__(**options)
        self.filters: int = positive_int("filters", filters)
        self.kernel_size: tuple[int, ...] = window_size("kernel_size", kernel_size)
        count = len(self.kernel_size)
        self.strides: tuple[int, ...] = positive_ints("strides", 1 if strides is None else strides, count)
        self.padding: str | Pads = as_padding(padding, count, self._paddings)
        self.kernel_dilation: tuple[int, ...] = positive_ints("kernel_dilation", kernel_dilation, count)
        self.groups: int = positive_int("groups", groups)
        if self.filters % self.groups:
            raise ArgumentError(f"groups must divide filters={filters}, got {groups}; use filters={groups}")
        self.use_bias = use_bias

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernel and bias."""
        count = len(self.kernel_size)
        check_space(input_shape, count, "kernel_size=", self.kernel_size)
        channels = input_shape[-1]
        if channels % self.groups:
            raise ArgumentError(f"groups must divide the {channels} channels, got {self.groups}; use groups=1")
        first, last = (self.filters, channels) if self.transpose_kernel else (channels, self.filters)
        bias_shape = (self.filters,) if self.use_bias else None
        self.add_kernel_and_bias((*self.kernel_size, first // self.groups, last), bias_shape)
        self.input_spec: InputSpecs | None = InputSpec(ndim=len(input_shape), axes={-1: channels})

    def _options(self) -> dict[str, Any]:
        geometry = {"strides": self.strides, "padding": self.padding, "kernel_dilation": self.kernel_dilation}
        return {**geometry, "groups": self.groups, "dtype": self.compute_dtype, "precision": self.precision}


class Conv(BaseConv):
    """A convolution, channels last, with as many spatial dimensions as `kernel_size` has numbers.

    Args:
        filters: the number of output channels.
        kernel_size: the size of the window, one number per dimension of space.
        strides: the step of the window, one number or one per dimension of space; None for 1.
        padding: `"SAME"`, `"VALID"`, `"CIRCULAR"`, `"CAUSAL"` in one dimension, a number of zeros on every side, or
            pairs of numbers for each dimension of space.
        input_dilation: the distance between neighboring inputs, with zeros between them.
        kernel_dilation: the distance between neighboring weights.
        groups: the number of groups of channels; each group has separate filters.
        use_bias: whether to add a bias; it has no effect before a batch normalization.
        activation: a function of the outputs, or its name, such as `"relu"`; None for none.
        kernel_initializer: for the kernel, shape (*kernel_size, channels / groups, filters).
        bias_initializer: for the bias, shape (filters,).
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        kernel_constraint: a function applied to the kernel after each step, such as `"max_norm"` or `nn.MaxNorm(3)`.
        bias_constraint: likewise for the bias.
        precision: the precision of products on the device, such as `"highest"`, as in JAX; None for JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for options that are invalid or do not match the inputs; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = Conv(8, (3, 3), dtype="mixed_bfloat16")
    >>> initialize(layer, jnp.ones((1, 32, 32, 3)))
    >>> layer.kernel.shape, layer.kernel.dtype, layer(jnp.ones((1, 32, 32, 3))).dtype
    ((3, 3, 3, 8), dtype('float32'), dtype(bfloat16))
    """

    _paddings = CONV_PADDINGS

    def __init__(
        self, filters: int, kernel_size: Sequence[int], *, input_dilation: Ints = 1, **options: Unpack[ConvOptions]
    ) -> None:
        super().__init__(filters, kernel_size, **options)
        self.input_dilation: tuple[int, ...] = positive_ints("input_dilation", input_dilation, len(self.kernel_size))

    def call(self, x: jax.Array) -> jax.Array:
        """Compute the convolution, in the compute dtype."""
        options = self._options()
        return self.activate(functional.conv(x, *self.kernel_and_bias(), input_dilation=self.input_dilation, **options))


class ConvTranspose(BaseConv):
    """A transposed convolution, channels last, which makes space larger; `kernel_size` sets the number of dimensions.

    Args:
        filters: the number of output channels.
        kernel_size: the size of the window, one number per dimension of space.
        strides: the number of outputs per input, one number or one per dimension of space; None for 1.
        padding: `"SAME"`, `"VALID"`, `"CIRCULAR"`, or the zeros to add around the inputs, which lie `strides` apart: a
            number, or pairs of numbers for each dimension of space.
        kernel_dilation: the distance between neighboring weights.
        groups: the number of groups of channels; each group has separate filters.
        transpose_kernel: whether to flip the kernel in space and swap its last two axes; the layer is then the gradient
            of `Conv` with the same kernel.
        use_bias: whether to add a bias; it has no effect before a batch normalization.
        activation: a function of the outputs, or its name, such as `"relu"`; None for none.
        kernel_initializer: for the kernel, shape (*kernel_size, channels / groups, filters), or
            (*kernel_size, filters / groups, channels) with `transpose_kernel`.
        bias_initializer: for the bias, shape (filters,).
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        kernel_constraint: a function applied to the kernel after each step, such as `"max_norm"` or `nn.MaxNorm(3)`.
        bias_constraint: likewise for the bias.
        precision: the precision of products on the device, such as `"highest"`, as in JAX; None for JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for options that are invalid or do not match the inputs; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = ConvTranspose(8, (3, 3), strides=2)
    >>> initialize(layer, jnp.ones((1, 16, 16, 3)))
    >>> layer(jnp.ones((1, 16, 16, 3))).shape
    (1, 32, 32, 8)
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

    def call(self, x: jax.Array) -> jax.Array:
        """Compute the transposed convolution, in the compute dtype."""
        options: dict[str, Any] = {"transpose_kernel": self.transpose_kernel, **self._options()}
        return self.activate(functional.conv_transpose(x, *self.kernel_and_bias(), **options))
