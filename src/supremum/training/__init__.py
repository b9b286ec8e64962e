"""Training: models that fit, losses, metrics, callbacks, checkpoints, and the step as a pure function."""

from supremum.training.accuracies import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from supremum.training.batch import Batch
from supremum.training.callbacks import Callback, CSVLogger, EarlyStopping, LambdaCallback, ModelCheckpoint
from supremum.training.checkpoint_errors import CheckpointError, CheckpointFileError, MissingCheckpointError
from supremum.training.checkpoint_folder import CheckpointFolder, CheckpointWarning
from supremum.training.checkpoints import Checkpoint
from supremum.training.cross_entropy import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    SparseCategoricalCrossentropy,
)
from supremum.training.data import ArrayData, IterableData
from supremum.training.distribution import DataParallel, FullyShardedDataParallel
from supremum.training.history import History
from supremum.training.loss import Loss
from supremum.training.losses import FunctionLoss, as_loss
from supremum.training.metric import FunctionMetric, Mean, Metric
from supremum.training.metrics import as_metric
from supremum.training.model import Model, Sequential
from supremum.training.processes import initialize_processes
from supremum.training.regression import (
    CosineSimilarity,
    Huber,
    KLDivergence,
    MeanAbsoluteError,
    MeanSquaredError,
    Poisson,
)
from supremum.training.step import LossFunction, TrainState, TrainStep, init_state, train_step
from supremum.training.step_log import StepLog
from supremum.training.stored_arrays import load_arrays, save_arrays
from supremum.training.training_warning import TrainingWarning
from supremum.training.weights import LoadReport, MismatchError, load_weights, save_weights

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
