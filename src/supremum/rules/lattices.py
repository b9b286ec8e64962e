"""What lattices have in common: edges, nodes of operands, explanations, and the checks of user-defined ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from supremum.errors import ArgumentError, UnknownDtypeError, shown
from supremum.formats import DType, as_format
from supremum.lattice import Lattice
from supremum.operands import WEAK_NAMES, Operands, weak_name
from supremum.rules.names import rule_names
from supremum.rules.verdicts import climb

UNSIGNED: dict[str, tuple[str, ...]] = {
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
}
"""Unsigned integers, each below the next wider one and the narrowest signed one that holds it; uint64 has no entry."""
SIGNED: dict[str, tuple[str, ...]] = {"int8": ("int16",), "int16": ("int32",), "int32": ("int64",)}
"""Signed integers; frameworks differ in what they put above int64."""
INEXACT: dict[str, tuple[str, ...]] = {
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "complex64": ("complex128",),
}
"""Floats of at least 16 bits, and the complex formats that have them as components."""


def held_format(name: str, defaults: Mapping[str, str], held_as: Mapping[str, str]) -> str:
    """The format in which the runtime holds a format or weak kind.

    Args:
        name: the name of the format or weak kind.
        defaults: the formats that hold weak kinds.
        held_as: the formats that the runtime holds differently, and the formats it holds them in.
    """
    default = defaults.get(name, name)
    return held_as.get(name, held_as.get(default, default))


def nodes_of(operands: Operands, formats: Sequence[str], *, joins_defaults: bool) -> list[str]:
    """The node of each operand: its weak kind, or the format that holds it.

    Args:
        operands: the operands.
        formats: the format that holds each operand.
        joins_defaults: whether weak operands alone promote as the formats that hold them rather than as weak kinds.
    """
    # Weak operands alone promote as the formats that hold them and stay weak, as in JAX unless it is strict
    # (jax/_src/dtypes.py, _lattice_result_type).
    all_weak = all(operand.weak for operand in operands)
    by_format = all_weak and (joins_defaults or len(operands) == 1)
    pairs = zip(operands, formats, strict=True)
    return [weak_name(o.category) if o.weak and not by_format else name for o, name in pairs]


def reasons_of_held(operands: Operands, formats: Sequence[str], because: str) -> list[str]:
    """Explain the formats of arrays that the runtime holds in other ones.

    Args:
        operands: the operands.
        formats: the format that holds each operand.
        because: the reason, as half a sentence.
    """
    return [
        f"{operand.name} is held as {name}: {because}"
        for operand, name in zip(operands, formats, strict=True)
        if operand.dtype is not None and name != operand.format.name
    ]


def reasons_of_join(met: str, dtype: DType, paths: Sequence[Sequence[str]], *, all_weak: bool) -> list[str]:
    """Explain a join, and the dtype of one that is a weak kind.

    Args:
        met: the join.
        dtype: the dtype that holds it.
        paths: the way from the node of each operand up to the join.
        all_weak: whether all operands are weak.
    """
    if all_weak and len({path[0] for path in paths}) > 1:
        reasons = [f"all operands are weak: their default dtypes meet in {met}, and the result stays weak"]
    else:
        reasons = [climb(met, paths)]
    if met in WEAK_NAMES:
        reasons.append(f"{met} is a weak kind and has dtype {dtype} unless an operand is strong")
    return reasons


def no_join(lattice: Lattice, nodes: Sequence[str]) -> str:
    """Explain why nodes have no join."""
    distinct = " and ".join(dict.fromkeys(nodes))
    common = lattice.upper_bounds(*nodes)
    if not common:
        return f"the lattice has no upper bound of {distinct}"
    candidates = ", ".join(lattice.minimal(common))
    return f"{distinct} have no least upper bound: {candidates} are all smallest upper bounds"


def weak_defaults(*formats: str) -> dict[str, str]:
    """The default formats of the weak kinds, lowest category first: `weak_defaults("int64", "float64", ...)`."""
    return dict(zip(WEAK_NAMES, formats, strict=True))


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
    checked = {weak: _default(weak, name) for weak, name in defaults.items()}
    return weak_defaults("int32", "float32", "complex64") | checked


def _node(name: object) -> str:
    if isinstance(name, str) and name in WEAK_NAMES:
        return name
    try:
        return as_format(name).name
    except UnknownDtypeError as error:
        choices = (*error.choices, *WEAK_NAMES)
        raise UnknownDtypeError(error.what, error.name, choices, near=error.near) from None


def _default(weak: str, name: str) -> str:
    if weak not in WEAK_NAMES:
        raise ArgumentError(f"defaults must be for {', '.join(WEAK_NAMES)}, got {shown(weak)}")
    row = as_format(name)
    if row.category != WEAK_NAMES[weak]:
        raise ArgumentError(f"the default of {weak} must be of category {WEAK_NAMES[weak]}, got {row}")
    return row.name


def _listed(node: object, above: Iterable[str]) -> Iterable[str]:
    if isinstance(above, str):
        raise ArgumentError(f"the nodes above {node} must be a list of names, got {shown(above)}; use [{shown(above)}]")
    return above
