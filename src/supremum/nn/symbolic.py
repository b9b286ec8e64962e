"""Inputs that are not there yet: what functional models are described with."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from supremum.argument_checks import iterable, pytree
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, as_format
from supremum.mixed_precision import floatx
from supremum.nn.scopes import declaring

if TYPE_CHECKING:
    from supremum.nn.layer import Layer

# An axis of unknown length is tried with two lengths: what differs in the outputs is unknown there too.
_LENGTHS = (2, 3)


class Node:
    """A call of a layer in a functional model.

    Args:
        layer: the layer.
        args: what it was given, with symbolic tensors in it.
        kwargs: likewise.
    """

    __slots__ = ("args", "kwargs", "layer", "outputs")

    def __init__(self, layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.layer = layer
        self.args = args
        self.kwargs = kwargs
        self.outputs: Any = None

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """The symbolic tensors among its arguments."""
        return symbolic_leaves((self.args, self.kwargs))


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        return _applied(function, self, *others)

    return method


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        return _applied(function, other, self)

    return method


def _applied(function: Callable[..., Any], *operands: Any) -> Any:
    from supremum.nn.operator_layer import OperatorLayer  # it is a layer, and layers import this module

    return OperatorLayer(function)(*operands)


class SymbolicTensor:
    """An array of which shape and dtype are known, as an input or an output of a layer in a functional model.

    Layers take it, and so do Python's arithmetic operators and indexing.

    Args:
        shape: its shape, with None for axes of any length.
        dtype: its dtype.
        node: the call it comes from; None for an input.
        name: of an input.
    """

    __slots__ = ("dtype", "name", "node", "shape")
    # NumPy's arrays leave operators to ours.
    __array_ufunc__ = None

    def __init__(self, shape: tuple[int | None, ...], dtype: DType, node: Node | None = None, name: str = "") -> None:
        self.shape = shape
        self.dtype = dtype
        self.node = node
        self.name = name

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    __neg__, __getitem__ = _operator(operator.neg), _operator(operator.getitem)
    __add__, __radd__ = _operator(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _operator(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _operator(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _operator(operator.truediv), _reflected(operator.truediv)
    __pow__, __rpow__ = _operator(operator.pow), _reflected(operator.pow)
    __matmul__, __rmatmul__ = _operator(operator.matmul), _reflected(operator.matmul)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise OperandError(
            f"{shown(self)} has no values: it stands for an input of a functional model, which layers take"
        )

    def __iter__(self) -> Any:
        raise OperandError(f"{shown(self)} cannot be taken apart: its first axis is the batch; index it")

    def __bool__(self) -> bool:
        raise OperandError(
            f"{shown(self)} has no values, so that nothing can depend on them: use a layer for the choice"
        )

    def __repr__(self) -> str:
        named = f", name={self.name!r}" if self.name else ""
        return f"SymbolicTensor(shape={self.shape}, dtype={as_format(self.dtype)}{named})"


def Input(  # noqa: N802 (the name that users of Keras know)
    shape: Any, dtype: Any = None, *, batch_size: int | None = None, name: str = ""
) -> SymbolicTensor:
    """An input of a functional model.

    Args:
        shape: its shape without the batch axis, with None for axes of any length.
        dtype: its dtype; None for `floatx()`.
        batch_size: length of the batch axis; None for any.
        name: for errors and the summary.

    >>> Input((28, 28, 1))
    SymbolicTensor(shape=(None, 28, 28, 1), dtype=float32)
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(iterable("shape", shape, "lengths"))
    for size in (batch_size, *sizes):
        if not (size is None or (isinstance(size, int) and size >= 0)):
            raise ArgumentError(
                f"the shape of an Input is made of lengths, or None for any, not {shown(size)}: {shown(shape)}"
            )
    return SymbolicTensor((batch_size, *sizes), as_format(floatx() if dtype is None else dtype).dtype, name=name)


def symbolic_leaves(tree: Any) -> list[SymbolicTensor]:
    """The symbolic tensors in a tree."""
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, SymbolicTensor)]


def is_symbolic(tree: Any) -> bool:
    """Whether there is a symbolic tensor among the inputs of a layer."""
    leaves = jax.tree.leaves(pytree("the inputs of a layer", tree))
    return any(isinstance(leaf, SymbolicTensor) for leaf in leaves)


def call_symbolically(layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a layer with symbolic tensors, which computes nothing, and builds it.

    Returns:
        The outputs, as symbolic tensors.
    """
    node = Node(layer, args, kwargs)
    for number, length in enumerate(_LENGTHS):
        _trace(node, length, again=number > 0)

    def tensor(spec: Spec) -> SymbolicTensor:
        return SymbolicTensor(spec.shape, spec.dtype, node)

    node.outputs = jax.tree.map(tensor, layer.output_spec, is_leaf=is_spec)
    return node.outputs


def _trace(node: Node, length: int, *, again: bool) -> None:
    leaves, structure = jax.tree.flatten((node.args, node.kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, SymbolicTensor)]

    def call(arrays: list[Any]) -> Any:
        given = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            given[place] = array
        args, kwargs = jax.tree.unflatten(structure, given)
        return node.layer(*args, **kwargs)

    def spec(tensor: SymbolicTensor) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(tuple(length if size is None else size for size in tensor.shape), tensor.dtype)

    with declaring(again=again):
        jax.eval_shape(call, [spec(leaves[place]) for place in places])


class Spec(NamedTuple):
    """Shape and dtype of an output.

    Args:
        shape: its shape, with None for axes of any length.
        dtype: its dtype.
    """

    shape: tuple[int | None, ...]
    dtype: DType


def spec_of(leaf: Any) -> Any:
    """The shape and dtype of an array; anything else as it is."""
    return Spec(tuple(leaf.shape), leaf.dtype) if hasattr(leaf, "dtype") else leaf


def is_spec(leaf: Any) -> bool:
    """Whether something is a `Spec`, which JAX would take for a container."""
    return isinstance(leaf, Spec)


def common_spec(one: Any, other: Any) -> Any:
    """What two outputs of a layer have in common, for two lengths of the axes of any length.

    Raises:
        ArgumentError: if they have different numbers of axes.
    """
    if not is_spec(one):
        return one
    if len(one.shape) != len(other.shape):
        raise ArgumentError(f"the number of axes of the outputs depends on a length that is not known: {one}, {other}")
    return Spec(tuple(a if a == b else None for a, b in zip(one.shape, other.shape, strict=True)), one.dtype)
