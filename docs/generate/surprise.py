"""A call whose answer people do not expect, and how the site shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import supremum
from supremum import Decision

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
"""The operations that are written between their operands."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """A call, the answer that the sentence speaks of, and the sentence.

    Args:
        operation: the name of the operation.
        operands: formats by name, and Python numbers.
        answer: the dtype, or `"refused"`; what is shown is computed, and a test holds this against it.
        sentence: what is surprising, in Markdown.
    """

    operation: str
    operands: tuple[Any, ...]
    answer: str
    sentence: str

    def decide(self, rules: str) -> Decision:
        """The decision as it is now."""
        return supremum.explain(*self.operands, operation=self.operation, rules=rules)


def written_call(operation: str, *operands: Any) -> str:
    """A call as one types it.

    >>> written_call("floor_divide", "int8", 2), written_call("sqrt", "int8"), written_call("result_type", "int8", 1.5)
    ('int8 // 2', 'sqrt(int8)', 'int8 with 1.5')
    """
    if operation == "result_type":
        return " with ".join(map(str, operands))
    if operation in _SIGNS:
        return f" {_SIGNS[operation]} ".join(map(str, operands))
    return f"{operation}({', '.join(map(str, operands))})"


def answered(decision: Decision) -> str:
    """The dtype of a decision, or `"refused"`.

    >>> answered(supremum.explain("int8", 1.5, rules="jax-x32"))
    'float32'
    """
    return "refused" if decision.result is None else str(decision.result.dtype)
