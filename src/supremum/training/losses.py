"""Losses, computed in float32 unless asked otherwise.

spec/keras-rfc-293-mixed-precision.md, "Loss dtype": a loss has one dtype, not a policy, and knows no global policy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.formats import as_format
from supremum.mixed_precision import cast_floating


class Loss(ABC):
    """A number that training makes small.

    Args:
        dtype: the dtype floating inputs are cast to; integer labels never are.
    """

    def __init__(self, *, dtype: Any = "float32") -> None:
        self.dtype = as_format(dtype).dtype

    @abstractmethod
    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """The loss of each example."""

    def __call__(self, y_true: Any, y_pred: Any) -> jax.Array:
        """The mean loss, a scalar of the loss's dtype.

        Args:
            y_true: what should have come out.
            y_pred: what did.
        """
        y_true, y_pred = cast_floating((y_true, y_pred), self.dtype)
        return jnp.mean(self.call(y_true, y_pred))


class SparseCategoricalCrossentropy(Loss):
    """Cross entropy between integer labels, shape (batch,), and logits, shape (batch, classes).

    Args:
        dtype: the dtype it is computed in.

    >>> import jax.numpy as jnp
    >>> loss = SparseCategoricalCrossentropy()
    >>> loss(jnp.array([1]), jnp.array([[0.0, 60000.0]], jnp.float16))
    Array(0., dtype=float32)
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """The loss of each example."""
        return optax.softmax_cross_entropy_with_integer_labels(y_pred, y_true)
