"""Training: losses, metrics, the step, the loop."""

from supremum.training.cross_entropy import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    SparseCategoricalCrossentropy,
)
from supremum.training.loop import History, accuracy, fit
from supremum.training.loss import Loss
from supremum.training.losses import FunctionLoss, as_loss
from supremum.training.regression import (
    CosineSimilarity,
    Huber,
    KLDivergence,
    MeanAbsoluteError,
    MeanSquaredError,
    Poisson,
)
from supremum.training.step import LossFunction, StepReport, TrainState, TrainStep, init_state, train_step

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "CosineSimilarity",
    "FunctionLoss",
    "History",
    "Huber",
    "KLDivergence",
    "Loss",
    "LossFunction",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "StepReport",
    "TrainState",
    "TrainStep",
    "accuracy",
    "as_loss",
    "fit",
    "init_state",
    "train_step",
]
