"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.optimizers.descent import Descent
from supremum.optimizers.hyperparameters import MOMENTUM, Hyper
from supremum.optimizers.settings import DescentOptions


class SGD(Descent):
    """Stochastic gradient descent, with momentum (Sutskever et al., 2013), as `optax.sgd`.

    Args:
        learning_rate: a number or a schedule.
        momentum: the share of the last step that is repeated, from 0 to 1. At 0 no slot is kept for it.
        nesterov: whether to look ahead by that step.
        mu_dtype: the dtype in which the momentum is kept; None for the one it is computed in, at least float32.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> optimizer = SGD(0.1, momentum=0.9)
    >>> optimizer.momentum = 0.5
    >>> optimizer
    SGD(learning_rate=0.1, momentum=0.5, nesterov=False)
    """

    _stored_dtypes: ClassVar = {"trace": "mu_dtype"}
    _settings: ClassVar = (*Descent._settings, "nesterov")

    def __init__(
        self,
        learning_rate: Hyper = 0.01,
        momentum: Hyper = 0.0,
        nesterov: bool = False,
        *,
        mu_dtype: Any = None,
        **options: Unpack[DescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.add_hyperparameter("momentum", momentum, MOMENTUM)
        self.nesterov = nesterov
        self.mu_dtype = mu_dtype

    def make_transformation(
        self, *, learning_rate: Any, momentum: Any, weight_decay: Any, **others: Any
    ) -> optax.GradientTransformation:
        """The transformation of a step."""
        del others
        return optax.chain(
            optax.identity() if momentum is None else optax.trace(momentum, self.nesterov),
            self.decayed(weight_decay),
            optax.scale_by_learning_rate(learning_rate),
        )
