"""Gradients divided by the root of a running mean of their squares."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import jax.numpy as jnp
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.optimizers.descent import Descent
from supremum.optimizers.hyperparameters import DECAY, MOMENTUM, Hyper
from supremum.optimizers.settings import DescentOptions


class RMSprop(Descent):
    """RMSprop (Hinton, 2012; centered: Graves, 2013), as `optax.rmsprop`.

    Args:
        learning_rate: a number or a schedule.
        rho: the decay of the mean of squares.
        momentum: the share of the last step that is repeated, from 0 to 1. At 0 no slot is kept for it.
        epsilon: added to the mean of squares, under the root.
        centered: whether to divide by the standard deviation instead.
        mu_dtype: the dtype in which momentum and, if centered, the mean are kept; None for the one they are computed
            in, at least float32.
        nu_dtype: that of the mean of squares.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> RMSprop(centered=True).centered
    True
    """

    _stored_dtypes: ClassVar = {"nu": "nu_dtype", "mu": "mu_dtype", "trace": "mu_dtype"}
    _settings: ClassVar = (*Descent._settings, "centered")

    def __init__(
        self,
        learning_rate: Hyper = 0.001,
        rho: Hyper = 0.9,
        momentum: Hyper = 0.0,
        epsilon: Hyper = 1e-7,
        centered: bool = False,
        *,
        mu_dtype: Any = None,
        nu_dtype: Any = None,
        **options: Unpack[DescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.add_hyperparameter("rho", rho, DECAY)
        self.add_hyperparameter("momentum", momentum, MOMENTUM)
        self.add_hyperparameter("epsilon", epsilon)
        self.centered = centered
        self.mu_dtype = mu_dtype
        self.nu_dtype = nu_dtype

    def make_transformation(
        self, *, learning_rate: Any, rho: Any, momentum: Any, epsilon: Any, weight_decay: Any, **others: Any
    ) -> optax.GradientTransformation:
        """The transformation of a step."""
        del others
        normalised = optax.scale_by_stddev if self.centered else optax.scale_by_rms
        # Momentum repeats steps, learning rate and all; what decays is not part of them.
        shrinking = None if weight_decay is None else jnp.negative(weight_decay * learning_rate)
        return optax.chain(
            normalised(rho, epsilon),
            optax.scale_by_learning_rate(learning_rate),
            optax.identity() if momentum is None else optax.trace(momentum),
            self.decayed(shrinking),
        )
