"""The plan of a transfer: which arrays of another library belong to which variables of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

from supremum.nn.layer import Layer
from supremum.nn.variables import Variable
from supremum.nn.weights.conversions import TABLES, forms_of
from supremum.nn.weights.pieces import Array, Piece, Place, Shape


@dataclass(frozen=True)
class WeightPlan:
    """The pieces of a model in another library, with their places in both.

    Args:
        layer: the model.
        variables: its variables by path.
        library: the library.
        names: the places of layers in the library that the caller gave, by their paths in the model.
        arrays: the arrays of the library by place; empty for an export.
        pieces: the pieces of all layers, in the order of the layers.
    """

    layer: Layer
    variables: Mapping[str, Variable]
    library: str
    names: Mapping[str, Place]
    arrays: Mapping[Place, Array]
    pieces: Sequence[Piece]

    def shapes(self, unit: str | None = None) -> dict[Place, Shape]:
        """The shapes of the arrays that the library must have.

        Args:
            unit: the unit to which the arrays must belong; None for all.
        """
        pieces = [piece for piece in self.pieces if piece.role in ("same", "sum") and unit in (None, piece.unit)]
        return {piece.theirs: piece.their_shape(self.variables[piece.ours].shape) for piece in pieces}


def plan_of(layer: Layer, library: str, names: Mapping[str, Place], arrays: Mapping[Place, Array]) -> WeightPlan:
    """Plan where each variable of a model is in another library.

    Args:
        layer: the model, with variables.
        library: the library.
        names: the places of layers in the library, by their paths in the model; others follow from the tables.
        arrays: the arrays by place; empty for an export. A layer has the form of which most pieces are among them.
    """
    places = {"": (), **names}
    variables = layer.variables
    free = set(variables)
    pieces: list[Piece] = []
    unit, is_whole = "", False

    @cache  # most models do not need it
    def known() -> set[Place]:
        """The places of the given arrays, and of all layers around them."""
        return {place[:count] for place in arrays for count in range(1, len(place) + 1)}

    def matches(form: Sequence[Piece]) -> int:
        return sum(piece.theirs in known() for piece in form)

    for path, inner in layer.layers_by_path().items():
        if not inner.variables:
            continue
        if not is_whole or not _is_inside(path, unit):
            unit, is_whole = path, isinstance(inner, tuple(TABLES[library]))
        forms = [_place(form, places[path], path, unit, known) for form in forms_of(inner, library)]
        if any(_is_inside(name, path) for name in names):
            forms = forms[-1:]  # the caller has named inner layers, which the other forms do not have
        form = max(forms, key=matches) if len(forms) > 1 else forms[0]
        pieces += [piece for piece in form if piece.ours in free or piece.role == "counter"]
        free.difference_update(piece.ours for piece in form)
        for piece in form:
            places.setdefault(piece.ours, piece.theirs)
    return WeightPlan(layer, variables, library, names, arrays, pieces)


def _is_inside(path: str, outer: str) -> bool:
    return path != outer and (not outer or path.startswith(f"{outer}/"))


def _place(form: Sequence[Piece], base: Place, path: str, unit: str, known: Callable[[], set[Place]]) -> list[Piece]:
    """The pieces of a layer with their places in both trees, where the layer has a base and a path."""
    outer = f"{path}/" if path else ""
    placed: list[Piece] = []
    for piece in form:
        theirs = (*base, *piece.theirs)
        if piece.also and theirs not in known():
            same = [each for each in known() if each[:-1] == theirs[:-1] and fnmatchcase(each[-1], piece.also)]
            theirs = same[0] if len(same) == 1 else theirs
        placed.append(replace(piece, theirs=theirs, ours=outer + piece.ours, unit=unit))
    return placed


def plan_for(layer: Layer, library: str, names: Mapping[str, Place], arrays: Mapping[Place, Array]) -> WeightPlan:
    """Plan for arrays; first parts that all their names share are dropped if more arrays match without them.

    Args:
        layer: the model, with variables.
        library: the library.
        names: the places of layers in the library, by their paths in the model.
        arrays: the arrays.
    """
    plans = [plan_of(layer, library, names, arrays)]
    while len({place[:1] for place in arrays}) == 1 and all(len(place) > 1 for place in arrays):
        arrays = {place[1:]: array for place, array in arrays.items()}
        plans.append(plan_of(layer, library, names, arrays))
    return max(plans, key=lambda plan: len(plan.shapes().keys() & plan.arrays))
