"""The search for a fix: casts that a rule set accepts, that keep what is meant, and that the runtime carries out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from supremum.decisions import Conversion, Fix, Verdict
from supremum.formats import CATEGORIES, FORMATS, DType, Format, as_format
from supremum.operands import Operand, Scalar
from supremum.operations import Operation
from supremum.rules.values import fits


class Runtime(Protocol):
    """The library that would carry out a fixed call, tried on arrays of its own and never on those of the user."""

    def holds(self, operand: Operand) -> bool:
        """Whether this runtime is known to have the array, so that a cast of it can be tried."""
        ...

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix | None:
        """The fix as it has to be typed, if the casts, and then the operation, work; else None.

        Args:
            operation: its row.
            operands: as they are before the casts.
            fix: the casts.
            verdict: what the rules say of the operands after the casts.
        """
        ...


class Everything:
    """The runtime that is taken for granted where only dtypes are known: it has every dtype and every function."""

    def holds(self, operand: Operand) -> bool:  # noqa: ARG002 (a `Runtime`)
        """Nothing is known of arrays."""
        return False

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix:  # noqa: ARG002
        """It works."""
        return fix


EVERYTHING = Everything()


class Care(NamedTuple):
    """What a fix must keep.

    Args:
        arrays: whether the values of arrays must stay in range.
        numbers: whether Python numbers must be in the range of what they are computed in.
        parts: whether numbers keep their fractions, and arrays their imaginary parts.
    """

    arrays: bool
    numbers: bool
    parts: bool


# The first fix that is found is taken.
_CARES = (
    Care(arrays=True, numbers=True, parts=True),
    Care(arrays=False, numbers=True, parts=True),
    Care(arrays=True, numbers=True, parts=False),
    Care(arrays=False, numbers=True, parts=False),
    Care(arrays=False, numbers=False, parts=False),
)


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
    kept = None if into is None else as_format(into.dtype)
    rows = [as_format(target) for target in targets]
    rows = [row for row in rows if gives_what_is_meant(operation, operands, row)]
    for care in _CARES:
        for row in rows:
            is_truth = _is_truth(operation, row)
            needed = [
                i for i, o in enumerate(operands) if o.is_python_scalar or o.name not in (row.name, kept and kept.name)
            ]
            arrays = [i for i in needed if not operands[i].is_python_scalar]
            for positions in (arrays, needed) if arrays != needed else (needed,):
                if not positions or not all(
                    is_truth or is_castable(operands[i], row, not care.parts) for i in positions
                ):
                    continue
                if care.arrays and not all(_covers(row, operands[i]) for i in positions):
                    continue
                fix = Fix(tuple(Conversion.of(i, operands[i], row.dtype) for i in positions))
                fixed = fix.apply(operands)
                verdict = settle(fixed)
                if verdict.result is None or not (is_truth or _computes_ints(verdict, operands, positions)):
                    continue
                if care.arrays and not _computes_casts(verdict, fixed, positions):
                    continue
                if care.numbers and not _computes_numbers(verdict, fixed):
                    continue
                if (tried := runtime.tried(operation, operands, fix, verdict)) is not None:
                    return tried
    return None


def gives_what_is_meant(operation: Operation, operands: Sequence[Operand], row: Format) -> bool:
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
    return operation.accepts == (row.category,) == ("bool",)


def _covers(row: Format, operand: Operand) -> bool:
    """Whether values of an array, or their real parts, are rounded at most; a number is looked at for itself."""
    if operand.is_python_scalar:
        return True
    return row.covers(operand.format if row.category == "complex" else operand.format.component)


def _computes_ints(verdict: Verdict, operands: Sequence[Operand], cast: Sequence[int]) -> bool:
    """Whether the integers among Python numbers that are cast are computed in formats that hold them."""
    ints = [(value, as_format(verdict.compute[i])) for i in cast if isinstance(value := operands[i].value, int)]
    return all(row.is_inexact or fits(value, row) for value, row in ints)


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


@cache
def _targets_for(formats: tuple[Format, ...]) -> tuple[DType, ...]:
    own = sorted(formats, key=lambda row: (CATEGORIES.index(row.category), row.bits), reverse=True)
    width = max((row.bits for row in own), default=0)
    float_bits = 16 if any(row.is_inexact for row in own) else 32

    def is_rare(row: Format) -> bool:
        return row.category != "bool" and row.bits < (float_bits if row.is_inexact else 8)

    holding = [row for row in sorted(FORMATS, key=lambda row: row.bits) if all(map(row.holds, own))]
    others = sorted(FORMATS, key=lambda row: abs(row.bits - width))
    components = [row.component for row in own]
    ordered = [*holding, *own, *components, *others]
    kept = [row for row in holding if row in own]
    first = [row for row in ordered if row in own or row in components or not is_rare(row)]
    return tuple(row.dtype for row in dict.fromkeys([*kept, *first, *ordered]))
