"""Figures of benchmarks: what was measured, beside what, and the page that shows them, docs/figures.md."""

import os
import platform
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

_PACKAGES = ("numpy", "jax", "torch", "optax", "flax", "keras", "array-api-strict")
_INTRO = """# Figures

`make bench` writes this page: what Supremum takes, what others take for the same, and the ratio of the two. Times are
medians of rounds in which both take turns; the last column has the ratios of 80 % of the rounds. Running one file of
`benchmarks/` replaces its section only.
"""
_HEAD = "| what | Supremum | beside | ratio | 80 % of rounds |\n|---|---|---|---|---|"


@dataclass(frozen=True)
class Figure:
    """A row of the page.

    Args:
        what: what was measured.
        ours: what Supremum takes, with its unit.
        peer: what the peer takes, with its unit and name; empty for none.
        ratio: ours divided by the peer's; empty for none.
        spread: the ratios of 80 % of the rounds; empty for none.
    """

    what: str
    ours: str
    peer: str = ""
    ratio: str = ""
    spread: str = ""

    def __str__(self) -> str:
        told = f"{self.what}: {self.ours}"
        if self.peer:
            told += f", {self.peer}"
        if self.ratio:
            told += f"; {self.ratio}"
        return told + (f" ({self.spread} in 80 % of rounds)" if self.spread else "")


@dataclass
class Figures:
    """The figures of one file of benchmarks, printed as they come."""

    rows: list[Figure] = field(default_factory=list)

    def note(self, what: str, ours: str, **others: str) -> None:
        """Add a row.

        Args:
            what, ours: as for `Figure`.
            others: the other fields of `Figure`.
        """
        self.rows.append(Figure(what, ours, **others))
        print(f"\n{self.rows[-1]}")

    def compare(self, what: str, ours: Sequence[float], theirs: Sequence[float], peer: str) -> None:
        """Add a row of two times.

        Args:
            what: what was measured.
            ours: seconds of each round.
            theirs: seconds of the peer in the same rounds.
            peer: its name.
        """
        mine, their = statistics.median(ours), statistics.median(theirs)
        ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
        low, high = ratios[len(ratios) // 10], ratios[-(len(ratios) // 10) - 1]
        self.note(
            what,
            duration(mine),
            peer=f"{peer}, {duration(their)}",
            ratio=f"{mine / their:.2f} x",
            spread=f"{low:.2f} to {high:.2f}",
        )


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(2.5e-7), duration(0.0123), duration(4)
    ('0.25 us', '12.3 ms', '4.0 s')
    """
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{1e3 * seconds:.1f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.2f} us"


def setup() -> str:
    """What the figures were measured with: versions and number of cores."""
    versions = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"Measured on {os.cpu_count()} cores of {platform.machine()} with {told}."


def page_with(page: str, measured: Mapping[str, Sequence[Figure]]) -> str:
    """The page with new sections in place of the old ones of the same titles.

    Args:
        page: the page so far; may be empty.
        measured: figures by title.
    """
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL))
    sections |= {title: _section(rows) for title, rows in measured.items()}
    return "\n".join([_INTRO, *(f"## {title}\n\n{text.strip()}\n" for title, text in sorted(sections.items()))])


def _section(rows: Sequence[Figure]) -> str:
    lines = (f"| {row.what} | {row.ours} | {row.peer} | {row.ratio} | {row.spread} |" for row in rows)
    return "\n".join([setup(), "", _HEAD, *lines])
