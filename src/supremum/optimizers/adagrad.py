"""Gradients divided by the root of the sum of all their squares."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.optimizers.descent import Descent
from supremum.optimizers.hyperparameters import NON_NEGATIVE, Hyper
from supremum.optimizers.settings import DescentOptions


class Adagrad(Descent):
    """Adagrad (Duchi et al., 2011), as `optax.adagrad`.

    Args:
        learning_rate: a number or a schedule.
        initial_accumulator_value: what the sums of squares start from.
        epsilon: added to the sum of squares, under the root.
        nu_dtype: the dtype in which the sums are kept; None for the one they are computed in, at least float32. A
            narrow one stops growing early.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> Adagrad(0.1).initial_accumulator_value
    0.1
    """

    _stored_dtypes: ClassVar = {"sum_of_squares": "nu_dtype"}
    _settings: ClassVar = (*Descent._settings, "initial_accumulator_value")

    def __init__(
        self,
        learning_rate: Hyper = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: Hyper = 1e-7,
        *,
        nu_dtype: Any = None,
        **options: Unpack[DescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.add_hyperparameter("epsilon", epsilon)
        self.initial_accumulator_value = NON_NEGATIVE.check("initial_accumulator_value", initial_accumulator_value)
        self.nu_dtype = nu_dtype

    def make_transformation(
        self, *, learning_rate: Any, epsilon: Any, weight_decay: Any, **others: Any
    ) -> optax.GradientTransformation:
        """The transformation of a step."""
        del others
        return optax.chain(
            optax.scale_by_rss(self.initial_accumulator_value, epsilon),
            self.decayed(weight_decay),
            optax.scale_by_learning_rate(learning_rate),
        )
