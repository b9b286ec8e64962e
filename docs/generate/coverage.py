"""The check that every public name is in the reference."""

from __future__ import annotations

from collections.abc import Container

from generate.public import homes


def missing_names(described: Container[str]) -> list[str]:
    """Return the public names that the reference lacks.

    Args:
        described: the full names in the reference.

    >>> missing = missing_names(set(homes().values()) - {"supremum.nn.Dense"})
    >>> missing
    ['supremum.nn.Dense']
    """
    return sorted({home for home in homes().values() if home not in described})
