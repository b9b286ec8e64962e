"""The warning about training that runs but probably does not work as intended."""

from __future__ import annotations


class TrainingWarning(UserWarning):
    """Training continues but probably does not work as intended.

    >>> import warnings
    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)], dtype="mixed_float16")
    >>> model.compile("sgd", "mse", warn_after_skipped_steps=1)
    >>> x, y = (  # overflows in every step
    ...     np.full((32, 3), 1e6, "float32"),
    ...     np.zeros((32, 1), "float32"),
    ... )
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", training.TrainingWarning)
    ...     history = model.fit(x, y, batch_size=2, verbose=0)
    >>> [
    ...     each.category.__name__
    ...     for each in caught
    ...     if each.category is training.TrainingWarning
    ... ]
    ['TrainingWarning']
    """
