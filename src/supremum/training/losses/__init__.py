"""Losses for classification and regression: computed in one dtype, weighted by example.

Losses that layers add are in `nn`.
"""

from supremum.public_names import public_names
from supremum.training.losses.compiled_loss import LOSSES, CompiledLoss, FunctionLoss, as_loss, entries, recorded_terms
from supremum.training.losses.cross_entropy import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    SparseCategoricalCrossentropy,
)
from supremum.training.losses.loss import Loss, replicas, spread_weights, weighted, without_left_out
from supremum.training.losses.regression import (
    CosineSimilarity,
    Huber,
    KLDivergence,
    MeanAbsoluteError,
    MeanSquaredError,
    Poisson,
    absolute_errors,
    squared_errors,
)

__all__ = [
    "LOSSES", "BinaryCrossentropy", "CategoricalCrossentropy", "CompiledLoss", "CosineSimilarity", "FunctionLoss",
    "Huber", "KLDivergence", "Loss", "MeanAbsoluteError", "MeanSquaredError", "Poisson",
    "SparseCategoricalCrossentropy", "absolute_errors", "as_loss", "entries", "recorded_terms", "replicas",
    "spread_weights", "squared_errors", "weighted", "without_left_out",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
