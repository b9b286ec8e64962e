"""The page of each move from one framework to another, made from the differences of their rule sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from generate.changes import Change, Pair, changes, types_of, with_number, written_pairs
from generate.example import output_of, program
from generate.exploring import both_tables, tables_link
from generate.markup import NOTATION, markdown_table
from generate.migrations import MIGRATIONS, Migration
from generate.outcomes import sums_table
from supremum.analysis.tables import with_short_names
from supremum.operands import WEAK_NAMES

OPERATIONS = (
    "result_type", "add", "divide", "floor_divide", "remainder", "pow", "less", "equal", "bitwise_and",
    "bitwise_left_shift",
)  # fmt: skip
_CLASSES = ("wider", "narrower", "kind", "other", "compared", "refused", "accepted")


def migration_pages() -> dict[str, str]:
    """Return the pages by path, with their index."""
    pages = {f"migration/{each.page}.md": migration_page(each) for each in MIGRATIONS}
    intro = (
        "These pages list, for each operation, the dtypes that change when you move a program from one framework to "
        "another, and what to type to keep the old ones. The tables are computed from the rule sets, which are "
        "compared with the frameworks themselves."
    )
    links = "\n".join(f"* [{each.title}]({each.page}.md)" for each in MIGRATIONS)
    keep = (
        "For any other pair of rule sets, use `supremum diff` in a terminal: `supremum diff keras torch --operation "
        'divide`. You need not change everything at once: `with supremum.use_rules("numpy"):` keeps NumPy\'s dtypes '
        "for the `Array`s in a block, whatever library they belong to; see [which rules to "
        "choose](../../choosing-rules.md)."
    )
    tree = "\n".join(["```{toctree}", ":hidden:", *(each.page for each in MIGRATIONS), "```"])
    index = "\n\n".join(["# From one framework to another", intro, links, keep, tree]) + "\n"
    tables = (both_tables(each.before, each.after) for each in MIGRATIONS)
    return pages | {"migration/index.md": index} | dict(item for page in tables for item in page.items())


def migration_page(move: Migration) -> str:
    """Return the page of a move, in Markdown."""
    found = {operation: changes(move.before, move.after, operation) for operation in OPERATIONS}
    before, after = (f"[`{name}`](../rules/{name}.md)" for name in (move.before, move.after))
    parts = [
        f"# {move.title}",
        f"From {before} to {after}.",
        move.introduction,
        f"{NOTATION} The tables below use these names.",
        "## The same program",
        *_example(move),
        "## How much changes",
        _counted(move, found),
        tables_link(move.before, move.after),
        *_settings(move),
        "## Python numbers that do not fit",
        "What becomes of a Python number that the dtype of the array does not hold:",
        sums_table([move.before, move.after, *(name for name, _ in move.settings)]),
        "## What changes, and what to type",
        f"These are the decisions of `{move.after}`. The last column has a cast with which the result keeps its old "
        "dtype; `a` and `b` are the operands of the first pair in the row. To keep all dtypes, put the code into "
        f'`with supremum.use_rules("{move.before}"):`.',
        *_details(found),
    ]
    return "\n\n".join(parts) + "\n"


def _example(move: Migration) -> list[str]:
    parts = [f"```python\n{program(move.before, move.arrays, move.expressions)}\n```"]
    for rules in (move.before, move.after, *(name for name, _ in move.settings)):
        printed = output_of(program(rules, move.arrays, move.expressions))
        parts += [f"under `{rules}`:", f"```text\n{printed}\n```"]
    return parts


def _counted(move: Migration, found: dict[str, list[Change]]) -> str:
    names = types_of(move.before)
    arrays = len(names) - len(WEAK_NAMES)
    text = (
        "The tables count pairs whose result is wider, narrower or of a different kind, and pairs that only one of the "
        f"rule sets accepts. There are {arrays**2} ordered pairs of the dtypes that `{move.before}` knows, and "
        f"{2 * arrays * len(WEAK_NAMES)} pairs of such a dtype with a Python number. *Compared* counts pairs whose "
        "result is still bool, but which are compared in a different dtype. Operations without a row do not change."
    )
    parts = [text]
    for title, wanted in (("Arrays:", lambda pair: not with_number(pair)), ("With a Python number:", with_number)):
        rows = [(f"`{operation}`", *_row(groups, wanted)) for operation, groups in found.items()]
        used = [place for place, _ in enumerate(_CLASSES, 1) if any(row[place] for row in rows)]
        kept = [(row[0], *(row[place] for place in used)) for row in rows if any(row[1:])]
        if kept:
            parts += [title, markdown_table(("operation", *(_CLASSES[place - 1] for place in used)), kept)]
    return "\n\n".join(parts)


def _row(groups: Sequence[Change], wanted: Callable[[Pair], bool]) -> list[str]:
    counts = Counter[str]()
    for group in groups:
        counts[group.how] += sum(map(wanted, group.pairs))
    return [str(counts[name]) if counts[name] else "" for name in _CLASSES]


def _settings(move: Migration) -> list[str]:
    parts: list[str] = []
    for rules, when in move.settings:
        parts += [
            f"Under `{rules}` ({when}), these sums have a different dtype than under `{move.after}`:",
            _table(changes(move.after, rules, "add"), lambda _: True, typed=False),
        ]
    return parts


def _details(found: dict[str, list[Change]]) -> list[str]:
    alike: dict[tuple[Change, ...], list[str]] = {}
    for operation, groups in found.items():
        alike.setdefault(tuple(groups), []).append(operation)
    parts: list[str] = []
    for groups, operations in alike.items():
        parts.append("### " + ", ".join(f"`{name}`" for name in operations))
        if not groups:
            parts.append("Nothing changes.")
        for title, wanted in (("Arrays:", lambda pair: not with_number(pair)), ("With a Python number:", with_number)):
            if any(map(wanted, (pair for group in groups for pair in group.pairs))):
                parts += [title, _table(groups, wanted, typed=True)]
    return parts


def _table(groups: Sequence[Change], wanted: Callable[[Pair], bool], *, typed: bool) -> str:
    """Return the groups as a table, with a column for what to type if any group has it."""
    asked = [(group, pairs) for group in groups if (pairs := [pair for pair in group.pairs if wanted(pair)])]
    head = ["before → after", "how", "pairs", "which"]
    rows = [
        [
            f"{with_short_names(group.before)} → **{with_short_names(group.after)}**",
            group.how,
            str(len(pairs)),
            written_pairs(pairs),
        ]
        for group, pairs in asked
    ]
    if typed and any(group.to_type for group, _ in asked):
        head.append("to keep it")
        for row, (group, _) in zip(rows, asked, strict=True):
            row.append(f"`{group.to_type}`" if group.to_type else "")
    return markdown_table(head, rows)
