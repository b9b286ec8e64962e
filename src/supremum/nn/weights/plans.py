"""Plans: which arrays of another library belong to which variables of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from supremum.argument_checks import mapping, text
from supremum.errors import UnknownNameError
from supremum.nn.layer import Layer
from supremum.nn.variables import Variable
from supremum.nn.weights.conversions import forms_of
from supremum.nn.weights.forms import Form, Weight
from supremum.nn.weights.trees import Place, place_of


@dataclass(frozen=True)
class Placed:
    """A weight with its place in both trees.

    Args:
        weight: the names and the conversion.
        theirs: the places of its arrays in the other library.
        ours: the paths of its variables in the model.
    """

    weight: Weight
    theirs: tuple[Place, ...]
    ours: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The weights of a model in another library, in the order of the layers.

    Args:
        weights: the weights.
        buffers: arrays of the library without a variable, with the value that is written.
    """

    weights: tuple[Placed, ...] = ()
    buffers: tuple[tuple[Place, Any], ...] = ()

    @property
    def places(self) -> list[Place]:
        """The places of all weights in the other library."""
        return [place for placed in self.weights for place in placed.theirs]

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.weights + other.weights, self.buffers + other.buffers)


@dataclass(frozen=True)
class Search:
    """What a plan depends on besides the model.

    Args:
        library: the library.
        names: the places of layers in the library, by their paths in the model; others follow from the table.
        given: the places of the given arrays; None if there are none, as for exports.
    """

    library: str
    names: Mapping[str, Place]
    given: Collection[Place] | None = None


def checked_names(layer: Layer, names: Any, library: str) -> dict[str, Place]:
    """Check the argument `names`, and split the names of the other library.

    Args:
        layer: the model.
        names: names of layers in the library by their paths in the model, or None.
        library: the library.

    Raises:
        UnknownNameError: for a path that the model does not have; a `ValueError`.
        OperandError: for anything other than a mapping of strings; a `TypeError`.
    """
    paths = layer.layers_by_path()
    found: dict[str, Place] = {}
    for path, name in ({} if names is None else mapping("names", names, "{'dense': '0'}")).items():
        if path not in paths:
            raise UnknownNameError("layer", path, [each for each in paths if each], repr(layer))
        found[path] = place_of(text(f"names[{path!r}]", name), library)
    return found


def plan_of(layer: Layer, search: Search) -> Plan:
    """Plan where each variable of a model is in another library.

    Args:
        layer: the model, with variables.
        search: the library, and the names and arrays that are known.
    """
    first = {id(each): path for path, each in layer.layers_by_path().items()}
    return _Planner(search, first, layer.variables).plan("", layer, search.names.get("", ()), search.names, frozenset())


@dataclass(frozen=True)
class _Planner:
    """The parts of a search that are the same for all layers.

    Args:
        search: the search.
        first: the first path of each layer by its id; a shared layer counts only there.
        variables: the variables of the model by path.
    """

    search: Search
    first: Mapping[int, str]
    variables: Mapping[str, Variable]

    def plan(self, path: str, layer: Layer, base: Place, names: Mapping[str, Place], done: frozenset[str]) -> Plan:
        """Plan the weights of a layer and the layers inside it, in the form of which most arrays are given.

        Args:
            path: the path of the layer.
            layer: the layer.
            base: its place in the library.
            names: the known places of layers.
            done: the paths of variables that an outer layer has planned.
        """
        if not layer.variables:
            return Plan()
        best, most = Plan(), -1
        for form in forms_of(layer, self.search.library):
            if any(path != name and _below(path, name) for name in self.search.names) and _is_packed(form):
                continue  # the caller has named the inner layers, which this form does not have
            plan = self._plan_form(form, path, layer, base, names, done)
            if self.search.given is None:
                return plan
            count = sum(place in self.search.given for place in plan.places)
            if count > most:
                best, most = plan, count
        return best

    def _plan_form(
        self, form: Form, path: str, layer: Layer, base: Place, names: Mapping[str, Place], done: frozenset[str]
    ) -> Plan:
        weights: list[Placed] = []
        for weight in form.weights:
            ours = tuple(_joined(path, name) for name in weight.ours)
            if all(each in self.variables and each not in done for each in ours):
                theirs = tuple((*base, *place_of(name, "")) for name in weight.theirs)
                weights.append(Placed(weight, theirs, ours))
        buffers = tuple(((*base, *place_of(name, "")), value) for name, value in form.buffers.items())
        plan = Plan(tuple(weights), buffers)
        done = done | {each for placed in weights for each in placed.ours}
        known = dict(names)
        for child, choices in form.children.items():
            known.setdefault(_joined(path, child), (*base, *self._chosen(base, choices)))
        for name, child in layer.sublayers():
            inner = _joined(path, name)
            if self.first.get(id(child)) == inner:  # a layer may be in several layers, even in itself
                plan += self.plan(inner, child, known.get(inner, (*base, *place_of(name, ""))), known, done)
        return plan

    def _chosen(self, base: Place, choices: tuple[str, ...]) -> Place:
        """The first name that exactly one group of the given arrays matches; otherwise the name that is written."""
        count = len(base)
        given = self.search.given or ()
        groups = {place[count] for place in given if len(place) > count + 1 and place[:count] == base}
        for choice in choices:
            matches = [group for group in groups if fnmatchcase(group, choice)]
            if len(matches) == 1:
                return (matches[0],)
        return place_of(choices[0], "")


def _is_packed(form: Form) -> bool:
    return any("/" in name for weight in form.weights for name in weight.ours)


def _below(path: str, name: str) -> bool:
    return not path or name.startswith(f"{path}/")


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path and name else path or name
