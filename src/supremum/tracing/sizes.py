"""The sizes of arrays in reports: numbers, or expressions if dimensions are symbolic."""

from __future__ import annotations

from typing import Any


def size_text(size: object) -> str:
    """Format a size for reports.

    Args:
        size: an int, or an expression of `jax.export.symbolic_shape`.

    >>> import jax.export
    >>> (batch,) = jax.export.symbolic_shape("batch")
    >>> size_text(4096), size_text(4 * batch)
    ('4,096', '4*batch')
    """
    return f"{size:,}" if isinstance(size, int) else str(size)


def shape_text(shape: tuple[Any, ...]) -> str:
    """Format a shape for reports.

    >>> shape_text((8, 128))
    '[8,128]'
    """
    return f"[{','.join(map(str, shape))}]"


def plain(size: object) -> int | str:
    """A size as plain data for JSON: a number, or the expression as text."""
    return size if isinstance(size, int) else str(size)


def largest_first(size: object) -> tuple[bool, int]:
    """A sort key for sizes. Expressions cannot be compared: they come before all numbers, in their order."""
    return (True, -size) if isinstance(size, int) else (False, 0)
