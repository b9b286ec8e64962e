"""The dtypes that the reductions of a rule set return and accumulate in."""

from __future__ import annotations

from generate.markup import codes, markdown_table
from supremum.analysis.tables import STANDARD_TYPES
from supremum.decisions import Decision
from supremum.formats import as_format
from supremum.operands import WEAK_NAMES, as_operand
from supremum.operations import REDUCTIONS
from supremum.rules import get_rules


def reductions_section(rules: str) -> list[str]:
    """Return a table with a row for each dtype and a column for each group of reductions with equal answers.

    Args:
        rules: the name of the rule set.

    >>> "| `i8` | `i64` |" in reductions_section("torch")[1]
    True
    """
    decide = get_rules(rules).decide
    dtypes = [name for name in STANDARD_TYPES if name not in WEAK_NAMES]
    columns: dict[tuple[str, ...], list[str]] = {}
    for name in REDUCTIONS:
        answers = tuple(_cell(decide(name, (as_operand(dtype),))) for dtype in dtypes)
        columns.setdefault(answers, []).append(name)
    head = ("dtype", *(" ".join(f"`{name}`" for name in names) for names in columns.values()))
    rows = [(codes(dtype), *(answers[i] for answers in columns)) for i, dtype in enumerate(dtypes)]
    text = (
        "Each cell has the dtype of the result and, after *in*, the dtype in which it is accumulated, if that is a "
        "different one; `-` is a refusal. The short names are those of the first table. `supremum.explain` names the "
        "source."
    )
    return [text, markdown_table(head, rows)]


def _cell(decision: Decision) -> str:
    if not decision:
        return "-"
    gives, computes = (as_format(each) for each in (decision.dtype, decision.casts[0].target))
    result = f"`{gives.short_name}`"
    return result if computes is gives or gives.category == "bool" else f"{result} in `{computes.short_name}`"
