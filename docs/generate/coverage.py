"""The gate: no public name without a place in the reference."""

from __future__ import annotations

from collections.abc import Container

from generate.public import homes


def missing_names(described: Container[str]) -> list[str]:
    """The public names that the reference lacks.

    Args:
        described: the full names it has.

    >>> missing = missing_names(set(homes().values()) - {"supremum.nn.Dense"})
    >>> missing
    ['supremum.nn.Dense']
    """
    return sorted({home for home in homes().values() if home not in described})
