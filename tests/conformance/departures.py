"""Where a rule set decides otherwise than the framework it is named after, on purpose; each line has its reason.

The conformance tests check that the framework still does what is written here: a departure that has gone fails a test.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Departure:
    """One cell, or one kind of cell, that differs.

    Args:
        rules: name of the rule set.
        operation: name of the operation.
        operands: what it is asked about, in words or as operand names.
        ours: what the rule set says.
        theirs: what the framework does.
        reason: why we keep it.
    """

    rules: str
    operation: str
    operands: tuple[str, ...] | str
    ours: str
    theirs: str
    reason: str


DEPARTURES = [
    Departure(
        rules="numpy",
        operation="where",
        operands="an integer or ml_dtypes array and a Python int out of its range but within 64 bits",
        ours="refused: out of range",
        theirs="NumPy before 2.5 wraps the number round in silence: where(False, uint8 array, 256) is 0",
        reason="NumPy 2.5 raises OverflowError (numpy/_core/src/multiarray/multiarraymodule.c, PyArray_Where), and "
        "nothing here is ever silently wrong",
    ),
    *(
        Departure(
            rules="array-api",
            operation=operation,
            operands="a real floating array and a Python complex, either way round",
            ours="refused: the function takes no complex operands",
            theirs="array-api-strict looks at the category of the array alone and computes it in complex",
            reason="the standard defines the function for real operands only",
        )
        for operation in ("maximum", "minimum", "less", "less_equal", "greater", "greater_equal")
    ),
]
