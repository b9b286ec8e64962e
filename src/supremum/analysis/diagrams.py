"""The Hasse diagrams of the rule sets that are lattices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from supremum.analysis.inferred_lattice import NoLattice, Order, order_of
from supremum.analysis.tables import TypeNames, full_names, short_name, type_names
from supremum.errors import ArgumentError
from supremum.formats import CATEGORIES, as_format
from supremum.operands import WEAK_NAMES, as_operand
from supremum.render import Diagram, Node, hasse_to_dot, hasse_to_svg
from supremum.rules import RuleSet, RulesLike, get_rules

_HOW_TO_READ = "Two types promote to the first type above them that lines reach from both."
_NOWHERE = "If lines reach no common type, or several and none of them first, the rules refuse."
_APART = "Each of these promotes only with itself:"


def lattice_svg(rules: RulesLike | None = None, *, types: TypeNames = "all", path: TypeNames = ()) -> str:
    """Draw the Hasse diagram of a rule set as a self-contained SVG.

    Args:
        rules: a rule set or its name; None for the default.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.
        path: types to highlight, with the lines from them to the type that they promote to.

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: if the rule set is not a lattice, and if `path` has one type, or a type that is not in the order.

    >>> drawn = lattice_svg("jax-x64", path=("int8", "float16"))
    >>> "int8 and float16 promote to float16." in drawn
    True
    """
    return hasse_to_svg(_drawn(rules, types, path))


def lattice_dot(rules: RulesLike | None = None, *, types: TypeNames = "all", path: TypeNames = ()) -> str:
    """Write the Hasse diagram of a rule set in the DOT language of Graphviz.

    Args:
        rules: a rule set or its name; None for the default.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.
        path: types to highlight, with the lines from them to the type that they promote to.

    Raises:
        UnknownNameError, ArgumentError: as for `lattice_svg`.

    >>> print(lattice_dot("jax-x64", types="int8,int16").splitlines()[0])
    digraph "jax-x64: 2 types in order" {
    """
    return hasse_to_dot(_drawn(rules, types, path))


def _drawn(rules: RulesLike | None, types: TypeNames, path: TypeNames) -> Diagram:
    rule_set, asked = get_rules(rules), type_names(types)
    names = () if isinstance(path, (str, tuple, list)) and not path else type_names(path)
    if len(names) == 1:
        raise ArgumentError(f"A path must have at least two types, got only {names[0]}.")
    order = order_of(rule_set, (*asked, *(name for name in names if name not in asked)))
    if isinstance(order, NoLattice):
        instead = "print its table instead, with supremum table or rule_table"
        raise ArgumentError(f"{rule_set.name} is not a lattice: {order.reason}; {instead}.")
    for name in names:
        if name in order.left_out:
            raise ArgumentError(f"{rule_set.name} refuses {name} even with itself, so there is no path from it.")
    result, sentence = _result_of(rule_set, names) if names else (None, "")
    return _diagram(order, names, result, sentence)


def _result_of(rules: RuleSet, names: Sequence[str]) -> tuple[str | None, str]:
    """The type that types promote to, and a sentence about it, or about why they do not promote."""
    decision = rules.decide(None, [as_operand(name) for name in names])
    together = f"{', '.join(names[:-1])} and {names[-1]}"
    if decision.result is None:
        return None, f"{together} do not promote: {'; '.join(decision.reason)}."
    return decision.result.name, f"{together} promote to {decision.result.name}."


def _diagram(order: Order, path: Sequence[str], result: str | None, sentence: str) -> Diagram:
    starts = _starts(order, path)
    routes = [order.lattice.path(start, result) for start in starts] if result else []
    lit_nodes = {*starts, *itertools.chain.from_iterable(routes)}
    lit_edges = frozenset(edge for route in routes for edge in itertools.pairwise(route))
    nodes = tuple(_node(name, name in lit_nodes) for name in order.lattice.nodes)
    edges = tuple((lower, upper) for lower, uppers in order.lattice.edges.items() for upper in uppers)
    title = f"{order.rules}: {len(nodes)} types in order"
    names = full_names(node.text for node in nodes)
    caption, legend = _caption(order, sentence), _legend(nodes, has_way=bool(lit_edges))
    return Diagram(title, nodes, edges, lit_edges, caption, legend, _APART, names)


def _starts(order: Order, path: Sequence[str]) -> list[str]:
    """The elements of the order that the types of a path are, or are replaced by."""
    starts = [order.held_as.get(name, name) for name in path]
    for name in starts:
        if name not in order.lattice.edges:
            raise ArgumentError(f"The order of {order.rules} does not contain {name}. {order.note}")
    return starts


def _node(name: str, lit: bool) -> Node:
    is_weak = name in WEAK_NAMES
    category = WEAK_NAMES[name] if is_weak else as_format(name, columns=True).category
    return Node(name, category, dashed=is_weak, lit=lit, label=short_name(name))


def _legend(nodes: Sequence[Node], *, has_way: bool) -> tuple[tuple[str, str], ...]:
    """The legend of the styles that nodes have.

    Args:
        nodes: the nodes.
        has_way: whether lines are highlighted too.
    """
    categories = {node.style for node in nodes}
    legend = [(category, category) for category in CATEGORIES if category in categories]
    if any(node.dashed for node in nodes):
        legend.append(("dashed plain", "weak kind"))
    if any(node.lit for node in nodes):
        legend.append(("lit plain", "the way to the common type" if has_way else "asked about"))
    return tuple(legend)


def _caption(order: Order, sentence: str) -> tuple[str, ...]:
    """The sentences under a diagram.

    Args:
        order: the order.
        sentence: about the path; empty if there is none.
    """
    sentences = [sentence, *_reading_help(order), order.note]
    if order.held_as:
        replacements = ", ".join(f"{name} as {other}" for name, other in order.held_as.items())
        sentences.append(f"Replaced by others: {replacements}.")
    if order.left_out:
        sentences.append(f"Refused even with themselves: {', '.join(order.left_out)}.")
    return tuple(filter(None, sentences))


def _reading_help(order: Order) -> tuple[str, ...]:
    """How to read the lines of a diagram; empty if it has none."""
    lattice = order.lattice
    if not any(lattice.edges.values()):
        return ()
    joins = (lattice.join(a, b) for a, b in itertools.combinations(lattice.nodes, 2))
    return (_HOW_TO_READ, _NOWHERE) if None in joins else (_HOW_TO_READ,)
