"""Dropout."""

from __future__ import annotations

from typing import Any, Unpack

import jax

from supremum.nn.functional import Ints, as_rate, dropout
from supremum.nn.layer import Layer, LayerOptions
from supremum.nn.scopes import next_random_key


class Dropout(Layer):
    """In training, replace values by zero at random, and scale the others so that the mean stays.

    Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014. The random numbers
    come from the key of the running call, `nn.functional_call(..., random_key=key, training=True)`.

    Args:
        rate: the probability of a value to be dropped, from 0 to 1.
        broadcast_axes: the axes along which values are dropped together.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for a rate that is not a probability, for axes that the inputs do not have, and where there is no
            key in training; a `ValueError`.
    """

    def __init__(self, rate: float, *, broadcast_axes: Ints = (), **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.rate = as_rate(rate)
        self.broadcast_axes = broadcast_axes

    def call(self, x: Any, *, training: bool = False) -> jax.Array:
        """The values that are left, scaled; outside of training the inputs."""
        if not training or self.rate == 0:
            return x
        return dropout(next_random_key(), x, self.rate, broadcast_axes=self.broadcast_axes)
