"""Symbolic values, which have shapes and dtypes but no data, and the graph of layers that they come from."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, as_format
from supremum.jaxprs import split_arrays
from supremum.nn.scopes import declaring
from supremum.typing import PyTree

# Axes of any length are traced with two lengths; axes of the outputs that then differ have any length too.
_LENGTHS = (2, 3)


@dataclass(slots=True, eq=False)
class LayerNode:
    """A call of a layer in a functional model.

    Args:
        layer: the layer, which keeps the shapes and dtypes of its outputs in `output_spec`.
        args: its positional arguments, with symbolic tensors among them.
        kwargs: its keyword arguments.
        outputs: its outputs, symbolic tensors.

    Attributes:
        number: larger than those of the calls before.
    """

    layer: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: Any = None
    number: int = field(default_factory=itertools.count().__next__, init=False)

    @property
    def inputs(self) -> list[SymbolicValue]:
        """The symbolic tensors among its arguments."""
        return symbolic_leaves((self.args, self.kwargs))


@dataclass(slots=True, eq=False, repr=False)
class SymbolicValue:
    """An array with a known shape and dtype but no values, as an input or an output of a layer in a functional model.

    Args:
        shape: its shape, with None for axes of any length.
        dtype: its dtype.
        node: the call it comes from; None for an input.
        name: the name of an input.
    """

    shape: tuple[int | None, ...]
    dtype: DType
    node: LayerNode | None = None
    name: str = ""

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise OperandError(
            f"{shown(self)} has no values; it stands for an input of a functional model, so pass it to a layer"
        )

    def __iter__(self) -> Any:
        raise OperandError(f"{shown(self)} cannot be iterated over, since its first axis is the batch; use indexing")

    def __bool__(self) -> bool:
        raise OperandError(
            f"{shown(self)} has no values and cannot be used as a condition; use a layer that makes the choice"
        )

    def __repr__(self) -> str:
        named = f", name={self.name!r}" if self.name else ""
        return f"SymbolicTensor(shape={self.shape}, dtype={as_format(self.dtype)}{named})"


def symbolic_leaves(tree: PyTree) -> list[SymbolicValue]:
    """The symbolic tensors in a tree."""
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, SymbolicValue)]


def is_symbolic(tree: PyTree) -> bool:
    """Whether the inputs of a layer contain a symbolic tensor."""
    return bool(symbolic_leaves(pytree("the inputs of a layer", tree)))


def call_symbolically(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a layer with symbolic tensors, which computes nothing but builds the layer.

    Returns:
        The outputs, symbolic tensors of the same class as the inputs.
    """
    node = LayerNode(layer, args, kwargs)
    tensors, with_arrays = split_arrays((args, kwargs), lambda leaf: isinstance(leaf, SymbolicValue))

    def call(arrays: list[jax.Array]) -> Any:
        positional, named = with_arrays(arrays)
        return layer(*positional, **named)

    first: dict[str, Any] = {}
    layers: dict[str, Any] = {}
    for length in _LENGTHS:
        shapes = [tuple(length if size is None else size for size in tensor.shape) for tensor in tensors]
        specs = [jax.ShapeDtypeStruct(shape, tensor.dtype) for shape, tensor in zip(shapes, tensors, strict=True)]
        with declaring():
            jax.eval_shape(call, specs)
        layers = layer.layers_by_path()
        first = first or {path: inner.output_spec for path, inner in layers.items()}
    for path, inner in layers.items():
        inner.output_spec = jax.tree.map(
            _common_spec, first.get(path, inner.output_spec), inner.output_spec, is_leaf=is_spec
        )
    kind = type(node.inputs[0])

    def tensor(spec: Spec) -> SymbolicValue:
        return kind(spec.shape, spec.dtype, node)

    node.outputs = jax.tree.map(tensor, layer.output_spec, is_leaf=is_spec)
    return node.outputs


class Spec(NamedTuple):
    """The shape and dtype of an output.

    Args:
        shape: its shape, with None for axes of any length.
        dtype: its dtype.
    """

    shape: tuple[int | None, ...]
    dtype: DType


def spec_of(leaf: PyTree) -> Any:
    """The shape and dtype of an array; returns anything else as it is."""
    return Spec(tuple(leaf.shape), leaf.dtype) if hasattr(leaf, "dtype") else leaf


def is_spec(leaf: object) -> bool:
    """Whether a leaf is a `Spec`, which JAX would treat as a container."""
    return isinstance(leaf, Spec)


def _common_spec(one: Any, other: Any) -> Any:
    """Combine two specs of one output, traced with two lengths for the axes of any length.

    Raises:
        ArgumentError: if they have different numbers of axes.
    """
    if not is_spec(one):
        return one
    if len(one.shape) != len(other.shape):
        raise ArgumentError(
            f"the number of output axes must not depend on the length of an axis of any length, got {one} and {other}"
        )
    return Spec(tuple(a if a == b else None for a, b in zip(one.shape, other.shape, strict=True)), one.dtype)
