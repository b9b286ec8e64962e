"""Steps of the sign of a momentum."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.optimizers.descent import Descent
from supremum.optimizers.hyperparameters import DECAY, Hyper
from supremum.optimizers.settings import DescentOptions


class Lion(Descent):
    """Lion (Chen et al., 2023, Algorithm 2), as `optax.lion`.

    Args:
        learning_rate: a number or a schedule; a third to a tenth of what Adam takes.
        beta_1: the share of the momentum in a step.
        beta_2: the decay of the momentum.
        mu_dtype: the dtype in which the momentum is kept; None for the one it is computed in, at least float32.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> float(Lion(weight_decay=0.5).weight_decay)
    0.5
    """

    _stored_dtypes: ClassVar = {"mu": "mu_dtype"}

    def __init__(
        self,
        learning_rate: Hyper = 0.001,
        beta_1: Hyper = 0.9,
        beta_2: Hyper = 0.99,
        *,
        mu_dtype: Any = None,
        **options: Unpack[DescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.add_hyperparameter("beta_1", beta_1, DECAY)
        self.add_hyperparameter("beta_2", beta_2, DECAY)
        self.mu_dtype = mu_dtype

    def make_transformation(
        self, *, learning_rate: Any, beta_1: Any, beta_2: Any, weight_decay: Any, **others: Any
    ) -> optax.GradientTransformation:
        """The transformation of a step."""
        del others
        return optax.chain(
            optax.scale_by_lion(b1=beta_1, b2=beta_2),
            self.decayed(weight_decay),
            optax.scale_by_learning_rate(learning_rate),
        )
