"""Casting the floating leaves of a pytree."""

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
    """Whether something is a bool, of Python or in an array without dimensions, traced or not."""
    return isinstance(value, bool) or (is_array(value) and value.dtype == np.bool_ and value.shape == ())


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array of JAX, PRNG keys included, or an array or scalar of NumPy that can become one.

    Those of NumPy can where their dtype is a number format, in the byte order of the machine: not strings, times or
    objects.
    """
    return isinstance(leaf, jax.Array) or (isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype in _DTYPES)


def is_floating(leaf: Any) -> bool:
    """Whether a leaf is an array or NumPy scalar of a real floating dtype.

    Python floats are not: they are weak and follow the array they meet, so a small constant such as `eps=1e-8` does
    not vanish in a narrow format. PRNG keys, integers, bools and complex numbers are not either.
    """
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic)) and is_floating_dtype(leaf.dtype)


def is_inexact(leaf: Any) -> bool:
    """Whether a leaf is an array or NumPy scalar of a real or complex floating dtype."""
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic)) and leaf.dtype in _INEXACT


def is_floating_dtype(dtype: Any) -> bool:
    """Whether something is a real floating dtype, of either byte order."""
    # The dtypes of PRNG keys are not NumPy dtypes; those of strings and times are, but they are not number formats.
    return isinstance(dtype, np.dtype) and dtype.newbyteorder("=") in _FLOATING


def described(value: Any) -> str:
    """The dtype and shape of an array, or the type of anything else, for error messages.

    >>> described(jnp.ones(2)), described("loss")
    ('float32[2]', 'a str')
    """
    return f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else f"a {type(value).__name__}"


def as_real_floating(name: str, value: Any) -> str:
    """What to type to make a value real floating, for errors: of a complex array its real part, which `astype` drops.

    Args:
        name: what the user calls the value.
        value: an array that is not real floating, or a Python number.

    >>> as_real_floating("loss", jnp.ones((), "complex64")), as_real_floating("loss", 3)
    ('loss.real', "jnp.asarray(loss, 'float32')")
    """
    if not is_array(value):
        return f"jnp.asarray({name}, 'float32')"
    return f"{name}.real" if value.dtype in _INEXACT - _FLOATING else f"{name}.astype('float32')"


def cast_floating(tree: Any, dtype: Any) -> Any:
    """A pytree with its real floating leaves cast to one dtype and everything else as it was.

    Args:
        tree: any pytree; it is not changed, and neither are the containers in it.
        dtype: a real floating dtype, given as `as_format` takes it.

    Raises:
        OperandError: for a dtype that is not real floating, which would truncate every leaf.
        UnknownDtypeError: for anything that is not a dtype.

    >>> import numpy as np
    >>> cast = cast_floating({"x": np.ones(2, np.float64), "n": np.arange(2), "eps": 1e-8}, "float16")
    >>> cast["x"].dtype, cast["n"].dtype, cast["eps"]
    (dtype('float16'), dtype('int64'), 1e-08)
    """
    target = as_format(dtype)
    if target.kind is not Kind.FLOAT:
        raise OperandError(
            f"floating leaves must be cast to a real floating dtype, got {target}: "
            f"for integers write jax.tree.map(lambda leaf: leaf.astype('{target}'), tree)"
        )

    def cast(leaf: Any) -> Any:
        if not is_floating(leaf) or leaf.dtype == target.dtype:
            return leaf
        return leaf.astype(target.dtype) if isinstance(leaf, jax.Array) else jnp.asarray(leaf, target.dtype)

    return jax.tree.map(cast, pytree("tree", tree))


def keep_64_bits(tree: Any) -> Any:
    """A pytree whose arrays of 64 bits JAX does not narrow.

    With x64 off JAX narrows the arrays of NumPy that it is given, also where `jax_explicit_x64_dtypes` allows 64 bits:
    only what becomes an array of JAX in a dtype given by name keeps them.

    Args:
        tree: any pytree; what JAX keeps anyway, or does not hold at all, is left as it is.
    """
    if is_x64() or not is_explicit_x64():
        return tree

    def keep(leaf: Any) -> Any:
        is_wide = isinstance(leaf, (np.ndarray, np.generic)) and str(leaf.dtype) in JAX_X32.held_as
        return jnp.asarray(leaf, leaf.dtype) if is_wide else leaf

    return jax.tree.map(keep, tree)


def native(leaf: Any) -> Any:
    """A leaf, with a NumPy array brought to the machine's byte order: JAX takes no other.

    Args:
        leaf: anything.

    >>> native(np.ones(2, ">f4")).dtype
    dtype('float32')
    """
    if isinstance(leaf, (np.ndarray, np.generic)) and not leaf.dtype.isnative:
        return leaf.astype(leaf.dtype.newbyteorder("="))
    return leaf


def widen(leaf: Any) -> Any:
    """Cast a floating leaf that is narrower than float32 to float32, and leave anything else as it is."""
    if not is_floating(leaf) or as_format(leaf.dtype).dtype == at_least_float32(leaf.dtype):
        return leaf
    return jnp.asarray(leaf).astype(jnp.float32)
