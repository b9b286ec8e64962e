"""The casts at the door of a layer: of all floating inputs to its compute dtype.

spec/keras-rfc-293-mixed-precision.md, "A layer's compute dtype" and "Difficulty in casting all Keras layer inputs".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.errors import OperandError
from supremum.formats import DType, as_format
from supremum.mixed_precision import Policy, cast_floating, is_floating, native
from supremum.nn.functional import check_held, is_held
from supremum.nn.logits_registry import carry
from supremum.rules import held_dtype


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


def cast_inputs_of_layer(inputs: Any, dtype: DType | None) -> Any:
    """Inputs as a layer takes them, in containers of their own, so that `call` may change them.

    Args:
        inputs: nested containers, which are not changed.
        dtype: the dtype for what is real floating; None to cast nothing.

    Raises:
        RuntimeDtypeError: for 64 bits while JAX's x64 is off.
    """
    check_held(dtype, f"the layer computes in {dtype}", "give it another policy")
    return jax.tree.map(unmasked, inputs) if dtype is None else cast_inputs(inputs, dtype)


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


def narrowed_dtypes(tree: Any, target: DType | None) -> tuple[DType, DType] | None:
    """A dtype among inputs, wider than float32, that loses digits in the cast, and the dtype it is cast to.

    Args:
        tree: the inputs.
        target: what they are cast to; None for what JAX, which says nothing, narrows arrays of NumPy to.
    """
    least = as_format("float32")
    for dtype in floating_dtypes(tree):
        row, cast = as_format(dtype), held_dtype(dtype) if target is None else target
        if row.bits > least.bits and not as_format(cast).holds(row):
            return dtype, cast
    return None


def narrowing_fix(dtype: DType, target: DType, *, follows_inputs: bool) -> str:
    """What to do about inputs that lose digits, in words.

    Args:
        dtype: of the inputs.
        target: what they are cast to.
        follows_inputs: whether the layer computes in the dtype of its inputs.
    """
    found = as_format(dtype)
    follow = f"dtype='infer' follows them, dtype='{found}' computes in that always, "
    enable = "with jax.config.update('jax_enable_x64', True) JAX holds them, "
    return (
        f"{'' if follows_inputs else follow}{'' if is_held(dtype) else enable}"
        f"and x.astype('{as_format(target)}') says that this is meant"
    )
