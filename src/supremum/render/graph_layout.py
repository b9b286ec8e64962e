"""Layered layout of an acyclic graph with few edge crossings.

The method is that of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures"
(IEEE Transactions on Systems, Man, and Cybernetics 11, 1981): layers by longest paths, a dummy node in every layer that
an edge passes, and barycentres and swaps of neighbours to reduce crossings, from several initial orders. Shuffling uses
a fixed seed, so the layout is deterministic.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Place: TypeAlias = "str | tuple[str, str, int]"
"""A node by its name, or the dummy node of an edge in a layer that it passes."""
_SWEEPS, _STARTS = 12, 24


@dataclass(frozen=True, slots=True)
class Layers:
    """Nodes in layers.

    Args:
        order: the places in each layer, from the lowest layer to the highest.
        routes: for every edge, the places from end to end, one in each layer.
    """

    order: tuple[tuple[Place, ...], ...]
    routes: dict[tuple[str, str], tuple[Place, ...]]

    @property
    def links(self) -> tuple[tuple[Place, Place], ...]:
        """The segments of the edges, each from one layer to the next."""
        return tuple(link for route in self.routes.values() for link in itertools.pairwise(route))

    @property
    def crossings(self) -> int:
        """The number of pairs of links that cross."""
        return _crossings(self.order, self.links)


def in_layers(above: Mapping[str, Sequence[str]]) -> Layers:
    """Put the nodes of an acyclic graph into layers; every edge goes up.

    Args:
        above: for each node, the nodes that its edges lead to; every node must be a key.

    >>> layers = in_layers({"a": ["b", "c"], "b": ["c"], "c": []})
    >>> layers.order
    (('a',), ('b', ('a', 'c', 1)), ('c',))
    """
    level = _levels(above)
    routes: dict[tuple[str, str], tuple[Place, ...]] = {}
    layers: list[list[Place]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for node, height in level.items():
        layers[height].append(node)
    for node, uppers in above.items():
        for upper in uppers:
            passed = [(node, upper, height) for height in range(level[node] + 1, level[upper])]
            routes[node, upper] = (node, *passed, upper)
            for place in passed:
                layers[place[2]].append(place)
    links = tuple(link for route in routes.values() for link in itertools.pairwise(route))
    return Layers(tuple(map(tuple, _best_order(layers, links))), routes)


def _best_order(layers: list[list[Place]], links: Sequence[tuple[Place, Place]]) -> list[list[Place]]:
    best, fewest = layers, _crossings(layers, links)
    shuffler = random.Random(0)
    for number in range(_STARTS):
        start = layers if number == 0 else [shuffler.sample(layer, len(layer)) for layer in layers]
        for order in _sweeps(start, links):
            if fewest == 0:
                return best
            if (crossings := _crossings(order, links)) < fewest:
                best, fewest = order, crossings
    return best


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


def _sweeps(start: list[list[Place]], links: Sequence[tuple[Place, Place]]) -> Iterator[list[list[Place]]]:
    """Candidate orders, mostly with fewer and fewer crossings."""
    order = [list(layer) for layer in start]
    uppers, lowers = _neighbours(links), _neighbours([(b, a) for a, b in links])
    yield start
    for sweep in range(_SWEEPS):
        up = sweep % 2 == 0
        heights = range(1, len(order)) if up else range(len(order) - 2, -1, -1)
        for height in heights:
            fixed = order[height - 1 if up else height + 1]
            order[height].sort(key=_barycentres(fixed, order[height], lowers if up else uppers).__getitem__)
        _swap_neighbours(order, uppers, lowers)
        yield [list(layer) for layer in order]


def _neighbours(links: Sequence[tuple[Place, Place]]) -> dict[Place, list[Place]]:
    found: dict[Place, list[Place]] = {}
    for a, b in links:
        found.setdefault(a, []).append(b)
    return found


def _barycentres(
    fixed: Sequence[Place], moved: Sequence[Place], neighbours: Mapping[Place, Sequence[Place]]
) -> dict[Place, float]:
    """The mean position of the neighbours of each place that is moved; its own position if it has none."""
    position = {place: number for number, place in enumerate(fixed)}
    near = [[position[other] for other in neighbours.get(place, ())] for place in moved]
    share = len(fixed) / max(1, len(moved))
    return {place: sum(near[i]) / len(near[i]) if near[i] else i * share for i, place in enumerate(moved)}


def _swap_neighbours(
    order: list[list[Place]], uppers: Mapping[Place, Sequence[Place]], lowers: Mapping[Place, Sequence[Place]]
) -> None:
    for _ in range(len(order)):
        improved = False
        for height, layer in enumerate(order):
            sides = [
                ({place: number for number, place in enumerate(order[other])}, neighbours)
                for other, neighbours in ((height - 1, lowers), (height + 1, uppers))
                if 0 <= other < len(order)
            ]
            for left in range(len(layer) - 1):
                a, b = layer[left], layer[left + 1]
                gain = 0
                for position, neighbours in sides:
                    of_a = [position[each] for each in neighbours.get(a, ())]
                    of_b = [position[each] for each in neighbours.get(b, ())]
                    gain += sum((x > y) - (x < y) for x in of_a for y in of_b)
                if gain > 0:
                    layer[left], layer[left + 1] = b, a
                    improved = True
        if not improved:
            return


def _crossings(order: Sequence[Sequence[Place]], links: Sequence[tuple[Place, Place]]) -> int:
    at = {place: (height, number) for height, layer in enumerate(order) for number, place in enumerate(layer)}
    by_gap: dict[int, list[tuple[int, int]]] = {}
    for a, b in links:
        by_gap.setdefault(at[a][0], []).append((at[a][1], at[b][1]))
    return sum((a - c) * (b - d) < 0 for ends in by_gap.values() for (a, b), (c, d) in itertools.combinations(ends, 2))
