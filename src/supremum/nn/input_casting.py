"""The casts at the door of a layer: of all floating inputs to its compute dtype.

spec/keras-rfc-293-mixed-precision.md, "A layer's compute dtype" and "Difficulty in casting all Keras layer inputs".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.errors import OperandError
from supremum.formats import DType
from supremum.mixed_precision import Policy
from supremum.mixed_precision.tree_casting import cast_floating, is_floating, native
from supremum.nn.logits_registry import carry


def keeps_dtype(tree: Any) -> bool:
    """Whether a part of the inputs is left as it is: its class says so, as a cache of keys and values does."""
    return getattr(type(tree), "keeps_dtype", False) is True


def cast_inputs(tree: Any, dtype: DType) -> Any:
    """Inputs with all that is real floating in one dtype, in containers of their own.

    Arrays of JAX and NumPy, NumPy's scalars and sparse arrays (BCOO) are cast. Integers, bools and complex numbers are
    left alone, and so are Python floats, which are weak: a small `eps=1e-8` does not vanish in float16.

    Args:
        tree: nested containers, which are not changed.
        dtype: a real floating dtype.

    >>> import numpy as np
    >>> given = {"x": [np.ones(2)], "eps": 1e-8}
    >>> cast_inputs(given, jnp.dtype("float16")), given["x"][0].dtype
    ({'eps': 1e-08, 'x': [Array([1., 1.], dtype=float16)]}, dtype('float64'))
    """

    def cast(leaf: Any) -> Any:
        plain = unmasked(leaf)
        if not is_floating(plain):
            return plain
        return carry(leaf, jnp.asarray(cast_floating(leaf, dtype), dtype))

    # A sparse array is a tree of its data and its indices: integers are left alone there too.
    return jax.tree.map(cast, tree, is_leaf=keeps_dtype)


def unmasked(leaf: Any) -> Any:
    """What is given, as JAX takes it, unless it is a masked array of NumPy, whose mask JAX would drop.

    Args:
        leaf: anything.

    Raises:
        OperandError: for a masked array; a `TypeError`.
    """
    if isinstance(leaf, np.ma.MaskedArray):
        raise OperandError("an input is a masked array, whose mask would be lost: give x.filled(0)")
    return native(leaf)


def cast_outputs(tree: Any, policy: Policy) -> Any:
    """Outputs with all that is real floating in the output dtype of a policy, but for what keeps its dtype."""
    return tree if policy.output_dtype is None else cast_inputs(tree, policy.output_dtype)


def floating_dtypes(tree: Any) -> set[DType]:
    """The real floating dtypes in a tree; weak arrays have none of their own.

    >>> import numpy as np
    >>> floating_dtypes([np.ones(2, "float16"), 1.5, np.arange(2)])
    {dtype('float16')}
    """
    leaves = [leaf for leaf in jax.tree.leaves(tree, is_leaf=keeps_dtype) if not keeps_dtype(leaf)]
    strong = (leaf for leaf in leaves if is_floating(leaf) and not getattr(leaf, "weak_type", False))
    return {leaf.dtype.newbyteorder("=") for leaf in strong}
