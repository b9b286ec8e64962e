"""The arguments of `fit`, `evaluate` and `predict` as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from supremum.argument_checks import pytree, real_number
from supremum.errors import ArgumentError
from supremum.nn.functional import MOST, positive_int
from supremum.training.data.batches import ArrayData, Data, IterableData, SampleWeight
from supremum.typing import PyTree


def as_data(
    x: PyTree | Iterable[PyTree],
    y: PyTree = None,
    sample_weight: SampleWeight = None,
    *,
    batch_size: int | None,
    steps: int | None = None,
    class_weight: Mapping[int, float] | None = None,
    restarts: bool = False,
) -> Data:
    """Convert the arguments of `fit` to data.

    Args:
        x: inputs, or an iterable of batches.
        y: labels.
        sample_weight: the weight of each example.
        batch_size: examples per batch; None for 32.
        steps: how many batches make an epoch; None for all of them.
        class_weight: as for `ArrayData`.
        restarts: as for `IterableData`.

    Raises:
        ArgumentError: if an iterable comes with an option for arrays; a `ValueError`.
    """
    if isinstance(x, (ArrayData, IterableData)):
        if class_weight is not None:
            kind = type(x).__name__
            raise ArgumentError(f"the {kind} is already made; give class_weight to {kind}(...) instead of fit")
        return x
    pytree("x", x)
    if steps is not None:
        steps = positive_int("the number of steps", steps)
    if _is_tree_of_arrays(x):
        size = 32 if batch_size is None else batch_size
        return ArrayData(x, y, sample_weight, batch_size=size, steps=steps, class_weight=class_weight)
    for name, value in (("y", y), ("sample_weight", sample_weight), ("batch_size", batch_size)):
        if value is not None:
            raise ArgumentError(f"an iterable gives whole batches, (x, y) or (x, y, sample_weight): leave out {name}=")
    return IterableData(x, steps=steps, class_weight=class_weight, restarts=restarts)


def as_one_batch(
    x: PyTree,
    y: PyTree = None,
    sample_weight: SampleWeight = None,
    class_weight: Mapping[int, float] | None = None,
) -> ArrayData:
    """All examples as one batch."""
    return ArrayData(x, y, sample_weight, batch_size=MOST, class_weight=class_weight)


def as_fit_data(
    arrays: tuple[Any, Any, Any],
    batch_size: int | None,
    steps: int | None,
    validation_split: float,
    validation_data: PyTree | Iterable[PyTree] | None,
    validation_batch_size: int | None,
    validation_steps: int | None,
    class_weight: Mapping[int, float] | None,
) -> tuple[Data, Data | None]:
    """Convert the arguments of `fit` to the data to train on, and the data to validate on, or None.

    Args:
        arrays: `(x, y, sample_weight)`.
        batch_size: examples per batch; None for 32.
        steps: how many batches make an epoch; None for all of them.
        validation_split: the fraction of the examples, taken from the end, to validate on; 0 to use `validation_data`.
        validation_data: as for `fit`.
        validation_batch_size: examples per validation batch; None for `batch_size`.
        validation_steps: how many batches to validate on, the first ones each time; None for all of them.
        class_weight: the weights of examples by class, for the data to train on.

    Raises:
        ArgumentError: if the fraction is not between 0 and 1, or if both it and `validation_data` are given; a
            `ValueError`.
    """
    if real_number("validation_split", validation_split):
        if validation_data is not None:
            raise ArgumentError("give validation_split= or validation_data=, not both")
        if not 0 < validation_split < 1:
            raise ArgumentError(f"validation_split must be a share between 0 and 1, got {validation_split}")
        arrays, validation_data = ArrayData(*arrays, batch_size=1).split(validation_split)
    data = as_data(*arrays, batch_size=batch_size, steps=steps, class_weight=class_weight)
    if validation_data is None:
        if validation_steps is not None:
            raise ArgumentError("validation_steps needs validation_data= or validation_split=")
        return data, None
    pytree("validation_data", validation_data)
    size = batch_size if validation_batch_size is None else validation_batch_size
    if isinstance(validation_data, tuple) and len(validation_data) in (2, 3):
        return data, as_data(*validation_data, batch_size=size, steps=validation_steps)
    size = size if _is_tree_of_arrays(validation_data) else None
    return data, as_data(validation_data, batch_size=size, steps=validation_steps, restarts=True)


def _is_tree_of_arrays(x: PyTree) -> bool:
    """Whether a value is an array, or dicts, tuples and lists of arrays, rather than an iterable of batches.

    A list of tuples or dicts counts as batches, a list of arrays as the inputs of a model with several inputs.
    """
    if isinstance(x, dict):
        return all(_is_tree_of_arrays(part) for part in x.values())
    if isinstance(x, tuple):
        return bool(x) and all(_is_tree_of_arrays(part) for part in x)
    if isinstance(x, list):
        return bool(x) and all(map(_is_array, x))
    return _is_array(x)


def _is_array(x: object) -> bool:
    return hasattr(x, "shape") and hasattr(x, "dtype")
