"""Casts of the floating leaves of a pytree."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import pytree
from supremum.errors import OperandError
from supremum.formats import FORMATS, Kind, as_format, at_least_float32
from supremum.rules import JAX_X32, is_explicit_x64, is_x64

_DTYPES = frozenset(row.dtype for row in FORMATS)
_FLOATING = frozenset(row.dtype for row in FORMATS if row.kind is Kind.FLOAT)
_INEXACT = frozenset(row.dtype for row in FORMATS if row.is_inexact)


def is_bool_scalar(value: Any) -> bool:
    """Whether a value is a Python bool or a 0-d bool array, traced or not."""
    return isinstance(value, bool) or (is_array(value) and value.dtype == np.bool_ and value.shape == ())


def is_array(leaf: Any) -> bool:
    """Whether a leaf is a JAX array, or a NumPy array or scalar that JAX can hold.

    PRNG keys are JAX arrays. A NumPy array counts if its dtype is a number format in the byte order of the machine:
    strings, times and objects do not.
    """
    return isinstance(leaf, jax.Array) or (isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype in _DTYPES)


def is_floating(leaf: Any) -> bool:
    """Whether a leaf is an array or NumPy scalar of a real floating dtype.

    Python floats do not count: they are weak and follow the array they are combined with, so a small constant such as
    `eps=1e-8` does not vanish in a narrow format. PRNG keys, integers, bools and complex numbers do not count either.
    """
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic)) and is_floating_dtype(leaf.dtype)


def is_inexact(leaf: Any) -> bool:
    """Whether a leaf is an array or NumPy scalar of a real or complex floating dtype."""
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic)) and leaf.dtype in _INEXACT


def is_floating_dtype(dtype: Any) -> bool:
    """Whether a value is a real floating dtype, of either byte order."""
    # The dtypes of PRNG keys are not NumPy dtypes. The dtypes of strings and times are, but are not number formats.
    return isinstance(dtype, np.dtype) and dtype.newbyteorder("=") in _FLOATING


def described(value: Any) -> str:
    """Describe a value in an error message: the dtype and shape of an array, the type of anything else.

    >>> described(jnp.ones(2)), described("loss")
    ('float32[2]', 'str')
    """
    return f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else type(value).__name__


def as_real_floating(name: str, value: Any) -> str:
    """Write the code that makes a value real floating, for error messages.

    The code takes the real part of a complex array, because `astype` drops the imaginary part.

    Args:
        name: the user's name for the value.
        value: an array that is not real floating, or a Python number.

    >>> as_real_floating("loss", jnp.ones((), "complex64")), as_real_floating("loss", 3)
    ('loss.real', "jnp.asarray(loss, 'float32')")
    """
    if not is_array(value):
        return f"jnp.asarray({name}, 'float32')"
    return f"{name}.real" if value.dtype in _INEXACT - _FLOATING else f"{name}.astype('float32')"


def cast_floating(tree: Any, dtype: Any) -> Any:
    """Cast the real floating leaves of a pytree to one dtype, and keep all other leaves.

    Args:
        tree: any pytree; neither it nor the containers in it are changed.
        dtype: a real floating dtype, in any form that `as_format` takes.

    Raises:
        OperandError: for a dtype that is not real floating; it would truncate every leaf.
        UnknownDtypeError: for anything that is not a dtype.

    >>> import numpy as np
    >>> cast = cast_floating({"x": np.ones(2, np.float64), "n": np.arange(2), "eps": 1e-8}, "float16")
    >>> cast["x"].dtype, cast["n"].dtype, cast["eps"]
    (dtype('float16'), dtype('int64'), 1e-08)
    """
    target = as_format(dtype)
    if target.kind is not Kind.FLOAT:
        raise OperandError(
            f"cast_floating needs a real floating dtype, got {target}: "
            f"for other dtypes write jax.tree.map(lambda leaf: leaf.astype('{target}'), tree)"
        )

    def cast(leaf: Any) -> Any:
        if not is_floating(leaf) or leaf.dtype == target.dtype:
            return leaf
        return leaf.astype(target.dtype) if isinstance(leaf, jax.Array) else jnp.asarray(leaf, target.dtype)

    return jax.tree.map(cast, pytree("tree", tree))


def keep_64_bits(tree: Any) -> Any:
    """Convert the 64-bit NumPy arrays of a pytree to JAX arrays of 64 bits.

    With x64 off JAX narrows NumPy arrays, even if `jax_explicit_x64_dtypes` allows 64 bits; an array keeps its 64 bits
    only if it is converted with an explicit dtype.

    Args:
        tree: any pytree; leaves that JAX does not narrow stay as they are.
    """
    if is_x64() or not is_explicit_x64():
        return tree

    def keep(leaf: Any) -> Any:
        is_wide = isinstance(leaf, (np.ndarray, np.generic)) and str(leaf.dtype) in JAX_X32.held_as
        return jnp.asarray(leaf, leaf.dtype) if is_wide else leaf

    return jax.tree.map(keep, tree)


def native(leaf: Any) -> Any:
    """Convert a NumPy array to the machine's byte order, the only one that JAX takes.

    Args:
        leaf: anything; other values are returned as they are.

    >>> native(np.ones(2, ">f4")).dtype
    dtype('float32')
    """
    if isinstance(leaf, (np.ndarray, np.generic)) and not leaf.dtype.isnative:
        return leaf.astype(leaf.dtype.newbyteorder("="))
    return leaf


def widen(leaf: Any) -> Any:
    """Cast a floating leaf that is narrower than float32 to float32, and return anything else as it is."""
    if not is_floating(leaf) or as_format(leaf.dtype).dtype == at_least_float32(leaf.dtype):
        return leaf
    return jnp.asarray(leaf).astype(jnp.float32)
