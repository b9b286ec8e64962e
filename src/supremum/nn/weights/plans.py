"""The plan of a transfer: which arrays of another library belong to which variables of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from supremum.argument_checks import mapping, text
from supremum.errors import UnknownNameError
from supremum.nn.layer import Layer
from supremum.nn.weights.conversions import forms_of
from supremum.nn.weights.pieces import Array, Piece, Place, Shape
from supremum.nn.weights.trees import place_of


@dataclass(frozen=True)
class Plan:
    """The pieces of a model in another library, with their places in both.

    Args:
        layer: the model, with variables.
        library: the library.
        names: the places of layers in the library that the caller gave, by their paths in the model.
        pieces: the pieces of all layers, in the order of the layers.
    """

    layer: Layer
    library: str
    names: Mapping[str, Place]
    pieces: Sequence[Piece]

    def shapes(self, outer: str = "") -> dict[Place, Shape]:
        """The shapes of the arrays that the other library must have for a layer and the layers inside it.

        Args:
            outer: the path of the layer.
        """
        variables = self.layer.variables
        pieces = [piece for piece in self.pieces if is_inside(piece.ours, outer) and piece.role in ("same", "sum")]
        return {piece.theirs: piece.their_shape(variables[piece.ours].shape) for piece in pieces}


def is_inside(path: str, outer: str) -> bool:
    """Whether a path leads to something inside the layer at an outer path."""
    return path != outer and (not outer or path.startswith(f"{outer}/"))


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
    places: dict[str, Place] = {}
    for path, name in ({} if names is None else mapping("names", names, "{'dense': '0'}")).items():
        if path not in paths:
            raise UnknownNameError("layer", path, [each for each in paths if each], repr(layer))
        places[path] = place_of(text(f"names[{path!r}]", name), library)
    return places


def plan_of(layer: Layer, library: str, names: Mapping[str, Place], given: Collection[Place] = ()) -> Plan:
    """Plan where each variable of a model is in another library.

    Args:
        layer: the model, with variables.
        library: the library.
        names: the places of layers in the library, by their paths in the model; others follow from the tables.
        given: the places of the given arrays. A layer has the form of which most pieces are among them.
    """
    known = {place[:count] for place in given for count in range(1, len(place) + 1)}
    places = {"": (), **names}
    free = set(layer.variables)
    pieces: list[Piece] = []

    def matches(form: Sequence[Piece]) -> int:
        return sum(piece.theirs in known for piece in form)

    for path, inner in layer.layers_by_path().items():
        if not inner.variables:
            continue
        base = _place_of_layer(path, places)
        forms = [_placed(form, path, base) for form in forms_of(inner, library)]
        if any(is_inside(name, path) for name in names):
            forms = forms[-1:]  # the caller has named inner layers, which the other forms do not have
        form = max(forms, key=matches)
        pieces += [piece for piece in form if piece.ours in free or piece.role == "counter"]
        free.difference_update(piece.ours for piece in form)
        for piece in form:
            same = [each for each in known if each[:-1] == piece.theirs[:-1] and fnmatchcase(each[-1], piece.also)]
            is_renamed = piece.also and piece.theirs not in known and len(same) == 1
            places.setdefault(piece.ours, same[0] if is_renamed else piece.theirs)
    return Plan(layer, library, names, pieces)


def _place_of_layer(path: str, places: Mapping[str, Place]) -> Place:
    """The known place of a layer, or that of the nearest outer layer with one, and the names from there."""
    inner: Place = ()
    while path not in places:
        path, _, name = path.rpartition("/")
        inner = (name, *inner)
    return (*places[path], *inner)


def _placed(form: Sequence[Piece], path: str, base: Place) -> Sequence[Piece]:
    """The pieces of a layer with their places in both trees."""
    outer = f"{path}/" if path else ""
    return [replace(piece, theirs=(*base, *piece.theirs), ours=outer + piece.ours) for piece in form]


def plan_and_tree(
    layer: Layer, library: str, names: Mapping[str, Place], tree: dict[Place, Array]
) -> tuple[Plan, dict[Place, Array]]:
    """Plan for given arrays, and return the plan and the arrays with the names that it has for them.

    First parts that all names share are dropped if more arrays match without them.

    Args:
        layer: the model, with variables.
        library: the library.
        names: the places of layers in the library, by their paths in the model.
        tree: the arrays.
    """
    choices = [(plan_of(layer, library, names, tree), tree)]
    while len({place[:1] for place in tree}) == 1 and all(len(place) > 1 for place in tree):
        tree = {place[1:]: array for place, array in tree.items()}
        choices.append((plan_of(layer, library, names, tree), tree))
    return max(choices, key=lambda choice: len(choice[0].shapes().keys() & choice[1]))
