"""The warning about a training that runs and most likely does not do what it should."""

from __future__ import annotations


class TrainingWarning(UserWarning):
    """A training that runs on and most likely does not do what it should."""
