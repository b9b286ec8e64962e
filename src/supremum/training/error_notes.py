"""Where in a training an error came from, in notes on it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from supremum.errors import SupremumError
from supremum.nn.input_description import described


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


def note_batch(error: Exception, first: int, count: int, inputs: dict[str, Any]) -> None:
    """Note on an error which batch it came from.

    Args:
        error: the error.
        first: the number of the batch, counted from 0.
        count: how many were sent to the device at once, of which it is one.
        inputs: what is in a batch, by name; anything with a shape and a dtype.
    """
    batches = f"batch {first}" if count == 1 else f"one of the batches {first} to {first + count - 1}"
    given = {name: part for name, part in inputs.items() if part is not None}
    error.add_note(f"in {batches} (counted from 0), of {described((), given)}")
