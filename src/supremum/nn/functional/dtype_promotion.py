"""The dtype that a layer computes in: the result type of its inputs and parameters, unless one is named.

spec/flax-flip-default-dtypes.md, "Implementation" (`promote_arrays` there).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import pytree
from supremum.arrays import RuntimeDtypeError, narrowed
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, as_format
from supremum.operands import as_operand
from supremum.promotion import promote_types, result_type
from supremum.rules import get_rules, held_dtype

FLOAT32 = as_format("float32")
"""What values that are not inexact become, and the least that statistics are computed in."""


def promote_dtype(*arrays: Any, dtype: Any = None, inexact: bool = True) -> tuple[Any, ...]:
    """Bring arrays to the dtype that an operation on all of them runs in.

    Args:
        arrays: arrays of JAX or NumPy, Python numbers (which are weak), or None, which stays None.
        dtype: the dtype to bring them to; None for their result type under the rules in force. Complex arrays are never
            truncated: with a real `dtype` all of them come to the complex dtype that it and they meet in.
        inexact: whether the dtype must be floating or complex; integers and bools then become at least float32.

    Returns:
        The arrays as JAX's, all of one dtype, in their order.

    Raises:
        ArgumentError: for a `dtype` that is not inexact although it must be; a `ValueError`.
        PromotionError: if the rules refuse.
        RuntimeDtypeError: for 64 bits while JAX's x64 is off; JAX would narrow them in silence.
        NarrowingError: for integers of NumPy that do not fit into the 32 bits that JAX then holds them in.
        OperandError: for what is neither an array nor a number, such as a list.

    >>> import numpy as np
    >>> x, kernel = np.ones((2, 3), np.int32), jnp.ones((3, 4), jnp.bfloat16)
    >>> [array.dtype for array in promote_dtype(x, kernel)]
    [dtype(bfloat16), dtype(bfloat16)]
    >>> [array.dtype for array in promote_dtype(jnp.ones(2, jnp.complex64), kernel, dtype="float16")]
    [dtype('complex64'), dtype('complex64')]
    """
    target = common_dtype(*arrays, dtype=dtype, inexact=inexact)
    return tuple(None if array is None else _in_dtype(array, target) for array in arrays)


def common_dtype(*arrays: Any, dtype: Any = None, inexact: bool = True) -> DType:
    """The dtype that `promote_dtype` would bring arrays to; arguments and errors are the same.

    >>> common_dtype(jnp.ones(2, jnp.int8), inexact=False), common_dtype(jnp.ones(2, jnp.int8), 1e-3)
    (dtype('int8'), dtype('float32'))
    """
    given = [array for array in arrays if array is not None]
    operands = [as_operand(array, place) for place, array in enumerate(given)]
    if dtype is None:
        found = as_format(result_type(*given, rules=get_rules()))  # JAX computes, whoever holds the arrays
        target = found if found.is_inexact or not inexact else as_format(promote_types(FLOAT32.dtype, found.dtype))
    else:
        target = as_format(dtype)
        if inexact and not target.is_inexact:
            raise ArgumentError(
                f"this is computed in a floating or complex dtype, not in {target}: give dtype='float32'"
            )
        if target.category != "complex":
            for operand in operands:
                if operand.category == "complex":
                    met = complex if operand.value is not None else operand.format.dtype
                    target = as_format(promote_types(target.dtype, met))
    check_held(
        target.dtype, f"the inputs and parameters meet in {target}", "cast them first, as with x.astype('float32')"
    )
    return target.dtype


def is_held(dtype: DType) -> bool:
    """Whether JAX holds a dtype now; those of 64 bits only with x64 on, or where they are allowed explicitly."""
    return held_dtype(dtype) == dtype


def check_held(dtype: DType | None, what: str, otherwise: str) -> None:
    """Refuse what JAX would narrow in silence.

    Args:
        dtype: the dtype; None for any that arrays have already.
        what: what it is for, in words.
        otherwise: what else can be done.

    Raises:
        RuntimeDtypeError: for 64 bits while JAX's x64 is off.
    """
    if dtype is not None and not is_held(dtype):
        raise RuntimeDtypeError(
            f"{what}, which JAX does not hold while its x64 is off: jax.config.update('jax_enable_x64', True), or "
            f"{otherwise}"
        )


def _in_dtype(array: Any, dtype: DType) -> jax.Array:
    if isinstance(array, jax.Array):
        return array if array.dtype == dtype and not array.weak_type else jax.lax.convert_element_type(array, dtype)
    # Integers of NumPy that do not fit into what JAX narrows them to are refused, not wrapped around.
    if isinstance(array, np.ndarray):
        return jnp.asarray(narrowed(dtype, array), dtype)
    return as_array("an operand", array, dtype)


def as_array(name: str, value: Any, dtype: DType | None = None) -> jax.Array:
    """An array of JAX, of anything that JAX makes one of.

    Args:
        name: its name.
        value: an array of any library, a number, or lists of those.
        dtype: the dtype; None for the one that JAX gives it.

    Raises:
        OperandError: for anything else; a `TypeError`.

    >>> as_array("mask", "no mask")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: mask is an array of numbers, not 'no mask'
    """
    pytree(name, value)
    try:
        return jnp.asarray(value, dtype)
    except Exception as error:  # of any kind, also what the value itself raises
        held = "" if dtype is None else f" that fits in {dtype}"
        raise OperandError(f"{name} is an array of numbers{held}, not {shown(value)}") from error


def shape_of(name: str, array: Any) -> tuple[int, ...]:
    """The shape of an array or a number.

    Args:
        name: its name.
        array: the array.

    Raises:
        OperandError: for a list or another container; a `TypeError`.
    """
    if isinstance(array, (list, tuple, dict)):
        raise OperandError(f"{name} is an array, not {shown(array)}: give jnp.asarray({name})")
    return np.shape(array)


def refuse_none(**arrays: Any) -> None:
    """Refuse arrays that are missing.

    Args:
        arrays: by name.

    Raises:
        OperandError: for one that is None; a `TypeError`.

    >>> refuse_none(x=1.0, kernel=None)
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: kernel is an array, not None
    """
    for name, array in arrays.items():
        if array is None:
            raise OperandError(f"{name} is an array, not None")
