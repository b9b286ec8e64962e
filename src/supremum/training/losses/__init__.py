"""Losses for classification and regression: computed in one dtype, weighted by example."""

from supremum.training.losses.compiled_loss import CompiledLoss
from supremum.training.losses.cross_entropy import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    SparseCategoricalCrossentropy,
)
from supremum.training.losses.lookup import LOSSES, FunctionLoss, as_loss
from supremum.training.losses.loss import Loss
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
from supremum.training.losses.sample_weights import replicas, spread_weights, weighted
from supremum.training.losses.zero_weights import without_left_out

__all__ = [
    "LOSSES", "BinaryCrossentropy", "CategoricalCrossentropy", "CompiledLoss", "CosineSimilarity", "FunctionLoss",
    "Huber", "KLDivergence", "Loss", "MeanAbsoluteError", "MeanSquaredError", "Poisson",
    "SparseCategoricalCrossentropy", "absolute_errors", "as_loss", "replicas", "spread_weights", "squared_errors",
    "weighted", "without_left_out",
]  # fmt: skip
