"""Calls with answers that people do not expect, and how the site shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import supremum
from supremum import Decision
from supremum.analysis.tables import changed_numbers

_SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "pow": "**",
    "less": "<",
    "equal": "==",
    "not_equal": "!=",
    "bitwise_and": "&",
    "bitwise_left_shift": "<<",
    "bitwise_right_shift": ">>",
}
"""The operators of operations."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """A call, its answer, and a sentence about it.

    Args:
        operation: the name of the operation.
        operands: formats by name, and Python numbers.
        answer: the dtype, or `"refused"`; a test compares it with the decision that the site shows.
        sentence: what is surprising, in Markdown.
    """

    operation: str
    operands: tuple[Any, ...]
    answer: str
    sentence: str

    def decide(self, rules: str) -> Decision:
        """Return the decision."""
        return supremum.explain(*self.operands, operation=self.operation, rules=rules)


def written_call(operation: str, *operands: Any) -> str:
    """Return a call as Python code.

    >>> (
    ...     written_call("floor_divide", "int8", 2),
    ...     written_call("sqrt", "int8"),
    ...     written_call("result_type", "int8", 1.5),
    ... )
    ('int8 // 2', 'sqrt(int8)', 'int8 with 1.5')
    """
    if operation == "result_type":
        return " with ".join(map(str, operands))
    if operation in _SIGNS:
        return f" {_SIGNS[operation]} ".join(map(str, operands))
    return f"{operation}({', '.join(map(str, operands))})"


def answered(decision: Decision) -> str:
    """Return the dtype of a decision, or `"refused"`.

    >>> answered(supremum.explain("int8", 1.5, rules="jax-x32"))
    'float32'
    """
    return "refused" if decision.result is None else str(decision.result.dtype)


def outcome(decision: Decision) -> str:
    """Return the answer, and what becomes of the Python numbers that change.

    >>> outcome(supremum.explain("int8", 1000, operation="add", rules="jax-x32"))
    'int8, 1000 wraps to -24'
    """
    return ", ".join((answered(decision), *changed_numbers(decision)))
