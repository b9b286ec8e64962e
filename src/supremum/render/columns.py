"""Lines of short texts in aligned columns."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(lines: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Lines whose columns are as wide as their widest text.

    Args:
        lines: texts; all lines have as many.
        right: the columns whose texts stand at the right, such as numbers.

    >>> print(aligned([("name", "n"), ("dense", "12")], right=frozenset({1})))
    name    n
    dense  12
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
