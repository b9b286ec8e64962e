"""The public names of Supremum, and the page that describes each of them."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import supremum

# Internal modules, and modules whose names the package itself exports.
_INNER = {
    "__main__", "argument_checks", "atomic_files", "cli", "file_content", "promotion", "public_names", "scoped_values",
    "signals", "user_frame", "version",
}  # fmt: skip
_FOUND = sorted(each.name for each in pkgutil.iter_modules(supremum.__path__) if each.name not in _INNER)
_PACKAGES = [name for name in _FOUND if name in supremum.__all__]
MODULES: tuple[str, ...] = (
    *(f"supremum.{name}" for name in _PACKAGES),
    "supremum.nn.functional",
    *(f"supremum.{name}" for name in _FOUND if name not in _PACKAGES),
    "supremum",
)
"""The public modules; a name that several of them export is described on the page of the first one."""


@dataclass(frozen=True, slots=True)
class Public:
    """A public name.

    Args:
        module: the module that exports it.
        name: its name in that module.
        value: the object.
    """

    module: str
    name: str
    value: Any

    @property
    def path(self) -> str:
        """The name with its module."""
        return f"{self.module}.{self.name}"


@cache
def names_of(module: str) -> tuple[Public, ...]:
    """Return the public names of a module: its `__all__`, or the names it defines without an underscore.

    >>> [each.name for each in names_of("supremum.lattice")]
    ['Join', 'Lattice', 'Counterexample', 'counterexamples']
    """
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", None)
    if names is None:
        names = [name for name in _defined(inspect.getsource(loaded)) if not name.startswith("_")]
    return tuple(Public(module, name, getattr(loaded, name)) for name in names)


def _defined(source: str) -> Iterator[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign) and not _is_type_parameter(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _is_type_parameter(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {"TypeVar", "ParamSpec"}


@cache
def homes() -> dict[str, str]:
    """Return, for the full name of every public name, the full name under which it is described."""
    described: dict[tuple[str, int], str] = {}
    found: dict[str, str] = {}
    for module in MODULES:
        for public in names_of(module):
            if isinstance(public.value, ModuleType):
                continue
            key = (public.name, id(public.value))
            found[public.path] = described.setdefault(key, public.path)
    return found
