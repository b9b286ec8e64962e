"""The search for a fix: casts that the rules accept, that keep the call's meaning and that the runtime supports."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

from supremum.decisions import Verdict
from supremum.fix import Fix, FixCast
from supremum.formats import CATEGORIES, FORMATS, DType, Format, as_format
from supremum.number_conversion import fits, stores
from supremum.operands import Operand, Operands
from supremum.operations import ASSIGN, Family, Operation, Result, as_operation
from supremum.rules.runtimes import Runtime
from supremum.rules.verdicts import Target
from supremum.typing import Scalar

_REAL = as_operation("real")


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A refused call, and what its fix must satisfy.

    Args:
        operation: its row.
        operands: the operands of the operation.
        target: the array that the result is written into, which keeps its dtype, and what may be stored in it; None for
            a new array.
        allows_cast: whether the rules allow a cast to a format; the last argument is whether the cast may drop parts.
        verdict: returns the verdict of the rules on other operands.
        runtime: the library that must carry out the call.
        spelling: the library in `fix.SPELLINGS` whose code casts operands that are of no library.
    """

    operation: Operation
    operands: Operands
    target: Target | None
    allows_cast: Callable[[Operand, Format, bool], bool]
    verdict: Callable[[Operation, Operands, Target | None], Verdict]
    runtime: Runtime
    spelling: str

    def may_cast(self, position: int, row: Format, may_cut: bool) -> bool:
        """Whether a fix may cast an operand; a cast that keeps only the real part needs rules with a real part."""
        operand = self.operands[position]
        if not self.allows_cast(operand, row, may_cut) or not _takes(row, operand, may_cut):
            return False
        cast = FixCast.of(position, operand, row.dtype)
        if not cast.drops_imaginary or cast.is_number or operand.library:
            return True
        array = operand.with_dtype(cast.through or operand.dtype)
        return self.verdict(_REAL, (array,), None).result is not None


def find_fix(call: RefusedCall, first: Iterable[DType]) -> Fix | None:
    """Find casts of some operands to one format; one that an array written into has already, if possible.

    The fix casts Python numbers only if casts of the arrays are not enough. It prefers formats that hold or round the
    values of the arrays to those that wrap some of them around. It drops the fraction of a number or the imaginary
    part of an array only if there is no other way.

    Args:
        call: the call; operands of the dtype of the array that is written into are not cast.
        first: the formats to cast to before any others, best first.
    """
    fix = _find_casts(call, first)
    if fix is None:
        return None
    library = next((operand.library for operand in call.operands if operand.library), call.spelling)
    return fix.spelled_in(library, [bool(each.library) or call.runtime.holds(each) for each in call.operands])


def _find_casts(call: RefusedCall, first: Iterable[DType]) -> Fix | None:
    """As `find_fix`, in the code of the operands' own libraries."""
    if call.target is not None:
        if (fix := _fix_into(call, call.target[0])) is not None or call.operation is ASSIGN:
            return fix
        first = ()  # a result computed in a different format may still be stored, such as a comparison of numbers
    operands = call.operands
    kept = None if call.target is None else call.target[0].format.name
    attempts: list[_Attempt] = []
    for row in map(as_format, dict.fromkeys([*first, *targets_of(call.operands)])):
        # A format without a zero is for scales and holds few results.
        if row.zero and _preserves_meaning(call.operation, operands, row):
            needed = [i for i, o in enumerate(operands) if o.is_python_scalar or o.name not in (row.name, kept)]
            attempts += [_Attempt(call, row, positions) for positions in _arrays_first(operands, needed)]
    # A store that would drop a part is refused for that reason, so its fixes drop nothing.
    for keeps_parts, keeps_ranges in product((True, False) if call.target is None else (True,), (True, False)):
        for attempt in attempts:
            if attempt.satisfies(keeps_parts, keeps_ranges) and (fix := attempt.working_fix()) is not None:
                return fix
    return None


def _fix_into(call: RefusedCall, into: Operand) -> Fix | None:
    """Casts of the operands, but not of the array written into, after which the result can be stored."""
    operands, row = call.operands, into.format
    if call.operation is ASSIGN or _preserves_meaning(call.operation, (*operands, into), row):
        others = [i for i, each in enumerate(operands) if each.is_python_scalar or each.dtype != row.dtype]
        for positions in _arrays_first(operands, others):
            attempt = _Attempt(call, row, positions)
            # A fix takes the real part of an array explicitly, and drops nothing from a number.
            is_castable = all(
                call.may_cast(i, row, False) or (not operands[i].is_python_scalar and call.may_cast(i, row, True))
                for i in positions
            )
            if is_castable and attempt.is_accepted and (fix := attempt.working_fix()) is not None:
                return fix
    return None


def _arrays_first(operands: Operands, positions: list[int]) -> Iterator[list[int]]:
    """The positions of the arrays among some operands, if there are any, and then all positions, if there are more."""
    arrays = [i for i in positions if not operands[i].is_python_scalar]
    if arrays:
        yield arrays
    if arrays != positions:
        yield positions


@dataclass(eq=False)
class _Attempt:
    """Casts of some operands to one format; their properties are computed once."""

    call: RefusedCall
    row: Format
    positions: list[int]
    has_failed: bool = False

    def satisfies(self, keeps_parts: bool, keeps_ranges: bool) -> bool:
        """Whether the rules accept the casts, and the casts keep what they must.

        Args:
            keeps_parts: whether numbers keep their fractions, and arrays their imaginary parts.
            keeps_ranges: whether the values of arrays must stay in range.
        """
        if self.has_failed or (keeps_ranges and not self.keeps_ranges):
            return False
        if not self.is_castable(may_cut=not keeps_parts):
            return False
        self.has_failed = not self.is_right
        if self.has_failed or not keeps_ranges:
            return not self.has_failed
        computed = self.verdict.compute
        return all(as_format(computed[i]).covers(self.fixed[i].format) for i in self.positions)

    def working_fix(self) -> Fix | None:
        """The fix as users must type it, if the runtime supports it."""
        fix = self.call.runtime.tried(self.call.operation, self.call.operands, self.fix, self.verdict)
        self.has_failed = fix is None
        return fix

    @property
    def is_accepted(self) -> bool:
        """Whether the rules accept the fixed call; some compute even sines in integers, which does not count."""
        if self.verdict.result is None:
            return False
        return self.call.operation.result is not Result.FLOAT or all(
            as_format(dtype).is_inexact for dtype in self.verdict.compute
        )

    @property
    def is_right(self) -> bool:
        """Whether the rules accept the fixed call, and it computes what the refused call means."""
        return self.is_accepted and (
            _is_truth(self.call.operation, self.row)
            or (
                _computes_cast_numbers(self.verdict, self.call.operands, self.positions)
                and _computes_numbers(self.verdict, self.fixed)
            )
        )

    def is_castable(self, *, may_cut: bool) -> bool:
        """Whether the casts are allowed; with `may_cut`, numbers may lose fractions, and arrays imaginary parts."""
        call, row = self.call, self.row
        if _is_truth(call.operation, row):
            return all(call.allows_cast(call.operands[i], row, may_cut) for i in self.positions)
        return all(call.may_cast(i, row, may_cut) for i in self.positions)

    @cached_property
    def keeps_ranges(self) -> bool:
        return all(_covers(self.row, self.call.operands[i]) for i in self.positions)

    @cached_property
    def fix(self) -> Fix:
        return Fix(tuple(FixCast.of(i, self.call.operands[i], self.row.dtype) for i in self.positions))

    @cached_property
    def fixed(self) -> Operands:
        return self.fix.apply(self.call.operands)

    @cached_property
    def verdict(self) -> Verdict:
        return self.call.verdict(self.call.operation, self.fixed, self.call.target)


def _preserves_meaning(operation: Operation, operands: Sequence[Operand], row: Format) -> bool:
    """Whether an operation computed in a format means the same as for exact numbers.

    A difference needs a signed format, unless an integer array already has the unsigned one and wraps around. A
    negative power needs an inexact format. Only operations on truth values may cast numbers to bool.
    """
    if row.category == "bool" and not _is_truth(operation, row):
        return all(operand.category == "bool" for operand in operands)
    if operation.gives_negative and not row.signed:
        return any(o.category == "integer" and not o.is_python_scalar and o.name == row.name for o in operands)
    exponent = operands[1].value if operation.name == "pow" else None
    return row.is_inexact or not isinstance(exponent, int) or exponent >= 0


def _is_truth(operation: Operation, row: Format) -> bool:
    """Whether a cast to a format tests numbers for zero, as the operation does."""
    asks_truth = operation.accepts == ("bool",) or (operation.family, operation.result) == _ANY_OR_ALL
    return row.category == "bool" and asks_truth


_ANY_OR_ALL = (Family.REDUCTION, Result.BOOL)


def _takes(row: Format, operand: Operand, may_cut: bool) -> bool:
    """Whether a format takes the values of an operand.

    Args:
        row: the format.
        operand: the operand; a Python number of known value must be in range.
        may_cut: whether a number may lose its fraction, and a complex operand its imaginary part.
    """
    value = operand.value
    if isinstance(value, complex) and row.category != "complex":
        value = value.real
    if operand.dtype is None and value is not None and not stores(value, row, may_cut=may_cut):
        return False
    is_higher = CATEGORIES.index(operand.category) > CATEGORIES.index(row.category)
    keeps_parts = operand.category != "complex" or row.category == "bool"
    return may_cut or not is_higher or (not operand.is_python_scalar and keeps_parts)


def _covers(row: Format, operand: Operand) -> bool:
    """Whether a cast at most rounds an array or its real part; True for numbers, which are checked by value."""
    if operand.is_python_scalar:
        return True
    return row.covers(operand.format if row.category == "complex" else operand.format.component)


def _computes_cast_numbers(verdict: Verdict, operands: Sequence[Operand], cast: Sequence[int]) -> bool:
    """Whether cast Python numbers are in the range of the formats that they are computed in."""
    numbers = [(operands[i].value, as_format(verdict.compute[i])) for i in cast]
    return all(fits(part, row) for value, row in numbers if value is not None for part in _parts_in(value, row))


def _parts_in(value: Scalar, row: Format) -> tuple[Scalar, ...]:
    """The parts of a number that a format must hold; for an integer format, only the whole part."""
    real = value.real
    if not row.is_inexact:
        return (int(real),) if math.isfinite(real) else ()
    return (real, value.imag) if row.category == "complex" else (real,)


def _computes_numbers(verdict: Verdict, operands: Sequence[Operand]) -> bool:
    """Whether Python numbers that are not cast fit the format they are computed in and those they pass through."""
    steps = verdict.number_steps or ((),) * len(operands)
    numbers = [(o.value, as_format(dtype), way) for o, dtype, way in zip(operands, verdict.compute, steps, strict=True)]
    return all(
        value is None or (fits(value, row) and all(fits(part, step) for part in _parts(value) for step in way))
        for value, row, way in numbers
    )


def _parts(value: Scalar) -> tuple[Scalar, ...]:
    return (value.real, value.imag) if isinstance(value, complex) else (value,)


def targets_of(operands: Operands) -> tuple[DType, ...]:
    """Formats to cast everything to, best first.

    The order is:

    1. formats that hold every operand exactly, those of the operands first;
    2. the other formats of the operands, and those of their components;
    3. all other formats, nearest in width first.

    Common formats come before narrow ones, and integers become floats of at least 32 bits before narrower ones.
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
