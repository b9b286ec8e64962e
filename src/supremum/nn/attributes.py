"""Pickle and restore the attributes of layers.

Most functions of JAX cannot be pickled, so they are stored by their public names.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MODULES = ("jax.numpy", "jax.nn", "jax.lax", "jax.scipy.special")


@dataclass(frozen=True)
class _FunctionName:
    module: str
    name: str


def with_names(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Replace JAX's functions among attributes by their names.

    >>> import jax
    >>> with_names({"function": jax.nn.relu, "rate": 0.5})
    {'function': _FunctionName(module='jax.nn', name='relu'), 'rate': 0.5}
    """
    return {name: _by_name(value) for name, value in attributes.items()}


def with_functions(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the names of JAX's functions among attributes by the functions."""
    return {
        name: getattr(importlib.import_module(value.module), value.name) if isinstance(value, _FunctionName) else value
        for name, value in attributes.items()
    }


class Snapshot:
    """The attributes of an object at one time, which can be restored.

    Args:
        target: the object.
    """

    def __init__(self, target: object) -> None:
        self._attributes = dict(vars(target))

    def restore(self, target: object) -> None:
        """Replace all attributes of an object by these."""
        vars(target).clear()
        vars(target).update(self._attributes)

    def __getstate__(self) -> dict[str, Any]:
        return with_names(self._attributes)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._attributes = with_functions(state)


def _by_name(value: Any) -> Any:
    name = getattr(value, "__name__", None)
    if not callable(value) or not isinstance(name, str) or not str(getattr(value, "__module__", "")).startswith("jax"):
        return value
    module = next((each for each in _MODULES if getattr(importlib.import_module(each), name, None) is value), None)
    return value if module is None else _FunctionName(module, name)
