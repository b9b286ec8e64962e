"""A dense layer over any axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import jax

from supremum.nn.functional.products import dense_general, general_axes
from supremum.nn.functional.shape_checks import positive_ints
from supremum.nn.input_spec import InputSpec
from supremum.nn.layers.kernel_layer import KernelLayer, KernelOptions
from supremum.nn.matrix_initializers import of_matrices


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
        features: int | Sequence[int],
        *,
        axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
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
        initializer = of_matrices(
            self.kernel_initializer,
            batch=range(batch),
            inputs=range(batch, shared),
            outputs=range(shared, len(shape)),
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
