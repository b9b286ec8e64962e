"""The table of the first page: four sums, and the decisions of every rule set."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import supremum
from generate.exploring import EXPLORER_LINK
from generate.markup import kind_legend, raw_html
from generate.surprise import outcome, written_call
from supremum import Decision
from supremum.analysis.tables import STYLES, style_of
from supremum.rules.names import HOMES

QUESTIONS: tuple[tuple[Any, Any], ...] = (("int32", "float16"), ("int8", 1000), ("int8", 1.5), ("int8", "uint8"))
"""The operands of the sums."""


def question_table() -> str:
    """Return the answers of all rule sets as a table, coloured by kind, with its legend."""
    decided = {
        name: [supremum.explain(*operands, operation="add", rules=name) for operands in QUESTIONS] for name in HOMES
    }
    used = {style_of(each) for decisions in decided.values() for each in decisions}
    head = "".join(f'<th scope="col">{escape(written_call("add", *operands))}</th>' for operands in QUESTIONS)
    rows = "\n".join(
        f'<tr><th scope="row"><a href="generated/rules/{name}.html">{name}</a></th>{_cells(decisions)}</tr>'
        for name, decisions in decided.items()
    )
    return raw_html(
        kind_legend((style, meaning) for style, meaning in STYLES.items() if style in used)
        + '<div class="kind-scroll" tabindex="0" role="region" aria-label="four sums under every rule set">\n'
        f'<table class="kind-table"><thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n'
        + EXPLORER_LINK
    )


def _cells(decisions: Iterable[Decision]) -> str:
    return "".join(
        f'<td class="kind-{style_of(each)}" title="{escape("; ".join(each.reason))}">{escape(outcome(each))}</td>'
        for each in decisions
    )
