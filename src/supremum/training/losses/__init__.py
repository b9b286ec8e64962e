"""Losses for classification and regression: computed in one dtype, weighted by example.

Losses that layers add are in `nn`.
"""

from supremum.public_names import public_names
from supremum.training.losses.circle import Circle
from supremum.training.losses.compiled_loss import (
    LOSSES,
    CompiledLoss,
    FunctionLoss,
    as_loss,
    entries,
    record_terms,
    weights_by_output,
)
from supremum.training.losses.cross_entropy import (
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    SparseCategoricalCrossentropy,
)
from supremum.training.losses.ctc import CTC
from supremum.training.losses.hinge import CategoricalHinge, Hinge, SquaredHinge
from supremum.training.losses.loss import Loss, apply_weights, replace_left_out, replicas, spread_weights
from supremum.training.losses.overlap import Dice, Tversky
from supremum.training.losses.regression import (
    CosineSimilarity,
    Huber,
    KLDivergence,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    absolute_errors,
    squared_errors,
)

__all__ = [
    "CTC", "LOSSES", "BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy", "CategoricalGeneralizedCrossEntropy", "CategoricalHinge", "Circle", "CompiledLoss",
    "CosineSimilarity", "Dice", "FunctionLoss", "Hinge", "Huber", "KLDivergence", "LogCosh", "Loss",
    "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError", "Poisson",
    "SparseCategoricalCrossentropy", "SquaredHinge", "Tversky", "absolute_errors", "apply_weights", "as_loss",
    "entries", "record_terms", "replace_left_out", "replicas", "spread_weights", "squared_errors", "weights_by_output",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
