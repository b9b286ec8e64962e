"""The formats that hold weak kinds, and the explanation of a missing join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from supremum.formats import CATEGORIES
from supremum.lattice import Lattice
from supremum.operands import weak_name


def held_format(name: str, defaults: Mapping[str, str], held_as: Mapping[str, str]) -> str:
    """The format in which the runtime holds a format or weak kind.

    Args:
        name: the name of the format or weak kind.
        defaults: the formats that hold weak kinds.
        held_as: the formats that the runtime holds differently, and the formats it holds them in.
    """
    default = defaults.get(name, name)
    return held_as.get(name, held_as.get(default, default))


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
    return {weak_name(category): name for category, name in zip(CATEGORIES[1:], formats, strict=True)}
