"""The page of each rule set: source, table, order, surprises, operations, reductions and departures."""

from __future__ import annotations

from generate.departing import departures_section
from generate.markup import NOTATION, kind_table, markdown_table
from generate.operation_groups import Group, operation_groups
from generate.outcomes import sums_table
from generate.pictures import lattice_figure
from generate.reduction_table import reductions_section
from generate.surprise import Surprise, outcome, written_call
from generate.surprises import SURPRISES
from supremum.analysis.tables import rule_table, with_short_names
from supremum.operations import OPERATIONS, Result
from supremum.rules import get_rules
from supremum.rules.names import HOMES

_NUMBERS = (
    "If the dtype of an array does not hold a Python number, the number changes its value, the result has another "
    "dtype, or the call is refused."
)


def rule_pages() -> dict[str, str]:
    """Return the pages by path, with their index."""
    return {f"rules/{name}.md": rule_page(name) for name in HOMES} | {"rules/index.md": rules_index()}


def rules_index() -> str:
    """Return the list of all rule sets, in Markdown."""
    rows = [(f"[`{name}`]({name}.md)", get_rules(name).summary, get_rules(name).source) for name in HOMES]
    intro = (
        "Each rule set is a value in `supremum.rules`, and `use_rules` applies it. `jax` stands for the rule set that "
        "JAX's flags select, and `jax-strict` for its strict version. [Distances](distances.md) counts how much the "
        "rule sets differ, and [Sources](../../sources.md) lists the documents behind them."
    )
    tree = "\n".join(["```{toctree}", ":hidden:", *HOMES, "distances", "```"])
    table = markdown_table(("rule set", "whose rules", "source"), rows)
    return "\n\n".join(["# Rule sets", intro, table, tree]) + "\n"


def rule_page(name: str) -> str:
    """Return the page of a rule set, in Markdown.

    Args:
        name: its name.
    """
    rules = get_rules(name)
    parts = [
        f"# `{name}`",
        f"{rules.summary[:1].upper()}{rules.summary[1:]}.",
        f'Source: {rules.source}. To use it, write `with supremum.use_rules("{name}"):`. '
        f"`supremum table --rules {name}` prints the table below in a terminal.",
        "## Result types",
        f"Each cell has the `result_type` of its row and column; `-` is a refusal. {NOTATION} Point at a cell to see "
        "the reason.",
        kind_table(rule_table(name), f"result_type under {name}"),
    ]
    parts += ["## Python numbers that do not fit", _NUMBERS, sums_table([name])]
    parts += ["## Order", lattice_figure(name)]
    if name in SURPRISES:
        parts += ["## Surprises", *(_surprise(name, each) for each in SURPRISES[name])]
    parts += ["## Operations", *_operations(name)]
    parts += ["## Reductions", *reductions_section(name)]
    parts += ["## Departures", departures_section(name)]
    return "\n\n".join(parts) + "\n"


def _surprise(rules: str, surprise: Surprise) -> str:
    decision = surprise.decide(rules)
    call = written_call(surprise.operation, *surprise.operands)
    return "\n\n".join(
        [
            f"`{call}` → **{outcome(decision)}**",
            surprise.sentence,
            f"```text\n{decision}\n```",
        ]
    )


def _operations(rules: str) -> list[str]:
    groups = operation_groups(rules)
    text = (
        "Binary operations with the same answers for all 324 pairs above form a group. The columns count the pairs for "
        "which a group differs from `result_type`: it refuses the pair, accepts a pair that `result_type` refuses, or "
        "gives a different dtype. For operations that return bool, such as comparisons, the dtype is the one that the "
        "operands are cast to."
    )
    head = ("operations", "refused", "accepted", "different dtype", "example")
    return [text, markdown_table(head, list(map(_row, groups)))]


def _row(group: Group) -> tuple[str, ...]:
    example = ""
    if group.example:
        a, b, ours, met = group.example
        verb = "is in" if OPERATIONS[group.operations[0]].result is Result.BOOL else "is"
        example = with_short_names(f"`{written_call(group.operations[0], a, b)}` {verb} {ours}, not {met}")
    counts = (str(number) if number else "" for number in (group.refused, group.accepted, group.otherwise))
    return (" ".join(f"`{name}`" for name in group.operations), *counts, example)
