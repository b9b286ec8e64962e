"""Training: models that fit, losses, metrics, callbacks, checkpoints, and the step as a pure function.

Starting and watching processes is the work of other programs, and moving bytes between them that of JAX.
"""

from typing import TYPE_CHECKING, NoReturn

from supremum.extras import require

require(__name__, "jax", "optax", "rich", "safetensors")

from supremum.public_names import missing_name, public_names
from supremum.training.callbacks import (
    Callback,
    CSVLogger,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    ModelCheckpoint,
    NumericsMonitor,
    ReduceLROnPlateau,
    TensorBoard,
    TerminateOnNaN,
)
from supremum.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    CheckpointFileError,
    LoadReport,
    MismatchError,
    MissingCheckpointError,
    load_arrays,
    load_weights,
    save_arrays,
    save_weights,
)
from supremum.training.data import ArrayData, Batch, IterableData
from supremum.training.distributed import DataParallel, FullyShardedDataParallel
from supremum.training.losses import (
    CTC,
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    CategoricalHinge,
    Circle,
    CosineSimilarity,
    Dice,
    FunctionLoss,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    Loss,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    Tversky,
    as_loss,
)
from supremum.training.metrics import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    FunctionMetric,
    Mean,
    Metric,
    SparseCategoricalAccuracy,
    TopKCategoricalAccuracy,
    as_metric,
)
from supremum.training.model import Model, Sequential
from supremum.training.step import LossFunction, StepLog, TrainState, TrainStep, init_state, train_step
from supremum.training.warnings import TrainingWarning

__all__ = [
    "CTC", "Accuracy", "ArrayData", "Batch", "BinaryAccuracy", "BinaryCrossentropy", "BinaryFocalCrossentropy",
    "CSVLogger", "Callback", "CategoricalAccuracy", "CategoricalCrossentropy", "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy", "CategoricalHinge", "Checkpoint", "CheckpointError", "CheckpointFileError",
    "Circle", "CosineSimilarity", "DataParallel", "Dice", "EarlyStopping", "FullyShardedDataParallel", "FunctionLoss",
    "FunctionMetric", "Hinge", "History", "Huber", "IterableData", "KLDivergence", "LambdaCallback",
    "LearningRateScheduler", "LoadReport", "LogCosh", "Loss", "LossFunction", "Mean", "MeanAbsoluteError",
    "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError", "Metric", "MismatchError",
    "MissingCheckpointError", "Model", "ModelCheckpoint", "NumericsMonitor", "Poisson", "ReduceLROnPlateau",
    "Sequential", "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "SquaredHinge", "StepLog",
    "TensorBoard", "TerminateOnNaN", "TopKCategoricalAccuracy", "TrainState", "TrainStep", "TrainingWarning", "Tversky",
    "as_loss", "as_metric", "init_state", "load_arrays", "load_weights", "save_arrays", "save_weights", "train_step",
]  # fmt: skip


if not TYPE_CHECKING:  # or type checkers would accept every name

    def __getattr__(name: str) -> NoReturn:
        raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return public_names(globals())
