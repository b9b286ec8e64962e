"""The three modes of TensorFlow's RFC 431, as specified; TensorFlow shipped different rules.

Source: TensorFlow RFC 431, promotion modes. Its tables were pictures and are lost. Where the text leaves a cell
open, these rules follow oracles/tensorflow-rfc-431.json, and comments cite its open questions by number (D1 to D14).

The RFC covers add, sub, mul, div, pow and mod, which share one table (div then converts integers to floats). Supremum
extends its common rule to all other operations, and its rule of div to those that return floats. The RFC covers only
two operands. Supremum promotes three and more at once, first the tensors and then the Python numbers, and explanations
say so. NumPy arrays and Python bools are tensors.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from supremum.decisions import Verdict
from supremum.fix import letter
from supremum.formats import CATEGORIES, DType, Format, Kind, as_format
from supremum.number_conversion import fits
from supremum.operands import Operand, Operands, weak_name
from supremum.operations import OPERATIONS, Operation, Result
from supremum.rules.rule_set import RuleSet
from supremum.rules.tf import CASTS, QUOTIENTS, REDUCTIONS
from supremum.rules.verdicts import ALREADY, MEASURED


def _rank(row: Format) -> int:
    return CATEGORIES.index(row.category)


_NAMES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_FORMATS = tuple(sorted(map(as_format, _NAMES), key=lambda row: (_rank(row), row.bits)))
_REAL_FORMATS = tuple(row for row in _FORMATS if row.kind is not Kind.COMPLEX)
# The widest format of each category whose range covers all lower categories. There is none for integers: int64 and
# uint64 do not cover each other, so they promote to float64 (D1).
_CAPS = {row.category: row for row in map(as_format, ("float64", "complex128"))}
# The dtypes of Python numbers without a tensor to take them from (D4, D5, D6, D14).
_PYTHON = {"integer": as_format("int32"), "float": as_format("float32"), "complex": as_format("complex128")}
_NARROWEST_COMPLEX = as_format("complex64")
_BEYOND_THE_RFC = "the RFC defines promotion of two operands only; Supremum promotes more of them at once"


def meet_of_tensors(rows: Sequence[Format]) -> Format:
    """The lowest width dtype that guarantees the precisions and ranges of all tensors, or the cap if there is none.

    The search starts in the highest category of the tensors, so uint8 and int8 promote to int16 and not to float16.
    Precision is exact: 16-bit integers need float32 and 32-bit ones float64 (D10), also within a complex dtype (D11).
    Bool is the lowest dtype (D3), and two bools promote to bool (D2).

    Args:
        rows: the formats of the tensors, at least one.

    >>> print(
    ...     *(
    ...         meet_of_tensors([as_format(a), as_format(b)])
    ...         for a, b in [("uint8", "int8"), ("int64", "float64")]
    ...     )
    ... )
    int16 float64
    """
    lowest = max(map(_rank, rows))
    candidates = [row for row in _FORMATS if _rank(row) >= lowest]
    exact = (row for row in candidates if all(map(row.holds, rows)))
    caps = (row for row in candidates if row is _CAPS.get(row.category))
    return next(itertools.chain(exact, caps))


def _meet_of_all(operands: Sequence[Operand]) -> tuple[Format | None, Format]:
    """The common type of the tensors (None without tensors), and the result with the Python numbers in mode ALL.

    Promotion follows the RFC's direction: bool -> Python integer -> integers -> Python float -> float -> complex.
    """
    rows = [operand.format for operand in operands if operand.dtype is not None]
    met = meet_of_tensors(rows) if rows else None
    category = max((operand.category for operand in operands), key=CATEGORIES.index)
    if met is None:
        return met, _PYTHON[category]
    if _rank(met) >= CATEGORIES.index(category):
        return met, met
    if met.kind is Kind.BOOL:
        return met, _PYTHON[category]
    # Integers of all widths are one step in that direction, with one successor (D7, D8); a float promotes to the
    # complex dtype that holds it (D9).
    return met, _CAPS[category] if met.category == "integer" else meet_of_tensors([met, _NARROWEST_COMPLEX])


class RfcMode(enum.Enum):
    """How much promotion is implicit."""

    ALL = "everything promotes"
    SAFE = "no promotion that widens beyond all tensors or loses precision"
    NONE = "no promotion between tensors"


@dataclass(frozen=True, eq=False, repr=False)
class TensorFlowRfcRuleSet(RuleSet):
    """The rules of one mode of the RFC.

    Args:
        name, summary, source: as for every rule set.
        mode: the mode.
    """

    reads_numbers: ClassVar[tuple[type, ...]] = (int, float, complex)

    mode: RfcMode

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:  # noqa: ARG002 (one for all)
        tensors = tuple(dict.fromkeys(operand.format for operand in operands if operand.dtype is not None))
        scalars = {i: operand for i, operand in enumerate(operands) if operand.dtype is None}
        unknown = [str(row) for row in tensors if row not in _FORMATS]
        if unknown:
            return Verdict.refuse(f"the RFC does not define promotion of {' and '.join(unknown)}")
        reason = [_BEYOND_THE_RFC] if len(operands) > 2 else []
        met, result = _meet_of_all(operands)
        if met is not None:
            objection = self._objection(tensors, met)
            if objection:
                return Verdict.refuse(*reason, objection)
            if len(tensors) > 1 or not scalars:
                reason.append(_explanation(tensors, met))
        if scalars:
            kind = _highest_kind(scalars.values())
            objection = self._objection_to_scalars(kind, met, result)
            if objection:
                return Verdict.refuse(*reason, objection)
            reason.append(_explanation_of_scalars(kind, met, result))
        outside = _scalars_outside(scalars, result)
        if outside:
            return Verdict.refuse(*reason, f"out of range: {' and '.join(outside)}; {_limits(result)}", overflow=True)
        return Verdict.accept(result.dtype, len(operands), *reason)

    def _objection(self, tensors: Sequence[Format], met: Format) -> str | None:
        names = " and ".join(map(str, tensors))
        if self.mode is RfcMode.NONE and len(tensors) > 1:
            return f"this mode does not promote between tensors, got {names}"
        # The width of a complex dtype is the bits of both components (D12).
        if self.mode is RfcMode.SAFE and met.bits > max(row.bits for row in tensors):
            return f"the result {met} would be wider than all tensors: {names}"
        if self.mode is RfcMode.SAFE and not all(map(met.holds, tensors)):
            return f"the result {met} would not preserve the precision of {names}"
        return None

    def _objection_to_scalars(self, kind: str, met: Format | None, result: Format) -> str | None:
        """Why Python numbers must not change the type of the tensors; None if they may, or do not."""
        if met is not None and result is not met and self.mode is not RfcMode.ALL:
            return f"a Python number must fit the tensor, but {kind} does not fit {met}"
        return None

    def _first_targets(self, operands: Operands) -> list[DType]:
        """The result of mode ALL first, then wider formats that a Python number or the operation may need.

        These are the formats above the result and, unless it is complex, the real ones, nearest in width first.
        """
        _, start = _meet_of_all(operands)
        above = (row for row in _FORMATS if row is not start and meet_of_tensors([start, row]) is row)
        # An operation on integers or bools needs a cast down; imaginary parts are never dropped.
        real = () if start.kind is Kind.COMPLEX else _REAL_FORMATS
        nearest = sorted(real, key=lambda row: (abs(row.bits - start.bits), not row.signed))
        return [row.dtype for row in (start, *above, *nearest)]

    def _allows_cast(self, operand: Operand, target: Format, may_cut: bool) -> bool:  # noqa: ARG002
        """No cast drops parts: the RFC never drops imaginary parts or fractions."""
        return not may_cut


def _highest_kind(scalars: Iterable[Operand]) -> str:
    """The weak kind of the Python number of the highest category."""
    return weak_name(max((scalar.category for scalar in scalars), key=CATEGORIES.index))


def _scalars_outside(scalars: Mapping[int, Operand], result: Format) -> list[str]:
    """The Python numbers out of range of the result, for messages; they must be in range, but need not be exact (D13).

    Args:
        scalars: the Python numbers, by their positions.
        result: the format of the result.
    """
    return [letter(i) for i, s in scalars.items() if s.value is not None and not fits(s.value, result)]


def _explanation(tensors: Sequence[Format], met: Format) -> str:
    names = " and ".join(map(str, tensors))
    if len(tensors) == 1:
        return ALREADY
    if all(map(met.holds, tensors)):
        return f"{met} is the lowest width {met.category} dtype that holds {names}"
    return f"no dtype holds {names} exactly, so the width is capped at {met}"


def _explanation_of_scalars(kind: str, met: Format | None, result: Format) -> str:
    if met is None:
        return f"{kind} without a tensor has TensorFlow's default dtype, {result}"
    if met is result:
        return f"Python numbers take the dtype of the tensors, {met}"
    return f"{kind} is above {met} in the order of promotion, so the result is {result}"


def _limits(row: Format) -> str:
    low, high = (f"{end:.6g}" if isinstance(end, float) else str(end) for end in (row.min, row.max))
    return f"{row} goes from {low} to {high}"


_SOURCE = "TensorFlow RFC 431, promotion modes"
# Not bool / bool: the RFC does not say which float it returns. All the operations that it names share one table.
_ACCEPTS: dict[str, tuple[str, ...]] = {
    row.name: ("integer", *row.accepts) for row in OPERATIONS.values() if row.result is Result.FLOAT
} | dict.fromkeys(("add", "subtract", "multiply", "pow", "remainder"), CATEGORIES)

TF_RFC_ALL = TensorFlowRfcRuleSet(
    name="tf-rfc-all",
    summary="TensorFlow RFC 431, ImplicitPromotion.ALL: every pair of dtypes promotes",
    source=_SOURCE,
    spelling="tensorflow",
    mode=RfcMode.ALL,
    accepts=_ACCEPTS,
    quotients=QUOTIENTS | {"bool": "float32"},  # section "What happens to truediv operations?"
    measured=MEASURED,
    reductions=REDUCTIONS,
    array_casts=CASTS,
)
_SAFE = "TensorFlow RFC 431, ImplicitPromotion.SAFE: no result wider than all tensors, no precision lost"
_NONE = "TensorFlow RFC 431, ImplicitPromotion.NONE: tensors must agree, Python numbers must fit"
TF_RFC_SAFE = replace(TF_RFC_ALL, name="tf-rfc-safe", summary=_SAFE, mode=RfcMode.SAFE)
TF_RFC_NONE = replace(TF_RFC_ALL, name="tf-rfc-none", summary=_NONE, mode=RfcMode.NONE)
