"""Functions of pytrees and their leaves: casts, scaling, a choice between two trees, and a check for finite values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError, OperandError, shortened, shown
from supremum.formats import FORMATS, DType, Kind, as_format, at_least_float32
from supremum.jaxprs import is_array
from supremum.rules import JAX_X32, is_explicit_x64, is_x64
from supremum.typing import DTypeLike, PyTree

if TYPE_CHECKING:
    import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

_FLOATING = frozenset(row.dtype for row in FORMATS if row.kind is Kind.FLOAT)
_INEXACT = frozenset(row.dtype for row in FORMATS if row.is_inexact)


def is_floating(leaf: object) -> bool:
    """Whether a leaf is an array or NumPy scalar of a real floating dtype.

    Python floats do not count: they are weak and follow the array they are combined with, so a small constant such as
    `eps=1e-8` does not vanish in a narrow format. PRNG keys, integers, bools and complex numbers do not count either.
    """
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic)) and is_floating_dtype(leaf.dtype)


def is_inexact(leaf: object) -> bool:
    """Whether a leaf is an array or NumPy scalar of a real or complex floating dtype."""
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic)) and leaf.dtype in _INEXACT


def is_floating_dtype(dtype: object) -> TypeGuard[DType]:
    """Whether a value is a real floating dtype, of either byte order."""
    # The dtypes of PRNG keys are not NumPy dtypes. The dtypes of strings and times are, but are not number formats.
    return isinstance(dtype, np.dtype) and dtype.newbyteorder("=") in _FLOATING


def described(value: object) -> str:
    """Describe a value in an error message: the dtype and shape of an array, the type of anything else.

    >>> described(jnp.ones(2)), described("loss")
    ('float32[2]', 'str')
    """
    array: Any = value
    return f"{array.dtype}{list(array.shape)}" if hasattr(value, "dtype") else type(value).__name__


def path_text(path: Iterable[object]) -> str:
    """Write a path of `jax.tree_util` as its names, joined by slashes; empty for the root.

    >>> ((path, _),) = jax.tree_util.tree_leaves_with_path({"dense": {"kernel": 1}})
    >>> path_text(path)
    'dense/kernel'
    """
    return jax.tree_util.keystr(tuple(path), simple=True, separator="/")


OptaxOptimizer: TypeAlias = "optax.GradientTransformation | optax.MultiSteps"
"""What optax calls an optimizer."""


def as_optax(owner: str, optimizer: object) -> optax.GradientTransformationExtraArgs:
    """Convert an optax optimizer to a transformation whose `update` takes further arguments.

    Args:
        owner: the name of the function that takes the optimizer, for the error.
        optimizer: a transformation or an `optax.MultiSteps`.

    Raises:
        OperandError: for anything else; a `TypeError`.
    """
    import optax  # pyright: ignore[reportMissingTypeStubs] (it takes 0.2 s, and not every user of this package needs it)

    inner: Any = optimizer.gradient_transformation() if isinstance(optimizer, optax.MultiSteps) else optimizer
    if not isinstance(inner, optax.GradientTransformation):
        raise OperandError(f"{owner} needs an optax transformation, got {shown(optimizer)}: use optax.adam(1e-3)")
    return optax.with_extra_args_support(inner)


KEEP_SAVED_STATE = "to keep a saved state, restore it as checkpointer.restore(path, optimizer.init(params))"
"""The fix for a state that a checkpointer restored as dicts."""


def check_state(owner: str, state: object, kind: type) -> None:
    """Raise for a state that the `init` of an optimizer did not make.

    Args:
        owner: the name of the function that made the optimizer.
        state: the state.
        kind: the class of its states.

    Raises:
        OperandError: for anything but an instance of the class; a `TypeError`.
    """
    if not isinstance(state, kind):
        what = f"the state of {owner} must be a {kind.__name__}, got {shown(state)}"
        raise OperandError(f"{what}: use optimizer.init(params); {KEEP_SAVED_STATE}")


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


def as_loss(loss: object) -> jax.Array:
    """Convert a loss to a JAX array; a Python float is a constant with zero gradients.

    Raises:
        OperandError: if the loss is not real floating.
    """
    if type(loss) is float:
        return jnp.float32(loss)
    if not is_floating(loss):
        raise OperandError(
            f"the loss must be a real floating scalar, got {described(loss)}: use {as_real_floating('loss', loss)}"
        )
    return jnp.asarray(loss)


def cast_floating(tree: PyTree, dtype: DTypeLike) -> Any:
    """Cast the real floating leaves of a pytree to one dtype, and keep all other leaves.

    Args:
        tree: any pytree; neither it nor the containers in it are changed.
        dtype: a real floating dtype, in any form that `as_format` takes.

    Raises:
        OperandError: for a dtype that is not real floating; it would truncate every leaf.
        UnknownDtypeError: for anything that is not a dtype.

    >>> import numpy as np
    >>> cast = cast_floating(
    ...     {"x": np.ones(2, np.float64), "n": np.arange(2), "eps": 1e-8}, "float16"
    ... )
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


def cast_like(tree: PyTree, like: PyTree) -> Any:
    """Cast the real floating leaves of a pytree to the dtypes of another pytree, where these are real floating too."""

    def cast(leaf: Any, model: Any) -> Any:
        dtype = getattr(model, "dtype", None)
        return leaf.astype(dtype) if is_floating(leaf) and is_floating_dtype(dtype) else leaf

    return jax.tree.map(cast, tree, like)


def keep_64_bits(tree: PyTree) -> Any:
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


def native(leaf: object) -> Any:
    """Convert a NumPy array to the machine's byte order, the only one that JAX takes.

    Args:
        leaf: anything; other values are returned as they are.

    >>> native(np.ones(2, ">f4")).dtype
    dtype('float32')
    """
    if isinstance(leaf, (np.ndarray, np.generic)) and not leaf.dtype.isnative:
        return leaf.astype(leaf.dtype.newbyteorder("="))
    return leaf


def widen(leaf: object) -> Any:
    """Cast a floating leaf that is narrower than float32 to float32, and return anything else as it is."""
    array: Any = leaf
    if not is_floating(leaf) or as_format(array.dtype).dtype == at_least_float32(array.dtype):
        return leaf
    return jnp.asarray(array).astype(jnp.float32)


def select_tree(pred: jax.Array | bool, on_true: PyTree, on_false: PyTree) -> Any:
    """Choose one of two pytrees of the same structure, leaf by leaf with `jnp.where`.

    Both are computed, and every leaf is read and written. `jax.lax.cond` computes only one of them. Prefer it for
    skipping a step over all parameters (a `where` costs a third of a step there, at width 1024), except under
    `jax.vmap`, which turns a `cond` into a `where` anyway, and for a few scalars.

    Args:
        pred: a bool scalar.
        on_true: any pytree of arrays, PRNG keys included. Other leaves, such as names or functions, must be the same in
            both trees.
        on_false: a pytree with the same structure, dtypes and shapes.

    Raises:
        ArgumentError: for a predicate that is not a bool scalar, or trees of different structures; a `ValueError`.
        OperandError: for leaves that `jnp.where` cannot choose between; the message has the path.

    >>> import jax.numpy as jnp
    >>> select_tree(jnp.asarray(False), {"w": jnp.ones(2)}, {"w": jnp.zeros(2)})
    {'w': Array([0., 0.], dtype=float32)}
    """
    if not (isinstance(pred, bool) or (is_array(pred) and pred.dtype == np.bool_ and pred.shape == ())):
        raise ArgumentError(f"the predicate of select_tree must be a bool scalar, got {shown(pred)}: use pred.all()")
    structures = jax.tree.structure(pytree("on_true", on_true)), jax.tree.structure(pytree("on_false", on_false))
    if structures[0] != structures[1]:
        both = " and ".join(shortened(str(each)) for each in structures)
        raise ArgumentError(f"select_tree needs two trees of the same structure, got {both}")

    def select(path: Any, a: Any, b: Any) -> Any:
        where = path_text(path) or "the root"
        if is_array(a) and is_array(b):
            if (a.dtype, a.shape) != (b.dtype, b.shape):
                raise OperandError(
                    f"select_tree needs arrays of one dtype and shape, got {described(a)} and {described(b)} "
                    f"(at {where}): cast one with .astype, or reshape it"
                )
            return jnp.where(pred, a, b)
        if a is b or (type(a) is type(b) and not is_array(a) and np.array_equal(a, b)):
            return a
        raise OperandError(
            f"select_tree needs arrays or two equal values, got {shown(a)} and {shown(b)} (at {where}): use jnp.asarray"
        )

    return jax.tree_util.tree_map_with_path(select, on_true, on_false)


def all_finite(tree: PyTree) -> jax.Array:
    """Whether no floating leaf of a pytree, real or complex, has an inf or a NaN.

    Each leaf is checked separately: a global norm would overflow on finite gradients.

    Args:
        tree: any pytree of arrays; leaves that are not floating count as finite.

    Returns:
        A bool scalar.

    >>> import jax.numpy as jnp
    >>> (
    ...     bool(all_finite([jnp.full(4, 3e38), jnp.arange(3)])),
    ...     bool(all_finite({"w": jnp.array([1.0, jnp.nan])})),
    ... )
    (True, False)
    """
    checks = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(pytree("tree", tree)) if is_inexact(leaf)]
    return jnp.all(jnp.stack(checks)) if checks else jnp.asarray(True)


def rescale(tree: PyTree, scale: jax.Array) -> Any:
    """Multiply gradients by the scale in at least float32, as the backward pass of the scaled loss would."""
    return _with_scale(operator.mul, tree, scale)


def unscale(tree: PyTree, scale: jax.Array) -> Any:
    """Divide the gradients of a scaled loss by the scale, in at least float32."""
    return _with_scale(operator.truediv, tree, scale)


def _with_scale(combine: Callable[[Any, Any], Any], tree: PyTree, scale: jax.Array) -> Any:
    def with_scale(leaf: Any) -> Any:
        wide = widen(leaf)
        return combine(wide, scale.astype(wide.dtype))

    return jax.tree.map(with_scale, tree)
