"""A folder with the newest checkpoints of a run, which can resume from them after it was killed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from supremum.argument_checks import instance
from supremum.atomic_files import as_path, remove_leftovers
from supremum.errors import ArgumentError, shown
from supremum.nn.functional import positive_int
from supremum.training.checkpoints.arrays_record import parsed
from supremum.training.checkpoints.atomic_directories import remove_folder, remove_leftover_folders, whole_names
from supremum.training.checkpoints.errors import CheckpointError, CheckpointFileError, MissingCheckpointError
from supremum.training.checkpoints.process_barrier import is_first
from supremum.training.checkpoints.stored_arrays import checked_format, load_texts
from supremum.training.checkpoints.training_state import Checkpoint, checked_step, is_state
from supremum.user_frame import warn_user

_NAME = r"step-(\d{6,})\.(?:safetensors|orbax)"


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, so an older one is used."""


class CheckpointFolder:
    """The newest checkpoints of one run, `step-000120.safetensors` and so on, or `step-000120.orbax`.

    Other files in the folder are never touched, whatever their names, because a checkpoint stores its own step. The
    next `save` removes what killed writers left behind. Checkpoints of both formats are found, whichever is written. If
    several processes train together, all of them must make each call.

    Args:
        folder: the folder; created by the first `save`.
        keep: how many checkpoints to keep; None for all.
        format: the format to write, as for `Checkpoint.save`.

    Raises:
        ArgumentError: if `keep` is less than 1.
        UnknownNameError: for an unknown format.

    >>> import tempfile
    >>> folder = CheckpointFolder(tempfile.mkdtemp(), keep=2)
    >>> for step in (10, 20, 30):
    ...     _ = folder.save(Checkpoint({}, step=step))
    >>> [path.name for path in folder.paths()], folder.load_latest().step
    (['step-000020.safetensors', 'step-000030.safetensors'], 30)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        keep: int | None = 3,
        format: str | None = None,  # noqa: A002
    ) -> None:
        if keep is not None:
            positive_int("keep", keep)
        self.folder = as_path(folder)
        self.keep = keep
        self._format = checked_format(format)

    def path_of(self, step: int) -> Path:
        """Return the path that the checkpoint of a step has or would have."""
        return self.folder / f"step-{checked_step(step):06d}.{self._format}"

    def paths(self) -> list[Path]:
        """Return the paths of all checkpoints, oldest step first, including incomplete ones."""
        return [path for _, path in sorted(self._found())]

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint under its step, then remove the oldest ones beyond `keep`.

        Args:
            checkpoint: the state.

        Returns:
            The path of the checkpoint.

        Raises:
            ArgumentError: if the folder has a complete checkpoint of a later step, which must belong to another run.
            CheckpointFileError: if the checkpoint cannot be written; an `OSError`. The other ones are unchanged.
        """
        instance("checkpoint", checkpoint, Checkpoint, "a Checkpoint, such as Checkpoint(model)")
        self._check_same_run(checkpoint.step)
        if is_first():
            remove_leftovers(self.folder, _NAME)
            remove_leftover_folders(self.folder, _NAME)
        path = self.path_of(checkpoint.step)
        checkpoint.save(path, format=self._format)
        if self.keep is not None and is_first():
            earlier = [
                found for step, found in sorted(self._found()) if step < checkpoint.step and _step_in(found) == step
            ]
            for old in earlier[: max(0, len(earlier) + 1 - self.keep)]:
                _remove(old)
        return path

    def latest(self) -> Path | None:
        """Return the path of the latest complete checkpoint, or None. Warns about damaged ones."""
        return next((path for path, _ in self._whole()), None)

    def load_latest(self) -> Checkpoint | None:
        """Load the latest complete checkpoint, or return None. Warns about damaged ones.

        Raises:
            CheckpointFileError: for a checkpoint that cannot be read.
        """
        return next((checkpoint for _, checkpoint in self._whole()), None)

    def _found(self) -> Iterator[tuple[int, Path]]:
        for path in whole_names(self.folder):
            match = re.fullmatch(_NAME, path.name)
            if match:
                yield int(match[1]), path

    def _whole(self) -> Iterator[tuple[Path, Checkpoint]]:
        for step, path in sorted(self._found(), reverse=True):
            try:
                checkpoint = Checkpoint.load(path)
                if checkpoint.step != step:
                    raise CheckpointError(f"{path} holds step {checkpoint.step}, not the step in its name")
                yield path, checkpoint
            except MissingCheckpointError:  # another process has removed it
                continue
            except CheckpointFileError:
                raise
            except CheckpointError as error:
                warn_user(f"{error}; the checkpoint before it is used", CheckpointWarning)

    def _check_same_run(self, step: int) -> None:
        for later, path in sorted(self._found(), reverse=True):
            if later > step and _is_whole(path, later):
                raise ArgumentError(
                    f"{path} holds a later step than {step}, so it belongs to another run; use a separate folder for "
                    f"this run, or continue from CheckpointFolder({shown(str(self.folder))}).load_latest()"
                )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink(missing_ok=True)


def _is_whole(path: Path, step: int) -> bool:
    try:
        return Checkpoint.load(path).step == step
    except CheckpointError:
        return False


def _step_in(path: Path) -> int | None:
    """Return the step that a checkpoint stores, or None for a file without one, which may be from another program."""
    try:
        texts = load_texts(path)
        return parsed(path, texts["step"], "step") if is_state(texts) else None
    except (CheckpointError, KeyError):
        return None
