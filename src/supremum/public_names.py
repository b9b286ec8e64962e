"""What `dir` of a package shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def public_names(namespace: Mapping[str, Any]) -> list[str]:
    """The public names of a package, and those with two underscores; the `__dir__` of a package returns them.

    Args:
        namespace: the package's `globals()`.

    >>> public_names(
    ...     {"__all__": ["lazy", "eager"], "__name__": "package", "eager": 1, "np": 2}
    ... )
    ['__all__', '__name__', 'eager', 'lazy']
    """
    return sorted({*namespace["__all__"], *(name for name in namespace if name.startswith("__"))})
