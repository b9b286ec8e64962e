"""Example programs, run when the site is built."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

_SHOW = """\
expressions = (
{expressions})
with supremum.use_rules("{rules}"):
    for expression in expressions:
        try:
            answer = eval(expression)
            print(f"{{expression:{width}}}  {{answer.dtype}}  {{answer.unwrap().tolist()}}")
        except supremum.PromotionError as refusal:
            print(f"{{expression:{width}}}  refused: {{refusal.reason[-1]}}")"""


def program(rules: str, arrays: Sequence[str], expressions: Sequence[str]) -> str:
    """Return a program that computes expressions under a rule set and prints each with its dtype.

    Args:
        rules: name of the rule set.
        arrays: statements that make arrays.
        expressions: what to compute.
    """
    listed = "".join(f'    "{expression}",\n' for expression in expressions)
    shown = _SHOW.format(rules=rules, expressions=listed, width=max(map(len, expressions)))
    return "\n".join(["import numpy as np", "import supremum", "", *arrays, shown])


def output_of(source: str) -> str:
    """Return what a program prints.

    Args:
        source: the program.

    >>> output_of("print(1 + 1)")
    '2'
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "example.py", "exec"), {"__name__": "example"})
    return printed.getvalue().rstrip()
