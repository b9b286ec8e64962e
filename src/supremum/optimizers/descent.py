"""What all optimizers under Keras' names have in common."""

from __future__ import annotations

from typing import Any

import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.optimizers.hyperparameters import WEIGHT_DECAY, Hyper
from supremum.optimizers.optimizer import Optimizer


class Descent(Optimizer):
    """An optimizer with a learning rate and a weight decay.

    Args:
        learning_rate: a number or a schedule: a function of the number of steps taken.
        weight_decay: the share of each variable, times the learning rate, that every step takes away; None for none.
        options: as for `Optimizer`.
    """

    def __init__(self, learning_rate: Hyper, *, weight_decay: Hyper | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.add_hyperparameter("learning_rate", learning_rate)
        self.add_hyperparameter("weight_decay", weight_decay, WEIGHT_DECAY)

    def decayed(self, share: Any) -> Any:
        """The part of a chain that adds a share of the variables to the gradients.

        Args:
            share: the share, or None for none.
        """
        return optax.identity() if share is None else optax.add_decayed_weights(share)
