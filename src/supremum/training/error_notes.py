"""Notes on errors of user functions: where in the training they were raised."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from supremum.errors import SupremumError
from supremum.nn import described


@contextmanager
def noting_where(place: str, **inputs: Any) -> Generator[None]:
    """Note on an error that is not ours, and so does not say it, where it was raised and of what.

    Args:
        place: where.
        inputs: what was given there, by name.

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
