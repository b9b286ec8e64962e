"""Optimizers from names, optax transformations and plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.argument_checks import chosen, instance, known_keys
from supremum.errors import OperandError, UnknownNameError, shown
from supremum.mixed_precision import OptaxOptimizer
from supremum.optimizers.algorithms import SGD, Adagrad, Adam, AdamW, Lion, RMSprop
from supremum.optimizers.optimizer import Optimizer

OptimizerLike: TypeAlias = "Optimizer | str | OptaxOptimizer"
"""An optimizer, its name, or an optax transformation."""
_NAMED: dict[str, Callable[[], Optimizer]] = {
    optimizer_class.__name__.lower(): optimizer_class for optimizer_class in (SGD, Adam, AdamW, RMSprop, Adagrad, Lion)
}


def as_optimizer(optimizer: OptimizerLike) -> Optimizer:
    """Make an optimizer from a name or an optax transformation; return an optimizer as it is.

    Args:
        optimizer: an `Optimizer`, an `optax.GradientTransformation`, or a name in any case, such as `"adam"`.

    Raises:
        UnknownNameError: for an unknown name, with similar names; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> as_optimizer("AdamW")
    AdamW(learning_rate=0.001, weight_decay=0.004, beta_1=0.9, beta_2=0.999, epsilon=1e-07)
    >>> as_optimizer("adma")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown optimizer 'adma': did you mean 'adam'?
    """
    if isinstance(optimizer, Optimizer):
        return optimizer
    if isinstance(optimizer, str):
        if optimizer.lower() not in _NAMED:
            raise UnknownNameError("optimizer", optimizer, _NAMED)
        return _NAMED[optimizer.lower()]()
    if isinstance(optimizer, (optax.GradientTransformation, optax.MultiSteps)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Optimizer(optimizer)
    if isinstance(optimizer, type):
        name = optimizer.__name__
        raise OperandError(f"an optimizer must be an instance, got the class {name}: use {name}()")
    raise OperandError(f"an optimizer must be a name, an Optimizer or an optax transformation, got {shown(optimizer)}")


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
        "class_name": kind.__name__ if _classes_by_name().get(kind.__name__) is kind else kind,
        "config": optimizer.get_config(),
    }


def deserialize_optimizer(data: Mapping[str, Any]) -> Optimizer:
    """Make the optimizer that `serialize_optimizer` wrote.

    Raises:
        UnknownNameError: for an unknown class, with the choices.
        ArgumentError: for a missing key.
        OperandError: for a class that is not an optimizer.

    >>> from supremum.optimizers import Adam, serialize_optimizer
    >>> restored = deserialize_optimizer(serialize_optimizer(Adam(0.5)))
    >>> type(restored).__name__, float(restored.learning_rate)
    ('Adam', 0.5)
    """
    entries = known_keys("serialized optimizer", data, ("class_name", "config"))
    kind = entries["class_name"]
    if isinstance(kind, str):
        classes = _classes_by_name()
        kind = classes[chosen("class of optimizer", kind, classes)]
    if not (isinstance(kind, type) and issubclass(kind, Optimizer)):
        raise OperandError(f"class_name must be an optimizer class or its name, got {shown(kind)}")
    return kind.from_config(entries["config"])


def _classes_by_name() -> dict[str, type[Optimizer]]:
    return {
        kind.__name__: kind for kind in _subclasses(Optimizer) if kind.__module__.startswith("supremum.optimizers.")
    }


def _subclasses(kind: type[Optimizer]) -> Iterator[type[Optimizer]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _subclasses(subclass)
