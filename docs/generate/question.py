"""The table of the first page: four sums, and the decisions of every rule set."""

from __future__ import annotations

from typing import Any

import supremum
from generate.exploring import EXPLORER_LINK
from generate.markup import NOTATION, raw_html
from generate.outcomes import outcome_table
from generate.surprise import written_call
from supremum.analysis.tables import with_short_names
from supremum.rules.names import HOMES

QUESTIONS: tuple[tuple[Any, Any], ...] = (("int32", "float16"), ("int8", 1000), ("int8", 1.5), ("int8", "uint8"))
"""The operands of the sums."""


def question_table() -> str:
    """Return the answers of all rule sets as a table, coloured by kind, with the link to the explorer."""
    head = [with_short_names(written_call("add", *operands)) for operands in QUESTIONS]
    rows = [
        (
            f'<a href="generated/rules/{name}.html">{name}</a>',
            [supremum.explain(*operands, operation="add", rules=name) for operands in QUESTIONS],
        )
        for name in HOMES
    ]
    table = outcome_table(head, rows, "four sums under every rule set")
    return f"{table}\n\n{NOTATION}\n\n{raw_html(EXPLORER_LINK)}"
