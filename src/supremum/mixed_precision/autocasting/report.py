"""What autocast did to a program: what runs in which dtype, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from supremum.jaxprs import RewriteRecord, Rewritten, callees, line_of
from supremum.mixed_precision.autocasting.castable_dtypes import castable
from supremum.mixed_precision.autocasting.skipped_products import ProductCounts
from supremum.render import aligned


@dataclass(frozen=True, slots=True)
class AutocastRow:
    """Operations of one kind that stand on one line and are treated alike.

    Args:
        operation: the primitive.
        dtype: the name of the dtype it runs in.
        declared: the name of the dtype it would have run in.
        why: the reason.
        path: the named scopes it stands in, such as `"encoder/norm"`.
        line: the line of the program it comes from.
        count: how many there are.
        runs: how often they run when the program runs once; None where only the run can say.
    """

    operation: str
    dtype: str
    declared: str
    why: str
    path: str
    line: str
    count: int
    runs: int | None


@dataclass(frozen=True, slots=True)
class AutocastReport:
    """What autocast did to a program.

    Args:
        rows: what stands in it, in order, operations without castable floats left out.
        products: how many products it has, and those that were left as they are though nobody asked for it.
    """

    rows: tuple[AutocastRow, ...]
    products: ProductCounts

    def summary(self) -> str:
        """One line per dtype, with the operations that run in it, and a last one of products that were left alone."""
        counts: dict[str, Counter[str]] = {}
        for row in self.rows:
            counts.setdefault(row.dtype, Counter())[row.operation] += row.count
        width = max(map(len, counts), default=0)
        lines = [
            f"{dtype:{width}}  " + ", ".join(f"{count} x {name}" for name, count in sorted(counts[dtype].items()))
            for dtype in sorted(counts)
        ]
        return "\n".join([*lines, *filter(None, [self.products.describe()])])

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON."""
        left = [asdict(left) | {"count": count} for left, count in self.products.left]
        return {"rows": [asdict(row) for row in self.rows], "products": {"count": self.products.count, "left": left}}

    def __str__(self) -> str:
        titles = ("runs", "operation", "in", "instead of", "path", "line", "why")
        lines = [
            (
                "?" if row.runs is None else str(row.runs),
                row.operation,
                row.dtype,
                "" if row.declared == row.dtype else row.declared,
                row.path,
                row.line,
                row.why,
            )
            for row in self.rows
        ]
        return "\n".join([aligned((titles, *lines)), *filter(None, [self.products.describe()])])


def report_of(rewritten: Rewritten, products: ProductCounts) -> AutocastReport:
    """The report about a rewritten program."""
    merged: dict[tuple[str, ...], list[tuple[int, int | None]]] = {}
    for entry, scopes, line, trips in _entries(rewritten, (), "", 1):
        note = entry.action.note
        declared = next((d for atom in entry.equation.invars if (d := castable(atom.aval)) is not None), note.dtype)
        if note.dtype is None or entry.functions or (entry.action.vanishes and declared == note.dtype):
            continue
        name, path = entry.equation.primitive.name, "/".join(scopes)
        key = (name, str(note.dtype), str(declared), note.reason, path, line)
        merged.setdefault(key, []).append((1, trips))
    rows = (
        AutocastRow(*key, count=len(found), runs=_total([trips for _, trips in found])) for key, found in merged.items()
    )
    return AutocastReport(tuple(rows), products)


def _total(trips: list[int | None]) -> int | None:
    known = [number for number in trips if number is not None]
    return sum(known) if len(known) == len(trips) else None


def _entries(
    rewritten: Rewritten, scopes: tuple[str, ...], caller: str, trips: int | None
) -> Iterator[tuple[RewriteRecord, tuple[str, ...], str, int | None]]:
    for entry in rewritten.record:
        inner = (*scopes, *entry.action.note.scopes)
        # What JAX traced once for many callers, such as the inside of jnp.where, has no line of the user's.
        line = line_of(entry.equation) or caller
        yield entry, inner, line, trips
        for callee, function in zip(callees(entry.equation), entry.functions, strict=False):
            each = None if trips is None or callee.trips is None else trips * callee.trips
            yield from _entries(function, inner, line, each)
