"""The rules of the Python array API standard 2024.12: one lattice, which refuses what the standard leaves undefined.

Source: https://data-apis.org/array-api/2024.12/API_specification/type_promotion.html, with only
the formats that it names. The conformance tests compare every pair, for every operation, with `array-api-strict`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from supremum.decisions import Verdict
from supremum.lattice import Lattice
from supremum.operands import Operands
from supremum.operations import Operation
from supremum.rules.array_casts import ArrayCasts
from supremum.rules.lattices import SIGNED, UNSIGNED
from supremum.rules.rule_set import LatticeRuleSet
from supremum.rules.verdicts import LOSSES_AS_DIVISION, MEASURED, checked_ints

# A Python number is below the formats that it may be combined with: an int is below every integer and every float.
_EDGES: dict[str, tuple[str, ...]] = {
    "bool": (),
    "int*": ("uint8", "int8", "float*"),
    **UNSIGNED,
    "uint64": (),
    **SIGNED,
    "int64": (),
    "float*": ("float32", "complex*"),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "complex*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}


@dataclass(frozen=True, eq=False, repr=False)
class ArrayApiRules(LatticeRuleSet):
    """The lattice of the standard, which needs at least one array and Python numbers in the range of its dtype."""

    reads_numbers: ClassVar[tuple[type, ...]] = (int,)

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        if all(operand.is_python_scalar for operand in operands):
            return Verdict.refuse("the standard needs at least one array among the operands, got only Python numbers")
        return checked_ints(super()._meet(operation, operands), operands, "; the standard defines no result")


ARRAY_API = ArrayApiRules(
    name="array-api",
    summary="the Python array API standard 2024.12, undefined mixes refused",
    source="https://data-apis.org/array-api/2024.12/API_specification/type_promotion.html",
    lattice=Lattice(_EDGES),
    defaults={"int*": "int64", "float*": "float64", "complex*": "complex128"},
    # The standard leaves it to the library what happens if bounds or ends have a different dtype than the array.
    agreeing=frozenset(("clip", "diff")),
    weak_arrays=False,
    measured=MEASURED,
    stands_in={"fmax": "maximum", "fmin": "minimum"} | LOSSES_AS_DIVISION,
    library="the array API standard",
    # "Conversions ... out of range" are unspecified (astype), so no number is right.
    array_casts=ArrayCasts("the array API standard", "", frozenset(), is_defined=False),
)
