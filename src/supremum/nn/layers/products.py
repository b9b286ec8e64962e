"""Layers that multiply inputs by a kernel: dense ones, over the last axis or any axes, and einsum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import jax

from supremum.errors import ArgumentError, shown
from supremum.nn.functional import (
    Equation,
    Ints,
    all_whole,
    check_shape,
    dense,
    dense_general,
    einsum,
    general_axes,
    positive_int,
    positive_ints,
)
from supremum.nn.initializers import MatrixInitializer
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


class DenseGeneral(KernelLayer):
    """A matrix product over any axes, to any axes, plus a bias.

    Args:
        features: the sizes of the axes that replace the contracted ones, at the end.
        axis: the axes that are contracted, in the order in which the kernel has them.
        batch_axis: the axes that have a matrix of their own for each index, from the first on.
        use_bias: whether to add a bias.
        kernel_initializer: for the matrices of the kernel, shape (product of the contracted sizes, product of
            `features`); the kernel has shape (*batch, *contracted, *features).
        bias_initializer: for the bias, shape (*batch, *features).
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for options that make no sense or do not fit the inputs; a `ValueError`.
    """

    def __init__(
        self,
        features: Ints,
        *,
        axis: Ints = -1,
        batch_axis: Ints = (),
        use_bias: bool = True,
        **options: Unpack[KernelOptions],
    ) -> None:
        super().__init__(**options)
        count = len(features) if isinstance(features, (tuple, list)) else 1
        self.features = positive_ints("features", features, count)
        self.axis = axis
        self.batch_axis = batch_axis
        self.use_bias = use_bias

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernel and bias."""
        axes, batch_axes = general_axes(self.axis, self.batch_axis, len(input_shape))
        batch, shared = len(batch_axes), len(batch_axes) + len(axes)
        shape = (*(input_shape[axis] for axis in (*batch_axes, *axes)), *self.features)
        initializer = MatrixInitializer(
            self.kernel_initializer, batch=range(batch), inputs=range(batch, shared), outputs=range(shared, len(shape))
        )
        bias_shape = (*shape[:batch], *self.features)
        self.add_kernel_and_bias(shape, bias_shape if self.use_bias else None, initializer)
        given = (self.axis,) if isinstance(self.axis, int) else tuple(self.axis)
        # Counted from the last, they are the same for inputs of any number of axes.
        anywhere = not batch_axes and all(axis < 0 for axis in given)
        self.input_spec = InputSpec(
            ndim=None if anywhere else len(input_shape),
            min_ndim=len(given),
            axes={axis: input_shape[axis] for axis in (given if anywhere else (*batch_axes, *axes))},
        )

    def call(self, x: jax.Array) -> jax.Array:
        """The product, in the compute dtype."""
        return dense_general(
            x, *self.kernel_and_bias(), axes=self.axis, batch_axes=self.batch_axis, dtype=self.compute_dtype
        )


class Einsum(KernelLayer):
    """A sum of products with a kernel, after an equation, plus a bias.

    Args:
        equation: `"inputs,kernel->outputs"`, a letter for each axis, such as `"...i,iho->...ho"`.
        shape: the kernel's shape.
        bias_shape: the bias's: the kernel's axes that the result has too, in the result's order; None for no bias.
        kernel_initializer: for the matrices of the kernel: rows are the axes that are summed over, columns those that
            the inputs do not have; there is one for each index of the others.
        bias_initializer: for the bias.
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for an invalid equation, and for shapes that do not fit it; a `ValueError`.
    """

    def __init__(
        self,
        equation: str,
        shape: Sequence[int],
        *,
        bias_shape: Sequence[int] | None = None,
        **options: Unpack[KernelOptions],
    ) -> None:
        super().__init__(**options)
        self.equation = equation
        terms = Equation.parse(equation)
        if not isinstance(shape, (tuple, list)) or len(shape) != len(terms.kernel):
            raise ArgumentError(
                f"shape has a number for each letter of the kernel {shown(terms.kernel)}, not {shown(shape)}"
            )
        self.shape = positive_ints("shape", shape, len(shape))
        self.bias_shape = None if bias_shape is None else all_whole(bias_shape)
        if bias_shape is not None:
            if self.bias_shape is None:
                raise ArgumentError(f"bias_shape is a tuple of lengths, not {shown(bias_shape)}")
            check_shape("bias_shape", self.bias_shape, terms.bias_shape(self.shape))
        self._terms = terms

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernel and bias."""
        terms = self._terms
        terms.check(input_shape, self.shape)
        shared = [letter in terms.inputs for letter in terms.kernel]
        kept = [letter in terms.outputs for letter in terms.kernel]
        axes = range(len(terms.kernel))
        initializer = MatrixInitializer(
            self.kernel_initializer,
            batch=[axis for axis in axes if shared[axis] and kept[axis]],
            inputs=[axis for axis in axes if not kept[axis]],
            outputs=[axis for axis in axes if kept[axis] and not shared[axis]],
        )
        self.add_kernel_and_bias(self.shape, self.bias_shape, initializer)

    def call(self, x: jax.Array) -> jax.Array:
        """The sum of products, in the compute dtype."""
        return einsum(self.equation, x, *self.kernel_and_bias(), dtype=self.compute_dtype)
