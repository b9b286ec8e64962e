"""Casting the floating leaves of a pytree."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.formats import FORMATS, DType, Kind

_FLOATING = frozenset(row.dtype for row in FORMATS if row.kind is Kind.FLOAT)


def is_floating(leaf: Any) -> bool:
    """Whether a leaf is an array or NumPy scalar of a real floating dtype.

    Python floats are not: they are weak and follow the array they meet, so a small constant such as `eps=1e-8` does
    not vanish in a narrow format. PRNG keys, integers, bools and complex numbers are not either.
    """
    # The dtypes of PRNG keys are no NumPy dtypes; those of strings or times are, and are no formats.
    if not isinstance(leaf, (jax.Array, np.ndarray, np.generic)) or not isinstance(leaf.dtype, np.dtype):
        return False
    return leaf.dtype in _FLOATING


def cast_floating(tree: Any, dtype: DType) -> Any:
    """A pytree with its real floating leaves cast to one dtype and everything else as it was.

    Args:
        tree: any pytree; it is not changed, and neither are the containers in it.
        dtype: a real floating dtype.

    >>> import numpy as np
    >>> cast = cast_floating({"x": np.ones(2, np.float64), "n": np.arange(2), "eps": 1e-8}, np.dtype("float16"))
    >>> cast["x"].dtype, cast["n"].dtype, cast["eps"]
    (dtype('float16'), dtype('int64'), 1e-08)
    """

    def cast(leaf: Any) -> Any:
        if not is_floating(leaf) or leaf.dtype == dtype:
            return leaf
        return jnp.asarray(leaf).astype(dtype) if isinstance(leaf, jax.Array) else jnp.asarray(leaf, dtype)

    return jax.tree.map(cast, tree)
