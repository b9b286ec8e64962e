"""The lattice of any rule set, inferred from its decisions, or the reason why there is none."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from supremum.analysis.tables import STANDARD_TYPES, TypeNames, join_of, type_names
from supremum.errors import ArgumentError
from supremum.lattice import Counterexample, Join, Lattice, counterexamples
from supremum.operands import WEAK_NAMES
from supremum.rules import RulesLike, get_rules


@dataclass(frozen=True, slots=True)
class Order:
    """The order whose joins are the decisions of a rule set.

    Args:
        rules: name of the rule set.
        lattice: the order, with edges only between neighbours.
        left_out: the types that the rules refuse even with themselves.
        held_as: the types that the rules always replace, such as int64 in JAX with x64 off, with their replacements.
        note: why the order excludes the weak kinds, if the laws hold only for the formats; else empty.

    >>> order = order_of("jax-x32", "int32,int64,float16")
    >>> order.lattice.edges, order.held_as
    ({'int32': ('float16',), 'float16': ()}, {'int64': 'int32'})
    """

    rules: str
    lattice: Lattice
    left_out: tuple[str, ...]
    held_as: Mapping[str, str]
    note: str = ""


@dataclass(frozen=True, slots=True)
class NoLattice:
    """A rule set that is not a lattice.

    Args:
        rules: name of the rule set.
        counterexample: an example of a law that fails.
        count: the number of such examples, without weak kinds if possible.

    >>> found = order_of("numpy", "int8,uint8,float16")
    >>> found.counterexample.law, found.counterexample.nodes, found.count
    ('associative', ('int8', 'uint8', 'float16'), 4)
    """

    rules: str
    counterexample: Counterexample
    count: int

    @property
    def reason(self) -> str:
        """The counterexample and the number of such examples, in a sentence without its full stop."""
        places = "the only place" if self.count == 1 else f"one of {self.count} places"
        return f"{self.counterexample}; {places} where no order agrees with the rules"


def order_of(rules: RulesLike | None = None, types: TypeNames = "all") -> Order | NoLattice:
    """Infer the order whose joins are the decisions of a rule set, if there is one.

    The laws of a join are checked for every pair and triple, refusals included. Types that others promote to are added
    to the given ones.

    Args:
        rules: a rule set or its name; None for the default.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: if the rules refuse all of the types.

    >>> order_of("jax-x64", "int8,uint8").lattice.edges
    {'int8': ('int16',), 'uint8': ('int16',), 'int16': ()}
    >>> str(order_of("numpy", "int8,uint8,float16").counterexample)
    '(int8, uint8), float16 gives float32, but int8, (uint8, float16) gives float16'
    """
    rule_set = get_rules(rules)
    join = join_of(rule_set)
    asked = type_names(types)
    left_out = tuple(name for name in asked if join(name, name) is None)
    known = _closed(join, [name for name in asked if name not in left_out])
    if not known:
        raise ArgumentError(f"{rule_set.name} refuses {', '.join(asked)} even with itself; choose other types.")
    held_as = _held_as(join, known)
    names = [name for name in known if name not in held_as]
    failing = list(counterexamples(join, names))
    if not failing:
        return Order(rule_set.name, _hasse(join, names), left_out, held_as)
    weak = [name for name in names if name in WEAK_NAMES]
    formats = [name for name in names if name not in WEAK_NAMES]
    without_weak = [each for each in failing if not set(weak).intersection((*each.nodes, each.left, each.right))]
    if without_weak or not formats:
        shown = without_weak or failing
        return NoLattice(rule_set.name, min(shown, key=_obscurity), len(shown))
    note = f"Without {', '.join(weak)}, which fit no order: {min(failing, key=_obscurity)}."
    return Order(rule_set.name, _hasse(join, formats), left_out, held_as, note)


def _closed(join: Join, names: list[str]) -> list[str]:
    """The names and everything that they promote to."""
    closed = dict.fromkeys(names)
    while True:
        met = {join(a, b) for a, b in itertools.product(closed, repeat=2)} - {None, *closed}
        if not met:
            return list(closed)
        closed |= dict.fromkeys(sorted(filter(None, met)))


def _held_as(join: Join, names: list[str]) -> dict[str, str]:
    """The formats that the rules always replace, with their replacements, which promote like them."""
    replacements = {name: join(name, name) for name in names if name not in WEAK_NAMES}
    return {
        name: other
        for name, other in replacements.items()
        if other not in (None, name)
        and all(join(name, each) == join(other, each) and join(each, name) == join(each, other) for each in names)
    }


def _hasse(join: Join, names: list[str]) -> Lattice:
    above = {name: [upper for upper in names if upper != name and join(name, upper) == upper] for name in names}
    edges = {name: [a for a in uppers if not any(a in above[b] for b in uppers)] for name, uppers in above.items()}
    return Lattice(edges)


def _obscurity(example: Counterexample) -> tuple[bool, bool, int]:
    """A sort key that puts examples with refusals, with fewer than three types, and with rare types last."""
    refused, rare = None in (example.left, example.right), sum(name not in STANDARD_TYPES for name in example.nodes)
    return refused, example.law != "associative", rare
