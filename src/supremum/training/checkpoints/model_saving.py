"""A model's weights, and all that its training needs to go on, to files and back."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from supremum.atomic_files import as_path
from supremum.errors import shown
from supremum.nn import Layer
from supremum.training.checkpoints.arrays_record import damaged
from supremum.training.checkpoints.errors import CheckpointError
from supremum.training.checkpoints.training_state import Checkpoint, named_arrays
from supremum.training.checkpoints.weights import LoadReport, fitted_values, load_weights, save_weights
from supremum.training.distributed.sharding import committed, placed_alike, specs

if TYPE_CHECKING:
    from supremum.training.trainer import Trainer


# The count of steps is an int32 in the state that a step is given.
_MOST_STEPS = 2**31 - 1


class Saving(Layer):
    """Saving and loading, as a model has it."""

    def save_weights(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write the weights, in the dtypes they are stored in, to a file of safetensors, or a folder of orbax.

        It is written beside and renamed when it is whole: what was there before is there until then. Where several
        processes train together, every one makes the call.

        Args:
            path: the file or folder.
            format: `"safetensors"` for one file, which None means as well, or `"orbax"` for a folder that
                orbax-checkpoint writes: arrays that are sharded stay so, and each process writes its own parts.

        Raises:
            ArgumentError: for one file of weights that are sharded over several processes.
            UninitializedError: if there are no weights yet.
            CheckpointFileError: where it cannot be written; an `OSError`.
        """
        save_weights(self, path, format=format)

    def load_weights(self, path: str | os.PathLike[str], *, strict: bool = True, cast: bool = False) -> LoadReport:
        """Read weights that `save_weights` or `save_state` wrote, under whatever policy and on however many devices.

        Args:
            path: the file or folder.
            strict: whether every weight has to be there, and no other; otherwise what fits is loaded.
            cast: whether floating values are cast to the dtype of their variable where that is another floating one.

        Returns:
            What was loaded.

        Raises:
            MismatchError: for values that do not fit; the model is as it was.
            CheckpointError: for a file that is damaged or not ours.
            UninitializedError: if the model does not know its variables yet.
        """
        with self.compiled().loading("load_weights") if self.is_compiled else nullcontext():
            return load_weights(self, path, strict=strict, cast=cast)

    def save_state(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write all that training needs to go on bit for bit: weights, optimizer, loss scale, random keys, counts.

        Where several processes train together, every one makes the call.

        Args:
            path: the file or folder.
            format: `"safetensors"` for one file, which None means as well, or `"orbax"` for a folder that
                orbax-checkpoint writes: arrays that are sharded stay so, and each process writes its own parts.

        Raises:
            ArgumentError: before `compile`, or for one file of arrays that are sharded over several processes.
            UninitializedError: before there are weights.
            CheckpointFileError: where it cannot be written; an `OSError`.
        """
        trainer = self.compiled()
        with trainer.alone("save_state"):
            trainer.prepare()
            Checkpoint(
                model=self.variables,
                optimizer=trainer.optimizer.variables,
                rng=trainer.key,
                step=int(trainer.count),
                policy=self.dtype_policy.get_config(),
                optimizer_config=trainer.optimizer.get_config(),
                extra={"epoch": trainer.epoch, "seed": trainer.seed},
            ).save(path, format=format)

    def load_state(self, path: str | os.PathLike[str]) -> int:
        """Read what `save_state` wrote, into a model that was built and compiled alike.

        The policy may be another one: weights are stored alike, and a loss scale that only one side has is left out, or
        as it was. Values go onto the devices that the model's and the optimizer's are on, wherever they were before.

        Args:
            path: the file or folder.

        Returns:
            The epoch to go on with: `model.fit(..., initial_epoch=model.load_state(path))`.

        Raises:
            MismatchError: for values that do not fit; model and optimizer are as they were.
            CheckpointError: for a file that is damaged, or holds no training state.
        """
        trainer = self.compiled()
        with trainer.loading("load_state"):
            return self._load_state(path, trainer)

    def _load_state(self, path: str | os.PathLike[str], trainer: Trainer) -> int:
        trainer.prepare()
        before = specs(trainer.optimizer.state)
        like = committed(named_arrays(self.variables, trainer.optimizer.variables))
        found = Checkpoint.load(path, like=like)
        values, _ = fitted_values(self, found.model, source=str(path))
        extra: dict[str, Any] = dict(found.extra)
        if found.rng is None or not {"epoch", "seed"} <= extra.keys():
            raise CheckpointError(
                f"{path} is no state of a model's training: model.load_weights({shown(str(path))}) takes it"
            )
        epoch, seed = extra["epoch"], extra["seed"]
        if type(epoch) is not int or epoch < 0:
            raise damaged(as_path(path), f"its epoch is {shown(epoch)}")
        if type(seed) is not int:
            raise damaged(as_path(path), f"its seed is {shown(seed)}")
        if found.step > _MOST_STEPS:
            raise damaged(as_path(path), f"its step is {shown(found.step)}")
        if not trainer.takes_key(found.rng):
            raise damaged(as_path(path), f"its random key is {found.rng.dtype}{list(found.rng.shape)}")
        with trainer.interrupts.held_back():
            trainer.optimizer.load_variables(found.optimizer)
            trainer.optimizer.state = placed_alike(trainer.optimizer.state, before)
            named = self.variables
            for name, value in values.items():
                named[name].assign(value)
            trainer.resume(found.rng, found.step, epoch, seed)
        return trainer.epoch

    @property
    def is_compiled(self) -> bool:
        """Whether it knows how to train."""
        raise NotImplementedError

    def compiled(self) -> Trainer:
        """What trains the model.

        Raises:
            ArgumentError: before `compile`; a `ValueError`.
        """
        raise NotImplementedError
