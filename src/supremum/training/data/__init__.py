"""Training data: batches from arrays or iterables, and checks of the inputs of losses and metrics."""

from supremum.training.data.array_data import ArrayData
from supremum.training.data.batch import Batch, Part, Rows, Selection
from supremum.training.data.fit_data import Data, as_data, as_one_batch, as_validation_data, split_validation
from supremum.training.data.inputs import (
    array_pair,
    as_inputs,
    as_weights,
    check_has_axes,
    check_labels,
    check_same_shape,
    one_array,
    same_shaped_pair,
)
from supremum.training.data.iterable_data import IterableData

__all__ = [
    "ArrayData", "Batch", "Data", "IterableData", "Part", "Rows", "Selection", "array_pair", "as_data", "as_inputs",
    "as_one_batch", "as_validation_data", "as_weights", "check_has_axes", "check_labels", "check_same_shape",
    "one_array", "same_shaped_pair", "split_validation",
]  # fmt: skip
