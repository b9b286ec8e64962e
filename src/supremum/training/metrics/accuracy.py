"""Metrics that count how often outputs are correct."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from supremum.argument_checks import real_number
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.nn.functional import positive_int
from supremum.training.data import (
    aligned_pair,
    array_pair,
    at_labels,
    class_numbers,
    same_shaped_pair,
    without_label_axis,
)
from supremum.training.metrics.metric import MeanMetric, as_wide


def is_best(y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
    """Whether the largest output of each row is at the label; a row with a NaN is wrong.

    Args:
        y_true: integers, shape (...).
        y_pred: outputs, shape (..., classes).

    Returns:
        Bools of the shape of `y_true`.

    >>> is_best(jnp.asarray([1, 0]), jnp.asarray([[0.2, 0.8], [jnp.nan, jnp.nan]]))
    Array([ True, False], dtype=bool)
    """
    return (jnp.argmax(y_pred, -1) == y_true) & ~_has_nan(y_pred)


def is_among_best(y_true: jax.Array, y_pred: jax.Array, k: int) -> jax.Array:
    """Whether fewer than `k` of each row of outputs are larger than the one at the label; see `is_best`."""
    at_label, is_class = at_labels(y_pred, y_true)
    larger = jnp.sum(y_pred > at_label[..., None], -1, dtype="int32")
    return is_class & (larger < k) & ~_has_nan(y_pred)


def _has_nan(y_pred: jax.Array) -> jax.Array:
    return jnp.any(jnp.isnan(y_pred), -1)


class SparseCategoricalAccuracy(MeanMetric):
    """How often the largest output is at the label; a row of outputs with a NaN is wrong.

    Labels are integers of shape (...) or (..., 1), outputs have shape (..., classes).

    Args:
        name: the name of the metric.

    >>> metric = SparseCategoricalAccuracy()
    >>> metric.update_state([1, 0], jnp.asarray([[0.2, 0.8], [0.3, 0.7]], "bfloat16"))
    >>> metric.result()
    Array(0.5, dtype=float32)
    """

    def values(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Whether each output is correct."""
        y_true, y_pred = array_pair(self.name, y_true, y_pred)
        return is_best(class_numbers(self.name, y_true, y_pred), y_pred)


class CategoricalAccuracy(MeanMetric):
    """How often the largest output is where the largest label is; both have shape (..., classes).

    Args:
        name: the name of the metric.

    >>> import numpy as np
    >>> metric = CategoricalAccuracy()
    >>> metric.update_state(np.eye(2), np.array([[0.9, 0.1], [0.8, 0.2]]))
    >>> float(metric.result())
    0.5
    """

    def values(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Whether each output is correct."""
        return is_best(*_with_classes(self.name, y_true, y_pred))


class TopKCategoricalAccuracy(MeanMetric):
    """How often the label is among the `k` largest outputs; outputs equal to the label's do not count as larger.

    Args:
        k: the number of largest outputs.
        name: the name of the metric.

    Raises:
        ArgumentError: if `k` is not a whole number of at least 1; a `ValueError`.

    >>> import numpy as np
    >>> metric = TopKCategoricalAccuracy(k=2)
    >>> metric.update_state(
    ...     np.eye(3)[[0, 2]], np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    ... )
    >>> float(metric.result())
    0.5
    """

    def __init__(self, k: int = 5, name: str | None = None) -> None:
        super().__init__(name)
        self.k: int = positive_int("k", k)

    def values(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Whether each output is correct; labels are integers, shape (...) or (..., 1), or one-hot, (..., classes)."""
        y_true, y_pred = array_pair(self.name, y_true, y_pred)
        if _are_classes(y_true, y_pred):
            return is_among_best(without_label_axis(y_true, y_pred), y_pred, self.k)
        return is_among_best(*_with_classes(self.name, y_true, y_pred), self.k)


class BinaryAccuracy(MeanMetric):
    """How often an output is on the label's side of a threshold, averaged over the last axis of each example.

    Args:
        threshold: an output above it stands for the label 1; use 0.0 for logits.
        name: the name of the metric.

    Raises:
        OperandError: if the threshold is not a number; a `TypeError`.

    >>> import numpy as np
    >>> metric = BinaryAccuracy(threshold=0.0)
    >>> metric.update_state(np.array([0, 1]), np.array([-2.0, 3.0]))
    >>> float(metric.result())
    1.0
    """

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__(name)
        self.threshold: float = real_number("threshold", threshold)

    def values(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Whether each element is correct; a NaN never is."""
        y_true, y_pred = aligned_pair(self.name, y_true, y_pred)
        return _is_on_side(y_true, y_pred, self.threshold)


class Accuracy(MeanMetric):
    """How often outputs are correct; shapes and dtypes choose how that is measured, as for `"accuracy"` in Keras.

    * Integer labels with one axis less than several outputs, or a last axis of length 1: `SparseCategoricalAccuracy`.
    * Labels and outputs of shape (batch,) or (batch, 1): `BinaryAccuracy` with threshold 0.5.
    * The same shape and more outputs: `CategoricalAccuracy`.
    * Integer outputs in the shape of the labels, which are class numbers: whether they are equal.

    Args:
        name: the name of the metric.

    Raises:
        ArgumentError: if the shapes match none of these; a `ValueError`.

    >>> import numpy as np
    >>> metric = Accuracy()
    >>> metric.update_state(np.array([0, 1]), np.array([[0.9, 0.1], [0.8, 0.2]]))
    >>> float(metric.result())
    0.5
    """

    def values(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Whether each output is correct."""
        y_true, y_pred = array_pair(self.name, y_true, y_pred)
        if _are_classes(y_true, y_pred):
            return is_best(without_label_axis(y_true, y_pred), y_pred)
        y_true, y_pred = aligned_pair(self.name, y_true, y_pred)
        if not as_format(y_pred.dtype).is_inexact:
            return y_true == y_pred
        if y_pred.ndim < 2 or y_pred.shape[-1] == 1:
            return _is_on_side(y_true, y_pred, 0.5)
        return is_best(jnp.argmax(y_true, -1), y_pred)


def _are_classes(y_true: jax.Array, y_pred: jax.Array) -> bool:
    is_integer = as_format(y_true.dtype).category == "integer"
    return is_integer and y_pred.shape[-1:] > (1,) and y_true.shape in (y_pred.shape[:-1], (*y_pred.shape[:-1], 1))


def _with_classes(name: str, y_true: jax.Array, y_pred: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Convert one-hot labels to class numbers."""
    y_true, y_pred = same_shaped_pair(name, y_true, y_pred)
    if y_pred.ndim < 1 or y_pred.shape[-1] < 1:
        raise ArgumentError(f"{name} needs y_pred of shape (..., classes), got {y_pred.shape}; use y_pred[None]")
    return jnp.argmax(y_true, -1), y_pred


def _is_on_side(y_true: jax.Array, y_pred: jax.Array, threshold: float) -> jax.Array:
    wide = as_wide(y_pred)
    return ((wide > threshold) == (as_wide(y_true) > 0.5)) & ~jnp.isnan(wide)
