"""An order that puts similar names together: the leaves of a tree by average linkage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product


def alike_together(names: Sequence[str], distance: Callable[[str, str], float]) -> tuple[str, ...]:
    """Sort names by hierarchical clustering.

    The two nearest groups are joined until one is left. The distance of two groups is the mean distance of their
    members (Sokal and Michener 1958, "A statistical method for evaluating systematic relationships"). Each joined group
    may be reversed, so that the nearest ends become neighbours. The first candidate wins a tie.

    Args:
        names: the names to order, at least one.
        distance: the distance of two names; must be symmetric.

    >>> alike_together(["1", "9", "2", "8"], lambda a, b: abs(int(a) - int(b)))
    ('1', '2', '8', '9')
    """
    groups: list[tuple[str, ...]] = [(name,) for name in names]
    while len(groups) > 1:
        one, other = min(combinations(groups, 2), key=lambda pair: _average(*pair, distance))
        ways = product((one, one[::-1]), (other, other[::-1]))
        first, second = min(ways, key=lambda pair: distance(pair[0][-1], pair[1][0]))
        groups[groups.index(one)] = first + second
        groups.remove(other)
    return groups[0]


def _average(one: tuple[str, ...], other: tuple[str, ...], distance: Callable[[str, str], float]) -> float:
    return sum(distance(a, b) for a, b in product(one, other)) / (len(one) * len(other))
