"""Training data: batches from arrays or iterables, and checks of the inputs of losses and metrics."""

from supremum.public_names import public_names
from supremum.training.data.batches import (
    ArrayData,
    Batch,
    Data,
    IterableData,
    Rows,
    Selection,
    as_batch,
    as_data,
    as_fit_data,
    as_one_batch,
    described_batch,
)
from supremum.training.data.inputs import (
    array_pair,
    as_inputs,
    as_weights,
    at_labels,
    check_has_axes,
    check_labels,
    one_array,
    same_shaped_pair,
)

__all__ = [
    "ArrayData", "Batch", "Data", "IterableData", "Rows", "Selection", "array_pair", "as_batch", "as_data",
    "as_fit_data", "as_inputs", "as_one_batch", "as_weights", "at_labels", "check_has_axes", "check_labels",
    "described_batch", "one_array", "same_shaped_pair",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
