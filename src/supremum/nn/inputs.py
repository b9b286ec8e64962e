"""The inputs of layers: what they must be, the casts to the compute dtype, and their description in errors.

Keras RFC 293, mixed precision, "InputSpecs", "A layer's compute dtype" and "Difficulty in casting all Keras layer
inputs".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from supremum.errors import ArgumentError, OperandError, UnknownDtypeError, listed, shown
from supremum.formats import DType, argument_dtype, as_format
from supremum.mixed_precision import is_floating, native
from supremum.nn.logits_registry import copy_origin
from supremum.typing import PyTree


def described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Describe arguments in their structure: arrays by dtype and shape, anything else as it is.

    >>> described((np.ones((2, 3), np.float16), [1.5]), {"mask": None})
    'float16[2,3], [1.5], mask=None'
    """
    plain = [_describe(arg) for arg in args]
    named = [f"{name}={_describe(value)}" for name, value in kwargs.items()]
    return listed(plain + named) or "nothing"


class _Unquoted(str):
    """A string with a `repr` that has no quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _describe(tree: Any) -> str:
    try:
        return shown(jax.tree.map(_leaf, tree))
    except (ValueError, TypeError):  # JAX cannot flatten every container
        return type(tree).__name__


def _leaf(leaf: Any) -> _Unquoted:
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return _Unquoted(shown(leaf)[:40])
    try:
        named = str(as_format(dtype))
    except UnknownDtypeError:
        named = str(dtype)
    return _Unquoted(f"{named}[{','.join(map(str, np.shape(leaf)))}]")


@dataclass(frozen=True)
class InputSpec:
    """The requirements on one input; None or an empty mapping allows anything.

    Args:
        shape: the whole shape, with None for axes of any length.
        ndim: the number of axes.
        min_ndim: the smallest number of axes.
        max_ndim: the largest number of axes.
        axes: the lengths of some axes, by index; negative indices count from the end.
        dtype: the dtype before the cast. With a floating dtype the layer refuses all others, although it could cast
            them; leave it out unless this is intended.

    >>> InputSpec(min_ndim=2, axes={-1: 3}).problem((4, 5), "float32")
    'must have length 3 along axis -1, got 5'
    >>> InputSpec(min_ndim=2, axes={-1: 3}).problem((4, 3), "float32")
    """

    shape: tuple[int | None, ...] | None = None
    ndim: int | None = None
    min_ndim: int | None = None
    max_ndim: int | None = None
    axes: Mapping[int, int] = field(default_factory=dict[int, int])
    dtype: Any = None

    def __post_init__(self) -> None:
        if self.dtype is not None:
            object.__setattr__(self, "dtype", argument_dtype(self.dtype))

    def problem(self, shape: tuple[int, ...], dtype: DType | str) -> str | None:
        """Describe how an input breaks the requirements; None if it meets them.

        Args:
            shape: the shape of the input.
            dtype: the dtype of the input, before any cast.
        """
        if self.dtype is not None and as_format(dtype).dtype != self.dtype:
            return f"must be {as_format(self.dtype)}, got {as_format(dtype)}"
        count = len(shape)
        expected = self.ndim if self.shape is None else len(self.shape)
        if expected is not None and count != expected:
            return f"must have {expected} axes, got {count}"
        if self.min_ndim is not None and count < self.min_ndim:
            return f"must have at least {self.min_ndim} axes, got {count}"
        if self.max_ndim is not None and count > self.max_ndim:
            return f"must have at most {self.max_ndim} axes, got {count}"
        for axis, length in {**dict(enumerate(self.shape or ())), **self.axes}.items():
            if length is None:
                continue
            if not -count <= axis < count:
                return f"must have length {length} along axis {axis}, got {count} axes"
            if shape[axis] != length:
                return f"must have length {length} along axis {axis}, got {shape[axis]}"
        return None


InputSpecs: TypeAlias = "InputSpec | Sequence[InputSpec | None] | Mapping[str, InputSpec]"
"""The requirements on the first input, on the positional inputs, or on inputs by argument name."""


def check_inputs(
    specs: InputSpecs | None, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise if inputs do not meet their specifications.

    Args:
        specs: the specifications; None allows anything.
        call: the function that takes the inputs, which has the argument names.
        args: the positional inputs.
        kwargs: the keyword inputs.

    Raises:
        ArgumentError: for the first input that does not.
    """
    if specs is None:
        return
    if isinstance(specs, Mapping):
        inputs, by_name = inspect.signature(call).bind_partial(*args, **kwargs).arguments, specs
    else:
        in_order = (specs,) if isinstance(specs, InputSpec) else specs
        by_name = {f"input {number}": spec for number, spec in enumerate(in_order)}
        inputs = {f"input {number}": value for number, value in enumerate(args)}
    for name, each in by_name.items():
        value = inputs.get(name)
        if each is None or value is None:
            continue
        if isinstance(value, (list, tuple, dict)):
            raise ArgumentError(f"{name} must be one array, got {type(value).__name__}")
        problem = each.problem(np.shape(value), _dtype_of(value))
        if problem is not None:
            raise ArgumentError(f"{name} {problem}")


def _dtype_of(value: Any) -> Any:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def keeps_dtype(tree: object) -> bool:
    """Whether the class of an input asks for no casts, as `KeyValueCache` does."""
    return getattr(type(tree), "keeps_dtype", False) is True


def floating_dtypes(tree: PyTree) -> set[DType]:
    """The real floating dtypes in a tree, without those of weak arrays.

    >>> import numpy as np
    >>> floating_dtypes([np.ones(2, "float16"), 1.5, np.arange(2)])
    {dtype('float16')}
    """
    leaves = [leaf for leaf in jax.tree.leaves(tree, is_leaf=keeps_dtype) if not keeps_dtype(leaf)]
    strong = (leaf for leaf in leaves if is_floating(leaf) and not getattr(leaf, "weak_type", False))
    return {leaf.dtype.newbyteorder("=") for leaf in strong}


def cast_inputs(tree: PyTree, dtype: DType | None) -> Any:
    """Cast all real floating inputs to one dtype, and return them in new containers.

    Arrays of JAX and NumPy, NumPy's scalars and sparse arrays (BCOO) are cast. Integers, bools and complex numbers keep
    their dtype. So do Python floats, which are weak: a small `eps=1e-8` does not vanish in float16.

    Args:
        tree: nested containers, which do not change.
        dtype: a real floating dtype; None to cast nothing.

    >>> import numpy as np
    >>> given = {"x": [np.ones(2)], "eps": 1e-8}
    >>> cast_inputs(given, jnp.dtype("float16")), given["x"][0].dtype
    ({'eps': 1e-08, 'x': [Array([1., 1.], dtype=float16)]}, dtype('float64'))
    """

    def cast(leaf: Any) -> Any:
        plain = as_jax_input(leaf)
        if dtype is None or not is_floating(plain):
            return plain
        array = jnp.asarray(plain, dtype)
        return array if array is leaf else copy_origin(leaf, array)

    # A sparse array is a tree of its data and its indices; the indices keep their integer dtype.
    return jax.tree.map(cast, tree, is_leaf=keeps_dtype)


def as_jax_input(leaf: object) -> Any:
    """Return an input as JAX takes it, but raise for NumPy's masked arrays, as JAX would drop the mask.

    Args:
        leaf: anything.

    Raises:
        OperandError: for a masked array; a `TypeError`.
    """
    if isinstance(leaf, np.ma.MaskedArray):
        raise OperandError("an input is a masked array and would lose its mask; use x.filled(0)")
    return native(leaf)
