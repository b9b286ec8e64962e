"""The attributes of layers: pickled, with JAX's functions by their public names, and restored.

Most of JAX's functions cannot be pickled.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MODULES = ("jax.numpy", "jax.nn", "jax.lax", "jax.scipy.special")


@dataclass(frozen=True)
class _Named:
    module: str
    name: str


def with_names(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with names in the place of JAX's functions.

    >>> import jax
    >>> with_names({"function": jax.nn.relu, "rate": 0.5})
    {'function': _Named(module='jax.nn', name='relu'), 'rate': 0.5}
    """
    return {name: _named(value) for name, value in attributes.items()}


def with_functions(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with JAX's functions in the place of their names."""
    return {
        name: getattr(importlib.import_module(value.module), value.name) if isinstance(value, _Named) else value
        for name, value in attributes.items()
    }


class Snapshot:
    """The attributes of an object at one time, to bring them back.

    Args:
        target: the object.
    """

    def __init__(self, target: object) -> None:
        self._attributes = dict(vars(target))

    def restore(self, target: object) -> None:
        """Give an object these attributes and no others."""
        vars(target).clear()
        vars(target).update(self._attributes)

    def __getstate__(self) -> dict[str, Any]:
        return with_names(self._attributes)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._attributes = with_functions(state)


def _named(value: Any) -> Any:
    name = getattr(value, "__name__", None)
    if not callable(value) or not isinstance(name, str) or not str(getattr(value, "__module__", "")).startswith("jax"):
        return value
    home = next((each for each in _MODULES if getattr(importlib.import_module(each), name, None) is value), None)
    return value if home is None else _Named(home, name)
