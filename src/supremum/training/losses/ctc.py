"""The loss of sequences of labels whose places in the outputs are not known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format, at_least_float32
from supremum.training.data import array_pair
from supremum.training.losses.loss import Loss


class CTC(Loss):
    """Connectionist temporal classification: minus the log probability of a sequence of labels, however it is aligned.

    Class 0 is the blank between labels, and fills the ends of shorter sequences of labels. A sequence that needs more
    frames than there are has a loss of about 1e5, because optax counts with a smallest probability.

    Graves and others, "Connectionist Temporal Classification", 2006.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    Raises:
        OperandError: if the labels are not integers; a `TypeError`.
        ArgumentError: for shapes that do not fit; a `ValueError`.

    >>> round(float(CTC()(jnp.asarray([[1, 0]]), jnp.zeros((1, 1, 2), "float16"))), 4)
    0.6931
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each sequence, shape (batch,).

        Args:
            y_true: class numbers, shape (batch, labels).
            y_pred: logits, shape (batch, frames, classes).
        """
        y_true, y_pred = array_pair(self.name, y_true, y_pred)
        labels = as_format(y_true.dtype)
        if labels.category != "integer":
            raise OperandError(f"{self.name} takes class numbers as y_true, got {labels}: give y_true.astype('int32')")
        if (y_true.ndim, y_pred.ndim) != (2, 3) or len(y_true) != len(y_pred):
            raise ArgumentError(
                f"{self.name} takes y_true of shape (batch, labels) and y_pred of shape (batch, frames, classes), got "
                f"{y_true.shape} and {y_pred.shape}"
            )
        wide = y_pred.astype(at_least_float32(self.dtype))
        return optax.ctc_loss(wide, jnp.zeros(wide.shape[:2], wide.dtype), y_true, (y_true == 0).astype(wide.dtype))
