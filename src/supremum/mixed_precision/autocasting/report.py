"""The report of autocast: which operations run in which dtype, and why."""

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
    """Operations of one primitive, on one line, that run in the same dtype for the same reason.

    Args:
        operation: the name of the primitive.
        dtype: the name of the dtype in which it runs.
        declared: the name of the dtype in which it would run without autocast.
        why: the reason.
        path: the named scopes around it, such as `"encoder/norm"`.
        line: its line in the program.
        count: the number of operations.
        runs: how often they run in one run of the program; None if that depends on values.
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
    """The report of autocast about a program.

    Args:
        rows: the operations of the program in order, without operations that have no castable floats.
        products: the number of products, and the products that autocast left alone without a request.
    """

    rows: tuple[AutocastRow, ...]
    products: ProductCounts

    def summary(self) -> str:
        """List the operations of each dtype on one line, then the products that were left alone."""
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
        """Convert the report to plain data for JSON."""
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
    """Make the report about a rewritten program."""
    merged: dict[tuple[str, ...], list[int | None]] = {}
    for entry, scopes, line, trips in _entries(rewritten, (), "", 1):
        note = entry.action.note
        declared = next((d for atom in entry.equation.invars if (d := castable(atom.aval)) is not None), note.dtype)
        if note.dtype is None or entry.functions or (entry.action.vanishes and declared == note.dtype):
            continue
        name, path = entry.equation.primitive.name, "/".join(scopes)
        key = (name, str(note.dtype), str(declared), note.reason, path, line)
        merged.setdefault(key, []).append(trips)
    rows = (
        AutocastRow(*key, count=len(trips), runs=None if None in trips else sum(filter(None, trips)))
        for key, trips in merged.items()
    )
    return AutocastReport(tuple(rows), products)


def _entries(
    rewritten: Rewritten, scopes: tuple[str, ...], caller: str, trips: int | None
) -> Iterator[tuple[RewriteRecord, tuple[str, ...], str, int | None]]:
    for entry in rewritten.record:
        inner = (*scopes, *entry.action.note.scopes)
        # A function that JAX traces once for many callers, such as the body of jnp.where, has no line in user code.
        line = line_of(entry.equation) or caller
        yield entry, inner, line, trips
        for callee, function in zip(callees(entry.equation), entry.functions, strict=False):
            each = None if trips is None or callee.trips is None else trips * callee.trips
            yield from _entries(function, inner, line, each)
