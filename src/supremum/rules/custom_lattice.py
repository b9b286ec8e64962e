"""Checks of the edges and defaults of user-defined rule sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from supremum.errors import ArgumentError, UnknownDtypeError, shown
from supremum.formats import CATEGORIES, as_format, format_names
from supremum.lattice import Lattice
from supremum.operands import WEAK_NAMES, weak_name
from supremum.rules.names import rule_names

_DEFAULTS = {
    weak_name(each): name for each, name in zip(CATEGORIES[1:], ("int32", "float32", "complex64"), strict=True)
}


def checked_order(name: str, edges: Mapping[str, Iterable[str]]) -> Lattice:
    """The order that edges describe.

    Args:
        name: the name of the rule set.
        edges: for each format or weak kind, the nodes directly above it.

    Raises:
        ArgumentError: for an order that is not a lattice, and for a name that is taken.
        UnknownDtypeError: for a name that is not a format.
    """
    if not name or name in rule_names():
        raise ArgumentError(f"name must not be empty or the name of a built-in rule set, got {shown(name)}")
    above = {_node(node): [_node(upper) for upper in _listed(node, uppers)] for node, uppers in edges.items()}
    try:
        order = Lattice(above)
    except ValueError as error:
        raise ArgumentError(f"{shown(name)} is not an order: {error}") from error
    if not order.nodes:
        raise ArgumentError(f"{shown(name)} has no edges; give at least one format")
    # If all pairs with upper bounds have a least one, joins commute and associate, refusals included.
    for a, b in combinations(order.nodes, 2):
        common = order.upper_bounds(a, b)
        if common and order.join(a, b) is None:
            minimal = order.minimal(common)
            count = "two" if len(minimal) == 2 else len(minimal)
            bounds = f"{a} and {b} have {count} smallest upper bounds, {' and '.join(minimal)}"
            raise ArgumentError(f"{shown(name)} is not a lattice: {bounds}")
    return order


def checked_defaults(defaults: Mapping[str, str]) -> dict[str, str]:
    """The formats that hold weak kinds if no operand is stronger.

    Args:
        defaults: formats that differ from int32, float32 and complex64.

    Raises:
        ArgumentError: for a format of a different category than its weak kind.
        UnknownDtypeError: for a name that is not a format.
    """
    return _DEFAULTS | {weak: _default(weak, format_name) for weak, format_name in defaults.items()}


def _node(name: object) -> str:
    if isinstance(name, str) and name in WEAK_NAMES:
        return name
    try:
        return as_format(name).name
    except UnknownDtypeError:
        raise UnknownDtypeError("dtype", str(name), (*format_names(), *WEAK_NAMES)) from None


def _default(weak: str, name: str) -> str:
    if weak not in WEAK_NAMES:
        raise ArgumentError(f"defaults must be for {', '.join(WEAK_NAMES)}, got {shown(weak)}")
    try:
        row = as_format(name)
    except UnknownDtypeError:
        raise UnknownDtypeError("dtype", str(name), format_names()) from None
    if row.category != WEAK_NAMES[weak]:
        raise ArgumentError(f"the default of {weak} must be of category {WEAK_NAMES[weak]}, got {row}")
    return row.name


def _listed(node: object, above: Iterable[str]) -> Iterable[str]:
    if isinstance(above, str):
        raise ArgumentError(f"the nodes above {node} must be a list of names, got {shown(above)}; use [{shown(above)}]")
    return above
