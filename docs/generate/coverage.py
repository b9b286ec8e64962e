"""The checks that every public name is in the reference, with an example."""

from __future__ import annotations

from collections.abc import Container

from generate.api import docstring_of
from generate.public import MODULES, homes, names_of

WITHOUT_EXAMPLE: dict[str, str] = {
    "supremum.arrays.DeviceError": "needs two devices, and the machines that run the examples have one",
    "supremum.demo.train_classifier": "takes longer than all other examples together; `supremum demo` calls it",
}
"""Public names that cannot have an example, by their full names, and why."""


def missing_names(described: Container[str]) -> list[str]:
    """Return the public names that the reference lacks.

    Args:
        described: the full names in the reference.

    >>> missing = missing_names(set(homes().values()) - {"supremum.nn.Dense"})
    >>> missing
    ['supremum.nn.Dense']
    """
    return sorted({home for home in homes().values() if home not in described})


def names_without_example() -> list[str]:
    """Return the public names whose docstring in the reference has no example, without the exceptions."""
    described = [each for module in MODULES for each in names_of(module) if homes().get(each.path) == each.path]
    return [each.path for each in described if ">>> " not in docstring_of(each) and each.path not in WITHOUT_EXAMPLE]
