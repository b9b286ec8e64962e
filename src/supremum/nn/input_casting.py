"""Cast all floating inputs of a layer to its compute dtype.

Keras RFC 293, mixed precision, "A layer's compute dtype" and "Difficulty in casting all Keras layer inputs".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.errors import OperandError
from supremum.formats import DType, as_format
from supremum.mixed_precision import cast_floating, is_floating, native
from supremum.nn.functional.dtype_promotion import check_held, is_held
from supremum.nn.logits_registry import carry
from supremum.rules import held_dtype


def keeps_dtype(tree: Any) -> bool:
    """Whether the class of an input asks for no casts, as `KeyValueCache` does."""
    return getattr(type(tree), "keeps_dtype", False) is True


def cast_inputs(tree: Any, dtype: DType) -> Any:
    """Cast all real floating inputs to one dtype, and return them in new containers.

    Arrays of JAX and NumPy, NumPy's scalars and sparse arrays (BCOO) are cast. Integers, bools and complex numbers keep
    their dtype. So do Python floats, which are weak: a small `eps=1e-8` does not vanish in float16.

    Args:
        tree: nested containers, which do not change.
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

    # A sparse array is a tree of its data and its indices; the indices keep their integer dtype.
    return jax.tree.map(cast, tree, is_leaf=keeps_dtype)


def cast_inputs_of_layer(inputs: Any, dtype: DType | None) -> Any:
    """Prepare the inputs of a layer's `call`, in new containers that `call` may change.

    Args:
        inputs: nested containers, which do not change.
        dtype: the dtype that real floating inputs are cast to; None to cast nothing.

    Raises:
        RuntimeDtypeError: for 64 bits while JAX's x64 is off.
    """
    check_held(dtype, f"the layer computes in {dtype}", "give the layer a different policy")
    return jax.tree.map(unmasked, inputs) if dtype is None else cast_inputs(inputs, dtype)


def unmasked(leaf: Any) -> Any:
    """Return an input as JAX takes it, but raise for NumPy's masked arrays, as JAX would drop the mask.

    Args:
        leaf: anything.

    Raises:
        OperandError: for a masked array; a `TypeError`.
    """
    if isinstance(leaf, np.ma.MaskedArray):
        raise OperandError("an input is a masked array and would lose its mask; use x.filled(0)")
    return native(leaf)


def floating_dtypes(tree: Any) -> set[DType]:
    """The real floating dtypes in a tree, without those of weak arrays.

    >>> import numpy as np
    >>> floating_dtypes([np.ones(2, "float16"), 1.5, np.arange(2)])
    {dtype('float16')}
    """
    leaves = [leaf for leaf in jax.tree.leaves(tree, is_leaf=keeps_dtype) if not keeps_dtype(leaf)]
    strong = (leaf for leaf in leaves if is_floating(leaf) and not getattr(leaf, "weak_type", False))
    return {leaf.dtype.newbyteorder("=") for leaf in strong}


def narrowing(tree: Any, target: DType | None) -> str | None:
    """Describe a cast of inputs wider than float32 that loses digits, with a fix; None if no cast does.

    Args:
        tree: the inputs.
        target: the dtype they are cast to; None for the dtype that JAX silently narrows NumPy arrays to.
    """
    for dtype in floating_dtypes(tree):
        found, cast = as_format(dtype), as_format(held_dtype(dtype) if target is None else target)
        if found.bits > as_format("float32").bits and not cast.holds(found):
            follow = f"use dtype='infer' to follow them or dtype='{found}' to always compute in that; "
            enable = "call jax.config.update('jax_enable_x64', True) to let JAX hold them; "
            return (
                f"narrows its {found} inputs to {cast}: {'' if target is None else follow}"
                f"{'' if is_held(dtype) else enable}or cast with x.astype('{cast}') if this is intended"
            )
    return None
