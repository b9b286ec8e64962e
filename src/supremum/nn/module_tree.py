"""What a layer holds: variables and other layers, each with a path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from supremum.nn.summary import Summary, summary_of
from supremum.nn.variables import Variable

if TYPE_CHECKING:
    from supremum.nn.layer import Layer


class Holder:
    """Something with variables and layers in its attributes, and in lists, tuples and dicts there."""

    _before_build: dict[str, Any]

    @property
    def name(self) -> str:
        """What it is called in paths, unless the layer that holds it has another name for it."""
        raise NotImplementedError

    def children(self) -> Iterator[tuple[str, Holder | Variable]]:
        """The layers and variables that this one holds itself, each with its name; those in a list as `"blocks/0"`."""
        for attribute, value in vars(self).items():
            if attribute != "_before_build":
                yield from _held(attribute, value)

    def sublayers(self) -> Iterator[tuple[str, Layer]]:
        """The layers this one holds itself, each with its name."""
        for name, child in self.children():
            if isinstance(child, Holder):
                yield name, cast("Layer", child)

    def name_of(self, layer: Holder) -> str:
        """The name of a layer within this one; its own if this one does not hold it."""
        return next((name for name, held in self.sublayers() if held is layer), layer.name)

    def layers_by_path(self) -> dict[str, Layer]:
        """This layer, at the path `""`, and all it holds; one that is held twice stands at the first of its paths."""
        found: dict[str, Layer] = {}
        seen: set[int] = set()
        pending: list[tuple[str, Any]] = [("", self)]
        while pending:
            path, layer = pending.pop()
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            found[path] = layer
            inner = [(f"{path}/{name}" if path else name, held) for name, held in layer.sublayers()]
            pending.extend(reversed(inner))
        return found

    @property
    def variables(self) -> dict[str, Variable]:
        """All variables of this layer and those it holds, by path, such as `"conv/kernel"`; shared ones once."""
        found: dict[str, Variable] = {}
        seen: set[int] = set()
        for path, layer in self.layers_by_path().items():
            for _, child in layer.children():
                if isinstance(child, Variable) and id(child) not in seen:
                    seen.add(id(child))
                    found[f"{path}/{child.name}" if path else child.name] = child
        return found

    def summary(self) -> Summary:
        """Every layer with the shape and dtype of its outputs, its parameters, dtypes and bytes; `print` it.

        Layers that have not been called yet, with `initialize` for one, have no outputs and parameters.
        """
        return summary_of(self.layers_by_path())

    @property
    def trainable_variables(self) -> dict[str, Variable]:
        """Those of `variables` that optimizers change: none of a layer whose `trainable` is off, nor of those in it."""
        frozen = self._frozen()
        return {path: each for path, each in self.variables.items() if each.trainable and id(each) not in frozen}

    def _frozen(self) -> set[int]:
        """The identities of the variables of layers that are not trainable."""
        layers = self.layers_by_path().values()
        return {id(each) for layer in layers if not layer.trainable for each in layer.variables.values()}


def _held(name: str, value: Any) -> Iterator[tuple[str, Holder | Variable]]:
    if isinstance(value, (Holder, Variable)):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _held(f"{name}/{number}", item)
    elif isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            yield from _held(f"{name}/{key}", item)


def snake_case(name: str) -> str:
    """`"BatchNorm"` as `"batch_norm"`, `"ReLU"` as `"relu"`, `"LSTMCell"` as `"lstm_cell"`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[A-Z]{2})(?=[A-Z][a-z])", "_", name).lower()
