"""Notes on errors of user functions, saying where in training they were raised."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from supremum.errors import SupremumError
from supremum.nn import described


@contextmanager
def noting_where(place: str, **inputs: Any) -> Generator[None]:
    """Add a note to errors that are not ours, saying where they were raised and with which inputs.

    Args:
        place: where in training the block runs.
        inputs: its inputs, by name.

    >>> with noting_where("in the loss mine", y_true=1.0):
    ...     raise KeyError("mine")
    Traceback (most recent call last):
        ...
    KeyError: 'mine'
    in the loss mine, given y_true=1.0
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, SupremumError):
            error.add_note(f"{place}, given {described((), inputs)}")
        raise
