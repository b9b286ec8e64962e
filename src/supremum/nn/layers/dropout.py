"""Dropout."""

from __future__ import annotations

from typing import Unpack

import jax

from supremum.argument_checks import real_within
from supremum.nn import functional
from supremum.nn.functional.shape_checks import Ints
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions
from supremum.nn.scopes import next_random_key


class Dropout(Layer):
    """In training, set random values to zero, and divide the others by `1 - rate` to keep the mean.

    Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014. The random numbers
    come from the key of the running call, `nn.functional_call(..., random_key=key, training=True)`.

    Args:
        rate: the probability of dropping a value, from 0 to 1.
        broadcast_axes: the axes along which values are dropped together.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for a rate that is not from 0 to 1, axes that the inputs do not have, or a missing key in
            training; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import random_key
    >>> with random_key(jax.random.key(0)):
    ...     outputs = Dropout(0.5)(jnp.ones(1000), training=True)
    >>> sorted(set(outputs.tolist()))
    [0.0, 2.0]
    """

    def __init__(self, rate: float, *, broadcast_axes: Ints = (), **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.rate: float = real_within("rate", rate, 0, 1)
        self.broadcast_axes = broadcast_axes

    def call(self, x: jax.Array, *, training: bool = False) -> jax.Array:
        """Apply dropout in training; otherwise return the inputs."""
        if not training or self.rate == 0:
            return x
        return functional.dropout(next_random_key(), x, self.rate, broadcast_axes=self.broadcast_axes)
