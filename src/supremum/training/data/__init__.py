"""Training data: batches from arrays or iterables, and checks of the inputs of losses and metrics.

It does not load, decode or augment data.
"""

from supremum.public_names import public_names
from supremum.training.data.batches import (
    ArrayData,
    Batch,
    Data,
    IterableData,
    Rows,
    SampleWeight,
    Selection,
    as_batch,
    describe_batch,
)
from supremum.training.data.fit_data import as_data, as_fit_data, as_one_batch
from supremum.training.data.inputs import (
    aligned_pair,
    array_pair,
    as_inputs,
    as_weights,
    at_labels,
    check_has_axes,
    class_numbers,
    one_array,
    same_shaped_pair,
    without_label_axis,
)

__all__ = [
    "ArrayData", "Batch", "Data", "IterableData", "Rows", "SampleWeight", "Selection", "aligned_pair", "array_pair",
    "as_batch", "as_data", "as_fit_data", "as_inputs", "as_one_batch", "as_weights", "at_labels", "check_has_axes",
    "class_numbers", "describe_batch", "one_array", "same_shaped_pair", "without_label_axis",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
