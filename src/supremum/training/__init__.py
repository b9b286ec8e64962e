"""Training: losses, the step, the loop."""

from supremum.training.loop import History, accuracy, fit
from supremum.training.losses import Loss, SparseCategoricalCrossentropy
from supremum.training.step import LossFunction, StepReport, TrainState, TrainStep, init_state, train_step

__all__ = [
    "History",
    "Loss",
    "LossFunction",
    "SparseCategoricalCrossentropy",
    "StepReport",
    "TrainState",
    "TrainStep",
    "accuracy",
    "fit",
    "init_state",
    "train_step",
]
