"""The error for weights that do not fit a model: what does not fit, and the names of layers with which all would."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from supremum.errors import SupremumError, near_names, shown
from supremum.nn.weights.pieces import Array, Place, Shape
from supremum.nn.weights.plans import WeightPlan, plan_of
from supremum.nn.weights.trees import name_of

_MOST_LINES = 40
_MOST_NAMES = 20


class WeightMismatchError(SupremumError, ValueError):
    """Weights of another library that do not fit a model; the message lists the first 40 differences.

    Attributes:
        problems: what is wrong, one line for each array.
        names: the argument `names` with which all arrays fit in shape, in the order of the layers; empty if there is
            none.

    >>> import numpy as np
    >>> from supremum import nn
    >>> model = nn.SequentialNetwork([nn.Dense(4), nn.ReLU(), nn.Dense(2)])
    >>> nn.initialize(model, np.ones((1, 3), "float32"))
    >>> weights = {
    ...     "0.weight": np.ones((4, 3)),
    ...     "0.bias": np.ones(4),
    ...     "2.weight": np.ones((2, 4)),
    ...     "2.bias": np.ones(2),
    ... }
    >>> try:
    ...     nn.load_variables(model, weights, "torch")
    ... except nn.WeightMismatchError as error:
    ...     print(error.problems[0], error.names, sep="; ")
    'dense.weight' of shape (4, 3) for 'dense/kernel' is missing, nearest '0.weight'; {'dense': '0', 'dense_1': '2'}
    """

    problems: tuple[str, ...] = ()
    names: Mapping[str, str] = MappingProxyType({})


def mismatch(
    plan: WeightPlan, problems: Sequence[str], names: Mapping[str, str] = MappingProxyType({})
) -> WeightMismatchError:
    """Make the error.

    Args:
        plan: the plan of the model.
        problems: what is wrong.
        names: names of layers that would fit; empty if there are none.
    """
    model = shown(plan.layer)
    lines = [f"the {plan.library} weights do not fit {model}, which was not changed:", *problems[:_MOST_LINES]]
    if len(problems) > _MOST_LINES:
        lines.append(f"... and {len(problems) - _MOST_LINES} more")
    message = "\n  ".join(lines)
    if names:
        fits = f"names={dict(names)!r}" if len(names) <= _MOST_NAMES else "names=error.names"
        message += f"\nall shapes fit with {fits}; check the order of layers with equal shapes"
    error = WeightMismatchError(message)
    error.problems, error.names = tuple(problems), names
    return error


def name_problems(plan: WeightPlan) -> list[str]:
    """Describe missing arrays, arrays of other shapes, and arrays without a variable.

    The first of each kind have the nearest names, as many as a message shows; to find them for thousands takes minutes.
    """
    arrays = plan.arrays
    wanted = plan.shapes()
    variables: dict[Place, dict[str, None]] = {}
    for piece in plan.pieces:
        if piece.role != "zero":
            variables.setdefault(piece.theirs, {})[shown(piece.ours)] = None
    unused = {place: array.shape for place, array in arrays.items() if place not in variables}
    missing = {place: shape for place, shape in wanted.items() if place not in arrays}
    near = _nearest(missing, unused, plan.library) | _nearest(unused, missing, plan.library)
    lines: list[str] = []
    for place, shape in wanted.items():
        what = f"{shown(name_of(place, plan.library))} of shape {shape} for {' and '.join(variables[place])}"
        if place in missing:
            lines.append(f"{what} is missing{near.get(place, '')}")
        elif arrays[place].shape != shape:
            lines.append(f"{what} has shape {arrays[place].shape}")
    for place, shape in unused.items():
        name = shown(name_of(place, plan.library))
        lines.append(f"{name} of shape {shape} has no variable{near.get(place, '')}")
    return lines


def _nearest(places: Mapping[Place, Shape], others: Mapping[Place, Shape], library: str) -> dict[Place, str]:
    """For the first places, the names that look like theirs, or else those of arrays with their shapes."""
    names = {name_of(place, library): shape for place, shape in others.items()}
    near: dict[Place, str] = {}
    for place, shape in islice(places.items(), _MOST_LINES):
        name = name_of(place, library)
        same = [each for each in names if names[each] == shape]
        nearest = near_names(name, same) or near_names(name, names) or same[:3]
        near[place] = f", nearest {' or '.join(map(shown, nearest))}" if nearest else ""
    return near


def fitting_names(plan: WeightPlan) -> dict[str, str]:
    """Find the names of layers with which all arrays fit in shape, in the order of the layers; empty if there are none.

    Args:
        plan: the plan that does not fit; the names that the caller gave do not change.
    """
    places, layers, library = dict(plan.names), plan.layer.layers_by_path(), plan.library
    free = dict(plan.arrays)
    units = dict.fromkeys(piece.unit for piece in plan.pieces)
    misfits = [unit for unit in units if not _take(plan, unit, free)]
    for unit in misfits:
        bases = dict.fromkeys(place[:count] for place in _in_order(free, library) for count in range(len(place)))
        fitting = (base for base in bases if _take(plan_of(layers[unit], library, {"": base}, free), "", free))
        base = None if unit in places else next(fitting, None)
        if base is None:
            return {}
        places[unit] = base
    if name_problems(plan_of(plan.layer, library, places, plan.arrays)):
        return {}
    return {path: name_of(place, library) for path, place in places.items()}


def _take(plan: WeightPlan, unit: str, free: dict[Place, Array]) -> bool:
    """Remove the arrays of a unit from the free ones, if all of them are there in the right shapes."""
    shapes = plan.shapes(unit)
    if any(place not in free or free[place].shape != shape for place, shape in shapes.items()):
        return False
    for place in shapes:
        del free[place]
    return True


def _in_order(places: Iterable[Place], library: str) -> Iterable[Place]:
    """Order the places of Flax by the numbers in them; JAX has sorted them by letters, `Dense_10` before `Dense_2`."""
    return sorted(places, key=lambda place: list(map(_by_numbers, place))) if library in ("flax", "nnx") else places


def _by_numbers(part: str) -> list[str | int]:
    return [int(each) if each.isdecimal() else each for each in re.split(r"(\d+)", part)]
