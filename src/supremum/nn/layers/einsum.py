"""A layer that is an einsum with a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import jax

from supremum.errors import ArgumentError, shown
from supremum.nn.functional.einsum_equations import Equation
from supremum.nn.functional.products import einsum
from supremum.nn.functional.shape_checks import all_whole, check_shape, positive_ints
from supremum.nn.layers.kernel_layer import KernelLayer, KernelOptions
from supremum.nn.matrix_initializers import of_matrices


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
        ArgumentError: for an equation that is none, and for shapes that do not fit it; a `ValueError`.
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
        initializer = of_matrices(
            self.kernel_initializer,
            batch=[axis for axis in axes if shared[axis] and kept[axis]],
            inputs=[axis for axis in axes if not kept[axis]],
            outputs=[axis for axis in axes if kept[axis] and not shared[axis]],
        )
        self.add_kernel_and_bias(self.shape, self.bias_shape, initializer)

    def call(self, x: jax.Array) -> jax.Array:
        """The sum of products, in the compute dtype."""
        return einsum(self.equation, x, *self.kernel_and_bias(), dtype=self.compute_dtype)
