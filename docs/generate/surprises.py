"""The surprises of each rule set; tests compare their answers with the rules and with the framework."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from generate.surprise import Surprise

_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _surprise(call: list[Any], answer: str, sentence: str) -> Surprise:
    operation, *operands = (1j if each == "1j" else each for each in call)
    return Surprise(operation, tuple(operands), answer, " ".join(sentence.split()))


SURPRISES: dict[str, tuple[Surprise, ...]] = {
    rules: tuple(_surprise(**row) for row in rows) for rules, rows in _ROWS.items()
}
