"""Optimizers from names and optax transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.errors import OperandError, UnknownNameError, shown
from supremum.optimizers.algorithms import SGD, Adagrad, Adam, AdamW, Lion, RMSprop
from supremum.optimizers.optimizer import Optimizer

_NAMED: dict[str, Callable[[], Optimizer]] = {
    made.__name__.lower(): made for made in (SGD, Adam, AdamW, RMSprop, Adagrad, Lion)
}


def as_optimizer(optimizer: Any) -> Optimizer:
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
    if isinstance(optimizer, (optax.GradientTransformation, optax.MultiSteps)):
        return Optimizer(optimizer)
    if isinstance(optimizer, type):
        name = optimizer.__name__
        raise OperandError(f"an optimizer must be an instance, got the class {name}: use {name}()")
    raise OperandError(f"an optimizer must be a name, an Optimizer or an optax transformation, got {shown(optimizer)}")
