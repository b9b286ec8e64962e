"""Decisions as small numbers: what many of them say alike is stored once, with places for what differs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from supremum.decisions import Decision, letter

WRITTEN = ("\x01", "\x02")
"""Where a text has an operand as it is written, `uint8[]` or `int* (256)`."""
NAMED = ("\x03", "\x04")
"""Where it has the name of an operand, `uint8` or `int*`."""
RESULT, OPERATION = "\x05", "\x06"
CLIMBED = ("\x07", "\x08")
"""Where it has the way that an operand climbed in a lattice."""
CHANGED = ("\x0e", "\x0f")
"""What stands around the formats that a number is converted to, where it says how the number changes."""
_CHANGED = re.compile(f"{CHANGED[0]}(.*?){CHANGED[1]}")
Item = TypeVar("Item")
_WORD = re.compile(r"[A-Za-z]\w*\*?")


class Answers:
    """All that the rule sets answer, each answer once."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str, str], int] = {("-", "", "refused"): 0}
        self._texts: dict[str, int] = {}
        self._paths: dict[tuple[str, ...], int] = {(): 0}
        self._cells: dict[tuple[int, int, int, int], int] = {}

    @property
    def results(self) -> list[tuple[str, str, str]]:
        """Name, dtype and account of each kind of result; the first stands for a refusal."""
        return list(self._results)

    @property
    def texts(self) -> list[str]:
        """Explanations, with places to fill; each line is a label, a tab and a text."""
        return list(self._texts)

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """Ways through a lattice, the first of them none."""
        return list(self._paths)

    @property
    def cells(self) -> list[tuple[int, int, int, int]]:
        """Result, text and the paths of two operands, as places in the above."""
        return list(self._cells)

    def number(self, decision: Decision, *, with_fix: bool) -> int:
        """The place of a decision among the cells.

        Args:
            decision: on one or two operands.
            with_fix: whether to look for the fix of a refusal, which takes longer than deciding.
        """
        result = decision.result
        shown = ("-", "", "refused") if result is None else (result.name, str(result.dtype), str(result))
        of_a, of_b = (_place(self._paths, path) for path in (*decision.paths, (), ())[:2])
        text = _place(self._texts, _template(decision, with_fix=with_fix))
        return _place(self._cells, (_place(self._results, shown), text, of_a, of_b))

    def merge(self, other: Answers) -> list[int]:
        """Take over what another one knows.

        Returns:
            For each cell of the other its place here.
        """
        results = [_place(self._results, each) for each in other.results]
        texts = [_place(self._texts, each) for each in other.texts]
        paths = [_place(self._paths, each) for each in other.paths]
        return [
            _place(self._cells, (results[result], texts[text], paths[a], paths[b]))
            for result, text, a, b in other.cells
        ]


def _place(known: dict[Item, int], item: Item) -> int:
    return known.setdefault(item, len(known))


def _template(decision: Decision, *, with_fix: bool) -> str:
    """The lines of an explanation, with places for what differs between decisions of one kind."""
    if decision or with_fix:
        rows: Sequence[tuple[str, str]] = decision.document().rows
    else:
        rows = [(letter(i), str(operand)) for i, operand in enumerate(decision.operands)]
        rows += [("why" if i == 0 else "", sentence) for i, sentence in enumerate(decision.reason)]
    places = _places(decision)
    lines = [
        (label, _with_operand(text, i, decision, places))
        for i, (label, text) in enumerate(rows[: len(decision.operands)])
    ]
    lines += [(label, _with_places(text, decision, places)) for label, text in rows[len(decision.operands) :]]
    return "\n".join(f"{label}\t{text}" for label, text in lines)


def _places(decision: Decision) -> dict[str, str]:
    """What to write for each word that differs."""
    places = {decision.operation: OPERATION}
    if decision.result is not None:
        places[str(decision.result.dtype)] = RESULT
    # The first operand last: of two of one name it is the one that is meant.
    for operand, mark in reversed(list(zip(decision.operands, NAMED, strict=False))):
        places[operand.name] = mark
    return places


def _with_operand(text: str, position: int, decision: Decision, places: dict[str, str]) -> str:
    operand = decision.operands[position]
    written = str(operand)
    assert text.startswith(written)
    rest = text[len(written) :].removesuffix(_note(decision, position))
    filled_in = WRITTEN[position] + _WORD.sub(lambda word: places.get(word[0], word[0]), rest)
    steps = decision.verdict.number_steps
    if operand.value is None or not steps or not steps[position] or rest.endswith("survives"):
        return filled_in
    return filled_in + ",".join(row.name for row in steps[position]).join((f"{CHANGED[0]}{position}:", CHANGED[1]))


def _note(decision: Decision, position: int) -> str:
    """What an explanation says of how a number changes."""
    return next((f", {change}" for change in decision.number_changes if change.position == position), "")


def _with_places(text: str, decision: Decision, places: dict[str, str]) -> str:
    for path, mark in zip(decision.paths, CLIMBED, strict=False):
        if len(path) > 1:
            text = text.replace(" -> ".join(path), mark)
    return _WORD.sub(lambda word: places.get(word[0], word[0]), text)


def filled(template: str, decision: Decision) -> str:
    """What a template says of a decision: the inverse of making one, as the page does it.

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
