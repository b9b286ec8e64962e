"""`explain_cast`: what becomes of the values of an array that is cast to another dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, Format, as_format
from supremum.number_conversion import converted, fits, is_beyond_integers
from supremum.operands import OperandLike, as_operand, without_flag
from supremum.rules import RuleSet, RulesLike, get_rules
from supremum.typing import Scalar

if TYPE_CHECKING:
    from supremum.render import Document
    from supremum.rules import ArrayCasts


@dataclass(frozen=True, slots=True)
class CastOutcome:
    """What becomes of a value of an array that is cast, or of the values at the limits.

    Args:
        rules: the name of the rule set.
        source: the dtype of the array.
        target: the dtype that the cast gives; JAX with x64 off gives 32 bits where 64 are asked for.
        value: the value, as the array holds it; None for the values at the limits.
        becomes: what the value may become; several numbers if that depends on its position in the array, none if it is
            not known, if the cast is an error, and without a value.
        is_defined: whether the framework defines the result, so that it is the same on every processor; True for an
            error.
        reason: the reasons, one sentence each.
        examples: without a value, the outcomes for values at the limits.

    >>> outcome = explain_cast("float32", "int8", value=300.0, rules="jax-x64")
    >>> outcome.becomes, outcome.is_defined, outcome.changes
    ((127,), True, True)
    """

    rules: str
    source: DType
    target: DType
    value: Scalar | None
    becomes: tuple[Scalar, ...]
    is_defined: bool
    reason: tuple[str, ...]
    examples: tuple[CastOutcome, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether the value becomes a different number; NaN is the same as NaN."""
        return any(not _is_same(self.value, each) for each in self.becomes)

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain data for JSON; numbers are texts, because JSON has no NaN and no complex numbers.

        >>> explain_cast("float32", "int8", value=300.0, rules="torch").to_dict()["becomes"]
        ['44']
        """
        return {
            "rules": self.rules,
            "source": str(self.source),
            "target": str(self.target),
            "value": None if self.value is None else repr(self.value),
            "becomes": [repr(each) for each in self.becomes],
            "is_defined": self.is_defined,
            "changes": self.changes,
            "reason": list(self.reason),
            "examples": [each.to_dict() for each in self.examples],
        }

    def document(self) -> Document:
        """The outcome as plain data for `supremum.render`."""
        from supremum.render import Document  # import it only to print

        verb = "becomes" if self.becomes or not self.is_defined else "is"
        example = "" if self.value is None else f": {self.value} {verb} {self._outcome_text()}"
        rows = [(repr(each.value), each._outcome_text()) for each in self.examples]
        rows += [("why" if i == 0 else "", sentence) for i, sentence in enumerate(self.reason)]
        is_fine = self.is_defined and not self.changes and (self.value is None or bool(self.becomes))
        return Document(f"{self.source} -> {self.target}{example}", f"rules {self.rules}", tuple(rows), ok=is_fine)

    def _outcome_text(self) -> str:
        if not self.becomes:
            return "an error" if self.is_defined else "a number that is not known"
        numbers = " or ".join(map(str, self.becomes))
        return numbers if self.is_defined else f"{numbers}, undefined"

    def __str__(self) -> str:
        from supremum.render import document_to_text

        return document_to_text(self.document())

    def _repr_html_(self) -> str:
        from supremum.render import document_to_html

        return document_to_html(self.document())


def explain_cast(
    source: OperandLike, target: OperandLike, value: Scalar | None = None, *, rules: RulesLike | None = None
) -> CastOutcome:
    """Explain what `array.astype(target)` makes of the values of an array, in particular of those out of range.

    Args:
        source: the dtype of the array, its name, or an array.
        target: the dtype that it is cast to, or its name.
        value: a value of the array; it is first rounded to `source`, as the array holds it. Without a value, the answer
            has examples from the limits of both dtypes.
        rules: a rule set or its name; None for the rules in force, `"jax"` unless others are set.

    Returns:
        The outcome, which prints as a few plain lines and renders in notebooks.

    Raises:
        OperandError: for a `source` or `target` without a dtype, such as a Python number, or with a nullable one, and
            for a value that `source` does not hold.
        ArgumentError: for rules that say nothing about casts, such as those made by `RuleSet.from_lattice`.
        UnknownNameError: for an unknown rule set.
        UnknownDtypeError: for an unknown dtype.

    Source: measured with each framework; `tests/conformance/test_casts.py` has the numbers.

    >>> print(explain_cast("float32", "int8", value=300.0, rules="jax-x64"))
    float32 -> int8: 300.0 becomes 127   [rules jax-x64]
      why  300.0 is out of range for int8, and JAX takes the nearest number that it holds
    >>> print(explain_cast("float32", "uint32", value=5e9, rules="numpy"))
    float32 -> uint32: 5000000000.0 becomes 705032704 or 0, undefined   [rules numpy]
      why  5000000000.0 is out of range for uint32, and C does not define the result
           measured: NumPy 2.4 and 1.26 on x86-64; other processors may give other numbers
           one array may have each of them, depending on the position
    """
    formats = [_format_of(name, each) for name, each in (("source", source), ("target", target))]
    rule_set = get_rules(rules)
    casts = rule_set.array_casts
    if casts is None:
        raise ArgumentError(
            f"rules {rule_set.name!r} say nothing about casts of arrays; use those of a framework, such as "
            "rules='numpy'"
        )
    before, after = (_as_held(rule_set, row) for row in formats)
    if value is None:
        asked = dict.fromkeys(_limits(before, after))
        examples = tuple(_outcome(rule_set.name, casts, before, after, each) for each in asked)
        is_defined = all(each.is_defined for each in examples)
        reason = (f"{after} holds every value of {before}",) if after.holds(before) else ()
        more = () if is_defined else ("C does not define some of these", *_measured(casts))
        return CastOutcome(rule_set.name, before.dtype, after.dtype, None, (), is_defined, (*reason, *more), examples)
    return _outcome(rule_set.name, casts, before, after, _held(value, before))


def _format_of(name: str, argument: OperandLike) -> Format:
    operand = as_operand(argument)
    if operand.dtype is None or operand.is_python_scalar:
        raise OperandError(f"{name} must be a dtype or an array, got {shown(argument)}; use a name such as 'float32'")
    if operand.nullable:
        raise OperandError(f"{name} must not be nullable, got {operand}; {without_flag(operand)}")
    return operand.format


def _as_held(rules: RuleSet, row: Format) -> Format:
    """The format in which the runtime holds arrays of a format."""
    result = rules.decide(None, (as_operand(row.dtype),)).result
    return row if result is None else as_format(result.dtype)


def _held(value: Scalar, row: Format) -> Scalar:
    if type(value) not in (bool, int, float, complex):  # np.float64 is a subclass of float
        raise OperandError(f"value must be a Python number, got {shown(value)}; use array.item() for that of an array")
    integral = isinstance(value, (bool, int))
    if (row.category in ("bool", "integer") and not integral) or (
        row.category == "float" and isinstance(value, complex)
    ):
        raise OperandError(f"value must be a number that an array of {row} holds, got {shown(value)}")
    if not fits(value, row):
        raise OperandError(f"value={value} is out of range for {row}; cast from a wider dtype")
    number = converted(value, [row.component])
    if row.category == "bool":
        return bool(number)
    if row.category == "complex":
        return complex(number)
    return float(number.real) if row.is_inexact else int(number.real)


def _outcome(rules: str, casts: ArrayCasts, source: Format, target: Format, value: Scalar) -> CastOutcome:
    becomes = casts.outcomes(value, source, target)
    is_known = bool(becomes) and (casts.is_defined or not _is_beyond(value, target))
    is_defined = is_known or casts.refuses(value, source, target)
    reason = tuple(_reasons(casts, source, target, value, becomes))
    return CastOutcome(rules, source.dtype, target.dtype, value, becomes, is_defined, reason)


def _is_beyond(value: Scalar, target: Format) -> bool:
    """Whether C does not define the conversion: of a float to an integer that the format does not hold."""
    return isinstance(value.real, float) and is_beyond_integers(value, target)


def _reasons(
    casts: ArrayCasts, source: Format, target: Format, value: Scalar, becomes: tuple[Scalar, ...]
) -> Iterator[str]:
    if casts.refuses(value, source, target):
        yield f"{casts.library} raises an error instead of casting {value} to {target}"
    elif not becomes:
        known = f"the cast of {source} to {target} was not measured"
        yield known if casts.measured else f"{casts.library} does not define what becomes of a number out of range"
    elif target.category == "bool":
        yield f"{value} counts as {'not ' if becomes[0] else ''}zero"
    else:
        if isinstance(value, complex) and target.category != "complex":
            yield "only the real part counts"
        parts = (value.real, value.imag) if target.category == "complex" else (value.real,)
        results = (becomes[0].real, becomes[0].imag)
        for part, result in dict.fromkeys(zip(parts, results, strict=False)):
            yield from _reasons_of_part(casts, source.component, target.component, part, result)
        if len(becomes) > 1:
            yield "one array may have each of them, depending on the position"


def _reasons_of_part(casts: ArrayCasts, source: Format, target: Format, value: float, becomes: float) -> Iterator[str]:
    if _is_same(value, becomes):
        yield f"{target} holds {value}"
    elif _is_beyond(value, target):
        beyond = f"{value} is out of range for {target}" if value == value else f"{target} has no NaN"
        if casts.is_defined:
            action = "takes the nearest number that it holds" if value == value else "makes it 0"
            yield f"{beyond}, and {casts.library} {action}"
        else:
            yield f"{beyond}, and C does not define the result"
            yield from _measured(casts)
    elif target.category == "integer":
        cut = "the fraction is cut off"
        yield cut if isinstance(value, float) else f"{value} is out of range for {target} and wraps around"
    else:
        steps = casts.steps(source, target)
        through = f", through {steps[0]}" if len(steps) > 1 else ""
        if math.isfinite(value) and abs(value) > target.max:
            largest = ", whose largest number it becomes" if abs(becomes) == target.max else ""
            yield f"{value} is out of range for {target}{largest}{through}"
        elif becomes == 0 and value == value:
            small = (
                "is too small for" if abs(value) < target.smallest_subnormal else "is subnormal, and becomes zero in"
            )
            yield f"{value} {small} {target}{through}"
        elif not math.isfinite(value):
            yield f"{target} has no {'NaN' if value != value else 'infinity'}"
        else:
            yield f"{value} rounds to the nearest number of {target}{through}"


def _measured(casts: ArrayCasts) -> Iterator[str]:
    if casts.measured:
        yield f"measured: {casts.measured}; other processors may give other numbers"


def _is_same(value: Scalar | None, becomes: Scalar) -> bool:
    return value == becomes or (value != value and becomes != becomes)


def _limits(source: Format, target: Format) -> Iterator[Scalar]:
    """Values at the limits of two formats that a cast changes."""
    row, to = source.component, target.component
    if target.category == "bool" or target.holds(source):
        return
    if source.category == "complex" and target.category != "complex":
        yield complex(1, 2)
    if row.category == "integer":
        if not to.is_inexact:
            yield from (each for each in (int(to.max) + 1, int(to.min) - 1) if row.min <= each <= row.max)
        else:
            yield from (each for each in (2 ** (to.mantissa + 1) + 1, int(row.max)) if each <= row.max)
        return
    wrap = complex if source.category == "complex" else float
    if to.category == "integer":
        near = (1.5, *_around(to, row))
        yield from (wrap(each) for each in (*near, math.inf, -math.inf, math.nan) if _is_value(each, row))
        return
    for each in (float(row.max), 1 + float(row.eps), float(row.smallest_normal), math.inf, math.nan):
        if _is_value(each, row) and not _is_same(converted(each, [to]).real, each):
            yield wrap(each)


def _around(to: Format, row: Format) -> Iterator[float]:
    for end in (float(to.max) + 1, float(to.min) - 1):
        number = converted(end, [row])
        while fits(end, row) and to.min <= number.real <= to.max:
            end *= 1 + 2.0**-row.mantissa
            number = converted(end, [row])
        yield float(number.real)


def _is_value(value: float, row: Format) -> bool:
    return _is_same(converted(value, [row]).real, value)
