"""The search for a fix: casts that a rule set accepts, that keep what is meant, and that the runtime carries out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import tee
from typing import NamedTuple

from supremum.decisions import Fix, FixCast, Verdict
from supremum.formats import CATEGORIES, FORMATS, DType, Format, as_format
from supremum.operands import Operand, Scalar
from supremum.operations import ASSIGN, Family, Operation, Result
from supremum.rules.number_ranges import fits
from supremum.rules.runtimes import Runtime


class Care(NamedTuple):
    """What a fix must keep.

    Args:
        arrays: whether the values of arrays must stay in range.
        parts: whether numbers keep their fractions, and arrays their imaginary parts.
    """

    arrays: bool
    parts: bool


# What a fix keeps: the first of these under which there is a fix decides.
_CARES = (
    Care(arrays=True, parts=True),
    Care(arrays=False, parts=True),
    Care(arrays=True, parts=False),
    Care(arrays=False, parts=False),
)
# A store that would cut a part off is refused for that reason, so its fixes cut nothing off.
_CARES_OF_STORES = tuple(care for care in _CARES if care.parts)


def find_fix(
    operation: Operation,
    operands: tuple[Operand, ...],
    targets: Iterable[DType],
    is_castable: Callable[[Operand, Format, bool], bool],
    settle: Callable[[tuple[Operand, ...]], Verdict],
    runtime: Runtime,
    *,
    into: Operand | None = None,
) -> Fix | None:
    """Casts of some operands to one format.

    Python numbers are left as they are where that is enough. Arrays are cast to formats that hold their values, or
    round them, before those that wrap some around; nothing is cut off from a number, nor the imaginary part from an
    array, unless there is no other way.

    Args:
        operation: its row.
        operands: those that are refused.
        targets: formats to cast to, best first.
        is_castable: whether an operand may be cast to a format; the last argument is whether values may be cut.
        settle: the verdict of the rules on operands of the operation.
        runtime: what has to carry it out.
        into: what the result is written into, which keeps its dtype; operands of that dtype are not cast.
    """
    kept = None if into is None else as_format(into.dtype).name

    def in_order() -> Iterator[_Attempt]:
        for row in map(as_format, targets):
            if not row.zero or not _gives_what_is_meant(operation, operands, row):
                continue  # what has no zero is for scales, and holds few results
            is_truth = _is_truth(operation, row)
            needed = [i for i, o in enumerate(operands) if o.is_python_scalar or o.name not in (row.name, kept)]
            arrays = [i for i in needed if not operands[i].is_python_scalar]
            for positions in (arrays, needed) if arrays != needed else (needed,):
                if positions:
                    yield _Attempt(operation, operands, row, positions, is_truth, is_castable, settle)

    attempts = in_order()
    for care in _CARES if into is None else _CARES_OF_STORES:
        attempts, these = tee(attempts)  # each is made once, and only when it is looked at
        for attempt in these:
            if attempt.takes(care) and (tried := attempt.tried(runtime)) is not None:
                return tried
    return None


def find_fix_into(
    operation: Operation,
    operands: tuple[Operand, ...],
    into: Operand,
    may_cast: Callable[[Operand, Format, bool], bool],
    settle: Callable[[tuple[Operand, ...]], Verdict],
    runtime: Runtime,
) -> Fix | None:
    """Casts of operands, but not of what is written into, after which the result can be stored.

    Args:
        operation: its row.
        operands: of the operation.
        into: what its result is written into.
        may_cast: whether a fix may cast an operand to a format; the last argument is whether values may be cut.
        settle: the verdict on other operands.
        runtime: what has to carry it out.
    """
    row = as_format(into.dtype)
    if operation is ASSIGN or _gives_what_is_meant(operation, (*operands, into), row):
        others = [i for i, each in enumerate(operands) if each.is_python_scalar or each.dtype != row.dtype]
        arrays = [i for i in others if not operands[i].is_python_scalar]
        for positions in (arrays, others):
            # Of arrays the real part is taken, which a fix spells out; nothing is cut off from a number.
            if positions and all(
                may_cast(operands[i], row, False) or (i in arrays and may_cast(operands[i], row, True))
                for i in positions
            ):
                fix = Fix(tuple(FixCast.of(i, operands[i], row.dtype) for i in positions))
                verdict = settle(fix.apply(operands))
                is_right = verdict.result is not None and _is_computed_as_meant(operation, verdict)
                tried = runtime.tried(operation, operands, fix, verdict) if is_right else None
                if tried is not None:
                    return tried
    if operation is ASSIGN:
        return None
    # What is computed in another format may be stored in this one, as truth values of numbers are.
    return find_fix(operation, operands, targets_for(operands), may_cast, settle, runtime, into=into)


@dataclass(eq=False)
class _Attempt:
    """Casts of some operands to one format; what is known of them is found once, whatever care is taken."""

    operation: Operation
    operands: tuple[Operand, ...]
    row: Format
    positions: list[int]
    is_truth: bool
    is_castable: Callable[[Operand, Format, bool], bool]
    settle: Callable[[tuple[Operand, ...]], Verdict]
    has_failed: bool = False

    def takes(self, care: Care) -> bool:
        """Whether the rules accept the casts, and they keep what is asked for."""
        if self.has_failed or (care.arrays and not self.keeps_ranges):
            return False
        if not (self.keeps_parts if care.parts else self.may_cut):
            return False
        if not self.is_right:
            self.has_failed = True
            return False
        return not care.arrays or _computes_casts(self.verdict, self.fixed, self.positions)

    def tried(self, runtime: Runtime) -> Fix | None:
        """The fix as it has to be typed, if the runtime carries it out."""
        found = runtime.tried(self.operation, self.operands, self.fix, self.verdict)
        self.has_failed = found is None
        return found

    @property
    def is_right(self) -> bool:
        """Whether the rules accept it, and compute what is meant."""
        if self.verdict.result is None or not _is_computed_as_meant(self.operation, self.verdict):
            return False
        if self.is_truth:
            return True
        are_computed = _computes_cast_numbers(self.verdict, self.operands, self.positions)
        return are_computed and _computes_numbers(self.verdict, self.fixed)

    @cached_property
    def keeps_parts(self) -> bool:
        return self.is_truth or all(self.is_castable(self.operands[i], self.row, False) for i in self.positions)

    @cached_property
    def may_cut(self) -> bool:
        return self.is_truth or all(self.is_castable(self.operands[i], self.row, True) for i in self.positions)

    @cached_property
    def keeps_ranges(self) -> bool:
        return all(_covers(self.row, self.operands[i]) for i in self.positions)

    @cached_property
    def fix(self) -> Fix:
        return Fix(tuple(FixCast.of(i, self.operands[i], self.row.dtype) for i in self.positions))

    @cached_property
    def fixed(self) -> tuple[Operand, ...]:
        return self.fix.apply(self.operands)

    @cached_property
    def verdict(self) -> Verdict:
        return self.settle(self.fixed)


def _gives_what_is_meant(operation: Operation, operands: Sequence[Operand], row: Format) -> bool:
    """Whether an operation computed in a format means what it means for numbers.

    Differences of what is never negative can be, unless an array is of those integers itself, which wrap around; a
    negative power is a fraction; and only operations on truth values take numbers for such.
    """
    if row.category == "bool" and not _is_truth(operation, row):
        return all(operand.category == "bool" for operand in operands)
    if operation.gives_negative and not row.signed:
        return any(o.category == "integer" and not o.is_python_scalar and o.name == row.name for o in operands)
    exponent = operands[1].value if operation.name == "pow" else None
    return row.is_inexact or not isinstance(exponent, int) or exponent >= 0


def _is_truth(operation: Operation, row: Format) -> bool:
    """Whether casting to a format asks whether numbers are zero, as the operation does."""
    asks_truth = operation.accepts == ("bool",) or (operation.family, operation.result) == _ANY_OR_ALL
    return row.category == "bool" and asks_truth


_ANY_OR_ALL = (Family.REDUCTION, Result.BOOL)


def _covers(row: Format, operand: Operand) -> bool:
    """Whether values of an array, or their real parts, are rounded at most; a number is looked at for itself."""
    if operand.is_python_scalar:
        return True
    return row.covers(operand.format if row.category == "complex" else operand.format.component)


def _computes_cast_numbers(verdict: Verdict, operands: Sequence[Operand], cast: Sequence[int]) -> bool:
    """Whether Python numbers that are cast are in the range of what they are then computed in."""
    numbers = [(operands[i].value, as_format(verdict.compute[i])) for i in cast]
    return all(fits(part, row) for value, row in numbers if value is not None for part in _parts_in(value, row))


def _parts_in(value: Scalar, row: Format) -> tuple[Scalar, ...]:
    """The parts of a number that a format has to hold: its whole part alone, where the fraction has been cut off."""
    real = value.real
    if not row.is_inexact:
        return (int(real),) if math.isfinite(real) else ()
    return (real, value.imag) if row.category == "complex" else (real,)


def _is_computed_as_meant(operation: Operation, verdict: Verdict) -> bool:
    """Whether the rules compute in floats what has fractions; some compute even angles of integers in integers."""
    return operation.result is not Result.FLOAT or all(as_format(dtype).is_inexact for dtype in verdict.compute)


def _computes_casts(verdict: Verdict, operands: Sequence[Operand], cast: Sequence[int]) -> bool:
    """Whether what was cast is computed in formats that hold what it was cast to."""
    return all(as_format(verdict.compute[i]).covers(operands[i].format) for i in cast)


def _computes_numbers(verdict: Verdict, operands: Sequence[Operand]) -> bool:
    """Whether Python numbers that stay what they are fit what they are computed in, and what they are first made."""
    steps = verdict.number_steps or ((),) * len(operands)
    numbers = [(o.value, as_format(dtype), way) for o, dtype, way in zip(operands, verdict.compute, steps, strict=True)]
    return all(
        value is None or (fits(value, row) and all(fits(part, step) for part in _parts(value) for step in way))
        for value, row, way in numbers
    )


def _parts(value: Scalar) -> tuple[Scalar, ...]:
    return (value.real, value.imag) if isinstance(value, complex) else (value,)


def targets_for(operands: Iterable[Operand]) -> tuple[DType, ...]:
    """Formats to cast everything to, best first.

    First those that hold every operand exactly, an operand's own before others; then, where none is accepted, an
    operand's own although it holds less, and that of its components; then anything else, nearest in width first. What
    libraries have comes before formats of some bits, and floats that integers become have 32 of them.
    """
    return _targets_for(tuple(dict.fromkeys(operand.format for operand in operands if operand.dtype is not None)))


@lru_cache(maxsize=4096)
def _targets_for(formats: tuple[Format, ...]) -> tuple[DType, ...]:
    own = sorted(formats, key=lambda row: (CATEGORIES.index(row.category), row.bits), reverse=True)
    width = max((row.bits for row in own), default=0)
    float_bits = 16 if any(row.is_inexact for row in own) else 32

    def is_rare(row: Format) -> bool:
        return row.category != "bool" and row.bits < (float_bits if row.is_inexact else 8)

    holding = [row for row in sorted(FORMATS, key=lambda row: row.bits) if all(map(row.holds, own))]
    is_complex = any(row.category == "complex" for row in own)
    others = sorted(FORMATS, key=lambda row: (not is_complex and row.category == "complex", abs(row.bits - width)))
    components = [row.component for row in own]
    ordered = [*holding, *own, *components, *others]
    kept = [row for row in holding if row in own]
    first = [row for row in ordered if row in own or row in components or not is_rare(row)]
    return tuple(row.dtype for row in dict.fromkeys([*kept, *first, *ordered]))
