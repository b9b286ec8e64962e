"""Callbacks that run while a model trains, evaluates or predicts.

They read the state of training and may stop it; they do not change a step.
"""

from supremum.public_names import public_names
from supremum.training.callbacks.callback import Callback, CallbackList, LambdaCallback, as_callbacks
from supremum.training.callbacks.history import CSVLogger, History
from supremum.training.callbacks.learning_rate import LearningRateScheduler, ReduceLROnPlateau
from supremum.training.callbacks.monitor_callbacks import EarlyStopping, ModelCheckpoint
from supremum.training.callbacks.numerics_monitor import NumericsMonitor
from supremum.training.callbacks.progress import pass_progress, progress_of
from supremum.training.callbacks.tensorboard import TensorBoard
from supremum.training.callbacks.terminate_on_nan import TerminateOnNaN

__all__ = [
    "CSVLogger", "Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler",
    "ModelCheckpoint", "NumericsMonitor", "ReduceLROnPlateau", "TensorBoard", "TerminateOnNaN", "as_callbacks",
    "pass_progress", "progress_of",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
