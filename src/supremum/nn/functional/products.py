"""Products of inputs and weights, in their result type.

XLA gets the products in the dtype of their operands. It accumulates float16 and bfloat16 in float32 and rounds once,
which a test measures. With `preferred_element_type` the cotangents would be float32, and the products of the backward
pass would then be float32 too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard, cast

import jax
import jax.numpy as jnp
from jax import lax

from supremum.argument_checks import text
from supremum.errors import ArgumentError, shown
from supremum.formats import at_least_float32
from supremum.nn.functional.dtype_promotion import common_dtype, promote_arrays, refuse_none
from supremum.nn.functional.precision import as_precision
from supremum.nn.functional.shape_checks import Ints, as_axes, check_shape
from supremum.typing import ArrayLike, DTypeLike

if TYPE_CHECKING:
    from jax.experimental.sparse import BCOO


def dense(
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
    precision: lax.PrecisionLike = None,
) -> jax.Array:
    """A matrix product over the last axis, plus a bias.

    Args:
        x: inputs, shape (..., n); may be a `jax.experimental.sparse.BCOO`.
        kernel: weights, shape (n, m).
        bias: shape (m,), or None.
        dtype: the dtype to compute in; None for the result type of the arrays.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.
            Products of sparse inputs are in at least float32 and have no such choice.

    Returns:
        An array of shape (..., m) in that dtype.

    Raises:
        ArgumentError: for shapes that do not match; a `ValueError`.

    >>> dense(
    ...     jnp.ones((2, 3), "int8"),
    ...     jnp.ones((3, 1), "bfloat16"),
    ...     jnp.ones(1, "bfloat16"),
    ... ).ravel()
    Array([4, 4], dtype=bfloat16)
    """
    if is_sparse(x):
        return sparse_product(x, kernel, bias, dtype=dtype)
    refuse_none(x=x, kernel=kernel)
    inputs, weights, biases = promote_arrays(x, kernel, bias, dtype=dtype)
    _check_product(inputs.shape, weights.shape)
    contracted = (((inputs.ndim - 1,), (0,)), ((), ()))
    return with_bias(lax.dot_general(inputs, weights, contracted, as_precision(precision)), biases)


def dense_general(
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    axes: Ints = (-1,),
    batch_axes: Ints = (),
    dtype: DTypeLike | None = None,
    precision: lax.PrecisionLike = None,
) -> jax.Array:
    """A matrix product over any axes, plus a bias, with a separate matrix for each index of the batch axes.

    Args:
        x: inputs.
        kernel: weights, shape (*batch, *contracted, *features), the first two as in `x`.
        bias: shape (*batch, *features), or None.
        axes: the axes of `x` to contract, in the kernel's order.
        batch_axes: the axes of `x` with separate matrices; they must be the first axes.
        dtype: the dtype to compute in; None for the result type of the arrays.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.

    Returns:
        An array in that dtype. Its axes are those of `x` that are not contracted, and then the features of the kernel;
        its shape is (*batch, *others, *features).

    Raises:
        ArgumentError: for shapes and axes that do not match; a `ValueError`.

    >>> dense_general(jnp.ones((5, 2, 3)), jnp.ones((2, 3, 4)), axes=(1, 2)).shape
    (5, 4)
    >>> dense_general(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4)), batch_axes=0).shape
    (5, 2, 4)
    """
    refuse_none(x=x, kernel=kernel)
    inputs, weights, biases = promote_arrays(x, kernel, bias, dtype=dtype)
    axes, batch_axes = general_axes(axes, batch_axes, inputs.ndim)
    batch = len(batch_axes)
    contracted = tuple(range(batch, batch + len(axes)))
    shared = tuple(inputs.shape[axis] for axis in (*batch_axes, *axes))
    if weights.shape[: len(shared)] != shared:
        raise ArgumentError(
            f"the kernel must have shape {(*shared, '...')} for inputs of shape {inputs.shape} with axes={axes} and "
            f"batch_axes={batch_axes}, got {weights.shape}".replace("'", "")
        )
    product = lax.dot_general(inputs, weights, ((axes, contracted), (batch_axes, batch_axes)), as_precision(precision))
    if biases is None:
        return product
    features = weights.shape[len(shared) :]
    check_shape("bias", biases.shape, (*weights.shape[:batch], *features))
    others = (1,) * (product.ndim - batch - len(features))
    return product + biases.reshape(*weights.shape[:batch], *others, *features)


def general_axes(axes: Ints, batch_axes: Ints, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Convert the contracted axes and batch axes of `dense_general` to numbers from 0.

    Args:
        axes: the axes to contract.
        batch_axes: the axes with separate matrices.
        ndim: the number of axes of the inputs.

    Raises:
        ArgumentError: for axes out of range, axes in both arguments, or batch axes that are not the first axes; a
            `ValueError`.
    """
    axes = as_axes("axes", axes, ndim)
    batch_axes = as_axes("batch_axes", batch_axes, ndim)
    first = tuple(range(len(batch_axes)))
    if batch_axes != first:
        raise ArgumentError(
            f"batch_axes must be the first axes in order, got {batch_axes}; use batch_axes={first} and "
            f"jnp.moveaxis(x, {batch_axes}, {first})"
        )
    both = sorted(set(axes) & set(batch_axes))
    if both:
        raise ArgumentError(
            f"axes and batch_axes must not overlap, got axis {both[0]} in axes={axes} and batch_axes={batch_axes}"
        )
    return axes, batch_axes


def einsum(
    equation: str,
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
    precision: lax.PrecisionLike = None,
) -> jax.Array:
    """A sum of products that an equation describes, plus a bias.

    Args:
        equation: `"inputs,kernel->outputs"`, with a letter for each axis; `...` in inputs and outputs means all other
            axes.
        x: inputs.
        kernel: weights.
        bias: an array over the axes that kernel and result share, in the order of the result; or None.
        dtype: the dtype to compute in; None for the result type of the arrays.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.

    Returns:
        An array in that dtype. Sums over an axis that only one operand has, which XLA would round separately, are
        computed in at least float32.

    Raises:
        ArgumentError: for an invalid equation, or shapes that do not match it; a `ValueError`.

    >>> einsum(
    ...     "...i,iho->...ho", jnp.ones((5, 2)), jnp.ones((2, 3, 4)), jnp.ones((3, 4))
    ... ).shape
    (5, 3, 4)
    """
    terms = Equation.parse(equation)
    refuse_none(x=x, kernel=kernel)
    inputs, weights, biases = promote_arrays(x, kernel, bias, dtype=dtype)
    terms.check(inputs.shape, weights.shape)
    if biases is not None:
        check_shape("bias", biases.shape, terms.bias_shape(weights.shape))
    target = weights.dtype
    if terms.sums_one_operand():
        inputs, weights = (array.astype(at_least_float32(target)) for array in (inputs, weights))
    product = jnp.einsum(str(terms), inputs, weights, precision=as_precision(precision)).astype(target)
    return product if biases is None else product + biases.reshape(terms.over_outputs(weights.shape, product.ndim))


def is_sparse(x: object) -> TypeGuard[BCOO]:
    """Whether inputs are a `BCOO`; imports nothing, since only a loaded `jax.experimental.sparse` can make one."""
    sparse = sys.modules.get("jax.experimental.sparse")
    return isinstance(x, getattr(sparse, "BCOO", ()))


def sparse_product(x: BCOO, kernel: ArrayLike, bias: ArrayLike | None, *, dtype: DTypeLike | None = None) -> jax.Array:
    """A matrix product of sparse inputs over the last axis, plus a bias, computed in at least float32 and rounded once.

    XLA accumulates products of sparse inputs in the dtype of the operands, unlike those of dense inputs.

    Args:
        x: a `BCOO` of shape (..., n) without dense axes.
        kernel: weights, shape (n, m).
        bias: shape (m,), or None.
        dtype: the dtype of the result; None for the result type of the arrays.

    Returns:
        A dense array of shape (..., m).

    Raises:
        ArgumentError: if an axis of `x` is dense, or for shapes that do not match; a `ValueError`.
    """
    from jax.experimental import sparse  # takes half a second to load

    if x.n_dense:
        raise ArgumentError(f"sparse inputs must not have dense axes, got {x.n_dense}; use x.todense()")
    target = common_dtype(x.data, kernel, bias, dtype=dtype)
    data, weights, biases = promote_arrays(x.data, kernel, bias, dtype=at_least_float32(target))
    _check_product(x.shape, weights.shape)
    entries = sparse.BCOO(
        (data, x.indices), shape=x.shape, indices_sorted=x.indices_sorted, unique_indices=x.unique_indices
    )
    contracted = (((x.ndim - 1,), (0,)), ((), ()))
    product = cast("jax.Array", sparse.bcoo_dot_general(entries, weights, dimension_numbers=contracted))
    return with_bias(product, biases).astype(target)


def with_bias(product: jax.Array, bias: jax.Array | None) -> jax.Array:
    """Add a bias, one number for each index of the last axis; None to add nothing.

    Raises:
        ArgumentError: for a bias of a different shape; a `ValueError`.
    """
    if bias is None:
        return product
    check_shape("bias", bias.shape, product.shape[-1:])
    return product + bias


def _check_product(x: Sequence[int], kernel: Sequence[int]) -> None:
    if not x or len(kernel) != 2 or x[-1] != kernel[0]:
        raise ArgumentError(
            f"inputs and kernel must have shapes (..., n) and (n, m), got {tuple(x)} and {tuple(kernel)}"
        )


ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """A parsed equation: each letter names an axis, and `...` in `inputs` and `outputs` means all other axes.

    Args:
        inputs: the letters of the inputs' axes.
        kernel: the letters of the kernel's axes.
        outputs: the letters of the result's axes.
    """

    inputs: str
    kernel: str
    outputs: str

    @classmethod
    def parse(cls, equation: str) -> Equation:
        """Parse an equation.

        Args:
            equation: `"inputs,kernel->outputs"`; spaces are ignored.

        Raises:
            ArgumentError: for an invalid equation; a `ValueError`.

        >>> Equation.parse("...i, io -> ...o")
        Equation(inputs='...i', kernel='io', outputs='...o')
        """
        left, arrow, outputs = text("equation", equation).replace(" ", "").partition("->")
        inputs, comma, kernel = left.partition(",")
        parts = cls(inputs, kernel, outputs)
        problem = None if arrow and comma else "a comma or '->' is missing"
        problem = problem or parts._problem()
        if problem:
            raise ArgumentError(
                f"equation must have inputs and a kernel, as in '...i,io->...o', got {shown(equation)}: {problem}"
            )
        return parts

    def _problem(self) -> str | None:
        """The reason why the parts are not a valid equation, or None."""
        terms = [term.replace(ELLIPSIS, "", 1) for term in (self.inputs, self.kernel, self.outputs)]
        if not all(term.isalpha() and term.isascii() for term in terms if term):
            return "terms must consist of letters"
        inputs, kernel, outputs = map(set, terms)
        if ELLIPSIS in self.kernel or (ELLIPSIS in self.inputs) != (ELLIPSIS in self.outputs):
            return "'...' must be in both inputs and outputs, or in neither"
        if len(kernel) < len(terms[1]) or len(outputs) < len(terms[2]):
            return "a letter is repeated in the kernel or in the outputs"
        if not outputs <= inputs | kernel:
            return "a letter of the outputs is in neither inputs nor kernel"
        return None

    def sums_one_operand(self) -> bool:
        """Whether an axis that only one operand has is summed over, which is not part of a product.

        >>> (
        ...     Equation.parse("ab,bc->c").sums_one_operand(),
        ...     Equation.parse("ab,bc->ac").sums_one_operand(),
        ... )
        (True, False)
        """
        alone = set(self.inputs) ^ set(self.kernel)
        return bool(alone - set(self.outputs) - set(ELLIPSIS))

    def check(self, x: Sequence[int], kernel: Sequence[int]) -> None:
        """Raise for shapes that do not match the equation.

        Args:
            x: the shape of the inputs.
            kernel: the shape of the kernel.

        Raises:
            ArgumentError: for a number of axes or a size that does not match; a `ValueError`.
        """
        letters = self.inputs.replace(ELLIPSIS, "")
        left = len(x) - len(letters)
        if left < 0 or (left > 0 and ELLIPSIS not in self.inputs) or len(kernel) != len(self.kernel):
            raise ArgumentError(
                f"inputs and kernel must have one axis for each letter of the equation '{self}', got shapes {tuple(x)} "
                f"and {tuple(kernel)}"
            )
        before = self.inputs.partition(ELLIPSIS)[0] if ELLIPSIS in self.inputs else letters
        named = [*x[: len(before)], *x[len(before) + left :]]
        sizes: dict[str, int] = {}
        for letter, size in (*zip(letters, named, strict=True), *zip(self.kernel, kernel, strict=True)):
            if sizes.setdefault(letter, size) != size:
                raise ArgumentError(
                    f"axis {shown(letter)} of the equation '{self}' must have one size, got {sizes[letter]} and {size} "
                    f"with inputs of shape {tuple(x)} and a kernel of shape {tuple(kernel)}"
                )

    def bias_shape(self, kernel: Sequence[int]) -> tuple[int, ...]:
        """The shape of a bias: the axes that kernel and result share, in the order of the result.

        Args:
            kernel: the kernel's shape.

        >>> Equation.parse("bti,hio->bhto").bias_shape((8, 16, 4))
        (8, 4)
        """
        sizes = dict(zip(self.kernel, kernel, strict=True))
        return tuple(sizes[letter] for letter in self.outputs if letter in sizes)

    def over_outputs(self, kernel: Sequence[int], ndim: int) -> tuple[int, ...]:
        """The shape of a bias that broadcasts to the result, with length 1 for axes that the kernel does not have.

        Args:
            kernel: the kernel's shape.
            ndim: the number of axes of the result.

        >>> Equation.parse("...i,io->...o").over_outputs((3, 4), 3)
        (1, 1, 4)
        """
        sizes = dict(zip(self.kernel, kernel, strict=True))
        before, _, after = self.outputs.partition(ELLIPSIS)
        others = "." * (ndim - len(before) - len(after))
        return tuple(sizes.get(letter, 1) for letter in before + others + after)

    def __str__(self) -> str:
        return f"{self.inputs},{self.kernel}->{self.outputs}"
