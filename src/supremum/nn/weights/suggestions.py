"""Names of layers in another library with which its weights would fit a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from supremum.nn.layer import Layer
from supremum.nn.weights.conversions import has_row
from supremum.nn.weights.mismatches import expected_shapes, name_problems
from supremum.nn.weights.plans import Placed, Plan, Search, plan_of
from supremum.nn.weights.steps import Array
from supremum.nn.weights.trees import Place, name_of


def fitting_names(layer: Layer, search: Search, plan: Plan, given: Mapping[Place, Array]) -> dict[str, str]:
    """Find the names of layers with which all arrays fit in shape, in the order of the layers; empty if there are none.

    Args:
        layer: the model.
        search: the search that did not fit.
        plan: its plan.
        given: the arrays.
    """
    names = dict(search.names)
    shapes = {path: variable.shape for path, variable in layer.variables.items()}
    free = {place: array.shape for place, array in given.items()}
    misfits: list[tuple[str, Layer]] = []
    for path, inner in _units(layer):
        own = [placed for placed in plan.weights if _is_inside(placed.ours[0], path)]
        if _fits(own, shapes, free):
            _take(own, free)
        else:
            misfits.append((path, inner))
    for place, _ in plan.buffers:
        free.pop(place, None)
    for path, inner in misfits:
        found = None if path in search.names else _first_fit(inner, search, free)
        if found is None:
            return {}
        names[path], fitting = found
        _take(fitting.weights, free)
        for place, _ in fitting.buffers:
            free.pop(place, None)
    fitted = plan_of(layer, replace(search, names=names))
    if name_problems(fitted, given, search.library, shapes):
        return {}
    return {path: name_of(place, search.library) for path, place in names.items()}


def _units(layer: Layer) -> Iterator[tuple[str, Layer]]:
    """The layers that are named as a whole: those with counterparts in the libraries, and those with own variables."""
    last: str | None = None
    for path, inner in layer.layers_by_path().items():
        if last is not None and _is_inside(path, last):
            continue
        if inner.variables and (has_row(inner) or inner.own_variables()):
            yield path, inner
            last = path if has_row(inner) else last


def _is_inside(path: str, outer: str) -> bool:
    return not outer or path.startswith(f"{outer}/")


def _fits(
    weights: Sequence[Placed],
    shapes: Mapping[str, tuple[int, ...]],
    free: Mapping[Place, tuple[int, ...]],
) -> bool:
    """Whether the arrays of all weights are there, in the right shapes."""
    return bool(weights) and all(
        free.get(place) == shape
        for placed in weights
        for place, shape in zip(placed.theirs, expected_shapes(placed, shapes), strict=True)
    )


def _take(weights: Sequence[Placed], free: dict[Place, tuple[int, ...]]) -> None:
    for placed in weights:
        for place in placed.theirs:
            free.pop(place, None)


def _in_order(places: Collection[Place], library: str) -> Collection[Place]:
    """Order the places of Flax by the numbers in them; JAX has sorted them by letters, `Dense_10` before `Dense_2`."""
    if library not in ("flax", "nnx"):
        return places
    return sorted(places, key=lambda place: [_by_numbers(part) for part in place])


def _by_numbers(part: str) -> list[tuple[bool, int, str]]:
    return [(not each.isdecimal(), int(each) if each.isdecimal() else 0, each) for each in re.split(r"(\d+)", part)]


def _first_fit(layer: Layer, search: Search, free: Mapping[Place, tuple[int, ...]]) -> tuple[Place, Plan] | None:
    """The first place in the library where a layer fits, and its plan there."""
    shapes = {path: variable.shape for path, variable in layer.variables.items()}
    bases = dict.fromkeys(place[:count] for place in _in_order(free, search.library) for count in range(len(place)))
    for base in bases:
        plan = plan_of(layer, Search(search.library, {"": base}, free.keys()))
        if _fits(plan.weights, shapes, free):
            return base, plan
    return None
