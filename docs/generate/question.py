"""The table of the first page: four sums, and the decisions of every rule set."""

from __future__ import annotations

from html import escape
from typing import Any

import supremum
from generate.exploring import EXPLORER_LINK
from generate.markup import raw_html, style_of
from generate.surprise import answered, written_call
from supremum.rules.names import HOMES

QUESTIONS: tuple[tuple[Any, Any], ...] = (("int32", "float16"), ("int8", 1000), ("int8", 1.5), ("int8", "uint8"))
"""The operands of the sums."""


def question_table() -> str:
    """Return the answers of all rule sets as a table, coloured by kind."""
    head = "".join(f'<th scope="col">{escape(written_call("add", *operands))}</th>' for operands in QUESTIONS)
    rows = "\n".join(
        f'<tr><th scope="row"><a href="generated/rules/{name}.html">{name}</a></th>{_cells(name)}</tr>'
        for name in HOMES
    )
    return raw_html(
        '<div class="kind-scroll" tabindex="0" role="region" aria-label="four sums under every rule set">\n'
        f'<table class="kind-table"><thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n'
        + EXPLORER_LINK
    )


def _cells(rules: str) -> str:
    decisions = [supremum.explain(*operands, operation="add", rules=rules) for operands in QUESTIONS]
    return "".join(
        f'<td class="kind-{style_of(answered(each))}" title="{escape("; ".join(each.reason))}">{answered(each)}</td>'
        for each in decisions
    )
