"""Verdicts that many rule sets come to alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from supremum.decisions import Verdict
from supremum.formats import DType, as_format
from supremum.operands import Operand
from supremum.operations import Operation, Result

_BOOL = as_format("bool").dtype
LOSSES_AS_DIVISION: dict[str, str] = dict.fromkeys(("huber_loss", "poisson_nll_loss", "l1_loss", "mse_loss"), "divide")
"""What stands in for the losses where a framework has none: like division, they make floats of integers."""

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
    """The verdict on a call that computes in some dtype, with what the operation gives of that.

    Args:
        operation: its row.
        verdict: the dtype it computes in, as its result.
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


def disagreement(operation: Operation, operands: tuple[Operand, ...]) -> str:
    """Why arrays of several dtypes are refused where they must have one; empty if they do."""
    names = list(dict.fromkeys(str(operand.dtype) for operand in operands if not operand.is_python_scalar))
    return "" if len(names) < 2 else f"{operation.name} needs arrays of one dtype, got {' and '.join(names)}"


def takes_no(operation: Operation, met: Verdict, dtype: DType) -> Verdict:
    """The refusal of an operation that is not defined for the category that its operands meet in.

    Args:
        operation: its row.
        met: where they meet.
        dtype: the dtype of that.
    """
    category = as_format(dtype).category
    return Verdict.refuse(*met.reason, f"{operation.name} does not accept {category} operands, got {dtype}")
