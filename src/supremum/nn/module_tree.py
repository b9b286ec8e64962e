"""A tree of modules: paths of the variables and modules inside, and how its attributes are stored and restored."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar, cast

import numpy as np

from supremum.argument_checks import iterable
from supremum.errors import ArgumentError, shown
from supremum.nn.variables import UninitializedError, Variable, array_to_assign
from supremum.typing import ArrayLike, PyTree

M = TypeVar("M", bound="Module[Any]")


_MODULES = ("jax.numpy", "jax.nn", "jax.lax", "jax.scipy.special")


class _FunctionName(str):
    """The public name of a function of JAX, such as `"jax.nn:relu"`."""

    __slots__ = ()


class PickledByName:
    """An object whose attributes can be pickled, although most functions of JAX cannot: they are stored by their names.

    >>> import jax, pickle
    >>> given = PickledByName()
    >>> given.function, given.rate = jax.nn.relu, 0.5
    >>> given.__getstate__()
    {'function': 'jax.nn:relu', 'rate': 0.5}
    >>> pickle.loads(pickle.dumps(given)).function is jax.nn.relu
    True
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: _by_name(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        named = {name: value for name, value in state.items() if isinstance(value, _FunctionName)}
        # Bypass `__setattr__`, which needs a complete layer.
        vars(self).update(state | {name: resolve_name(value) for name, value in named.items()})


def _by_name(value: Any) -> Any:
    name = getattr(value, "__name__", None)
    if not callable(value) or not isinstance(name, str) or not str(getattr(value, "__module__", "")).startswith("jax"):
        return value
    module = next((each for each in _MODULES if getattr(importlib.import_module(each), name, None) is value), None)
    return value if module is None else _FunctionName(f"{module}:{name}")


class Attributes(PickledByName):
    """Attributes by name, such as those of a layer at one time, or the arguments of its constructor.

    It is not a container: the layers in it are not children of the layer that holds it.

    Args:
        attributes: the attributes.
    """

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        vars(self).update(attributes)

    def restore(self, target: object) -> None:
        """Replace all attributes of an object by these."""
        vars(target).clear()
        vars(target).update(vars(self))


class Module(PickledByName, Generic[M]):
    """A callable with variables and modules in its attributes, and in lists, tuples and dicts there.

    Attributes:
        name: its name in paths, unless the module that holds it gives it a different one.
        trainable: whether optimizers change its variables, and those of the modules in it.
        built: whether it has declared its variables.
    """

    name: str
    trainable: bool
    built: bool

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Compute outputs of inputs."""
        raise NotImplementedError

    def children(self) -> list[tuple[str, M | Variable]]:
        """The direct child layers and variables, each with its name, such as `"blocks/0"` in a list."""
        children: list[tuple[str, Any]] = []
        for attribute, value in vars(self).items():
            if isinstance(value, _HOLDERS):
                _add_children(children, attribute, value)
        return children

    def sublayers(self) -> list[tuple[str, M]]:
        """The direct child layers, each with its name."""
        return [(name, child) for name, child in self.children() if not isinstance(child, Variable)]

    def own_variables(self) -> list[Variable]:
        """The direct child variables; one that was given no name gets that of its attribute."""
        variables = [(path, child) for path, child in self.children() if isinstance(child, Variable)]
        for path, variable in variables:
            if not variable.has_name:
                variable.name, variable.has_name = path, True
        return [variable for _, variable in variables]

    def name_of(self, layer: Module[Any]) -> str:
        """The name of a layer as a child of this one; the layer's own name if it is not a child."""
        return next((name for name, child in self.sublayers() if child is layer), layer.name)

    def layers_by_path(self) -> dict[str, M]:
        """This layer, at the path `""`, and all layers inside it; a shared layer has only its first path."""
        layers: dict[str, M] = {}
        seen: set[int] = set()
        pending: list[tuple[str, Any]] = [("", self)]
        while pending:
            path, layer = pending.pop()
            if id(layer) not in seen:
                seen.add(id(layer))
                layers[path] = layer
                prefix = f"{path}/" if path else ""
                pending += [(prefix + name, child) for name, child in reversed(layer.sublayers())]
        return layers

    @property
    def variables(self) -> dict[str, Variable]:
        """All variables of this layer and the layers inside it, by path, such as `"conv/kernel"`; shared ones once.

        Raises:
            ArgumentError: if two variables have one path; a `ValueError`.
        """
        first: dict[int, tuple[str, Variable]] = {}
        for path, layer in self.layers_by_path().items():
            prefix = f"{path}/" if path else ""
            for variable in layer.own_variables():
                first.setdefault(id(variable), (prefix + variable.name, variable))
        variables = dict(first.values())
        for path, variable in first.values() if len(variables) < len(first) else ():
            if variables[path] is not variable:
                raise ArgumentError(f"two variables have the path {shown(path)}; give one of them a different name")
        return variables

    @property
    def trainable_variables(self) -> dict[str, Variable]:
        """The `variables` that optimizers change; a layer that is not trainable has none, nor have layers inside it."""
        layers = self.layers_by_path().values()
        frozen = {id(each) for layer in layers if not layer.trainable for each in layer.variables.values()}
        return {path: each for path, each in self.variables.items() if each.trainable and id(each) not in frozen}

    @property
    def weights(self) -> list[Variable]:
        """The values of `variables`, in their order, as a list."""
        return [*self.variables.values()]

    @property
    def trainable_weights(self) -> list[Variable]:
        """The values of `trainable_variables`, as a list."""
        return [*self.trainable_variables.values()]

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The `weights` that optimizers do not change."""
        trainable = self.trainable_variables
        return [variable for path, variable in self.variables.items() if path not in trainable]

    def get_weights(self) -> list[np.ndarray[Any, Any]]:
        """Return the stored values of `weights` on the host, in order."""
        return [np.asarray(variable.read_stored()) for variable in self.weights]

    def set_weights(self, weights: Iterable[ArrayLike]) -> None:
        """Assign arrays to `weights`, all or nothing.

        Args:
            weights: the result of `get_weights`, or other values that `Variable.assign` takes.

        Raises:
            ArgumentError: for a wrong number of arrays, or an array with a wrong shape; a `ValueError`.
            InPlaceError: if the rules in force do not convert an array to the dtype of its variable.
        """
        variables = self.weights
        arrays: list[ArrayLike] = [*iterable("weights", weights, "arrays")]
        if len(arrays) != len(variables):
            fix = "" if self.built else "; call the layer first, which makes its weights"
            raise ArgumentError(f"weights must have {len(variables)} arrays, got {len(arrays)}{fix}")
        converted = [array_to_assign(variable, array) for variable, array in zip(variables, arrays, strict=True)]
        for variable, array in zip(variables, converted, strict=True):
            variable.assign(array)

    def count_params(self) -> int:
        """Return the number of elements in all `weights`.

        Raises:
            UninitializedError: if the layer, or one inside it, has not made its weights yet; a `RuntimeError`.
        """
        unbuilt = next((path for path, layer in self.layers_by_path().items() if not layer.built), None)
        if unbuilt is not None:
            raise UninitializedError(f"layer {shown(unbuilt or self.name)} has no weights yet; call the model first")
        return sum(variable.size for variable in self.weights)


_HOLDERS = (Module, Variable, list, tuple, dict)


def _add_children(children: list[tuple[str, Any]], name: str, value: Any) -> None:
    if isinstance(value, (Module, Variable)):
        children.append((name, value))
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(cast("list[Any]", value)):
            _add_children(children, f"{name}/{number}", item)
    elif isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            _add_children(children, f"{name}/{key}", item)


def snake_case(name: str) -> str:
    """`"BatchNorm"` as `"batch_norm"`, `"ReLU"` as `"relu"`, `"LSTMCell"` as `"lstm_cell"`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[A-Z]{2})(?=[A-Z][a-z])", "_", name).lower()
