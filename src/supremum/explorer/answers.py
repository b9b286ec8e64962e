"""A compact encoding of decisions as numbers; shared explanations are stored once, as templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from supremum.decisions import Decision, letter

WRITTEN = ("\x01", "\x02")
"""The placeholders of operands as written, such as `uint8[]` or `int* (256)`."""
NAMED = ("\x03", "\x04")
"""The placeholders of operands' names, such as `uint8` or `int*`."""
RESULT, OPERATION = "\x05", "\x06"
CLIMBED = ("\x07", "\x08")
"""The placeholders of operands' paths in a lattice."""
CHANGED = ("\x0e", "\x0f")
"""The delimiters of the formats that a number is converted to; the page computes how the number changes."""
_CHANGED = re.compile(f"{CHANGED[0]}(.*?){CHANGED[1]}")
Item = TypeVar("Item")
_WORD = re.compile(r"[A-Za-z]\w*\*?")


class Answers:
    """The answers of the rule sets, without duplicates."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str, str], int] = {("-", "", "refused"): 0}
        self._texts: dict[str, int] = {}
        self._paths: dict[tuple[str, ...], int] = {(): 0}
        self._cells: dict[tuple[int, int, int, int], int] = {}

    @property
    def results(self) -> list[tuple[str, str, str]]:
        """The name, dtype and description of each result; the first stands for a refusal."""
        return list(self._results)

    @property
    def texts(self) -> list[str]:
        """The templates of explanations; each line is a label, a tab and a text."""
        return list(self._texts)

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """The paths in lattices; the first is empty."""
        return list(self._paths)

    @property
    def cells(self) -> list[tuple[int, int, int, int]]:
        """The result, the text and the paths of two operands, as indices into the lists above."""
        return list(self._cells)

    def number(self, decision: Decision, *, with_fix: bool) -> int:
        """The index of a decision in the cells; adds the decision if it is new.

        Args:
            decision: a decision about one or two operands.
            with_fix: whether to include the fix of a refusal, which takes longer than deciding.
        """
        result = decision.result
        shown = ("-", "", "refused") if result is None else (result.name, str(result.dtype), str(result))
        of_a, of_b = (_index(self._paths, path) for path in (*decision.paths, (), ())[:2])
        text = _index(self._texts, _template(decision, with_fix=with_fix))
        return _index(self._cells, (_index(self._results, shown), text, of_a, of_b))

    def merge(self, other: Answers) -> list[int]:
        """Add the answers of another object.

        Returns:
            The index here of each cell of the other object.
        """
        results = [_index(self._results, each) for each in other.results]
        texts = [_index(self._texts, each) for each in other.texts]
        paths = [_index(self._paths, each) for each in other.paths]
        return [_index(self._cells, (results[r], texts[t], paths[a], paths[b])) for r, t, a, b in other.cells]


def _index(known: dict[Item, int], item: Item) -> int:
    return known.setdefault(item, len(known))


def _template(decision: Decision, *, with_fix: bool) -> str:
    """The lines of an explanation, with placeholders for words that differ between similar decisions."""
    if decision or with_fix:
        rows: Sequence[tuple[str, str]] = decision.document().rows
    else:
        rows = [(letter(i), str(operand)) for i, operand in enumerate(decision.operands)]
        rows += [("why" if i == 0 else "", sentence) for i, sentence in enumerate(decision.reason)]
    placeholders = {decision.operation: OPERATION}
    if decision.result is not None:
        placeholders[str(decision.result.dtype)] = RESULT
    # If both operands have the same name, the placeholder of the first one wins.
    for operand, mark in reversed(list(zip(decision.operands, NAMED, strict=False))):
        placeholders[operand.name] = mark

    def substituted(text: str) -> str:
        return _WORD.sub(lambda word: placeholders.get(word[0], word[0]), text)

    lines: list[str] = []
    for position, (label, text) in enumerate(rows):
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


def filled(template: str, decision: Decision) -> str:
    """Fill a template for a decision, as the page does; the inverse of making the template.

    >>> from supremum import explain
    >>> decision = explain("int8", "uint8", rules="jax-x64")
    >>> answers = Answers()
    >>> _ = answers.number(decision, with_fix=True)
    >>> print(filled(answers.texts[0], decision).expandtabs(4))
    a   int8 -> int16
    b   uint8 -> int16
    why int16 is the least upper bound: int8 -> int16, uint8 -> int16
    """
    result = "" if decision.result is None else str(decision.result.dtype)
    values = {OPERATION: decision.operation, RESULT: result}
    values |= dict(zip(WRITTEN, map(str, decision.operands), strict=False))
    values |= dict(zip(NAMED, (operand.name for operand in decision.operands), strict=False))
    values |= dict(zip(CLIMBED, map(" -> ".join, decision.paths), strict=False))
    for mark, value in values.items():
        template = template.replace(mark, value)
    return _CHANGED.sub(lambda found: _note(decision, int(found[1][0])), template)
