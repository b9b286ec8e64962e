"""Conversion of the arguments of `fit`, `evaluate` and `predict` to data."""

from __future__ import annotations

from typing import Any, TypeAlias

from supremum.argument_checks import pytree, real_number
from supremum.errors import ArgumentError
from supremum.nn.functional import MOST, positive_int
from supremum.training.data.array_data import ArrayData
from supremum.training.data.iterable_data import IterableData

Data: TypeAlias = ArrayData | IterableData
"""A source of batches for every epoch."""


def as_data(x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, steps: int | None = None) -> Data:
    """Convert the arguments of `fit` to data.

    Raises:
        ArgumentError: if an iterable comes with an option for arrays; a `ValueError`.
    """
    if isinstance(x, (ArrayData, IterableData)):
        return x
    pytree("x", x)
    if steps is not None:
        steps = positive_int("the number of steps", steps)
    if is_tree_of_arrays(x):
        return ArrayData(x, y, sample_weight, batch_size=32 if batch_size is None else batch_size, steps=steps)
    for name, value in (("y", y), ("sample_weight", sample_weight), ("batch_size", batch_size)):
        if value is not None:
            raise ArgumentError(f"an iterable gives whole batches, (x, y) or (x, y, sample_weight): leave out {name}=")
    return IterableData(x, steps=steps)


def as_one_batch(x: Any, y: Any = None, sample_weight: Any = None) -> ArrayData:
    """All examples as one batch."""
    return ArrayData(x, y, sample_weight, batch_size=MOST)


def as_validation_data(given: Any, batch_size: int | None) -> Data | None:
    """Convert `validation_data` to data; None stays None."""
    if given is None:
        return None
    pytree("validation_data", given)
    if isinstance(given, tuple) and len(given) in (2, 3):
        return as_data(given[0], given[1], given[2] if len(given) == 3 else None, batch_size=batch_size)
    return as_data(given, None, None, batch_size=batch_size if is_tree_of_arrays(given) else None)


def split_validation(arrays: tuple[Any, Any, Any], share: float, validation_data: Any) -> tuple[Any, Any]:
    """Return the examples to train on, `(x, y, sample_weight)`, and the validation data.

    Args:
        arrays: `(x, y, sample_weight)`.
        share: the fraction of the examples, taken from the end, to validate on; 0 to use `validation_data`.
        validation_data: as for `fit`.

    Raises:
        ArgumentError: if the share is not between 0 and 1, or if both it and `validation_data` are given; a
            `ValueError`.
    """
    if not real_number("validation_split", share):
        return arrays, validation_data
    if validation_data is not None:
        raise ArgumentError("give validation_split= or validation_data=, not both")
    if not 0 < share < 1:
        raise ArgumentError(f"validation_split must be a share between 0 and 1, got {share}")
    return ArrayData(*arrays, batch_size=1).split(share)


def is_tree_of_arrays(x: Any) -> bool:
    """Whether a value is an array, or dicts, tuples and lists of arrays, rather than an iterable of batches.

    A list of tuples or dicts counts as batches, a list of arrays as the inputs of a model with several inputs.
    """
    if isinstance(x, dict):
        return all(is_tree_of_arrays(part) for part in x.values())
    if isinstance(x, tuple):
        return bool(x) and all(is_tree_of_arrays(part) for part in x)
    if isinstance(x, list):
        return bool(x) and all(map(_is_array, x))
    return _is_array(x)


def _is_array(x: Any) -> bool:
    return hasattr(x, "shape") and hasattr(x, "dtype")
