"""The figures of benchmarks: what was measured and compared, and the page that lists them, docs/figures.md."""

import os
import platform
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

_PACKAGES = ("numpy", "jax", "torch", "optax", "flax", "keras", "array-api-strict")
_INTRO = """# Figures

`make bench` writes this page. It compares the times of Supremum with those of other libraries, or of code written by
hand, for the same work. The times are medians over many rounds, in which both run in turn; the ratios of 80 % of the
rounds are in the range in the last column. If you run a single file of `benchmarks/`, only its section is replaced.
"""
_HEAD = "| what | Supremum | compared with | ratio | 80 % of rounds |\n|---|---|---|---|---|"


@dataclass(frozen=True)
class Figure:
    """A row of the page.

    Args:
        what: what was measured.
        ours: Supremum's time or size, with its unit.
        peer: the peer's name, and its time or size; empty if there is no peer.
        ratio: ours divided by the peer's; empty if there is no peer.
        spread: the range of the ratios of 80 % of the rounds; empty if there is no peer.
    """

    what: str
    ours: str
    peer: str = ""
    ratio: str = ""
    spread: str = ""

    def __str__(self) -> str:
        text = f"{self.what}: {self.ours}"
        if self.peer:
            text += f", {self.peer}"
        if self.ratio:
            text += f"; {self.ratio}"
        return text + (f" ({self.spread} in 80 % of rounds)" if self.spread else "")


@dataclass
class Figures:
    """The figures of one file of benchmarks; each is printed when it is added."""

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
        """Add a row that compares two times.

        Args:
            what: what was measured.
            ours: Supremum's seconds in each round.
            theirs: the peer's seconds in the same rounds.
            peer: the peer's name.
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
    """Format a time in seconds, milliseconds or microseconds.

    >>> duration(2.5e-7), duration(0.0123), duration(4)
    ('0.25 us', '12.3 ms', '4.0 s')
    """
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{1e3 * seconds:.1f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.2f} us"


def setup() -> str:
    """Return a sentence that names the machine's cores and the versions of the packages."""
    versions = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"Measured on {os.cpu_count()} cores of {platform.machine()} with {text}."


def page_with(page: str, measured: Mapping[str, Sequence[Figure]]) -> str:
    """Return the page with its sections replaced by new ones of the same title.

    Args:
        page: the current page; may be empty.
        measured: the figures of each section, by title.
    """
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL))
    sections |= {title: _section(rows) for title, rows in measured.items()}
    return "\n".join([_INTRO, *(f"## {title}\n\n{text.strip()}\n" for title, text in sorted(sections.items()))])


def _section(rows: Sequence[Figure]) -> str:
    lines = (f"| {row.what} | {row.ours} | {row.peer} | {row.ratio} | {row.spread} |" for row in rows)
    return "\n".join([setup(), "", _HEAD, *lines])
