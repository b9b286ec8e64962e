"""Public names that were renamed: in this version the old ones still work, with a warning that names the new one."""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from supremum.errors import shown

MODULES: dict[str, str] = {
    f"supremum.{name}": "supremum.analysis"
    for name in ("comparisons", "distances", "drawings", "linkage", "orders", "tables")
}
"""Old modules, and the package that now has their names."""
NAMES: dict[str, str] = {
    "supremum.Variable": "supremum.ArrayVariable",
    "supremum.arrays.Variable": "supremum.arrays.ArrayVariable",
    "supremum.arrays.Total": "supremum.arrays.ConversionTotal",
    "supremum.decisions.Cast": "supremum.decisions.OperandCast",
    "supremum.decisions.Conversion": "supremum.decisions.FixCast",
    "supremum.launching.Place": "supremum.launching.ProcessPlace",
    "supremum.mixed_precision.LossScaledState": "supremum.mixed_precision.ScaledOptimizerState",
    "supremum.mixed_precision.OPERATIONS": "supremum.mixed_precision.AUTOCAST_OPERATIONS",
    "supremum.nn.Model": "supremum.nn.Network",
    "supremum.nn.Sequential": "supremum.nn.SequentialNetwork",
    "supremum.nn.functional.normalise": "supremum.nn.functional.normalize",
    "supremum.tracing.Entry": "supremum.jaxprs.RewriteRecord",
    "supremum.tracing.Judge": "supremum.jaxprs.RewriteRule",
    "supremum.tracing.Place": "supremum.tracing.SourcePlace",
    "supremum.tracing.Total": "supremum.tracing.CastTotal",
    "supremum.tracing.Treatment": "supremum.jaxprs.RewriteAction",
    **{
        f"supremum.tracing.{name}": f"supremum.jaxprs.{name}"
        for name in (
            "CALLS", "CUSTOM_VMAP", "ENTERED", "WITH_RULE", "Callee", "Frames", "LoopOperands", "Position", "Rewriter",
            "Rewritten", "Site", "Value", "aval_of", "callees", "frames_of", "line_of", "loop_operands", "name_of_call",
            "scopes_of", "user_place", "walk",
        )
    },
}  # fmt: skip
"""Old names and new names, each with its package."""
ARGUMENTS: dict[str, dict[str, str]] = {
    "supremum.mixed_precision.autocast": {"honour_casts": "respect_explicit_casts"},
    "supremum.optimizers.Optimizer.minimize": {"variables": "var_list"},
}
"""Functions, with the old and new names of their renamed arguments."""
FROM_ABOVE: dict[str, str] = {
    "supremum.mixed_precision.LossScaleOptimizer": "supremum.optimizers.LossScaleOptimizer",
}
"""Names that Keras has in a package, and that are in a package above it here."""
P = ParamSpec("P")
R = TypeVar("R")


def renamed_name(package: str, name: str) -> Any:
    """Return the value of a renamed name, or of one from a package above; the `__getattr__` of a package calls this.

    Args:
        package: the package in which the name is looked up.
        name: the old name.

    Raises:
        AttributeError: if the package never had this name.
    """
    old = f"{package}.{name}"
    new = FROM_ABOVE.get(old) or NAMES.get(old)
    if new is None:
        raise AttributeError(f"module {shown(package)} has no attribute {shown(name)}")
    if old in NAMES:
        _warn(old, new, stacklevel=4)
    module, _, attribute = new.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def with_renamed_arguments(path: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take its arguments by their old names.

    Args:
        path: the function, a key of `ARGUMENTS`.
    """
    renamed = ARGUMENTS[path]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in renamed.keys() & kwargs.keys():
                _warn(f"{path}({old}=)", f"{renamed[old]}=", stacklevel=3)
                kwargs[renamed[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


class _RenamedModule(ModuleType):
    """A module under its old name."""

    def __getattr__(self, name: str) -> Any:
        new = MODULES[self.__name__]
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(importlib.import_module(new), name)
        _warn(f"{self.__name__}.{name}", f"{new}.{name}", stacklevel=3)
        return found


def add_renamed_modules() -> None:
    """Let `import` find modules under their old names."""
    for old in MODULES:
        module = sys.modules.setdefault(old, _RenamedModule(old))
        setattr(sys.modules["supremum"], old.rpartition(".")[2], module)


def _warn(old: str, new: str, *, stacklevel: int) -> None:
    message = f"{old} is now {new}; the old name goes in the next version"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)
