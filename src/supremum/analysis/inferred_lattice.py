"""Whether a rule set is a lattice, and which: found from its decisions, whatever it is made of."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from supremum.analysis.tables import STANDARD_TYPES, type_names
from supremum.errors import ArgumentError
from supremum.lattice import Counterexample, Join, Lattice, counterexamples
from supremum.operands import WEAK_NAMES, as_operand
from supremum.rules import RuleSet, get_rules


@dataclass(frozen=True, slots=True)
class Order:
    """The order that a rule set's decisions are the joins of.

    Args:
        rules: name of the rule set.
        lattice: the order, its edges only those between neighbours.
        left_out: the types that the rules refuse even with themselves.
        held_as: for types that the rules always take for another one, such as int64 in JAX with x64 off, that one.
        note: why the weak kinds are not in it, where the laws hold of the formats alone; else empty.
    """

    rules: str
    lattice: Lattice
    left_out: tuple[str, ...]
    held_as: Mapping[str, str]
    note: str = ""


@dataclass(frozen=True, slots=True)
class NoLattice:
    """A rule set that is the joins of no order.

    Args:
        rules: name of the rule set.
        types: those it was asked about and knows, and what they meet in.
        left_out: the types that the rules refuse even with themselves.
        counterexample: where a law fails.
        count: in how many places one does, weak kinds left aside.
    """

    rules: str
    types: tuple[str, ...]
    left_out: tuple[str, ...]
    counterexample: Counterexample
    count: int


def order_of(rules: str | RuleSet | None = None, types: str | Sequence[str] = "all") -> Order | NoLattice:
    """The order whose joins are a rule set's decisions, where there is one.

    Every pair is decided, and every pair and triple held against the laws of a join, refusals included. Types that
    others meet in are added to those asked about.

    Args:
        rules: a rule set or its name; None for the default.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: if the rules know none of the types.

    >>> order_of("jax-x64", "int8,uint8").lattice.edges
    {'int8': ('int16',), 'uint8': ('int16',), 'int16': ()}
    >>> in_words(order_of("numpy", "int8,uint8,float16").counterexample)
    '(int8, uint8), float16 gives float32, but int8, (uint8, float16) gives float16'
    """
    rule_set = get_rules(rules)
    join = _join_of(rule_set)
    asked = type_names(types)
    left_out = tuple(name for name in asked if join(name, name) is None)
    known = _closed(join, [name for name in asked if name not in left_out])
    if not known:
        raise ArgumentError(f"{rule_set.name} refuses {', '.join(asked)} even with itself: choose other types")
    held_as = _held_as(join, known)
    names = [name for name in known if name not in held_as]
    failing = list(counterexamples(join, names))
    if not failing:
        return Order(rule_set.name, _hasse(join, names), left_out, held_as)
    weak = [name for name in names if name in WEAK_NAMES]
    formats = [name for name in names if name not in WEAK_NAMES]
    without_weak = [found for found in failing if not set(weak).intersection(_mentioned(found))]
    if without_weak or not formats:
        shown = without_weak or failing
        return NoLattice(rule_set.name, tuple(known), left_out, min(shown, key=_obscurity), len(shown))
    note = f"Without {', '.join(weak)}, outside any order: {in_words(min(failing, key=_obscurity))}."
    return Order(rule_set.name, _hasse(join, formats), left_out, held_as, note)


def in_words(found: Counterexample) -> str:
    """A counterexample as a sentence without its full stop.

    >>> in_words(Counterexample("commutative", ("int8", "uint8"), "int16", None))
    'int8, uint8 gives int16, but uint8, int8 is refused'
    """
    if found.law == "idempotent":
        return f"{found.nodes[0]} with itself {_outcome(found.right)}"
    orders = {"commutative": ("{0}, {1}", "{1}, {0}"), "associative": ("({0}, {1}), {2}", "{0}, ({1}, {2})")}
    left, right = (order.format(*found.nodes) for order in orders[found.law])
    return f"{left} {_outcome(found.left)}, but {right} {_outcome(found.right)}"


def _outcome(name: str | None) -> str:
    return "is refused" if name is None else f"gives {name}"


def _join_of(rules: RuleSet) -> Join:
    def join(a: str, b: str) -> str | None:
        result = rules.decide(None, (as_operand(a), as_operand(b))).result
        return None if result is None else result.name

    return join


def _closed(join: Join, names: list[str]) -> list[str]:
    """The names and all that they meet in."""
    closed = dict.fromkeys(names)
    while True:
        met = {join(a, b) for a, b in itertools.product(closed, repeat=2)} - {None, *closed}
        if not met:
            return list(closed)
        closed |= dict.fromkeys(sorted(filter(None, met)))


def _held_as(join: Join, names: list[str]) -> dict[str, str]:
    """The names that another one stands for: they meet themselves in it, and everything in what it meets it in."""
    held = {name: join(name, name) for name in names}
    return {
        name: other
        for name, other in held.items()
        if other is not None
        and other != name
        and name not in WEAK_NAMES
        and all(join(name, each) == join(other, each) and join(each, name) == join(each, other) for each in names)
    }


def _hasse(join: Join, names: list[str]) -> Lattice:
    above = {name: [upper for upper in names if upper != name and join(name, upper) == upper] for name in names}
    return Lattice(
        {
            name: [upper for upper in uppers if not any(upper in above[between] for between in uppers)]
            for name, uppers in above.items()
        }
    )


def _mentioned(found: Counterexample) -> tuple[str | None, ...]:
    return (*found.nodes, found.left, found.right)


def _obscurity(found: Counterexample) -> tuple[bool, bool, int]:
    """What makes an example say less: a refusal in it, that it is of one or two types, and that they are rare ones."""
    refused, rare = None in (found.left, found.right), sum(name not in STANDARD_TYPES for name in found.nodes)
    return refused, found.law != "associative", rare
