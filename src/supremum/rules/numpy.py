"""NumPy 2's rules (NEP 50).

Without an operation, the answer is that of `np.result_type`. With an operation it is that of the function, which can
differ, because a function looks for a loop that its operands cast to: `np.add` computes bfloat16 and uint16 in float32,
although `np.result_type` refuses them. 0-d arrays are treated like all other arrays.

Source: NumPy 2 and ml_dtypes 0.6; `numpy_casts` and `numpy_loops` name the source files.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from supremum.decisions import ResultType, Verdict, letter
from supremum.formats import Format, as_format
from supremum.number_conversion import Steps, converts, interval, usual_steps
from supremum.operands import WEAK_NAMES, Operand, Operands
from supremum.operations import Family, Operation
from supremum.rules.numpy_array_functions import SHARED, NumpyFunctions, solved
from supremum.rules.numpy_casts import common_of_all, default_of, objection_to_cast
from supremum.rules.numpy_loops import FUNCTIONS, compares_by_value, find_loop, listed
from supremum.rules.verdicts import checked_ints, given


@dataclass(frozen=True, eq=False)
class NumpyRules(NumpyFunctions):
    """NumPy's rules: promotion without a function, else a search for the function's loop."""

    def _key(self, operand: Operand) -> Hashable:
        # np.result_type takes dtypes before arrays; the value of a float or complex never matters.
        value = interval(operand.value) if isinstance(operand.value, int) else None
        return (operand.category, operand.dtype, operand.ndim is None, value)

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        if operation.family is Family.REDUCTION:
            return self._reduce(operation, operands)
        if operation.name == "solve":
            return solved(operands)
        if operation.name == "clip":
            return self._clip(operation, operands)
        if operation.name in FUNCTIONS:
            return self._run(operation, operands)
        if operation.name == "where":
            return checked_ints(self._meet(operation, operands), operands)
        if operation.name in ("result_type", "promote_types"):
            return self._meet(operation, operands)
        return Verdict.refuse(f"NumPy has no function {operation.name}")

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        if len(operands) == 1:
            return _settle_single(operands[0])
        # Dtypes come before arrays and numbers, as in np.result_type; the order can matter with three or more.
        nodes = [operand.name for operand in sorted(operands, key=lambda operand: operand.ndim is not None)]
        found = common_of_all(nodes)
        if found is None:
            return Verdict.refuse(f"{operation.name} needs a common type, and NumPy has none for {listed(nodes)}")
        dtype = as_format(default_of(found)).dtype
        weak = [node for node in nodes if node in WEAK_NAMES]
        if found in WEAK_NAMES:
            return Verdict.accept(dtype, len(operands), f"Python numbers alone take the default dtype, here {dtype}")
        beside = (f"{listed(weak)} is weak (NEP 50)",) if weak else ()
        return Verdict.accept(dtype, len(operands), f"the common type of {listed(nodes)} is {dtype}", *beside)

    def _run(self, operation: Operation, operands: Operands) -> Verdict:
        nodes = tuple(operand.name for operand in operands)
        if len(operands) == 1:
            # A function of one operand has no array that a Python number could take its dtype from.
            alone = _settle_single(operands[0])
            if alone.result is None:
                return alone
            nodes = (str(alone.result.dtype),)
        loop, reason = find_loop(operation.name, nodes)
        if loop is None:
            return Verdict.refuse(reason)
        compute = tuple(as_format(name).dtype for name in loop)
        verdict = given(operation, Verdict(ResultType(compute[0]), compute, (reason,)))
        return verdict if compares_by_value(operation.name, nodes) else checked_ints(verdict, operands)

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:
        operand = operands[position]
        nodes = tuple(each.name for each in operands)
        if operation.name in FUNCTIONS and len(nodes) > 1 and compares_by_value(operation.name, nodes):
            return ()
        if not _is_convertible(operand, target.name):
            return ()  # only for questions about types alone; functions raise
        return usual_steps(operand.category, target)

    def ignores_bound(self, array: Operand, bound: Operand, *, is_lower: bool) -> bool:
        """As in the base class: true for an int at or past the end of an array's range (`_clip` in `_methods.py`)."""
        if array.dtype is None or not array.format.is_builtin or not isinstance(bound.value, int):
            return False
        is_integer = array.category == bound.category == "integer"
        return is_integer and (bound.value <= array.format.min if is_lower else bound.value >= array.format.max)

    def _clip(self, operation: Operation, operands: Operands) -> Verdict:
        array, *bounds = operands
        ignored = [
            position
            for position, bound in enumerate(bounds, 1)
            if len(bounds) > 1 and self.ignores_bound(array, bound, is_lower=position == 1)
        ]
        kept = tuple(each for position, each in enumerate(operands) if position not in ignored)
        verdict = self._run(operation, kept) if len(kept) > 1 else _settle_single(array)
        if verdict.result is None or not ignored:
            return verdict
        without = f"NumPy skips {' and '.join(map(letter, ignored))}, because no element is out of that bound"
        return Verdict.accept(verdict.result.dtype, len(operands), *verdict.reason, without)

    def _objection_to_cast(self, value: Operand, target: Format) -> str:
        return objection_to_cast(value, target)


def _settle_single(operand: Operand) -> Verdict:
    """The verdict on a single operand: an array keeps its dtype; a number has the default dtype, a large int uint64."""
    if operand.dtype is not None:
        return Verdict.accept(operand.format.dtype, 1, f"a single operand keeps its dtype, {operand.dtype}")
    default = default_of(operand.name)
    candidates = (default, "uint64") if isinstance(operand.value, int) else (default,)
    for name in candidates:
        if _is_convertible(operand, name):
            return Verdict.accept(as_format(name).dtype, 1, f"a Python number alone takes a default dtype, {name}")
    return Verdict.refuse("the Python int does not fit 64 bits, and NumPy would convert it to an object", overflow=True)


def _is_convertible(operand: Operand, target: str) -> bool:
    value = operand.value
    return not isinstance(value, int) or converts(value, as_format(target))


NUMPY = NumpyRules(
    name="numpy",
    summary="NumPy 2 (NEP 50), ml_dtypes formats included",
    source="NumPy 2, ml_dtypes 0.6",
    **SHARED,
)
