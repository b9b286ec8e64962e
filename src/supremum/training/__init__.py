"""Training: losses, metrics, the step, the loop."""

from supremum.training import metrics
from supremum.training.accuracies import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from supremum.training.cross_entropy import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    SparseCategoricalCrossentropy,
)
from supremum.training.loop import History, accuracy, fit
from supremum.training.loss import Loss
from supremum.training.losses import FunctionLoss, as_loss
from supremum.training.metric import FunctionMetric, Mean, Metric
from supremum.training.metrics import as_metric
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
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CosineSimilarity",
    "FunctionLoss",
    "FunctionMetric",
    "History",
    "Huber",
    "KLDivergence",
    "Loss",
    "LossFunction",
    "Mean",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Metric",
    "Poisson",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "StepReport",
    "TopKCategoricalAccuracy",
    "TrainState",
    "TrainStep",
    "accuracy",
    "as_loss",
    "as_metric",
    "fit",
    "init_state",
    "metrics",
    "train_step",
]
