"""The casts at the door of a layer: of all floating inputs to its compute dtype.

spec/keras-rfc-293-mixed-precision.md, "A layer's compute dtype" and "Difficulty in casting all Keras layer inputs".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO

from supremum.formats import DType
from supremum.mixed_precision import Policy
from supremum.mixed_precision.casting import is_floating, is_floating_dtype


def keeps_dtype(tree: Any) -> bool:
    """Whether a part of the inputs is left as it is: its class says so, as a cache of keys and values does."""
    return getattr(type(tree), "keeps_dtype", False) is True


def _is_leaf(tree: Any) -> bool:
    return isinstance(tree, BCOO) or keeps_dtype(tree)


def leaves_of(tree: Any) -> list[Any]:
    """The arrays among the inputs or outputs of a layer, sparse ones whole, and what else is in them."""
    return [leaf for leaf in jax.tree.leaves(tree, is_leaf=_is_leaf) if not keeps_dtype(leaf)]


def cast_inputs(tree: Any, dtype: DType) -> Any:
    """Inputs with all that is real floating in one dtype, in containers of their own.

    Arrays of JAX and NumPy, NumPy's scalars and sparse arrays (BCOO) are cast. Integers, bools and complex numbers are
    left alone, and so are Python floats, which are weak: a small `eps=1e-8` does not vanish in float16.

    Args:
        tree: nested containers, which are not changed.
        dtype: a real floating dtype.

    >>> given = {"x": [np.ones(2)], "eps": 1e-8}
    >>> cast_inputs(given, jnp.dtype("float16")), given["x"][0].dtype
    ({'eps': 1e-08, 'x': [Array([1., 1.], dtype=float16)]}, dtype('float64'))
    """

    def cast(leaf: Any) -> Any:
        if isinstance(leaf, BCOO):
            data: Any = leaf.data
            if not is_floating_dtype(data.dtype) or data.dtype == dtype:
                return leaf
            return BCOO(
                (data.astype(dtype), leaf.indices),
                shape=leaf.shape,
                indices_sorted=leaf.indices_sorted,
                unique_indices=leaf.unique_indices,
            )
        if not is_floating(leaf):
            return leaf
        if isinstance(leaf, jax.Array):
            return leaf if leaf.dtype == dtype else leaf.astype(dtype)
        return jnp.asarray(leaf, dtype)

    return jax.tree.map(cast, tree, is_leaf=_is_leaf)


def cast_outputs(tree: Any, policy: Policy) -> Any:
    """Outputs with all that is real floating in the output dtype of a policy, but for what keeps its dtype."""
    return tree if policy.output_dtype is None else cast_inputs(tree, policy.output_dtype)


def floating_dtypes(tree: Any) -> set[DType]:
    """The real floating dtypes in a tree; weak arrays have none of their own.

    >>> floating_dtypes([np.ones(2, "float16"), 1.5, np.arange(2)])
    {dtype('float16')}
    """
    found = (getattr(leaf, "dtype", None) for leaf in leaves_of(tree) if not getattr(leaf, "weak_type", False))
    return {dtype.newbyteorder("=") for dtype in found if isinstance(dtype, np.dtype) and is_floating_dtype(dtype)}
