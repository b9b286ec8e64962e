"""A partial order given by edges: its joins, its paths, and a check of its laws."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

Join = Callable[[str, str], "str | None"]
"""A binary operation on names; None is a refusal.

>>> join: Join = max
>>> list(counterexamples(join, ["a", "b", "c"]))
[]
"""


class Lattice:
    """A partial order given by the edges from each node to the nodes directly above it.

    A pair may have no join: if none of the common upper bounds is the least, `join` returns None, without any rank or
    tie-break.

    Args:
        edges: for each node, the nodes directly above it. A node that appears only in these has no nodes above it.

    Raises:
        ValueError: if the edges form a cycle; the message shows the cycle.

    >>> order = Lattice({"u1": ["u2", "i2"], "i1": ["i2"], "u2": ["i4"], "i2": ["i4"]})
    >>> order.join("u1", "i1"), order.join("u2", "i2")
    ('i2', 'i4')
    >>> order.path("u1", "i4")
    ('u1', 'u2', 'i4')
    """

    def __init__(self, edges: Mapping[str, Iterable[str]]) -> None:
        self.edges: dict[str, tuple[str, ...]] = {node: tuple(above) for node, above in edges.items()}
        for above in tuple(self.edges.values()):
            for node in above:
                self.edges.setdefault(node, ())
        self._bounds: dict[str, frozenset[str]] = {}
        for node in self.edges:
            self._upper_bounds(node, ())

    def _upper_bounds(self, node: str, below: tuple[str, ...]) -> frozenset[str]:
        if node in below:
            raise ValueError("the edges form a cycle: " + " -> ".join((*below[below.index(node) :], node)))
        if node not in self._bounds:
            above = (self._upper_bounds(upper, (*below, node)) for upper in self.edges[node])
            self._bounds[node] = frozenset({node}).union(*above)
        return self._bounds[node]

    def __eq__(self, other: object) -> bool:
        """Whether both have the same edges, in any order."""
        return self._edges() == other._edges() if isinstance(other, Lattice) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._edges())

    def _edges(self) -> frozenset[tuple[str, frozenset[str]]]:
        return frozenset((node, frozenset(above)) for node, above in self.edges.items())

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, in the order of the edges."""
        return tuple(self.edges)

    def upper_bounds(self, *nodes: str) -> frozenset[str]:
        """The nodes at or above all the given ones."""
        bounds = [self._bounds[node] for node in nodes]
        return bounds[0].intersection(*bounds[1:])

    def join(self, *nodes: str) -> str | None:
        """The least upper bound of all the given nodes at once, or None if there is none."""
        common = self.upper_bounds(*nodes)
        least = [node for node in common if common <= self._bounds[node]]
        return least[0] if least else None  # two least nodes would be above each other: a cycle

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """A shortest path up from one node to another, including both; empty if there is none."""
        paths: list[tuple[str, ...]] = [(start,)]
        for path in paths:  # breadth first: the list grows during the loop
            if path[-1] == end:
                return path
            paths.extend((*path, upper) for upper in self.edges[path[-1]] if end in self._bounds[upper])
        return ()

    def minimal(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """The given nodes that are not above any other given node, in the order of the edges."""
        among = set(nodes)
        above = {node for node in among if any(other != node and node in self._bounds[other] for other in among)}
        return tuple(node for node in self.edges if node in among - above)

    def __repr__(self) -> str:
        return f"Lattice({len(self.edges)} elements)"


class Counterexample(NamedTuple):
    """A case in which a law fails.

    Args:
        law: `"idempotent"`, `"commutative"` or `"associative"`.
        nodes: the one, two or three names for which it fails.
        left, right: the two results, which should be equal; None is a refusal.

    >>> next(counterexamples(lambda x, y: x, ["a", "b"]))
    Counterexample(law='commutative', nodes=('a', 'b'), left='a', right='b')
    >>> str(Counterexample("commutative", ("int8", "uint8"), "int16", None))
    'int8, uint8 gives int16, but uint8, int8 is refused'
    """

    law: str
    nodes: tuple[str, ...]
    left: str | None
    right: str | None

    def __str__(self) -> str:
        """The counterexample in a sentence without its full stop."""
        left, right = ("is refused" if name is None else f"gives {name}" for name in (self.left, self.right))
        if self.law == "idempotent":
            return f"{self.nodes[0]} with itself {right}"
        forms = {"commutative": ("{0}, {1}", "{1}, {0}"), "associative": ("({0}, {1}), {2}", "{0}, ({1}, {2})")}
        one, other = (form.format(*self.nodes) for form in forms[self.law])
        return f"{one} {left}, but {other} {right}"


def counterexamples(join: Join, nodes: Sequence[str]) -> Iterator[Counterexample]:
    """Yield every case in which a join breaks its laws, over all nodes, pairs and triples, including refusals.

    A refusal inside a grouping makes that grouping a refusal.

    Args:
        join: the operation, on two names.
        nodes: the names to check.

    >>> for found in counterexamples(lambda x, y: x, ["a", "b"]):
    ...     print(found)
    a, b gives a, but b, a gives b
    """

    @cache
    def joined(a: str | None, b: str | None) -> str | None:
        return None if a is None or b is None else join(a, b)

    for node in nodes:
        if joined(node, node) != node:
            yield Counterexample("idempotent", (node,), node, joined(node, node))
    for a, b in itertools.combinations(nodes, 2):
        if joined(a, b) != joined(b, a):
            yield Counterexample("commutative", (a, b), joined(a, b), joined(b, a))
    for a, b, c in itertools.product(nodes, repeat=3):
        left, right = joined(joined(a, b), c), joined(a, joined(b, c))
        if left != right:
            yield Counterexample("associative", (a, b, c), left, right)
