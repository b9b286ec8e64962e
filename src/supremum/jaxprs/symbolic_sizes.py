"""Numbers of bytes and rounds, which are expressions where a program is traced for sizes that are not known yet."""

from __future__ import annotations

from typing import Any


def shown(size: Any) -> str:
    """A size as reports write it.

    Args:
        size: an int, or what `jax.export.symbolic_shape` makes.

    >>> import jax.export
    >>> (batch,) = jax.export.symbolic_shape("batch")
    >>> shown(4096), shown(4 * batch)
    ('4,096', '4*batch')
    """
    return f"{size:,}" if isinstance(size, int) else str(size)


def plain(size: Any) -> int | str:
    """A size as plain data for JSON: a number, or the expression as text."""
    return size if isinstance(size, int) else str(size)


def largest_first(size: Any) -> tuple[bool, int]:
    """What to sort by. Which of two expressions is larger is not known: they keep their order, before all numbers."""
    return (True, -size) if isinstance(size, int) else (False, 0)
