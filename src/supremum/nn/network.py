"""Models, which combine layers: functional models and their symbolic inputs, and subclasses."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias, cast

import jax
import numpy as np

from supremum.argument_checks import iterable, mapping, pytree
from supremum.arrays import Array
from supremum.errors import ArgumentError, shown
from supremum.formats import argument_dtype, as_format
from supremum.mixed_precision import Policy, PolicyMap, as_policy, floatx, global_policy
from supremum.nn.call_stack import CallFrame
from supremum.nn.constructor_arguments import Configurable
from supremum.nn.graph_config import graph_data, graph_of
from supremum.nn.inputs import described
from supremum.nn.layer import Layer
from supremum.nn.lazy_build import first_key, make_weights, restore_on_error
from supremum.nn.scopes import is_declaring
from supremum.nn.symbolic import LayerNode, SymbolicValue, call_symbolically, spec_of, symbolic_leaves
from supremum.nn.variables import Variable
from supremum.typing import ArrayLike, DTypeLike, PyTree

Method: TypeAlias = "Callable[[Any, Any], SymbolicTensor]"


class OperatorLayer(Layer):
    """Apply an operator of Python, under the rules in force when the model runs, and without other casts.

    Args:
        function: a function of the module `operator`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(dtype="infer", autocast=False, name=function.__name__)
        self.function = function

    def get_config(self) -> dict[str, Any]:
        """Return the name of the function."""
        return {"function": self.function.__name__}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make the layer of the function of that name."""
        return cls(getattr(operator, config["function"]))

    def call(self, *operands: ArrayLike) -> Any:
        """Apply the operator, and return an array of JAX."""
        result = self.function(*(Array(each) if isinstance(each, jax.Array) else each for each in operands))
        return result.unwrap() if isinstance(result, Array) else result


def _methods(function: Callable[[Any, Any], Any]) -> tuple[Method, Method]:
    """The methods of a binary operator, with the tensor at its left and at its right."""

    def left(self: Any, other: Any) -> SymbolicTensor:
        return OperatorLayer(function)(self, other)

    def right(self: Any, other: Any) -> SymbolicTensor:
        return OperatorLayer(function)(other, self)

    return left, right


class SymbolicTensor(SymbolicValue, Configurable):
    """An array with a known shape and dtype but no values, as an input or an output of a layer in a functional model.

    Layers take it, and so do Python's arithmetic operators and indexing.

    Args:
        shape: its shape, with None for axes of any length.
        dtype: its dtype.
        node: the call it comes from; None for an input.
        name: the name of an input.

    >>> from supremum import nn
    >>> x = nn.Input((4,))
    >>> hidden = nn.Dense(8, dtype="mixed_bfloat16")(x)
    >>> hidden.shape, hidden.dtype
    ((None, 8), dtype(bfloat16))
    """

    # NumPy's arrays must leave operators to this class.
    __array_ufunc__ = None

    def get_config(self) -> dict[str, Any]:
        """Return shape, dtype and name of an input as data for JSON."""
        return {"shape": list(self.shape), "dtype": str(as_format(self.dtype)), "name": self.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make the input that `get_config` has described."""
        return cls(tuple(config["shape"]), as_format(config["dtype"]).dtype, name=config["name"])

    def __getitem__(self, index: Any) -> SymbolicTensor:
        return OperatorLayer(operator.getitem)(self, index)

    def __neg__(self) -> SymbolicTensor:
        return OperatorLayer(operator.neg)(self)

    __add__, __radd__ = _methods(operator.add)
    __sub__, __rsub__ = _methods(operator.sub)
    __mul__, __rmul__ = _methods(operator.mul)
    __truediv__, __rtruediv__ = _methods(operator.truediv)
    __pow__, __rpow__ = _methods(operator.pow)
    __matmul__, __rmatmul__ = _methods(operator.matmul)


def Input(  # noqa: N802 (the name that users of Keras know)
    shape: int | Sequence[int | None], dtype: DTypeLike | None = None, *, batch_size: int | None = None, name: str = ""
) -> SymbolicTensor:
    """An input of a functional model.

    Args:
        shape: its shape without the batch axis, with None for axes of any length.
        dtype: its dtype; None for `floatx()`.
        batch_size: the length of the batch axis; None for any length.
        name: its name in errors and the summary.

    >>> Input((28, 28, 1))
    SymbolicTensor(shape=(None, 28, 28, 1), dtype=float32)
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(iterable("shape", shape, "lengths"))
    for size in (batch_size, *sizes):
        if not (size is None or (isinstance(size, int) and size >= 0)):
            raise ArgumentError(
                f"the shape of an Input must consist of lengths, or None for any length, got "
                f"{shown(size)} in {shown(shape)}"
            )
    return SymbolicTensor((batch_size, *sizes), argument_dtype(floatx() if dtype is None else dtype), name=name)


class Network(Layer):
    """A model, defined by its inputs and outputs, or by a subclass with a `call` method.

    A functional model, `Network(inputs, outputs)`, runs the layers between symbolic inputs and outputs. Its layers
    cast, the model itself does not. A subclass is a layer like any other and casts its inputs.

    Args:
        inputs: a symbolic tensor (`nn.Input`), or a nested structure of them; None in subclasses.
        outputs: the outputs of layers that were called with the inputs, a symbolic tensor or a nested structure.
        dtype: the policy; None for the current global policy. Layers of the model that were given no policy and have no
            weights yet take this policy. A `PolicyMap` chooses policies by the paths of layers: a matching pattern
            always decides, and the default is for layers that were given no policy.
        strict: as for layers.
        trainable: as for layers.
        name: its name.

    Raises:
        ArgumentError: if the outputs depend on inputs that are not given, or if a layer that was given no policy has
            weights of a policy other than `dtype`.

    Keras RFC 293, mixed precision, "A layer's compute dtype": functional models do not cast.

    >>> from supremum.nn import Dense, Input, Network, initialize
    >>> x = Input((3,))
    >>> hidden = Dense(4, dtype="mixed_bfloat16")(x)
    >>> model = Network(x, [hidden, Dense(1)(hidden)])
    >>> initialize(model, seed=0)
    >>> [y.dtype for y in model(np.ones((2, 3), "float32"))]
    [dtype(bfloat16), dtype('float32')]
    """

    def __init__(
        self,
        inputs: PyTree = None,
        outputs: PyTree = None,
        *,
        dtype: Policy | PolicyMap | DTypeLike | None = None,
        param_dtype: DTypeLike | None = None,
        strict: bool = False,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        self.policy_map: PolicyMap | None = _policies_of_layers(dtype)
        self._nodes: list[LayerNode] = []
        self._layers: dict[str, Layer] = {}
        is_functional = inputs is not None
        super().__init__(
            dtype=None if self.policy_map is None else self.policy_map.default,
            param_dtype=param_dtype,
            autocast=not is_functional and type(self).call is not Network.call,
            strict=strict,
            trainable=trainable,
            name=name,
        )
        pytree("inputs", inputs)
        pytree("outputs", outputs)
        if is_functional:
            self._inputs, self._outputs = inputs, outputs
            self._nodes = _sort_nodes(inputs, outputs)
            self._layers = name_layers([node.layer for node in self._nodes])
            if self._apply_policy_map():
                self._trace_again()
            self.output_spec: Any = jax.tree.map(spec_of, self._outputs)
            self.built = True
        elif outputs is not None or type(self).call is Network.call:
            raise ArgumentError("a Network must get inputs and outputs, or be a subclass with a `call` method")

    _is_complete = True  # False while layers are being added, which patterns may be for

    @property
    def output_names(self) -> tuple[str, ...] | None:
        """The names of the outputs if there are several, otherwise None.

        These are the names of the layers that return them, or the keys of a dict. Only a functional model knows its
        outputs.
        """
        outputs: Any = self._outputs if self._nodes else None
        if isinstance(outputs, dict):
            return tuple(map(str, cast("dict[Any, Any]", outputs)))
        if not isinstance(outputs, (list, tuple)) or not all(isinstance(each, SymbolicValue) for each in outputs):
            return None
        names: list[str] = []
        for tensor in cast("list[SymbolicValue]", outputs):
            name = tensor.name if tensor.node is None else self.name_of(tensor.node.layer)
            number = sum(other.partition(":")[0] == name for other in names)
            names.append(f"{name}:{number}" if number else str(name))
        return tuple(names)

    def _apply_policy_map(self, *, warns: bool = True) -> bool:
        """Give each layer of the model the policy of its path.

        A matching pattern always decides. The default is for layers without a match that were given no policy, neither
        directly nor by a model inside this one. Layers that were built for a different policy are built again.

        Args:
            warns: whether to warn about patterns that match nothing.

        Returns:
            Whether the policy of any layer changed.

        Raises:
            ArgumentError: for a layer that already has weights of a different policy.
        """
        if self.policy_map is None:
            return False
        layers = {path: layer for path, layer in self.layers_by_path().items() if path}
        for layer in layers.values():
            if isinstance(layer, Network):  # an inner model decides for its own layers
                layer._apply_policy_map(warns=False)
        if warns:
            self.policy_map.check([*layers, *self.variables])
        changed = False
        for path, layer in layers.items():
            policy = self.policy_map.for_path(path)
            if layer._chose_policy and self.policy_map.pattern_for(path) is None:
                continue
            if layer.dtype_policy != policy:
                changed = True
                _check_no_weights(path, layer, policy)
            layer._adopt_policy(policy)
        if changed:
            for layer in reversed(layers.values()):  # the inner ones first
                layer._trace_again()
        return changed

    def _undo_build(self) -> None:
        """Restore the attributes from before `build`, if it has run."""
        if not self._nodes:  # a functional model has no `build` to undo
            super()._undo_build()

    def _policy_data(self) -> Any:
        policies = self.policy_map
        return super()._policy_data() if policies is None or not policies.patterns else policies.get_config()

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as for any layer; a functional model writes its graph and layers."""
        config = super().get_config()
        if not self._nodes or "inputs" not in config:
            return config
        return config | graph_data(self._inputs, self._outputs, self._nodes, self._layers)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a new model with new layers, without weights, from the result of `get_config`."""
        if "calls" not in mapping("config", config, "model.get_config()"):
            return super().from_config(config)
        graph = {name: config[name] for name in ("inputs", "layers", "calls", "outputs") if name in config}
        inputs, outputs = graph_of(graph)
        others = {name: each for name, each in config.items() if name not in graph}
        return super().from_config({**others, "inputs": inputs, "outputs": outputs})

    def _trace_again(self) -> None:
        """Trace the outputs of a functional model again, after the policies of its layers have changed."""
        if not self._nodes:
            return
        values: dict[int, Any] = {}
        for node in self._nodes:
            args, kwargs = _substitute((node.args, node.kwargs), values)
            values |= _by_id(node.outputs, call_symbolically(node.layer, args, kwargs))
        self._outputs = _substitute(self._outputs, values)
        self._nodes = _sort_nodes(self._inputs, self._outputs)
        self.output_spec = jax.tree.map(spec_of, self._outputs)

    def children(self) -> list[tuple[str, Layer | Variable]]:
        """The layers and variables, each with its name; the layers of a functional model keep their own names."""
        return [(name.removeprefix("_layers/"), child) for name, child in super().children()]

    def build(self, input_shape: PyTree = None) -> None:
        """Make the weights for inputs of a shape, from the next key of `nn.random_key`, or from seed 0.

        A subclass may override it to add weights; it then runs once, before the first call.

        Args:
            input_shape: the shape of the float32 input, with None for the batch size; for several inputs, a list or
                dict of shapes. None for a functional model, which knows its inputs. For inputs of a different dtype,
                use `nn.initialize(model, *inputs)`.
        """
        if "build_inputs" in vars(self):  # the first call is building the model, and makes the weights
            return
        inputs = () if input_shape is None else (_specs(input_shape),)
        if not inputs and not self.built:
            raise ArgumentError(
                f"{shown(self)} does not know its inputs yet; call build with an input shape, such as (None, 28, 28)"
            )
        with restore_on_error(self):
            make_weights(self, inputs, {}, first_key())

    def call(self, *inputs: PyTree, **kwargs: PyTree) -> Any:
        """Run the layers in the order of their dependencies."""
        values = self._bind_inputs(inputs[0] if len(inputs) == 1 else inputs)
        for node in self._nodes:
            args, kwargs = _substitute((node.args, node.kwargs), values)
            values |= _by_id(node.outputs, node.layer(*args, **kwargs))
        return _substitute(self._outputs, values)

    def _bind_inputs(self, inputs: Any) -> dict[int, Any]:
        """The values of the symbolic inputs."""
        if isinstance(self._inputs, (list, tuple)) and isinstance(inputs, (list, tuple)):
            inputs = type(self._inputs)(inputs)
        try:
            values = jax.tree.structure(self._inputs).flatten_up_to(inputs)
        except (ValueError, TypeError):
            values = None
        if values is None or any(isinstance(value, (list, tuple, dict)) for value in values):
            raise ArgumentError(f"the inputs must have the structure of {self._inputs}, got {described((inputs,), {})}")
        pairs = list(zip(jax.tree.leaves(self._inputs), values, strict=True))
        for tensor, value in pairs:
            shape = np.shape(value)
            if len(shape) != tensor.ndim or any(a not in (None, b) for a, b in zip(tensor.shape, shape, strict=True)):
                raise ArgumentError(f"an input must match {shown(tensor)}, got shape {shape}")
        return {id(tensor): value for tensor, value in pairs}

    def _prepare_and_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], frame: CallFrame) -> Any:
        if self.policy_map is None or self._nodes or (self.built and not is_declaring()):
            return super()._prepare_and_call(args, kwargs, frame)
        # Layers that are made in the first call have a path only after it.
        self._apply_policy_map(warns=False)
        outputs = super()._prepare_and_call(args, kwargs, frame)
        while self._apply_policy_map(warns=self._is_complete):
            outputs = super()._prepare_and_call(args, kwargs, frame)
        return outputs


def _check_no_weights(path: str, layer: Layer, policy: Policy) -> None:
    if any(variable.is_initialized for variable in layer.variables.values()):
        raise ArgumentError(
            f"layer {shown(path)} already has weights of the policy {shown(layer.dtype_policy.name)}, but the model "
            f"asks for {shown(policy.name)}; make the model before nn.initialize, or leave out its dtype"
        )


def _specs(shape: Any) -> Any:
    """Convert a shape, or a structure of shapes, to `jax.ShapeDtypeStruct`s."""
    if isinstance(shape, dict):
        return {name: _specs(each) for name, each in cast("dict[str, Any]", shape).items()}
    sizes = cast("Sequence[Any]", shape)
    if isinstance(shape, list) and any(isinstance(each, (list, tuple, dict)) for each in sizes):
        return [_specs(each) for each in sizes]
    return jax.ShapeDtypeStruct(tuple(1 if size is None else size for size in sizes), "float32")


def _policies_of_layers(dtype: Any) -> PolicyMap | None:
    """The policies a model gives to its layers, or None; a single policy becomes a map without patterns."""
    if dtype is None or isinstance(dtype, PolicyMap):
        return dtype
    policy = as_policy(dtype)
    return None if policy is global_policy() else PolicyMap({}, policy)


def _sort_nodes(inputs: Any, outputs: Any) -> list[LayerNode]:
    """The calls between inputs and outputs, in the order in which they were made."""
    for what, tree in (("inputs", inputs), ("outputs", outputs)):
        others = [leaf for leaf in jax.tree.leaves(tree) if not isinstance(leaf, SymbolicValue)]
        if others or not jax.tree.leaves(tree):
            raise ArgumentError(
                f"the {what} of a functional model must be symbolic tensors, which nn.Input and layers return, got "
                f"{shown(others[0] if others else tree)}"
            )
    known = {id(leaf) for leaf in jax.tree.leaves(inputs)}
    nodes: dict[int, LayerNode] = {}
    pending = symbolic_leaves(outputs)
    while pending:
        tensor = pending.pop()
        if id(tensor) in known:
            continue
        if tensor.node is None:
            raise ArgumentError(
                f"the outputs depend on {shown(tensor)}, which is not among the inputs; add it to the inputs"
            )
        if id(tensor.node) not in nodes:
            nodes[id(tensor.node)] = tensor.node
            pending += tensor.node.inputs
    return sorted(nodes.values(), key=lambda node: node.number)


def name_layers(layers: list[Layer]) -> dict[str, Layer]:
    """Each layer once by its name; repeated names become `"dense_1"`, `"dense_2"`, ...."""
    named: dict[str, Layer] = {}
    for layer in layers:
        if any(layer is other for other in named.values()):
            continue
        name, number = layer.name, 0
        while name in named:
            number += 1
            name = f"{layer.name}_{number}"
        named[name] = layer
    return named


def _by_id(symbolic: Any, values: Any) -> dict[int, Any]:
    leaves, structure = jax.tree.flatten(symbolic)
    return {id(leaf): value for leaf, value in zip(leaves, structure.flatten_up_to(values), strict=True)}


def _substitute(tree: Any, values: dict[int, Any]) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, [values.get(id(leaf), leaf) for leaf in leaves])
