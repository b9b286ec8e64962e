"""Places for the nodes of an acyclic graph in rows, so that no edge passes through a node.

The method is that of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures"
(IEEE Transactions on Systems, Man, and Cybernetics 11, 1981): rows by longest paths, and a place without width in every
row that an edge passes. Each place then moves to the median of its neighbours, once from the bottom up and once from
the top down.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeAlias

Place: TypeAlias = "str | tuple[str, str, int]"
"""A node by its name, or where an edge passes a row."""
Edge: TypeAlias = tuple[str, str]
"""The names of its lower and its upper node."""
Curve: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
"""The two ends of a curve that is vertical at both; the first end is the lower one."""
HEIGHT = 24.0
"""The height of a box. All lengths are in px."""
BETWEEN = 9.0
"""The space between two neighbours."""
_GAP = 40.0


class Box(NamedTuple):
    """The box of a label: left and top edge, and width."""

    x: float
    y: float
    width: float


class DiagramLayout(NamedTuple):
    """The positions of nodes, from the lowest at the bottom to the highest at the top.

    Args:
        width: the width of the picture.
        height: its height.
        boxes: the boxes of the nodes, by name.
        curves: the edges, each as curves with straight vertical lines between them.
    """

    width: float
    height: float
    boxes: dict[str, Box]
    curves: dict[Edge, list[Curve]]


def laid_out(above: Mapping[str, Sequence[str]], widths: Mapping[str, float]) -> DiagramLayout:
    """Place the nodes of an acyclic graph in rows; every edge goes up.

    Args:
        above: for each node, the nodes that its edges lead to; every node must be a key.
        widths: the width of each node.

    >>> layout = laid_out(
    ...     {"a": ["b", "c"], "b": ["c"], "c": []}, dict.fromkeys("abc", 11.0)
    ... )
    >>> {name: box.y for name, box in layout.boxes.items()}
    {'a': 128.0, 'b': 64.0, 'c': 0.0}
    >>> {edge: len(curves) for edge, curves in layout.curves.items()}
    {('a', 'b'): 1, ('a', 'c'): 2, ('b', 'c'): 1}
    """
    rows: dict[Place, int] = {**_levels(above)}
    routes: dict[Edge, tuple[Place, ...]] = {}
    for node, uppers in above.items():
        for upper in uppers:
            passed: dict[Place, int] = {(node, upper, row): row for row in range(rows[node] + 1, rows[upper])}
            routes[node, upper] = (node, *passed, upper)
            rows.update(passed)
    all_widths = {place: widths[place] if isinstance(place, str) else 0.0 for place in rows}
    centres = _centres(routes, rows, all_widths)
    highest = max(rows.values(), default=0)
    tops = {place: (highest - row) * (HEIGHT + _GAP) for place, row in rows.items()}
    boxes = {name: Box(centres[name] - width / 2, tops[name], width) for name, width in widths.items()}
    curves = {
        edge: [((centres[a], tops[a]), (centres[b], tops[b] + HEIGHT)) for a, b in itertools.pairwise(route)]
        for edge, route in routes.items()
    }
    width = max([centre + all_widths[place] / 2 for place, centre in centres.items()], default=0.0)
    return DiagramLayout(width, highest * (HEIGHT + _GAP) + HEIGHT if boxes else 0.0, boxes, curves)


def _levels(above: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The length of the longest path up to each node; a node without lower neighbours is just below its upper ones."""
    level = dict.fromkeys(above, 0)
    for _ in above:
        for node, uppers in above.items():
            for upper in uppers:
                level[upper] = max(level[upper], level[node] + 1)
    has_lower = {upper for uppers in above.values() for upper in uppers}
    lowest = [node for node, uppers in above.items() if uppers and node not in has_lower]
    return level | {node: min(level[upper] for upper in above[node]) - 1 for node in lowest}


def _centres(
    routes: Mapping[Edge, Sequence[Place]], rows: Mapping[Place, int], widths: Mapping[Place, float]
) -> dict[Place, float]:
    lowers: dict[Place, list[Place]] = {place: [] for place in rows}
    uppers: dict[Place, list[Place]] = {place: [] for place in rows}
    for route in routes.values():
        for lower, upper in itertools.pairwise(route):
            lowers[upper].append(lower)
            uppers[lower].append(upper)
    centres: dict[Place, float] = dict.fromkeys(rows, 0.0)
    order: list[list[Place]] = [[] for _ in range(max(rows.values(), default=-1) + 1)]
    for place, row in rows.items():
        order[row].append(place)
    for neighbours, sweep in ((lowers, order), (uppers, order[::-1])):
        for places in sweep:
            wanted = {place: _median(neighbours[place], centres, centres[place]) for place in places}
            centres |= _spread(sorted(places, key=wanted.__getitem__), wanted, widths)
    left = min((centre - widths[place] / 2 for place, centre in centres.items()), default=0.0)
    return {place: round(centre - left, 1) for place, centre in centres.items()}


def _median(places: Sequence[Place], centres: Mapping[Place, float], default: float) -> float:
    return median(centres[place] for place in places) if places else default


def _spread(row: Sequence[Place], wanted: Mapping[Place, float], widths: Mapping[Place, float]) -> dict[Place, float]:
    """Move the places of a row apart, in their order, with their mean where it was."""
    centres: dict[Place, float] = {}
    end = -math.inf
    for place in row:
        half = widths[place] / 2
        centres[place] = max(wanted[place], end + BETWEEN + half)
        end = centres[place] + half
    shift = sum(wanted[place] - centre for place, centre in centres.items()) / len(centres)
    return {place: centre + shift for place, centre in centres.items()}
