"""Adaptive moments."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.optimizers.descent import Descent
from supremum.optimizers.hyperparameters import DECAY, Hyper
from supremum.optimizers.settings import DescentOptions


class Adam(Descent):
    """Adaptive moments (Kingma and Ba, 2014, Algorithm 1), as `optax.adam`.

    Args:
        learning_rate: a number or a schedule.
        beta_1: the decay of the mean of gradients.
        beta_2: the decay of the mean of their squares.
        epsilon: added to the root of the latter. In Keras it is the paper's "epsilon hat": there it acts more strongly
            in the first steps.
        mu_dtype: the dtype in which the mean is kept; None for the one it is computed in, at least float32.
        nu_dtype: that of the mean of squares. With a `beta_2` near 1 a narrow one hardly changes: bfloat16 rounds away
            what is less than a 256th of what is there.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> Adam(1e-3, mu_dtype="bfloat16").mu_dtype
    'bfloat16'
    """

    _stored_dtypes: ClassVar = {"mu": "mu_dtype", "nu": "nu_dtype"}

    def __init__(
        self,
        learning_rate: Hyper = 0.001,
        beta_1: Hyper = 0.9,
        beta_2: Hyper = 0.999,
        epsilon: Hyper = 1e-7,
        *,
        mu_dtype: Any = None,
        nu_dtype: Any = None,
        **options: Unpack[DescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.add_hyperparameter("beta_1", beta_1, DECAY)
        self.add_hyperparameter("beta_2", beta_2, DECAY)
        self.add_hyperparameter("epsilon", epsilon)
        self.mu_dtype = mu_dtype
        self.nu_dtype = nu_dtype

    def make_transformation(
        self, *, learning_rate: Any, beta_1: Any, beta_2: Any, epsilon: Any, weight_decay: Any, **others: Any
    ) -> optax.GradientTransformation:
        """The transformation of a step."""
        del others
        return optax.chain(
            optax.scale_by_adam(b1=beta_1, b2=beta_2, eps=epsilon),
            self.decayed(weight_decay),
            optax.scale_by_learning_rate(learning_rate),
        )


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as `optax.adamw`.

    Args:
        learning_rate: a number or a schedule.
        weight_decay: the share of each variable, times the learning rate, that every step takes away.
        options: as for `Adam`.

    >>> float(AdamW().weight_decay) == float(AdamW(weight_decay=0.004).weight_decay)
    True
    """

    def __init__(self, learning_rate: Hyper = 0.001, weight_decay: Hyper = 0.004, **options: Any) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **options)
