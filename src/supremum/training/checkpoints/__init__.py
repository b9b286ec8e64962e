"""Checkpoints: arrays, weights and whole training states saved to files and folders."""

from supremum.training.checkpoints.arrays_folder import check_folder_writable
from supremum.training.checkpoints.arrays_record import Schema, is_count, validate
from supremum.training.checkpoints.checkpoint_folder import CheckpointFolder, CheckpointWarning
from supremum.training.checkpoints.errors import CheckpointError, CheckpointFileError, MissingCheckpointError, damaged
from supremum.training.checkpoints.stored_arrays import FOLDER, checked_format, load_arrays, save_arrays
from supremum.training.checkpoints.training_state import Checkpoint, named_arrays
from supremum.training.checkpoints.weights import (
    LoadReport,
    MismatchError,
    fitted_values,
    load_weights,
    save_weights,
)

__all__ = [
    "FOLDER", "Checkpoint", "CheckpointError", "CheckpointFileError", "CheckpointFolder", "CheckpointWarning",
    "LoadReport", "MismatchError", "MissingCheckpointError", "Schema", "check_folder_writable", "checked_format",
    "damaged", "fitted_values", "is_count", "load_arrays", "load_weights", "named_arrays", "save_arrays",
    "save_weights", "validate",
]  # fmt: skip
