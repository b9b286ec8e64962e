"""The error for weights of another library that do not fit a model, and its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

import numpy as np

from supremum.errors import SupremumError, near_names, shown
from supremum.nn.layer import Layer
from supremum.nn.weights.plans import Placed, Plan
from supremum.nn.weights.steps import Array
from supremum.nn.weights.trees import Place, name_of

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


def mismatch(layer: Layer, library: str, problems: Sequence[str], names: Mapping[str, str]) -> WeightMismatchError:
    """Make the error.

    Args:
        layer: the model.
        library: the other library.
        problems: what is wrong.
        names: names of layers that would fit; empty if there are none.
    """
    lines = [
        *problems[:_MOST_LINES],
        *([f"... and {len(problems) - _MOST_LINES} more"] * (len(problems) > _MOST_LINES)),
    ]
    fix = ""
    if names:
        fits = f"names={dict(names)!r}" if len(names) <= _MOST_NAMES else "names=error.names"
        fix = f"\nall shapes fit with {fits}; check the order of layers with equal shapes"
    error = WeightMismatchError(
        f"the {library} weights do not fit {shown(layer)}, which was not changed:\n  " + "\n  ".join(lines) + fix
    )
    error.problems, error.names = tuple(problems), names
    return error


def expected_shapes(placed: Placed, shapes: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The shapes of a weight's arrays in the other library.

    Args:
        placed: the weight.
        shapes: the shape of each variable by path.
    """
    # Arrays without strides need no memory until a step reshapes or joins them.
    ours = [np.broadcast_to(np.zeros((), bool), shapes[path]) for path in placed.ours]
    return [array.shape for array in placed.weight.export(ours)]


def name_problems(
    plan: Plan, given: Mapping[Place, Array], library: str, shapes: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """Describe missing arrays, arrays of other shapes, and arrays without a variable.

    The first of each kind have the nearest names, as many as a message shows; to find them for thousands takes minutes.

    Args:
        plan: the plan.
        given: the arrays.
        library: the library.
        shapes: the shape of each variable by path.
    """
    wanted = dict(_wanted(plan, shapes))
    known = {*wanted, *(place for place, _ in plan.buffers)}
    unused = {place: given[place].shape for place in given if place not in known}
    missing = {place: shape for place, (_, shape) in wanted.items() if place not in given}
    lines: list[str] = []
    near = {place: _nearest(place, missing[place], unused, library) for place in islice(missing, _MOST_LINES)}
    near |= {place: _nearest(place, unused[place], missing, library) for place in islice(unused, _MOST_LINES)}
    for place, (ours, shape) in wanted.items():
        what = f"{shown(name_of(place, library))} of shape {shape} for {ours}"
        if place not in given:
            lines.append(f"{what} is missing{near.get(place, '')}")
        elif given[place].shape != shape:
            lines.append(f"{what} has shape {given[place].shape}")
    for place, shape in unused.items():
        name = shown(name_of(place, library))
        lines.append(f"{name} of shape {shape} has no variable{near.get(place, '')}")
    return lines


def _wanted(plan: Plan, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[Place, tuple[str, tuple[int, ...]]]]:
    """The place of each array of a plan, with its variables and its shape."""
    for placed in plan.weights:
        ours = " and ".join(map(shown, placed.ours))
        for place, shape in zip(placed.theirs, expected_shapes(placed, shapes), strict=True):
            yield place, (ours, shape)


def _nearest(place: Place, shape: tuple[int, ...], others: Mapping[Place, tuple[int, ...]], library: str) -> str:
    """The names that look like a missing name, or else those of arrays with its shape."""
    names = {name_of(each, library): size for each, size in others.items()}
    name = name_of(place, library)
    near = near_names(name, [each for each in names if names[each] == shape]) or near_names(name, names)
    near = near or tuple(each for each in names if names[each] == shape)[:3]
    return f", nearest {' or '.join(map(shown, near))}" if near else ""
