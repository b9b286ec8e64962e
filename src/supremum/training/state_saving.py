"""Save the training state of a model to a checkpoint, and resume from it."""

from __future__ import annotations

import os
from typing import Any

from supremum.atomic_files import as_path
from supremum.errors import shown
from supremum.nn import Layer
from supremum.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    Schema,
    damaged,
    fitted_values,
    is_count,
    named_arrays,
    validate,
)
from supremum.training.distributed import committed, placed_alike, specs
from supremum.training.trainer import Trainer

_RESUMED_ENTRIES: Schema = {
    "epoch": is_count,
    "seed": lambda value: type(value) is int,
    "step": lambda value: is_count(value) and value < 2**31,  # steps store it as an int32
}


def save_state(model: Layer, trainer: Trainer, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
    """Write everything needed to resume training, as `Model.save_state` does.

    Args:
        model: the model.
        trainer: the trainer of the model.
        path: the file or folder.
        format: as for `save_arrays`.
    """
    with trainer.alone("save_state"):
        trainer.prepare()
        Checkpoint(
            model=model.variables,
            optimizer=trainer.optimizer.variables,
            rng=trainer.key,
            step=int(trainer.count),
            policy=model.dtype_policy.get_config(),
            optimizer_config=trainer.optimizer.get_config(),
            extra={"epoch": trainer.epoch, "seed": trainer.seed},
        ).save(path, format=format)


def load_state(model: Layer, trainer: Trainer, path: str | os.PathLike[str]) -> int:
    """Read what `save_state` wrote, as `Model.load_state` does.

    Args:
        model: the model.
        trainer: the trainer of the model.
        path: the file or folder.

    Returns:
        The epoch to continue with.
    """
    with trainer.loading("load_state"):
        trainer.prepare()
        before = specs(trainer.optimizer.state)
        like = committed(named_arrays(model.variables, trainer.optimizer.variables))
        found = Checkpoint.load(path, like=like)
        values, _ = fitted_values(model, found.model, source=str(path))
        epoch, seed = _epoch_and_seed(path, found, trainer)
        with trainer.interrupts.held_back():
            trainer.optimizer.load_variables(found.optimizer)
            trainer.optimizer.state = placed_alike(trainer.optimizer.state, before)
            named = model.variables
            for name, value in values.items():
                named[name].assign(value)
            trainer.resume(found.rng, found.step, epoch, seed)
        return epoch


def _epoch_and_seed(path: str | os.PathLike[str], found: Checkpoint, trainer: Trainer) -> tuple[int, int]:
    """Return the epoch and the seed of a checkpoint, after checking everything that a trainer resumes from."""
    extra: dict[str, Any] = dict(found.extra)
    if found.rng is None or not {"epoch", "seed"} <= extra.keys():
        raise CheckpointError(
            f"{path} does not hold the training state of a model; use model.load_weights({shown(str(path))})"
        )
    resumed = {"epoch": extra["epoch"], "seed": extra["seed"], "step": found.step}
    validate(as_path(path), "its state", resumed, _RESUMED_ENTRIES, _RESUMED_ENTRIES)
    if not trainer.takes_key(found.rng):
        raise damaged(as_path(path), f"its random key is {found.rng.dtype}{list(found.rng.shape)}")
    return extra["epoch"], extra["seed"]
