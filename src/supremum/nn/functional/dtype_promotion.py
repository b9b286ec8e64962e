"""The dtype that a layer computes in: the result type of its inputs and parameters, unless a dtype is given.

Flax FLIP, default dtypes, "Implementation" (`promote_arrays` there) and "Complex number support".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import pytree
from supremum.arrays import RuntimeDtypeError, narrowed
from supremum.errors import ArgumentError, OperandError, UnknownDtypeError, shortened, shown
from supremum.formats import DType, argument_dtype, as_format, at_least_float32
from supremum.mixed_precision import as_real_floating, described
from supremum.operands import OperandLike, as_operand
from supremum.promotion import promote_types, result_type
from supremum.rules import get_rules, held_dtype
from supremum.typing import ArrayLike, DTypeLike, PyTree


@overload
def promote_dtype(
    *arrays: ArrayLike, dtype: DTypeLike | None = None, inexact: bool = True
) -> tuple[jax.Array, ...]: ...


@overload
def promote_dtype(*arrays: PyTree, dtype: DTypeLike | None = None, inexact: bool = True) -> tuple[Any, ...]: ...


def promote_dtype(*arrays: PyTree, dtype: DTypeLike | None = None, inexact: bool = True) -> tuple[Any, ...]:
    """Cast arrays to the dtype of an operation on all of them.

    Args:
        arrays: arrays of JAX or NumPy, Python numbers (which are weak), None, which stays None, or pytrees of them.
        dtype: the dtype to cast to; None for the result type of the arrays under the rules in force. Complex arrays are
            never truncated: if some are complex and `dtype` is real, all become the complex result type.
        inexact: whether the dtype must be floating or complex; integers and bools then become at least float32.

    Returns:
        JAX arrays of one dtype, or pytrees of them, in the given order.

    Raises:
        ArgumentError: for a `dtype` that is not inexact although it must be, or a tree that JAX cannot flatten; a
            `ValueError`.
        PromotionError: if the rules refuse.
        RuntimeDtypeError: for 64 bits while JAX's x64 is off; JAX would narrow them silently.
        NarrowingError: for NumPy integers that do not fit in the 32 bits that JAX then uses.
        OperandError: for a leaf that is not an array or a number.

    >>> import numpy as np
    >>> x, kernel = np.ones((2, 3), np.int32), jnp.ones((3, 4), jnp.bfloat16)
    >>> [array.dtype for array in promote_dtype(x, kernel)]
    [dtype(bfloat16), dtype(bfloat16)]
    >>> x, params = promote_dtype(
    ...     jnp.ones(2, jnp.complex64), {"kernel": kernel}, dtype="float16"
    ... )
    >>> x.dtype, params["kernel"].dtype
    (dtype('complex64'), dtype('complex64'))
    """
    leaves, structure = jax.tree.flatten(pytree("the arrays", arrays), is_leaf=_is_operand)
    return jax.tree.unflatten(structure, promote_arrays(*leaves, dtype=dtype, inexact=inexact))


def _is_operand(tree: object) -> bool:
    """Whether a pytree is one operand: arrays and variables have a dtype, and a decoding cache keeps its own."""
    return hasattr(type(tree), "dtype") or hasattr(type(tree), "keeps_dtype")


@overload
def promote_arrays(
    *arrays: ArrayLike, dtype: DTypeLike | None = None, inexact: bool = True
) -> tuple[jax.Array, ...]: ...


@overload
def promote_arrays(
    *arrays: ArrayLike | None, dtype: DTypeLike | None = None, inexact: bool = True
) -> tuple[Any, ...]: ...


def promote_arrays(*arrays: ArrayLike | None, dtype: DTypeLike | None = None, inexact: bool = True) -> tuple[Any, ...]:
    """The same as `promote_dtype` for arrays only: lists and other containers raise an OperandError.

    >>> promote_arrays(jnp.ones(2, jnp.float16), None, dtype="float32")
    (Array([1., 1.], dtype=float32), None)
    """
    target = common_dtype(*arrays, dtype=dtype, inexact=inexact)
    return tuple(None if array is None else _in_dtype(array, target) for array in arrays)


def common_dtype(*arrays: OperandLike | None, dtype: DTypeLike | None = None, inexact: bool = True) -> DType:
    """The dtype that `promote_arrays` casts arrays to; arguments and errors are the same.

    >>> (
    ...     common_dtype(jnp.ones(2, jnp.int8), inexact=False),
    ...     common_dtype(jnp.ones(2, jnp.int8), 1e-3),
    ... )
    (dtype('int8'), dtype('float32'))
    """
    present = [array for array in arrays if array is not None]
    if len(arrays) == 1 and not present:
        raise OperandError("the operand must be an array, got None")
    operands = [as_operand(array, place) for place, array in enumerate(present)]
    if dtype is None:
        # JAX computes, whichever library the arrays are from.
        result = as_format(result_type(*present, rules=get_rules()))
        target = result if result.is_inexact or not inexact else as_format(promote_types("float32", result.dtype))
    else:
        target = as_format(argument_dtype(dtype))
        if inexact and not target.is_inexact:
            raise ArgumentError(f"dtype must be floating-point or complex, got {target}; use dtype='float32'")
        if target.category != "complex":
            for operand in operands:
                if operand.category == "complex":
                    met = complex if operand.value is not None else operand.format.dtype
                    target = as_format(promote_types(target.dtype, met))
    check_held(
        target.dtype, f"the result type of inputs and parameters is {target}", "cast them, as in x.astype('float32')"
    )
    return target.dtype


def promote_and_widen(*arrays: ArrayLike, dtype: DTypeLike | None = None) -> tuple[DType, tuple[jax.Array, ...]]:
    """The dtype that `promote_arrays` casts arrays to, and the arrays in at least float32, to round results only once.

    >>> promote_and_widen(jnp.ones(2, jnp.float16))
    (dtype('float16'), (Array([1., 1.], dtype=float32),))
    """
    target = common_dtype(*arrays, dtype=dtype)
    return target, promote_arrays(*arrays, dtype=at_least_float32(target))


def is_held_by_jax(dtype: DType) -> bool:
    """Whether JAX can hold a dtype now; it holds 64 bits only with x64 on, or if they are explicitly allowed."""
    return held_dtype(dtype) == dtype


def check_held(dtype: DType | None, what: str, otherwise: str) -> None:
    """Raise for a dtype that JAX would silently narrow.

    Args:
        dtype: the dtype; None is always allowed.
        what: the use of the dtype, for the message.
        otherwise: the other fix, for the message.

    Raises:
        RuntimeDtypeError: for 64 bits while JAX's x64 is off.
    """
    if dtype is not None and not is_held_by_jax(dtype):
        raise RuntimeDtypeError(
            f"{what}, which JAX cannot hold while its x64 is off; call jax.config.update('jax_enable_x64', True), or "
            f"{otherwise}"
        )


def _in_dtype(array: Any, dtype: DType) -> jax.Array:
    if isinstance(array, jax.Array):
        return array if array.dtype == dtype and not array.weak_type else jax.lax.convert_element_type(array, dtype)
    # NumPy integers that do not fit in JAX's narrowed dtype are refused, not wrapped around.
    if isinstance(array, np.ndarray):
        return jnp.asarray(narrowed(dtype, array), dtype)
    return as_array("an operand", array, dtype)


def as_array(name: str, value: ArrayLike, dtype: DType | None = None) -> jax.Array:
    """Convert a value to a JAX array.

    Args:
        name: the name of the argument.
        value: an array of any library, a number, or nested lists.
        dtype: the dtype; None for the dtype that JAX chooses.

    Raises:
        OperandError: for anything else; a `TypeError`.

    >>> as_array("mask", "no mask")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: mask must be an array of numbers, got 'no mask'
    """
    pytree(name, value)
    try:
        return jnp.asarray(value, dtype)
    except Exception as error:  # of any kind, since the value itself may raise
        limit = "" if dtype is None else f" that fit in {dtype}"
        raise OperandError(f"{name} must be an array of numbers{limit}, got {shown(value)}") from error


def as_floating(operation: str, name: str, value: ArrayLike, *, or_complex: bool = False) -> jax.Array:
    """Convert an array of real floating numbers to a JAX array.

    Args:
        operation: the name of the operation, for the message.
        name: the name of the argument.
        value: an array of any library, or a Python number.
        or_complex: whether complex numbers are allowed too.

    Raises:
        OperandError: for anything else; a `TypeError`.

    >>> as_floating("UnitNorm", "w", jnp.ones(2, "int32"))
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: w of UnitNorm must be a real floating-point array, got int32[2]; use \
w.astype('float32')
    """
    kinds = ("float", "complex") if or_complex else ("float",)
    kind = "floating-point or complex" if or_complex else "real floating-point"
    must = f"{name} of {operation} must be a {kind} array"
    try:
        shape_of(name, value)
        array = as_array(name, value)
        category = as_format(array.dtype).category
    except (OperandError, UnknownDtypeError) as error:
        raise OperandError(f"{must}, got {shown(value)}; use {name}=jnp.asarray([1.0, 2.0])") from error
    if category not in kinds:
        raise OperandError(f"{must}, got {described(value)}; use {as_real_floating(name, value)}")
    return array


def new_array(
    owner: object, make: Callable[..., jax.Array], *args: Any, dtype: DType | None, **options: Any
) -> jax.Array:
    """Call a function that makes an array.

    Args:
        owner: the layer, for errors.
        make: the function, such as `jax.numpy.full`.
        args: its arguments.
        dtype: its argument `dtype`.
        options: its keyword arguments.

    Raises:
        ArgumentError: for arguments that it refuses; a `ValueError`.

    >>> new_array("a layer", jnp.linspace, 0, 1, num=-1, dtype=None)
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: a layer cannot make the array: Number of samples, -1, must be non-negative.
    """
    pytree("the array", args)
    try:
        return make(*args, dtype=dtype, **options)
    except Exception as error:  # of any kind, since an argument itself may raise
        raise ArgumentError(f"{owner} cannot make the array: {shortened(str(error))}") from error


def shape_of(name: str, array: ArrayLike) -> tuple[int, ...]:
    """The shape of an array or a number.

    Args:
        name: the name of the argument.
        array: the array.

    Raises:
        OperandError: for a list or another container; a `TypeError`.
    """
    if isinstance(array, (list, tuple, dict)):
        raise OperandError(f"{name} must be an array, got {shown(array)}; use jnp.asarray({name})")
    value: Any = array
    return np.shape(value)


def refuse_none(**arrays: ArrayLike | None) -> None:
    """Raise for missing arrays.

    Args:
        arrays: the arrays by name.

    Raises:
        OperandError: for None; a `TypeError`.

    >>> refuse_none(x=1.0, kernel=None)
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: kernel must be an array, got None
    """
    for name, array in arrays.items():
        if array is None:
            raise OperandError(f"{name} must be an array, got None")


def refuse_complex(operation: str, *, dtype: DTypeLike | None = None, **arrays: ArrayLike | None) -> None:
    """Raise for complex numbers, which have no order and therefore no softmax.

    Flax FLIP, default dtypes, "Complex number support".

    Args:
        operation: the name of the operation, for the message.
        dtype: the requested dtype, or None.
        arrays: arrays or Python numbers by name; None is skipped.

    Raises:
        OperandError: for a complex array or dtype; a `TypeError`.
    """
    if dtype is not None and as_format(dtype).category == "complex":
        raise OperandError(
            f"{operation} is not defined for complex numbers; dtype must be real, got {as_format(dtype)}"
        )
    array: Any
    for name, array in arrays.items():
        if array is None:
            continue
        row = as_format(array.dtype if hasattr(array, "dtype") else result_type(array))
        if row.category == "complex":
            raise OperandError(
                f"{operation} is not defined for complex numbers; {name} must be real, got {row}; use {name}.real or "
                f"jnp.abs({name})"
            )
