"""PyTorch's promotion of dtypes: by a table within a rank of operands, by category between ranks.

Source: PyTorch 2.13, `promoteTypes` in c10/core/ScalarType.cpp; `combine_categories` and `update_result_type_state` in
aten/src/ATen/native/TypeProperties.cpp.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from supremum.formats import CATEGORIES, Kind, as_format
from supremum.lattice import Lattice
from supremum.rules.lattices import INEXACT, SIGNED

# Thirteen dtypes are a lattice, whose joins are the table in `promoteTypes`.
LATTICE = Lattice(
    {
        "bool": ("uint8", "int8"),
        "uint8": ("int16",),
        **SIGNED,
        "int64": ("bfloat16", "float16"),
        **INEXACT,
        "float16": ("float32", "complex32"),
        "complex32": ("complex64",),
    }
)
# The other dtypes promote only with themselves. These unsigned ones also promote to the floats of the lattice, but not
# to the complex dtypes above those, which no order can express.
BARE_UNSIGNED = ("uint1", "uint2", "uint4", "uint16", "uint32", "uint64")
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
SHELL = ("uint1", "uint2", "uint4", "int1", "int2", "int4")
"""Dtypes that tensors can have but almost no function supports."""
KNOWN = frozenset((*LATTICE.nodes, *BARE_UNSIGNED, *FLOAT8, *SHELL))
COMPLEX_OF = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}
"""`toComplexType`; its keys are also the dtypes that `torch.set_default_dtype` accepts."""


class Rank(enum.Enum):
    """The ranks of operands, lowest first."""

    NUMBER = "Python numbers"
    ZERO_D = "0-d tensors"
    DIMENSIONED = "tensors with dimensions"


@dataclass(frozen=True, slots=True)
class Met:
    """The common dtype of some operands (None if torch refuses them), and the reason."""

    name: str | None
    reason: tuple[str, ...] = ()


def promote(a: str, b: str) -> Met:
    """The common dtype of two dtypes of one rank (`promoteTypes`).

    >>> promote("uint8", "int8").name, promote("uint16", "float16").name, promote("uint16", "int64").name
    ('int16', 'float16', None)
    """
    if a == b:
        return Met(a)
    if a in LATTICE.edges and b in LATTICE.edges:
        joined = LATTICE.join(a, b)
        return Met(joined, (f"{a} and {b} promote to {joined}",))
    if a in FLOAT8 or b in FLOAT8:
        return Met(None, (f"torch does not promote float8 with another dtype, got {a} and {b}",))
    unsigned, other = (a, b) if a in BARE_UNSIGNED else (b, a)
    if unsigned not in BARE_UNSIGNED:
        return Met(None, (f"torch does not promote int1, int2 or int4 with another dtype, got {a} and {b}",))
    if as_format(other).kind is not Kind.FLOAT:
        return Met(None, (f"torch promotes {unsigned} only with floats of at least 16 bits, got {other}",))
    return Met(other, (f"{other} outranks {unsigned}",))


def meet(operands: Sequence[tuple[Rank, str]]) -> Met:
    """The common dtype of operands of any rank (`result_type`).

    Operands of one rank promote pairwise from left to right. A lower rank changes the result only if its category is
    higher.

    Args:
        operands: the rank and dtype name of each operand.

    >>> meet([(Rank.DIMENSIONED, "int8"), (Rank.ZERO_D, "int64")]).name
    'int8'
    """
    met, below = Met(None), ""
    for rank in Rank:
        group = [name for its_rank, name in operands if its_rank is rank]
        if not group:
            continue
        met = _combine(_fold(group), met, rank.value, below)
        if met.name is None:
            break
        below = f"{rank.value} ({met.name})"
    return met


def _fold(names: Sequence[str]) -> Met:
    met = Met(names[0])
    for name in names[1:]:
        if met.name is None:
            break
        step = promote(met.name, name)
        met = Met(step.name, (*met.reason, *step.reason))
    return met


def _combine(higher: Met, lower: Met, rank: str, below: str) -> Met:
    if higher.name is None or lower.name is None:
        return higher
    reason = (*lower.reason, *higher.reason)
    category, category_below = as_format(higher.name).category, as_format(lower.name).category
    if CATEGORIES.index(category_below) <= CATEGORIES.index(category):
        return Met(higher.name, (*reason, f"{rank} ({higher.name}) outrank {below} of no higher category"))
    raised = f"{below} are of a higher category than {rank} ({higher.name})"
    if category_below != "complex":
        step = promote(higher.name, lower.name)
        return Met(step.name, (*reason, raised, *step.reason))
    if category != "float":
        return Met(lower.name, (*reason, raised))
    widened = COMPLEX_OF.get(higher.name)
    told = f"torch has no complex dtype of {higher.name}" if widened is None else f"{higher.name} becomes {widened}"
    return Met(widened, (*reason, raised, told))
