"""Decisions: the dtype of a result, the casts that lead to it and the reasons; or a refusal, its reasons and a fix.

The dtype, the boolean, the exception and the printed explanation are all views of one `Decision`, so they cannot
disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from supremum.errors import SupremumError, listed
from supremum.fix import MOST_OPERANDS, Fix, letter
from supremum.formats import DType, as_format
from supremum.number_conversion import NumberChange, Steps, change, converted
from supremum.operands import Operand, nullable_mark, weak_name
from supremum.typing import Scalar

# The most bits of an int that is written as a decimal.
_MOST_BITS = 256

if TYPE_CHECKING:
    from supremum.render import Document


@dataclass(frozen=True, slots=True)
class ResultType:
    """The dtype of a result, and whether it is weak: a weak dtype gives way to the dtype of the next operand.

    A nullable result is a column that may have missing values.

    >>> from supremum import explain
    >>> found = explain("int8", 1.5, rules="jax-x64").result
    >>> found, str(found)
    (ResultType(dtype=dtype('float64'), weak=True, nullable=False), 'float*, held as float64')
    """

    dtype: DType
    weak: bool = False
    nullable: bool = False

    @property
    def name(self) -> str:
        """The name in tables, such as `"int8"`, or `"float*"` when weak."""
        row = as_format(self.dtype)
        return weak_name(row.category) if self.weak else row.name

    def __str__(self) -> str:
        row = as_format(self.dtype)  # its name is that of the dtype, which NumPy takes longer to write
        return f"{self.name}, held as {row.name}" if self.weak else f"{row.name}{nullable_mark(self.nullable)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a rule set for operands of given types: the part of a decision that can be cached.

    Args:
        result: the type of the result; None for a refusal.
        compute: the dtype that each operand is cast to before the operation runs; empty for a refusal.
        reason: the reasons, one sentence each.
        paths: for a lattice, the path of each operand to the result, as node names.
        overflow: whether the call is refused because a Python number is out of range.
        number_steps: for each operand that is a Python number, the formats it is converted to before the operation
            runs; none for other operands, and for a number that the operation takes as it is.
        stored: the dtype that the operation returns, if the result is then cast to be stored in another dtype.

    >>> import numpy as np
    >>> Verdict.accept(np.dtype("int16"), 2, "int16 is the least upper bound").compute
    (dtype('int16'), dtype('int16'))
    >>> Verdict.refuse("no dtype holds both").result is None
    True
    """

    result: ResultType | None
    compute: tuple[DType, ...]
    reason: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...] = ()
    overflow: bool = False
    number_steps: tuple[Steps, ...] = field(default=(), compare=False)  # depends on numbers, not only on types
    stored: DType | None = None

    @classmethod
    def accept(cls, dtype: DType, count: int, *reason: str, weak: bool = False) -> Verdict:
        """Accept: all `count` operands are cast to a dtype, which is also the dtype of the result."""
        return cls(ResultType(dtype, weak), (dtype,) * count, reason)

    @classmethod
    def refuse(cls, *reason: str, overflow: bool = False) -> Verdict:
        """Refuse the call; the rule set looks for a fix."""
        return cls(None, (), reason, overflow=overflow)

    def resulting_in(self, dtype: DType, *reason: str, weak: bool = False) -> Verdict:
        """The same casts with a different result dtype, as in comparisons."""
        return replace(self, result=ResultType(dtype, weak), reason=(*self.reason, *reason))


@dataclass(frozen=True, slots=True)
class OperandCast:
    """The cast of one operand: the dtype it had (None for a Python scalar) and the dtype it is computed in.

    >>> from supremum import explain
    >>> left, right = explain("int32", "float16", rules="torch").casts
    >>> left, left.lossy, right.changes
    (OperandCast(source=dtype('int32'), target=dtype('float16')), True, False)
    """

    source: DType | None
    target: DType

    @property
    def changes(self) -> bool:
        """Whether the operand is converted."""
        return self.source is None or self.source != self.target  # NumPy says that float64 == None

    @property
    def lossy(self) -> bool:
        """Whether some value of the source dtype is not a value of the target dtype."""
        return self.source is not None and not as_format(self.target).holds(as_format(self.source))


_LOSS = ", not every value survives"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a rule set for one call; truthy exactly if the call is allowed.

    Args:
        rules: name of the rule set.
        operation: name of the operation.
        operands: the operands of the call.
        verdict: the verdict of the rules.
        find_fix: looks for a fix of a call with given operands; the fix depends on the exact values of Python numbers,
            and finding it takes longer than deciding.
        into: the array that the result is written into, whose dtype the result takes; None for a new array.

    >>> from supremum import explain
    >>> decision = explain("int8", "float16", operation="add", rules="numpy")
    >>> decision.dtype, decision.casts[0].source, decision.casts[0].target
    (dtype('float16'), dtype('int8'), dtype('float16'))
    >>> refused = explain("int64", "float32", rules="array-api")
    >>> bool(refused), str(refused.fix)
    (False, "a.astype('float32')")
    """

    rules: str
    operation: str
    operands: tuple[Operand, ...]
    verdict: Verdict
    find_fix: Callable[[tuple[Operand, ...]], Fix | None] = field(repr=False, compare=False)
    into: Operand | None = None

    @property
    def result(self) -> ResultType | None:
        """The type of the result; None for a refusal."""
        return self.verdict.result

    @property
    def dtype(self) -> DType:
        """The dtype of the result.

        Raises:
            PromotionError: if the rules refuse.
        """
        if self.verdict.result is None:
            raise self.error()
        return self.verdict.result.dtype

    @property
    def weak(self) -> bool:
        """Whether the result is weak."""
        return self.verdict.result is not None and self.verdict.result.weak

    @property
    def casts(self) -> tuple[OperandCast, ...]:
        """The cast of each operand; empty for a refusal."""
        pairs = zip(self.operands, self.verdict.compute, strict=False)
        return tuple(OperandCast(operand.dtype, target) for operand, target in pairs)

    @property
    def number_changes(self) -> tuple[NumberChange, ...]:
        """The Python numbers that conversion changes before the operation runs; empty for a refusal.

        This covers only the conversion of the numbers: a result may overflow although no number does.

        >>> from supremum import explain
        >>> explain("int8", 1000, operation="add", rules="torch").number_changes
        (NumberChange(position=1, value=1000, becomes=-24, how='wraps'),)
        >>> explain("float16", 0.1, operation="add").number_changes  # all floats round
        ()
        """
        return tuple(each for each in map(self._change, range(len(self.operands))) if each is not None)

    def _change(self, position: int) -> NumberChange | None:
        value, steps = self.operands[position].value, self.verdict.number_steps
        if value is None or not steps or not steps[position]:
            return None
        becomes = converted(value, steps[position])
        how = change(value, becomes, steps[position][-1])
        return None if how is None else NumberChange(position, value, becomes, how)

    @property
    def stored(self) -> OperandCast | None:
        """The cast of the result to the dtype of the array that it is written into; None if there is none."""
        source = self.verdict.stored
        return None if source is None or self.into is None else OperandCast(source, self.dtype)

    @property
    def reason(self) -> tuple[str, ...]:
        """The reasons, one sentence each."""
        return self.verdict.reason

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """For a lattice, the path of each operand to the result."""
        return self.verdict.paths

    @property
    def fix(self) -> Fix | None:
        """For a refusal, casts that make the call work; None if none do."""
        return None if self else self.find_fix(self.operands)

    def __bool__(self) -> bool:
        return self.verdict.result is not None

    def __reduce__(self) -> tuple[object, ...]:
        # `find_fix` cannot be pickled, so pickle the fix itself.
        known = partial(_known, self.fix)
        return (type(self), (self.rules, self.operation, self.operands, self.verdict, known, self.into))

    def error(self) -> PromotionError:
        """The exception for this refusal."""
        return ScalarOverflowError(self) if self.verdict.overflow else PromotionError(self)

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain data for JSON; `supremum explain --format json` prints it.

        New keys may be added; the others keep their names and meanings.

        Returns:
            A dict with these keys.

            - `rules`, `operation`: the names.
            - `operands`: of each operand the `name` (`"int8"`, `"float*"`), the `dtype` (None for a Python number other
              than a bool), `weak`, `nullable`, `ndim` (None if only the dtype is known) and `value` (the text of a
              Python number).
            - `into`: the array that the result is written into, as such an operand; None for a new array.
            - `allowed`: False for a refusal.
            - `result`: its `name`, `dtype`, `weak` and `nullable`; None for a refusal.
            - `casts`: of each operand `from` (None for a Python number), `to`, `changes`, `lossy`; none for a refusal.
            - `stored`: such a cast of the result to the dtype of `into`; None if there is none.
            - `number_changes`: of each Python number that changes `position`, `value`, `becomes` and `how`.
            - `reason`: a list of sentences.
            - `paths`: for a lattice, the names on the path of each operand to the result.
            - `overflow`: whether the rules refuse because a Python number does not fit.
            - `fix`: its `code` and its `casts`, each with `position`, `dtype` and `code`; None if there is none.

        >>> from supremum import explain
        >>> explain("int8", "uint8", rules="jax-x64").to_dict()["result"]
        {'name': 'int16', 'dtype': 'int16', 'weak': False, 'nullable': False}
        """
        result, stored, fix = self.result, self.stored, self.fix
        return {
            "rules": self.rules,
            "operation": self.operation,
            "operands": [_operand_to_dict(operand) for operand in self.operands],
            "into": None if self.into is None else _operand_to_dict(self.into),
            "allowed": bool(self),
            "result": result
            and {
                "name": result.name,
                "dtype": str(result.dtype),
                "weak": result.weak,
                "nullable": result.nullable,
            },
            "casts": [_cast_to_dict(cast) for cast in self.casts],
            "stored": stored and _cast_to_dict(stored),
            "number_changes": [
                {"position": position, "value": _exact_text(value), "becomes": _exact_text(becomes), "how": how}
                for position, value, becomes, how in self.number_changes
            ],
            "reason": list(self.reason),
            "paths": [list(path) for path in self.paths],
            "overflow": self.verdict.overflow,
            "fix": fix
            and {
                "code": str(fix),
                "casts": [
                    {"position": cast.position, "dtype": str(cast.dtype), "code": str(cast)} for cast in fix.casts
                ],
            },
        }

    def document(self) -> Document:
        """The decision as plain data for `supremum.render`."""
        from supremum.render import Document  # import it only to print

        names = [each.name + nullable_mark(each.nullable and each.dtype is not None) for each in self.operands]
        target = [] if self.into is None else [f"into={self.into.dtype}{nullable_mark(self.into.nullable)}"]
        call = f"{self.operation}({listed((*names, *target))})"
        outcome = "refused" if self.result is None else str(self.result)
        shown = min(len(names), MOST_OPERANDS)
        rows = [(letter(position), self._describe(position)) for position in range(shown)]
        if shown < len(names):
            rows.append(("...", f"{len(names) - shown:,} more operands"))
        if (stored := self.stored) is not None:
            rows.append(("into", f"{stored.source} -> {stored.target}{_LOSS if stored.lossy else ''}"))
        rows += [("why" if i == 0 else "", sentence) for i, sentence in enumerate(self.reason[:MOST_OPERANDS])]
        if len(self.reason) > MOST_OPERANDS:
            rows.append(("", f"{len(self.reason) - MOST_OPERANDS:,} more, in reason"))
        if (fix := self.fix) is not None:
            rows.append(("fix", str(fix)))
        return Document(f"{call} -> {outcome}", f"rules {self.rules}", tuple(rows), ok=bool(self))

    def _describe(self, position: int) -> str:
        operand = self.operands[position]
        if not self:
            return str(operand)
        cast = self.casts[position]
        if not cast.changes:
            return f"{operand}, kept"
        changed = self._change(position)
        loss = _LOSS if cast.lossy else "" if changed is None else f", {changed}"
        return f"{operand} -> {as_format(cast.target).name}{loss}"

    def __str__(self) -> str:
        from supremum.render import document_to_text

        return document_to_text(self.document())

    def _repr_html_(self) -> str:
        from supremum.render import document_to_html

        return document_to_html(self.document())


def _operand_to_dict(operand: Operand) -> dict[str, Any]:
    return {
        "name": operand.name,
        "dtype": None if operand.dtype is None else str(operand.dtype),
        "weak": operand.weak,
        "nullable": operand.nullable,
        "ndim": operand.ndim,
        "value": None if operand.value is None else _exact_text(operand.value),
    }


def _exact_text(value: Scalar) -> str:
    # JSON has no complex numbers, infinities and NaN; Python does not write ints of more than 4300 digits as decimals.
    return hex(value) if isinstance(value, int) and value.bit_length() > _MOST_BITS else repr(value)


def _cast_to_dict(cast: OperandCast) -> dict[str, Any]:
    source = None if cast.source is None else str(cast.source)
    return {"from": source, "to": str(cast.target), "changes": cast.changes, "lossy": cast.lossy}


def _known(fix: Fix | None, _operands: tuple[Operand, ...]) -> Fix | None:
    return fix


class PromotionError(SupremumError, TypeError):
    """The rules refuse to promote these operands.

    Attributes:
        decision: the refusal.
        rules: name of the rule set.
        operation: name of the operation.
        operands: the operands of the call.
        reason: the reasons, one sentence each.

    >>> import supremum
    >>> supremum.result_type("int32", "float32", rules="array-api")
    Traceback (most recent call last):
        ...
    supremum.decisions.PromotionError: result_type(int32, float32) -> refused   [rules array-api]
      a    int32
      b    float32
      why  the lattice has no upper bound of int32 and float32
      fix  a.astype('float64') and b.astype('float64')
    """

    def __init__(self, decision: Decision) -> None:
        self.decision: Decision = decision
        self.rules: str = decision.rules
        self.operation: str = decision.operation
        self.operands: tuple[Operand, ...] = decision.operands
        self.reason: tuple[str, ...] = decision.reason
        super().__init__()

    @property
    def fix(self) -> Fix | None:
        """Casts that make the call work; None if none do."""
        return self.decision.fix

    def __str__(self) -> str:
        return str(self.decision)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.decision,))


class ScalarOverflowError(PromotionError, OverflowError):
    """The rules refuse because a Python number does not fit the dtype that it would be converted to.

    >>> import supremum
    >>> supremum.explain("uint8", 300, operation="add", rules="numpy").dtype
    Traceback (most recent call last):
        ...
    supremum.decisions.ScalarOverflowError: add(uint8, int*) -> refused   [rules numpy]
      a    uint8
      b    int* (300)
      why  the common type of uint8 and int* is uint8
           the Python int b is out of range for uint8
      fix  a.astype('uint16')
    """
