"""1,797 scans of handwritten digits, which are part of scikit-learn and need no download."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]
Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]

_TEST_EXAMPLES = 360
_SPLIT_SEED = 0  # the split is independent of the seed of a training run


@dataclass(frozen=True)
class Digits:
    """The digits, in a fixed split.

    Args:
        x_train: scans, shape (1437, 8, 8, 1), float32 between 0 and 1.
        y_train: labels, shape (1437,), int32 from 0 to 9.
        x_test: scans, shape (360, 8, 8, 1).
        y_test: labels, shape (360,).

    >>> digits = load_digits()
    >>> digits.x_train.shape, digits.x_train.dtype, digits.y_test.shape
    ((1437, 8, 8, 1), dtype('float32'), (360,))
    >>> float(digits.x_train.min()), float(digits.x_train.max())
    (0.0, 1.0)
    """

    x_train: Floats
    y_train: Integers
    x_test: Floats
    y_test: Integers


def load_digits() -> Digits:
    """Load and split the digits; each digit has the same share in both parts.

    >>> digits = load_digits()
    >>> len(digits.x_train) + len(digits.x_test), np.bincount(digits.y_test).tolist()
    (1797, [36, 36, 35, 37, 36, 37, 36, 36, 35, 36])
    """
    # The import takes a second, and scikit-learn has no types.
    from sklearn import datasets, model_selection  # pyright: ignore[reportMissingTypeStubs]

    data: Any = datasets.load_digits()
    x = np.asarray(data.images[..., None] / 16, np.float32)
    y = np.asarray(data.target, np.int32)
    parts: Any = model_selection.train_test_split(x, y, test_size=_TEST_EXAMPLES, stratify=y, random_state=_SPLIT_SEED)
    x_train, x_test, y_train, y_test = parts
    return Digits(x_train, y_train, x_test, y_test)
