"""The moves from one framework to another that have a page, and the introductions of these pages."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Migration:
    """A move from one framework to another.

    Args:
        title: the title of the page.
        before: name of the rule set of the old framework.
        after: name of the rule set of the new framework.
        settings: other rule sets of the new framework, and when they apply.
        introduction: the main differences, in Markdown.
        arrays: Python statements that make the arrays of the example.
        expressions: what the example computes under both rule sets.
    """

    title: str
    before: str
    after: str
    settings: tuple[tuple[str, str], ...]
    introduction: str
    arrays: tuple[str, ...]
    expressions: tuple[str, ...]

    @property
    def page(self) -> str:
        """The path of the page below migration/, without its suffix."""
        return self.title.lower().replace(" ", "-")


def _migrations() -> Iterator[Migration]:
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["migrations"]
    for row in rows:
        settings = tuple((name, when) for name, when in row.pop("settings", ()))
        arrays, expressions = tuple(row.pop("arrays")), tuple(row.pop("expressions"))
        yield Migration(**row, settings=settings, arrays=arrays, expressions=expressions)


MIGRATIONS = tuple(_migrations())
