"""Weights of examples by the classes of their labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from supremum.argument_checks import mapping, real_within, whole_number
from supremum.errors import ArgumentError
from supremum.nn import described
from supremum.nn.functional import MOST
from supremum.typing import PyTree


def as_class_weight(class_weight: Mapping[int, float] | None) -> dict[int, float] | None:
    """Check weights of classes, and return them as Python numbers.

    Args:
        class_weight: the weights, at least 0, by the numbers of the classes; None for no weights.

    Raises:
        OperandError: for anything that is not a mapping from whole numbers to real numbers; a `TypeError`.
        ArgumentError: for a negative number; a `ValueError`.
    """
    if class_weight is None:
        return None
    weight, kind = "each weight in class_weight", "each class in class_weight"
    return {
        whole_number(kind, number, 0, MOST): real_within(weight, value, 0, math.inf, "0 or more")
        for number, value in mapping("class_weight", class_weight, "{0: 1.0, 1: 5.0}").items()
    }


def weights_by_class(labels: PyTree, class_weight: Mapping[int, float]) -> Any:
    """Return the weight of each example, as Keras does.

    Args:
        labels: class numbers, shape (batch,) or (batch, 1), or one-hot, shape (batch, classes).
        class_weight: the weights by class; other classes have weight 1.

    Returns:
        A float32 array of NumPy, shape (batch,).

    Raises:
        ArgumentError: for labels of different shapes, or of several outputs; a `ValueError`.

    >>> weights_by_class(np.array([0, 1, 2]), {1: 5.0})
    array([1., 5., 1.], dtype=float32)
    """
    if not hasattr(labels, "ndim") or labels.ndim > 2:
        raise ArgumentError(
            "class_weight needs labels of one output, class numbers of shape (batch,) or (batch, 1), or one-hot of "
            f"shape (batch, classes), got {described((labels,), {})}: give sample_weight instead"
        )
    numbers = np.asarray(labels).astype(np.float64)
    if numbers.ndim == 2:
        numbers = numbers[:, 0] if numbers.shape[1] == 1 else numbers.argmax(1)
    numbers, weights = np.round(numbers), np.ones(len(numbers), np.float32)
    for number, weight in class_weight.items():
        weights[numbers == number] = weight
    return weights
