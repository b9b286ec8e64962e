"""Pictures of rule sets: the Hasse diagram of a lattice, or the table of other rules and why they are not a lattice."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from supremum.analysis.inferred_lattice import NoLattice, Order, in_words, order_of
from supremum.analysis.tables import TypeNames, full_names, rule_table, short_name, type_names
from supremum.errors import ArgumentError
from supremum.formats import CATEGORIES, as_format
from supremum.operands import WEAK_NAMES, as_operand
from supremum.render import Diagram, Mark, Node, Table, hasse_to_dot, hasse_to_svg, table_to_svg
from supremum.rules import RuleSet, RulesLike, get_rules

_HOW_TO_READ = "Two types promote to the first type above them that lines reach from both."
_NOWHERE = "If lines reach no common type, or several and none of them first, the rules refuse."
_APART = "Each of these promotes only with itself:"
_ASKED = Mark("asked", "●", "asked about")


def lattice_svg(rules: RulesLike | None = None, *, types: TypeNames = "all", path: TypeNames = ()) -> str:
    """Draw the Hasse diagram of a rule set, or its table if it is not a lattice, as a self-contained SVG.

    Args:
        rules: a rule set or its name; None for the default.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.
        path: types to highlight, with the lines from them to the type that they promote to.

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: if `path` has one type, or a type that is not in the order.

    >>> drawn = lattice_svg("jax-x64", path=("int8", "float16"))
    >>> "int8 and float16 promote to float16." in drawn
    True
    """
    drawn = _drawn(rules, types, path)
    return hasse_to_svg(drawn) if isinstance(drawn, Diagram) else table_to_svg(*drawn)


def lattice_dot(rules: RulesLike | None = None, *, types: TypeNames = "all", path: TypeNames = ()) -> str:
    """Write the Hasse diagram of a rule set in the DOT language of Graphviz.

    Args:
        rules: a rule set or its name; None for the default.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.
        path: types to highlight, with the lines from them to the type that they promote to.

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: as for `lattice_svg`, and if the rule set is not a lattice.

    >>> print(lattice_dot("jax-x64", types="int8,int16").splitlines()[0])
    digraph "jax-x64: 2 types in order" {
    """
    drawn = _drawn(rules, types, path)
    if isinstance(drawn, Diagram):
        return hasse_to_dot(drawn)
    table, caption = drawn
    raise ArgumentError(f"{table.title}: {caption[0].rstrip('.')}; draw its table as svg.")


def _drawn(rules: RulesLike | None, types: TypeNames, path: TypeNames) -> Diagram | tuple[Table, tuple[str, ...]]:
    rule_set, asked = get_rules(rules), type_names(types)
    names = () if isinstance(path, (str, tuple, list)) and not path else type_names(path)
    if len(names) == 1:
        raise ArgumentError(f"A path must have at least two types, got only {names[0]}.")
    found = order_of(rule_set, (*asked, *(name for name in names if name not in asked)))
    for name in names:
        if name in found.left_out:
            raise ArgumentError(f"{rule_set.name} refuses {name} even with itself, so there is no path from it.")
    result, sentence = _result_of(rule_set, names) if names else (None, "")
    if isinstance(found, NoLattice):
        return _table(rule_set, found, names, sentence)
    return _diagram(found, names, result, sentence)


def _result_of(rules: RuleSet, names: Sequence[str]) -> tuple[str | None, str]:
    """The type that types promote to, and a sentence about it, or about why they do not promote."""
    decision = rules.decide(None, [as_operand(name) for name in names])
    together = f"{', '.join(names[:-1])} and {names[-1]}"
    if decision.result is None:
        return None, f"{together} do not promote: {'; '.join(decision.reason)}."
    return decision.result.name, f"{together} promote to {decision.result.name}."


def _diagram(order: Order, path: Sequence[str], result: str | None, sentence: str) -> Diagram:
    starts = [order.held_as.get(name, name) for name in path]
    for name in starts:
        if name not in order.lattice.edges:
            raise ArgumentError(f"The order of {order.rules} does not contain {name}. {order.note}")
    routes = [order.lattice.path(start, result) for start in starts] if result else []
    lit_nodes = {*starts, *itertools.chain.from_iterable(routes)}
    lit_edges = frozenset(edge for route in routes for edge in itertools.pairwise(route))
    nodes = tuple(
        Node(
            name,
            WEAK_NAMES.get(name) or as_format(name, columns=True).category,
            dashed=name in WEAK_NAMES,
            lit=name in lit_nodes,
            label=short_name(name),
        )
        for name in order.lattice.nodes
    )
    edges = tuple((lower, upper) for lower, uppers in order.lattice.edges.items() for upper in uppers)
    categories = {node.style for node in nodes}
    legend = [(category, category) for category in CATEGORIES if category in categories]
    if any(node.dashed for node in nodes):
        legend.append(("dashed plain", "weak kind"))
    if lit_nodes:
        legend.append(("lit plain", "the way to the common type" if lit_edges else "asked about"))
    joins = (order.lattice.join(a, b) for a, b in itertools.combinations(order.lattice.nodes, 2))
    held = ", ".join(f"{name} as {other}" for name, other in order.held_as.items())
    caption = (
        sentence,
        _HOW_TO_READ if edges else "",
        _NOWHERE if edges and None in joins else "",
        order.note,
        f"Replaced by others: {held}." if held else "",
        _left_out(order.left_out),
    )
    title = f"{order.rules}: {len(nodes)} types in order"
    names = full_names(node.text for node in nodes)
    return Diagram(title, nodes, edges, lit_edges, tuple(filter(None, caption)), tuple(legend), _APART, names)


def _left_out(names: Sequence[str]) -> str:
    return f"Refused even with themselves: {', '.join(names)}." if names else ""


def _table(rules: RuleSet, found: NoLattice, path: Sequence[str], sentence: str) -> tuple[Table, tuple[str, ...]]:
    """The table of a rule set that is not a lattice, with full names at the left, and its caption."""
    asked = set(itertools.permutations(path, 2))
    table = rule_table(rules, types=found.types)
    marks = {pair: _ASKED for pair in table.decisions if pair in asked}
    # Full explanations would make a file of megabytes; the first line of each tells the result.
    hints = {pair: str(decision).partition("\n")[0] for pair, decision in table.decisions.items()}
    drawn = table.drawing(marks=marks, hints=hints)
    rows = tuple((name, cells) for name, (_, cells) in zip(found.types, drawn.rows, strict=True))
    places = "the only place" if found.count == 1 else f"one of {found.count} places"
    why = f"{in_words(found.counterexample)}; {places} where no order agrees with the rules."
    caption = tuple(filter(None, (why, sentence, _left_out(found.left_out))))
    return replace(drawn, title=f"{rules.name} is not a lattice", rows=rows, full_names=()), caption
