"""Callbacks that run while a model trains, evaluates or predicts."""

from supremum.training.callbacks.callback import Callback, LambdaCallback
from supremum.training.callbacks.callback_list import CallbackList, as_callbacks
from supremum.training.callbacks.csv_logger import CSVLogger
from supremum.training.callbacks.early_stopping import EarlyStopping
from supremum.training.callbacks.history import History
from supremum.training.callbacks.model_checkpoint import ModelCheckpoint
from supremum.training.callbacks.progress import pass_progress, progress_of

__all__ = [
    "CSVLogger", "Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback", "ModelCheckpoint",
    "as_callbacks", "pass_progress", "progress_of",
]  # fmt: skip
