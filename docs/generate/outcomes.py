"""Tables of calls with their outcomes: the dtype, and what becomes of Python numbers that the dtype does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import supremum
from generate.markup import kind_legend, raw_html, scrolling_table
from generate.surprise import outcome, written_call
from supremum import Decision
from supremum.analysis.tables import STYLES, style_of, with_short_names

SUMS: tuple[tuple[Any, Any], ...] = (
    ("int8", 1000), ("uint8", 256), ("uint8", -1), ("int32", 2**40), ("float16", 1e6), ("float16", 1e-8),
    ("float32", 2**24 + 1), ("float32", 1e39), ("bfloat16", 257),
)  # fmt: skip
"""Arrays plus Python numbers that their dtypes do not hold."""


def sums_table(rules: Sequence[str]) -> str:
    """Return a table with a row for each of `SUMS` and a column for each rule set.

    Args:
        rules: names of rule sets.
    """
    rows = [
        (
            escape(with_short_names(written_call("add", *sum_))),
            [supremum.explain(*sum_, operation="add", rules=name) for name in rules],
        )
        for sum_ in SUMS
    ]
    return outcome_table(rules, rows, f"numbers that do not fit, under {' and '.join(rules)}")


def outcome_table(head: Sequence[str], rows: Sequence[tuple[str, Sequence[Decision]]], label: str) -> str:
    """Return decisions as a table with a legend; `kinds_css` colours it.

    Args:
        head: the headings of the columns.
        rows: pairs of a row's heading, in HTML, and its decisions.
        label: the label for screen readers.
    """
    used = {style_of(each) for _, decisions in rows for each in decisions}
    headings = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    body = "\n".join(f'<tr><th scope="row">{heading}</th>{_cells(decisions)}</tr>' for heading, decisions in rows)
    legend = kind_legend((style, meaning) for style, meaning in STYLES.items() if style in used)
    return raw_html(legend + scrolling_table(headings, body, label, "outcomes"))


def _cells(decisions: Iterable[Decision]) -> str:
    shown = [(each, escape(with_short_names(outcome(each)))) for each in decisions]
    return "".join(
        f'<td class="kind-{style_of(each)}" title="{escape("; ".join(each.reason))}">{text}</td>'
        for each, text in shown
    )
