"""Checkpoints: arrays, weights and whole training states saved to files and folders.

Files are in safetensors format, and orbax writes the arrays of folders.
"""

from supremum.public_names import public_names
from supremum.training.checkpoints.errors import CheckpointError, CheckpointFileError, MissingCheckpointError
from supremum.training.checkpoints.stored_arrays import check_savable, checkpoint_format, load_arrays, save_arrays
from supremum.training.checkpoints.training_state import Checkpoint, load_resumable
from supremum.training.checkpoints.weights import (
    LoadReport,
    MismatchError,
    fit_values,
    load_optimizer,
    load_weights,
    save_weights,
)

__all__ = [
    "Checkpoint", "CheckpointError", "CheckpointFileError", "LoadReport",
    "MismatchError", "MissingCheckpointError", "check_savable", "checkpoint_format", "fit_values", "load_arrays",
    "load_optimizer", "load_resumable", "load_weights", "save_arrays", "save_weights",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
