"""Conversion of optimizers to plain data, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from supremum.argument_checks import instance, known_keys
from supremum.errors import OperandError, UnknownNameError, shown
from supremum.optimizers.optimizer import Optimizer

_KEYS = ("class_name", "config")


def serialize_optimizer(optimizer: Optimizer) -> dict[str, Any]:
    """Convert an optimizer to its class and its constructor arguments.

    A class of `supremum.optimizers` is stored as its name, and any other class as the class object; no class has to be
    registered.

    >>> from supremum.optimizers import SGD
    >>> serialize_optimizer(SGD(0.5))["class_name"]
    'SGD'
    """
    kind = type(instance("optimizer", optimizer, Optimizer, "an optimizer, such as SGD(0.1)"))
    return {
        "class_name": kind.__name__ if _named().get(kind.__name__) is kind else kind,
        "config": optimizer.get_config(),
    }


def deserialize_optimizer(data: Mapping[str, Any]) -> Optimizer:
    """Make the optimizer that `serialize_optimizer` wrote.

    Raises:
        UnknownNameError: for an unknown class, with the choices.
        ArgumentError: for a missing key.
        OperandError: for a class that is not an optimizer.
    """
    entries = known_keys("serialized optimizer", data, _KEYS, _KEYS)
    kind = entries["class_name"]
    if isinstance(kind, str):
        classes = _named()
        if kind not in classes:
            raise UnknownNameError("class of optimizer", kind, classes)
        kind = classes[kind]
    if not (isinstance(kind, type) and issubclass(kind, Optimizer)):
        raise OperandError(f"class_name must be an optimizer class or its name, got {shown(kind)}")
    return kind.from_config(entries["config"])


def _named() -> dict[str, type[Optimizer]]:
    return {
        kind.__name__: kind for kind in _subclasses(Optimizer) if kind.__module__.startswith("supremum.optimizers.")
    }


def _subclasses(kind: type[Optimizer]) -> Iterator[type[Optimizer]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _subclasses(subclass)
