"""Hinge losses, which are 0 for labels that the outputs have by a margin."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from supremum.training.data import check_has_axes
from supremum.training.losses.regression import PairLoss, mean_of_each


class Hinge(PairLoss):
    """`max(1 - y_true * y_pred, 0)` for labels of -1 and 1, averaged over the last axis of each example.

    A label of 0 counts as -1.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> Hinge()(jnp.asarray([[0.0, 1.0]]), jnp.asarray([[0.5, 2.0]], "float16"))
    Array(0.75, dtype=float32)
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, as for `MeanSquaredError`."""
        return mean_of_each(self.margins(y_true, y_pred))

    def margins(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute what each element lacks of the margin of 1."""
        y_true, y_pred = self.pair(y_true, y_pred)
        return jnp.maximum(1 - jnp.where(y_true == 0, -jnp.ones_like(y_true), y_true) * y_pred, 0)


class SquaredHinge(Hinge):
    """The square of `max(1 - y_true * y_pred, 0)`, with labels as for `Hinge`, averaged over the last axis.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> SquaredHinge()(jnp.asarray([[0.0, 1.0]]), jnp.asarray([[1.0, 2.0]], "float16"))
    Array(2., dtype=float32)
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, as for `MeanSquaredError`."""
        return mean_of_each(jnp.square(self.margins(y_true, y_pred)))


class CategoricalHinge(PairLoss):
    """`max(1 + wrong - right, 0)`: the output of the label, and the largest output of another class.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> CategoricalHinge()(jnp.asarray([[0, 1]]), jnp.asarray([[0.5, 1.0]], "float16"))
    Array(0.5, dtype=float32)
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, for one-hot labels; its shape is that of `y_pred` without the last axis."""
        y_true, y_pred = self.pair(y_true, y_pred)
        check_has_axes(self.name, y_pred)
        right, wrong = jnp.sum(y_true * y_pred, -1), jnp.max((1 - y_true) * y_pred, -1)
        return jnp.maximum(1 + wrong - right, 0)
