"""Verdicts that several rule sets share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from supremum.decisions import Verdict, letter
from supremum.formats import DType, as_format
from supremum.operands import Operands
from supremum.operations import Operation, Result
from supremum.rules.number_ranges import converts

_BOOL = as_format("bool").dtype
LOSSES_AS_DIVISION: dict[str, str] = dict.fromkeys(("huber_loss", "poisson_nll_loss", "l1_loss", "mse_loss"), "divide")
"""The stand-in for losses that a framework lacks; like division, they convert integers to floats."""

ALREADY = "the operands already have this dtype"


def climb(met: str, paths: Iterable[Sequence[str]]) -> str:
    """Explain a join of a lattice.

    Args:
        met: the join.
        paths: the way from each operand up to the join.
    """
    climbs = dict.fromkeys(" -> ".join(path) for path in paths if len(path) > 1)
    return f"{met} is the least upper bound: {', '.join(climbs)}" if climbs else ALREADY


def given(operation: Operation, verdict: Verdict) -> Verdict:
    """The verdict on a call, with the result dtype of the operation instead of the dtype that it computes in.

    Args:
        operation: its row.
        verdict: the verdict with the dtype that it computes in as its result.
    """
    if verdict.result is None or operation.result not in (Result.BOOL, Result.REAL):
        return verdict
    computed = as_format(verdict.result.dtype)
    if operation.result is Result.BOOL:
        return verdict.resulting_in(_BOOL, f"{operation.name} always gives bool")
    if computed.component is computed:
        return verdict
    component = computed.component
    return verdict.resulting_in(
        component.dtype, f"{operation.name} of {computed} is {component}", weak=verdict.result.weak
    )


def disagreement(operation: Operation, operands: Operands) -> str:
    """Why an operation that needs arrays of one dtype refuses these; empty if they have one dtype."""
    names = list(dict.fromkeys(str(operand.dtype) for operand in operands if not operand.is_python_scalar))
    return "" if len(names) < 2 else f"{operation.name} needs arrays of one dtype, got {' and '.join(names)}"


def checked_ints(verdict: Verdict, operands: Operands, note: str = "") -> Verdict:
    """The verdict, or a refusal where a Python int does not fit the dtype it would take.

    Args:
        verdict: the verdict without regard to values.
        operands: the operands.
        note: what to add to the reason.
    """
    for position, (operand, target) in enumerate(zip(operands, verdict.compute, strict=False)):
        if isinstance(operand.value, int) and not converts(operand.value, as_format(target)):
            why = f"the Python int {letter(position)} is out of range for {target}{note}"
            return Verdict.refuse(*verdict.reason, why, overflow=True)
    return verdict


def takes_no(operation: Operation, met: Verdict, dtype: DType) -> Verdict:
    """The refusal of an operation that is not defined for the category of the common type of its operands.

    Args:
        operation: its row.
        met: the verdict with the common type.
        dtype: the common type.
    """
    category = as_format(dtype).category
    return Verdict.refuse(*met.reason, f"{operation.name} does not accept {category} operands, got {dtype}")
