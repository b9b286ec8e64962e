"""The circle loss, which brings outputs of one class together and those of different classes apart."""

from __future__ import annotations

import math
from typing import Unpack

import jax
import jax.numpy as jnp

from supremum.argument_checks import flag, real_within
from supremum.errors import ArgumentError
from supremum.training.data import array_pair, check_has_axes, class_numbers
from supremum.training.losses.loss import Loss, LossOptions


class Circle(Loss):
    """The circle loss of unit vectors and class numbers, over all pairs of examples of a batch.

    Each example is compared with those of its class and with the others; without both kinds, its loss is 0. A weight of
    0 removes the loss of an example, but not its pairs from the losses of others. With several devices the pairs are
    those of each device's part of the batch.

    Sun and others, "Circle Loss: A Unified Perspective of Pair Similarity Optimization", 2020.

    Args:
        gamma: the scale of the similarities, at least 0.
        margin: the distance of pairs of one class, and of pairs of different classes from 1, that is good enough.
        remove_diagonal: whether an example is not paired with itself.
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    Raises:
        OperandError: if the labels are not integers; a `TypeError`.
        ArgumentError: for shapes that do not fit; a `ValueError`.

    >>> vectors = jnp.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "float16")
    >>> Circle(gamma=1.0, reduction=None)(jnp.asarray([0, 0, 1]), vectors)
    Array([0.54589295, 0.54589295, 0.        ], dtype=float32)
    """

    def __init__(
        self,
        gamma: float = 80.0,
        margin: float = 0.4,
        remove_diagonal: bool = True,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        self.gamma: float = real_within("gamma", gamma, 0, math.inf, "0 or more")
        self.margin: float = real_within("margin", margin, 0, 1)
        self.remove_diagonal: bool = flag("remove_diagonal", remove_diagonal)

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, shape (batch,).

        Args:
            y_true: class numbers, shape (batch,) or (batch, 1).
            y_pred: vectors of length 1, shape (batch, features).
        """
        y_true, y_pred = array_pair(self.name, y_true, y_pred)
        check_has_axes(self.name, y_pred)
        labels, vectors = class_numbers(self.name, y_true, y_pred), y_pred.astype(self.dtype)
        if vectors.ndim != 2:
            raise ArgumentError(f"{self.name} takes one vector for each example, got y_pred of shape {vectors.shape}")
        distances = jnp.maximum(1 - jnp.matmul(vectors, vectors.T, precision="highest"), 0)
        alike = labels[:, None] == labels
        others = ~jnp.eye(len(labels), dtype=bool) if self.remove_diagonal else jnp.ones_like(alike)
        attracted = -self.gamma * (self.margin + distances) * (self.margin - distances)
        repelled = self.gamma * jnp.maximum(1 + self.margin - distances, 0) * (1 - self.margin - distances)
        terms = ((attracted, alike & others), (repelled, ~alike))
        has_both = jnp.all(jnp.stack([jnp.any(pairs, 1) for _, pairs in terms]), 0)
        # Rows without such pairs sum over all columns, which keeps their unused gradients finite.
        sums = [jax.nn.logsumexp(values, 1, where=pairs | ~has_both[:, None]) for values, pairs in terms]
        return jnp.where(has_both, jax.nn.softplus(sums[0] + sums[1]), jnp.zeros_like(sums[0]))
