"""Layers that multiply inputs by a kernel: dense layers, over the last axis or any axes, and einsum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import jax
from jax import lax

from supremum.errors import ArgumentError, shown
from supremum.nn import functional
from supremum.nn.constraints import ConstraintFunction, as_constraint
from supremum.nn.functional.named_activations import ActivationFunction, activate, check_activation
from supremum.nn.functional.precision import as_precision
from supremum.nn.functional.products import Equation, general_axes
from supremum.nn.functional.shape_checks import Ints, all_whole, check_shape, positive_int, positive_ints
from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer, MatrixInitializer, as_initializer
from supremum.nn.inputs import InputSpec, InputSpecs
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions
from supremum.nn.regularizers import RegularizerFunction, as_regularizer
from supremum.typing import PyTree


class KernelOptions(LayerOptions, total=False):
    """The keyword arguments of every layer with a kernel, documented in `KernelLayer`."""

    kernel_initializer: Initializer | str
    bias_initializer: Initializer | str
    kernel_regularizer: RegularizerFunction | str | None
    bias_regularizer: RegularizerFunction | str | None
    kernel_constraint: ConstraintFunction | str | None
    bias_constraint: ConstraintFunction | str | None
    precision: Any


class KernelLayer(Layer):
    """A layer with a kernel and an optional bias.

    Args:
        kernel_initializer: for the kernel, a function of key, shape and dtype, or a name, such as `"he_normal"`.
        bias_initializer: for the bias.
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        kernel_constraint: a function that optimizers apply to the kernel after each step, such as `"max_norm"` or
            `nn.MaxNorm(3)`.
        bias_constraint: likewise for the bias.
        precision: the precision of products on the device, such as `"highest"`, as in JAX; None for JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
    """

    def __init__(
        self,
        *,
        kernel_initializer: Initializer | str = GLOROT_UNIFORM,
        bias_initializer: Initializer | str = ZEROS,
        kernel_regularizer: RegularizerFunction | str | None = None,
        bias_regularizer: RegularizerFunction | str | None = None,
        kernel_constraint: ConstraintFunction | str | None = None,
        bias_constraint: ConstraintFunction | str | None = None,
        precision: lax.PrecisionLike = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.input_spec: InputSpecs | None = InputSpec()
        self.kernel_initializer: Initializer = as_initializer(kernel_initializer)
        self.bias_initializer: Initializer = as_initializer(bias_initializer)
        self.kernel_regularizer: RegularizerFunction | None = as_regularizer(kernel_regularizer)
        self.bias_regularizer: RegularizerFunction | None = as_regularizer(bias_regularizer)
        self.kernel_constraint: ConstraintFunction | None = as_constraint(kernel_constraint)
        self.bias_constraint: ConstraintFunction | None = as_constraint(bias_constraint)
        self.precision: Any = as_precision(precision)

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
        self.kernel: Any = self.add_weight(
            "kernel", shape, initializer, regularizer=self.kernel_regularizer, constraint=self.kernel_constraint
        )
        self.bias: Any = None
        if bias_shape is not None:
            self.bias = self.add_weight(
                "bias", bias_shape, bias_initializer, regularizer=self.bias_regularizer, constraint=self.bias_constraint
            )

    def kernel_and_bias(self) -> tuple[jax.Array, jax.Array | None]:
        """The values of kernel and bias, in the compute dtype inside `call`."""
        return self.kernel.value, None if self.bias is None else self.bias.value


class ProductOptions(KernelOptions, total=False):
    """The keyword arguments of every layer with a kernel and an activation, documented in `ProductLayer`."""

    activation: ActivationFunction | str | None


class ProductLayer(KernelLayer):
    """A layer with a kernel, an optional bias, and an activation after them.

    Args:
        activation: a function of the outputs; a name, such as `"relu"`, with Keras' options; or None.
        options: the options of `KernelLayer`.
    """

    def __init__(self, *, activation: ActivationFunction | str | None = None, **options: Unpack[KernelOptions]) -> None:
        super().__init__(**options)
        self.activation: ActivationFunction | str | None = check_activation(activation)

    def activate(self, outputs: jax.Array) -> jax.Array:
        """Apply the activation, with a result in the compute dtype for a name."""
        return outputs if self.activation is None else activate(self.activation, outputs, self.compute_dtype)


class Dense(ProductLayer):
    """`x @ kernel + bias` over the last axis; inputs may be a `jax.experimental.sparse.BCOO`.

    Args:
        units: the number of outputs.
        activation: a function of the outputs, or its name, such as `"relu"`; None for none.
        use_bias: whether to add a bias.
        kernel_initializer: for the kernel, shape (inputs, units).
        bias_initializer: for the bias, shape (units,).
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        kernel_constraint: a function applied to the kernel after each step, such as `"max_norm"` or `nn.MaxNorm(3)`.
        bias_constraint: likewise for the bias.
        precision: the precision of products on the device, such as `"highest"`, as in JAX; None for JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for invalid options, or inputs without axes; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = Dense(4, dtype="mixed_bfloat16")
    >>> initialize(layer, jnp.ones((2, 3)))
    >>> layer(jnp.ones((2, 3))).dtype, layer.kernel.shape, layer.kernel.dtype
    (dtype(bfloat16), (3, 4), dtype('float32'))
    """

    def __init__(
        self,
        units: int,
        activation: ActivationFunction | str | None = None,
        *,
        use_bias: bool = True,
        **options: Unpack[KernelOptions],
    ) -> None:
        super().__init__(activation=activation, **options)
        self.units: int = positive_int("units", units)
        self.use_bias = use_bias

    def build(self, input_shape: PyTree) -> None:
        """Add kernel and bias."""
        shape = getattr(input_shape, "shape", input_shape)  # for a sparse input this is a structure with a shape
        if not shape:
            raise ArgumentError("Dense needs inputs of shape (..., n), got a number; use x[None]")
        self.add_kernel_and_bias((shape[-1], self.units), (self.units,) if self.use_bias else None)
        self.input_spec: InputSpecs | None = InputSpec(min_ndim=1, axes={-1: shape[-1]})

    def call(self, x: jax.Array) -> jax.Array:
        """Compute the product, in the compute dtype."""
        options: dict[str, Any] = {"dtype": self.compute_dtype, "precision": self.precision}
        return self.activate(functional.dense(x, *self.kernel_and_bias(), **options))


class DenseGeneral(ProductLayer):
    """A matrix product over any axes, to any axes, plus a bias.

    Args:
        features: the sizes of the axes that replace the contracted ones, at the end.
        axis: the axes to contract, in the order of the kernel.
        batch_axis: the axes with a separate matrix for each index; they must be the first axes.
        use_bias: whether to add a bias.
        activation: a function of the outputs, or its name, such as `"relu"`; None for none.
        kernel_initializer: for the matrices of the kernel, shape (product of the contracted sizes, product of
            `features`); the kernel has shape (*batch, *contracted, *features).
        bias_initializer: for the bias, shape (*batch, *features).
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
    >>> layer = DenseGeneral((2, 4), axis=(-2, -1))
    >>> initialize(layer, jnp.ones((5, 3, 8)))
    >>> layer(jnp.ones((5, 3, 8))).shape, layer.kernel.shape
    ((5, 2, 4), (3, 8, 2, 4))
    """

    def __init__(
        self,
        features: Ints,
        *,
        axis: Ints = -1,
        batch_axis: Ints = (),
        use_bias: bool = True,
        **options: Unpack[ProductOptions],
    ) -> None:
        super().__init__(**options)
        count = len(features) if isinstance(features, (tuple, list)) else 1
        self.features: tuple[int, ...] = positive_ints("features", features, count)
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
        contracted = (self.axis,) if isinstance(self.axis, int) else tuple(self.axis)
        # Negative axes are the same for inputs with any number of axes.
        anywhere = not batch_axes and all(axis < 0 for axis in contracted)
        self.input_spec: InputSpecs | None = InputSpec(
            ndim=None if anywhere else len(input_shape),
            min_ndim=len(contracted),
            axes={axis: input_shape[axis] for axis in (contracted if anywhere else (*batch_axes, *axes))},
        )

    def call(self, x: jax.Array) -> jax.Array:
        """Compute the product, in the compute dtype."""
        axes = {"axes": self.axis, "batch_axes": self.batch_axis}
        options: dict[str, Any] = {"dtype": self.compute_dtype, "precision": self.precision}
        return self.activate(functional.dense_general(x, *self.kernel_and_bias(), **axes, **options))


class Einsum(ProductLayer):
    """A sum of products with a kernel that an equation describes, plus a bias.

    Args:
        equation: `"inputs,kernel->outputs"`, a letter for each axis, such as `"...i,iho->...ho"`.
        shape: the kernel's shape.
        bias_shape: the bias's shape, over the axes that kernel and result share, in the order of the result; None for
            no bias.
        activation: a function of the outputs, or its name, such as `"relu"`; None for none.
        kernel_initializer: for the matrices of the kernel: rows are the axes that are summed over, columns the axes
            that the inputs do not have; each index of the other axes has a separate matrix.
        bias_initializer: for the bias.
        kernel_regularizer: a penalty on the kernel, such as `"l2"` or `nn.L2(1e-4)`.
        bias_regularizer: a penalty on the bias.
        kernel_constraint: a function applied to the kernel after each step, such as `"max_norm"` or `nn.MaxNorm(3)`.
        bias_constraint: likewise for the bias.
        precision: the precision of products on the device, such as `"highest"`, as in JAX; None for JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for an invalid equation, or shapes that do not match it; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = Einsum("...i,iho->...ho", (8, 2, 4), bias_shape=(2, 4))
    >>> initialize(layer, jnp.ones((5, 8)))
    >>> layer(jnp.ones((5, 8))).shape
    (5, 2, 4)
    """

    def __init__(
        self,
        equation: str,
        shape: Sequence[int],
        *,
        bias_shape: Sequence[int] | None = None,
        **options: Unpack[ProductOptions],
    ) -> None:
        super().__init__(**options)
        self.equation = equation
        terms = Equation.parse(equation)
        if not isinstance(shape, (tuple, list)) or len(shape) != len(terms.kernel):
            raise ArgumentError(
                f"shape must have a number for each letter of the kernel {shown(terms.kernel)}, got {shown(shape)}"
            )
        self.shape: tuple[int, ...] = positive_ints("shape", shape, len(shape))
        self.bias_shape: tuple[int, ...] | None = None if bias_shape is None else all_whole(bias_shape)
        if bias_shape is not None:
            if self.bias_shape is None:
                raise ArgumentError(f"bias_shape must be a tuple of lengths, got {shown(bias_shape)}")
            check_shape("bias_shape", self.bias_shape, terms.bias_shape(self.shape))
        self._terms = terms

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernel and bias."""
        terms = self._terms
        terms.check(input_shape, self.shape)
        kernel_axes = list(enumerate(terms.kernel))
        initializer = MatrixInitializer(
            self.kernel_initializer,
            batch=[axis for axis, letter in kernel_axes if letter in terms.outputs and letter in terms.inputs],
            inputs=[axis for axis, letter in kernel_axes if letter not in terms.outputs],
            outputs=[axis for axis, letter in kernel_axes if letter in terms.outputs and letter not in terms.inputs],
        )
        self.add_kernel_and_bias(self.shape, self.bias_shape, initializer)

    def call(self, x: jax.Array) -> jax.Array:
        """Compute the sum of products, in the compute dtype."""
        options: dict[str, Any] = {"dtype": self.compute_dtype, "precision": self.precision}
        return self.activate(functional.einsum(self.equation, x, *self.kernel_and_bias(), **options))
