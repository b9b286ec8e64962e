"""What every rule set is: a frozen, named value that turns operands into a decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from supremum.decisions import Decision, Fix, Verdict
from supremum.formats import CATEGORIES, FORMATS, DType, Format, as_format
from supremum.operands import Operand
from supremum.operations import Operation, Result, as_operation
from supremum.rules.values import stores

_BOOL = as_format("bool").dtype


@dataclass(frozen=True)
class RuleSet(ABC):
    """A framework's promotion rules, as a value.

    Args:
        name: what users call it.
        summary: one line on whose rules these are.
        source: the document or software that has the last word.
        accepts: the categories an operation takes, where they are not those of its row.
    """

    name: str
    summary: str
    source: str
    accepts: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]], kw_only=True, compare=False
    )
    _verdicts: dict[Hashable, Verdict] = field(
        default_factory=dict[Hashable, Verdict], init=False, repr=False, compare=False
    )

    def decide(self, operation: str | Operation | None, operands: Sequence[Operand]) -> Decision:
        """Decide one call: the one place where dtypes come from.

        Args:
            operation: a name from `supremum.operations`, or None where no particular operation is meant.
            operands: at least one.

        Returns:
            The decision, or the refusal, with its account.

        Raises:
            UnknownNameError: for an operation that has no row.
            ValueError: for a number of operands that the operation does not take.
        """
        if not operands:
            raise ValueError("there is nothing to decide without operands: give at least one")
        row = as_operation(operation)
        if row.arity is not None and len(operands) != row.arity:
            raise ValueError(f"{row.name} takes {row.arity} operands, not {len(operands)}")
        key = (row.name, *map(self._key, operands))
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = self._judge_with_fix(row, tuple(operands))
        return Decision(self.name, row.name, tuple(operands), verdict)

    def _key(self, operand: Operand) -> Hashable:
        """All that this rule set's verdict depends on; rule sets that look at more say so by overriding it."""
        return (operand.category, operand.dtype, operand.weak)

    @abstractmethod
    def _meet(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        """Where the operands meet, before the operation has its say; a refusal needs no fix, it is looked for."""

    def _float_for(self, operation: Operation, dtype: DType) -> DType | None:
        """The float that an operation like division makes of an integer or bool dtype; None refuses."""
        raise NotImplementedError(f"{self.name} does not say which float {operation.name} makes of {dtype}")

    def _accepts(self, operation: Operation) -> tuple[str, ...]:
        """The categories the operation takes, by these rules."""
        return self.accepts.get(operation.name, operation.accepts)

    def _judge(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        """The verdict on a call. Rule sets whose operations follow no common pattern override it."""
        met = self._meet(operation, operands)
        if met.result is None:
            return met
        dtype = met.result.dtype
        category = as_format(dtype).category
        if category not in self._accepts(operation):
            return Verdict.refuse(*met.reason, f"{operation.name} takes no {category} operands, and these are {dtype}")
        if operation.result is Result.BOOL:
            return met.resulting_in(_BOOL, f"{operation.name} always gives bool")
        if operation.result is Result.FLOAT and not as_format(dtype).is_inexact:
            target = self._float_for(operation, dtype)
            if target is None:
                return Verdict.refuse(*met.reason, f"{operation.name} makes no float of {dtype}")
            reason = (*met.reason, f"{operation.name} makes {target} of {dtype}")
            return Verdict.accept(target, len(operands), *reason, weak=met.result.weak)
        return met

    def _judge_with_fix(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        verdict = self._judge(operation, operands)
        if verdict.result is not None or verdict.fix is not None:
            return verdict
        return replace(verdict, fix=self._find_fix(operation, operands))

    def _find_fix(self, operation: Operation, operands: tuple[Operand, ...]) -> Fix | None:
        """Casts to one format that these rules accept; Python numbers are left as they are where that is enough."""
        # A Python bool has a dtype, but no more an `astype` than the other numbers.
        numbers = {i for i, operand in enumerate(operands) if operand.is_python_scalar or operand.value is not None}
        for target in _targets(frozenset(operand.dtype for operand in operands if operand.dtype is not None)):
            dtype = target.dtype
            needed = [i for i, operand in enumerate(operands) if i in numbers or operand.weak or operand.dtype != dtype]
            arrays = [i for i in needed if i not in numbers]
            for positions in (arrays, needed) if arrays != needed else (needed,):
                if not positions or not all(self._is_castable(operands[i], target) for i in positions):
                    continue
                fix = Fix(tuple((i, dtype, i in numbers) for i in positions))
                if self._judge(operation, fix.apply(operands)).result is not None:
                    return fix
        return None

    def _is_castable(self, operand: Operand, target: Format) -> bool:
        """Whether a fix may cast an operand to a format: the cast exists, and does not change what a number is."""
        if not operand.is_python_scalar:
            return operand.category != "complex" or target.category == "complex"
        is_higher = CATEGORIES.index(operand.category) > CATEGORIES.index(target.category)
        return not is_higher and (operand.value is None or stores(operand.value, target))


@cache
def _targets(dtypes: frozenset[DType]) -> tuple[Format, ...]:
    """Formats to cast everything to, best first.

    First those that hold every operand exactly, an operand's own before others; then, where none is accepted, an
    operand's own although it holds less; then anything else, nearest in width first.
    """
    own = sorted((row for row in FORMATS if row.dtype in dtypes), key=lambda row: row.bits, reverse=True)
    width = max((row.bits for row in own), default=0)
    holding = [row for row in sorted(FORMATS, key=lambda row: row.bits) if all(map(row.holds, own))]
    others = sorted(FORMATS, key=lambda row: abs(row.bits - width))
    return tuple(dict.fromkeys((*(row for row in holding if row in own), *holding, *own, *others)))
