"""The order of a rule set as a picture; where it has none, its table and why."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from supremum.analysis.inferred_lattice import NoLattice, Order, in_words, order_of
from supremum.analysis.tables import rule_table, type_names
from supremum.errors import ArgumentError
from supremum.formats import CATEGORIES, as_format
from supremum.lattice import Lattice
from supremum.operands import WEAK_NAMES, as_operand
from supremum.render import Diagram, Mark, Node, Table, hasse_to_dot, hasse_to_svg, table_to_svg
from supremum.rules import RuleSet, get_rules

_HOW_TO_READ = "Two types meet in the first type to their right that lines lead to from both."
_NOWHERE = "Where lines lead to no common type, or to several and none of them first, the rules refuse."
_APART = "Each of these meets only itself:"
_ASKED = Mark("asked", "●", "asked about")


def lattice_svg(
    rules: str | RuleSet | None = None, *, types: str | Sequence[str] = "all", path: str | Sequence[str] = ()
) -> str:
    """The Hasse diagram of a rule set, or its table where it is no lattice, as one self-contained SVG, light and dark.

    Args:
        rules: a rule set or its name; None for the default.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.
        path: types whose ways to what they meet in are lit.

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: for a path of fewer than two types, or one of a type that is not in the order.

    >>> drawn = lattice_svg("jax-x64", path=("int8", "float16"))
    >>> "int8 and float16 meet in float16." in drawn
    True
    """
    drawn = _drawn(rules, types, path)
    return hasse_to_svg(drawn) if isinstance(drawn, Diagram) else table_to_svg(*drawn)


def lattice_png(
    rules: str | RuleSet | None = None, *, types: str | Sequence[str] = "all", path: str | Sequence[str] = ()
) -> bytes:
    """The picture of `lattice_svg` in its light colours as a PNG; it needs matplotlib.

    Args:
        rules: a rule set or its name; None for the default.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.
        path: types whose ways to what they meet in are lit.

    Raises:
        UnknownNameError, ArgumentError: as for `lattice_svg`.
        ModuleNotFoundError: without matplotlib, which is in `supremum[plot]`.
    """
    from supremum.render.png import to_png  # matplotlib is only for those who want a PNG

    return to_png(lattice_svg(rules, types=types, path=path))


def lattice_dot(
    rules: str | RuleSet | None = None, *, types: str | Sequence[str] = "all", path: str | Sequence[str] = ()
) -> str:
    """The Hasse diagram of a rule set in Graphviz' language.

    Args:
        rules: a rule set or its name; None for the default.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.
        path: types whose ways to what they meet in are lit.

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: as for `lattice_svg`, and if the rule set is no lattice.

    >>> print(lattice_dot("jax-x64", types="int8,int16").splitlines()[0])
    digraph "jax-x64: 2 types in order" {
    """
    drawn = _drawn(rules, types, path)
    if isinstance(drawn, Diagram):
        return hasse_to_dot(drawn)
    table, caption = drawn
    raise ArgumentError(f"{table.title}: {caption[0].rstrip('.')}; its table can be drawn as svg or png")


def _drawn(
    rules: str | RuleSet | None, types: str | Sequence[str], path: str | Sequence[str]
) -> Diagram | tuple[Table, tuple[str, ...]]:
    rule_set, asked = get_rules(rules), type_names(types)
    names = () if isinstance(path, (str, tuple, list)) and not path else type_names(path)
    if len(names) == 1:
        raise ArgumentError(f"a path needs two types to lead to where they meet: give another one beside {names[0]}")
    found = order_of(rule_set, (*asked, *(name for name in names if name not in asked)))
    for name in names:
        if name in found.left_out:
            raise ArgumentError(f"{rule_set.name} refuses {name} even with itself: there is no path from it")
    if isinstance(found, NoLattice):
        return _table(rule_set, found, names)
    return _diagram(found, _way(rule_set, found, names))


@dataclass(frozen=True, slots=True)
class _Way:
    nodes: frozenset[str] = frozenset()
    edges: frozenset[tuple[str, str]] = frozenset()
    sentences: tuple[str, ...] = ()


def _way(rules: RuleSet, order: Order, names: Sequence[str]) -> _Way:
    if not names:
        return _Way()
    starts = [order.held_as.get(name, name) for name in names]
    for name in starts:
        if name not in order.lattice.edges:
            raise ArgumentError(f"{name} is in no order under {order.rules}: {order.note}")
    met, sentence = _meeting(rules, names)
    ways = [order.lattice.path(start, met) for start in starts] if met else []
    edges = frozenset(edge for way in ways for edge in itertools.pairwise(way))
    return _Way(frozenset(starts).union(*ways), edges, (sentence,))


def _meeting(rules: RuleSet, names: Sequence[str]) -> tuple[str | None, str]:
    """What types meet in, and a sentence that says so, or why they do not."""
    decision = rules.decide(None, [as_operand(name) for name in names])
    together = f"{', '.join(names[:-1])} and {names[-1]}"
    if decision.result is None:
        return None, f"{together} do not meet: {'; '.join(decision.reason)}."
    return decision.result.name, f"{together} meet in {decision.result.name}."


def _diagram(order: Order, way: _Way) -> Diagram:
    nodes = tuple(
        Node(name, _category(name), dashed=name in WEAK_NAMES, lit=name in way.nodes) for name in order.lattice.nodes
    )
    edges = tuple((lower, upper) for lower, uppers in order.lattice.edges.items() for upper in uppers)
    categories = {node.style for node in nodes}
    legend = [(category, category) for category in CATEGORIES if category in categories]
    if any(node.dashed for node in nodes):
        legend.append(("dashed plain", "weak kind"))
    if way.nodes:
        legend.append(("lit plain", "the way to where they meet" if way.edges else "asked about"))
    caption = (*way.sentences, *(_reading(order.lattice) if edges else ()), *_remarks(order))
    title = f"{order.rules}: {len(nodes)} types in order"
    return Diagram(title, nodes, edges, way.edges, caption, tuple(legend), _APART)


def _reading(lattice: Lattice) -> tuple[str, ...]:
    joins = (lattice.join(a, b) for a, b in itertools.combinations(lattice.nodes, 2))
    return (_HOW_TO_READ, _NOWHERE) if None in joins else (_HOW_TO_READ,)


def _remarks(order: Order) -> tuple[str, ...]:
    held = ", ".join(f"{name} as {other}" for name, other in order.held_as.items())
    return tuple(filter(None, (order.note, f"Held as others: {held}." if held else "", _left_out(order.left_out))))


def _left_out(names: Sequence[str]) -> str:
    return f"Refused even with themselves: {', '.join(names)}." if names else ""


def _category(name: str) -> str:
    return WEAK_NAMES.get(name) or as_format(name).category


def _table(rules: RuleSet, found: NoLattice, path: Sequence[str]) -> tuple[Table, tuple[str, ...]]:
    """The table of a rule set that is no lattice, types at the left in full, and the sentences to go with it."""
    asked = set(itertools.permutations(path, 2))
    drawn = rule_table(rules, types=found.types).drawing(short=True)
    rows = tuple(
        # The whole account of every cell would make a file of megabytes; its first line says what meets in what.
        (
            name,
            tuple(
                replace(cell, hint=cell.hint.partition("\n")[0], mark=_ASKED if (name, other) in asked else None)
                for other, cell in zip(found.types, cells, strict=True)
            ),
        )
        for name, (_, cells) in zip(found.types, drawn.rows, strict=True)
    )
    places = "the only place" if found.count == 1 else f"one of {found.count} places"
    why = f"{in_words(found.counterexample)}; {places} where no order can give what these rules decide."
    sentences = (why, _meeting(rules, path)[1] if path else "", _left_out(found.left_out))
    title = f"{rules.name} is no lattice"
    return replace(drawn, title=title, rows=rows, full_names=()), tuple(filter(None, sentences))
