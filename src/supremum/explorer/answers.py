"""A compact encoding of decisions as numbers; shared explanations are stored once, as templates."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from supremum.decisions import Decision

WRITTEN = ("\x01", "\x02")
"""The placeholders of operands as written, such as `uint8[]` or `int* (256)`."""
NAMED = ("\x03", "\x04")
"""The placeholders of operands' names, such as `uint8` or `int*`."""
RESULT, OPERATION = "\x05", "\x06"
CLIMBED = ("\x07", "\x08")
"""The placeholders of operands' paths in a lattice."""
CHANGED = ("\x0e", "\x0f")
"""The delimiters of the formats that a number is converted to; the page computes how the number changes."""
Item = TypeVar("Item")
_WORD = re.compile(r"[A-Za-z]\w*\*?")


class Answers:
    r"""The answers of the rule sets, without duplicates.

    >>> from supremum import explain
    >>> answers = Answers()
    >>> answers.number(explain("uint8", "int8", rules="jax-x64"), with_fix=True)
    0
    >>> next(iter(answers.texts)).splitlines() == [
    ...     f"a\t{WRITTEN[0]} -> {RESULT}",
    ...     f"b\t{WRITTEN[1]} -> {RESULT}",
    ...     f"why\t{RESULT} is the least upper bound: {CLIMBED[0]}, {CLIMBED[1]}",
    ... ]
    True
    """

    def __init__(self) -> None:
        self.results: dict[tuple[str, str, str], int] = {("-", "", "refused"): 0}
        """The name, dtype and description of each result, with its index; the first stands for a refusal."""
        self.texts: dict[str, int] = {}
        """The templates of explanations, with their indices; each line is a label, a tab and a text."""
        self.paths: dict[tuple[str, ...], int] = {(): 0}
        """The paths in lattices, with their indices; the first is empty."""
        self.cells: dict[tuple[int, int, int, int], int] = {}
        """The result, the text and the paths of two operands, as indices from above, with the index of the cell."""

    def number(self, decision: Decision, *, with_fix: bool) -> int:
        """The index of a decision in the cells; adds the decision if it is new.

        Args:
            decision: a decision about one or two operands.
            with_fix: whether to include the fix of a refusal, which takes longer than deciding.
        """
        result = decision.result
        shown = ("-", "", "refused") if result is None else (result.name, str(result.dtype), str(result))
        of_a, of_b = (index(self.paths, path) for path in (*decision.paths, (), ())[:2])
        text = index(self.texts, _template(decision, with_fix=with_fix))
        return index(self.cells, (index(self.results, shown), text, of_a, of_b))

    def merge(self, other: Answers) -> list[int]:
        """Add the answers of another object.

        Returns:
            The index here of each cell of the other object.
        """
        results = [index(self.results, each) for each in other.results]
        texts = [index(self.texts, each) for each in other.texts]
        paths = [index(self.paths, each) for each in other.paths]
        return [index(self.cells, (results[r], texts[t], paths[a], paths[b])) for r, t, a, b in other.cells]


def index(known: dict[Item, int], item: Item) -> int:
    """The index of an item; adds the item if it is new."""
    return known.setdefault(item, len(known))


def _template(decision: Decision, *, with_fix: bool) -> str:
    """The lines of an explanation, with placeholders for words that differ between similar decisions."""
    told = decision if decision or with_fix else replace(decision, find_fix=lambda _: None)
    placeholders = {decision.operation: OPERATION}
    if decision.result is not None:
        placeholders[str(decision.result.dtype)] = RESULT
    # If both operands have the same name, the placeholder of the first one wins.
    for operand, mark in reversed(list(zip(decision.operands, NAMED, strict=False))):
        placeholders[operand.name] = mark

    def substituted(text: str) -> str:
        return _WORD.sub(lambda word: placeholders.get(word[0], word[0]), text)

    lines: list[str] = []
    for position, (label, text) in enumerate(told.document().rows):
        if position < len(decision.operands):
            written = str(decision.operands[position])
            assert text.startswith(written)
            rest = text[len(written) :].removesuffix(_note(decision, position))
            text = WRITTEN[position] + substituted(rest) + _conversions(decision, position, rest)
        else:
            for path, mark in zip(decision.paths, CLIMBED, strict=False):
                if len(path) > 1:
                    text = text.replace(" -> ".join(path), mark)
            text = substituted(text)
        lines.append(f"{label}\t{text}")
    return "\n".join(lines)


def _conversions(decision: Decision, position: int, rest: str) -> str:
    """The formats that a number is converted to, if it may change."""
    steps = decision.verdict.number_steps
    if decision.operands[position].value is None or not steps or not steps[position] or rest.endswith("survives"):
        return ""
    return f"{CHANGED[0]}{position}:{','.join(row.name for row in steps[position])}{CHANGED[1]}"


def _note(decision: Decision, position: int) -> str:
    """The part of an explanation that tells how a number changes."""
    return next((f", {change}" for change in decision.number_changes if change.position == position), "")
