"""The warning about training that runs but probably does not work as intended."""

from __future__ import annotations


class TrainingWarning(UserWarning):
    """Training continues but probably does not work as intended."""
