"""Training: models that fit, losses, metrics, callbacks, checkpoints, and the step as a pure function."""

from supremum.training.callbacks import (
    Callback,
    CSVLogger,
    EarlyStopping,
    History,
    LambdaCallback,
    ModelCheckpoint,
)
from supremum.training.checkpoints.checkpoint_folder import CheckpointFolder, CheckpointWarning
from supremum.training.checkpoints.errors import CheckpointError, CheckpointFileError, MissingCheckpointError
from supremum.training.checkpoints.stored_arrays import load_arrays, save_arrays
from supremum.training.checkpoints.training_state import Checkpoint
from supremum.training.checkpoints.weights import LoadReport, MismatchError, load_weights, save_weights
from supremum.training.data.batch import Batch
from supremum.training.data.batches import ArrayData, IterableData
from supremum.training.distributed.distribution import DataParallel, FullyShardedDataParallel
from supremum.training.distributed.process_init import initialize_processes
from supremum.training.losses.cross_entropy import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    SparseCategoricalCrossentropy,
)
from supremum.training.losses.lookup import FunctionLoss, as_loss
from supremum.training.losses.loss import Loss
from supremum.training.losses.regression import (
    CosineSimilarity,
    Huber,
    KLDivergence,
    MeanAbsoluteError,
    MeanSquaredError,
    Poisson,
)
from supremum.training.metrics.accuracy import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from supremum.training.metrics.lookup import as_metric
from supremum.training.metrics.metric import FunctionMetric, Mean, Metric
from supremum.training.model import Model, Sequential
from supremum.training.step import LossFunction, TrainState, TrainStep, init_state, train_step
from supremum.training.step_log import StepLog
from supremum.training.warnings import TrainingWarning

__all__ = [
    "Accuracy",
    "ArrayData",
    "Batch",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "CSVLogger",
    "Callback",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "Checkpoint",
    "CheckpointError",
    "CheckpointFileError",
    "CheckpointFolder",
    "CheckpointWarning",
    "CosineSimilarity",
    "DataParallel",
    "EarlyStopping",
    "FullyShardedDataParallel",
    "FunctionLoss",
    "FunctionMetric",
    "History",
    "Huber",
    "IterableData",
    "KLDivergence",
    "LambdaCallback",
    "LoadReport",
    "Loss",
    "LossFunction",
    "Mean",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Metric",
    "MismatchError",
    "MissingCheckpointError",
    "Model",
    "ModelCheckpoint",
    "Poisson",
    "Sequential",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "StepLog",
    "TopKCategoricalAccuracy",
    "TrainState",
    "TrainStep",
    "TrainingWarning",
    "as_loss",
    "as_metric",
    "init_state",
    "initialize_processes",
    "load_arrays",
    "load_weights",
    "save_arrays",
    "save_weights",
    "train_step",
]
