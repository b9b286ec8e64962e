"""What happens to values, in a few words."""

from __future__ import annotations

from supremum.numerics.value_counts import FormatCounts, ValueCounts


def outcomes(counts: FormatCounts) -> list[tuple[int, str, str]]:
    """What happens to the values in a format, the worst first: how many, in a word, and in words."""
    rows = [
        (counts.overflow, counts.overflow_to, f"overflow to {counts.overflow_to}"),
        (counts.flushed, "0", "flushed to zero"),
        (counts.subnormal, "sub", "subnormal"),
    ]
    return [each for each in rows if each[0]]


def worst(counts: FormatCounts) -> str:
    """The worst that happens to the values in a format; empty if nothing does."""
    return next((f"{percent(count, counts.values)} {word}" for count, word, _ in outcomes(counts)), "")


def every(counts: FormatCounts) -> str:
    """All that happens to the values in a format; empty if nothing does."""
    return ", ".join(f"{percent(count, counts.values)} {words}" for count, _, words in outcomes(counts))


def percent(count: int, total: int) -> str:
    """A share that is shown as 0 or 100 % only if it is."""
    share = 100 * count / total
    if share < 0.1:
        return "<0.1%"
    if share < 10:
        return f"{share:.1f}%"
    return "100%" if count == total else f"{min(share, 99):.0f}%"


def not_finite(values: ValueCounts) -> str:
    """The shares of the values that are NaN and infinite; empty if none are."""
    bad = (values.nans, "nan"), (values.infinities, "inf")
    return ", ".join(f"{percent(count, values.values)} {word}" for count, word in bad if count)
