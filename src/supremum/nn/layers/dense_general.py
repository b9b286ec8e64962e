"""A dense layer over any axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import jax

from supremum.nn.functional.products import dense_general, general_axes
from supremum.nn.functional.shape_checks import positive_ints
from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer
from supremum.nn.input_spec import InputSpec
from supremum.nn.layer import Layer, LayerOptions
from supremum.nn.matrix_initializers import of_matrices
from supremum.nn.regularizers import RegularizerFunction, as_regularizer


class DenseGeneral(Layer):
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
        kernel_initializer: Initializer = GLOROT_UNIFORM,
        bias_initializer: Initializer = ZEROS,
        kernel_regularizer: RegularizerFunction | str | None = None,
        bias_regularizer: RegularizerFunction | str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.input_spec = InputSpec()
        count = len(features) if isinstance(features, (tuple, list)) else 1
        self.features = positive_ints("features", features, count)
        self.axis = axis
        self.batch_axis = batch_axis
        self.use_bias = use_bias
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self._kernel_regularizer = as_regularizer(kernel_regularizer)
        self._bias_regularizer = as_regularizer(bias_regularizer)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernel and bias."""
        axes, batch_axes = general_axes(self.axis, self.batch_axis, len(input_shape))
        batch, shared = len(batch_axes), len(batch_axes) + len(axes)
        shape = (*(input_shape[axis] for axis in (*batch_axes, *axes)), *self.features)
        initializer = of_matrices(
            self._kernel_initializer,
            batch=range(batch),
            inputs=range(batch, shared),
            outputs=range(shared, len(shape)),
        )
        self.kernel = self.add_weight("kernel", shape, initializer, regularizer=self._kernel_regularizer)
        bias_shape = (*shape[:batch], *self.features)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight("bias", bias_shape, self._bias_initializer, regularizer=self._bias_regularizer)
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
        bias = None if self.bias is None else self.bias.value
        return dense_general(
            x, self.kernel.value, bias, axes=self.axis, batch_axes=self.batch_axis, dtype=self.compute_dtype
        )
