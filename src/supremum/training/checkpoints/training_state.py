"""A whole training state as a value, and as a file or folder from which training goes on bit for bit."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from supremum.atomic_files import as_path
from supremum.errors import ArgumentError, OperandError, shown
from supremum.nn import Variable
from supremum.training.checkpoints.arrays_record import Schema, is_count, parsed, validate
from supremum.training.checkpoints.errors import CheckpointError
from supremum.training.checkpoints.stored_arrays import load_arrays, save_arrays
from supremum.version import __version__

_KIND, _STATE, _WEIGHTS = "holds", "training state", "weights"
_STATE_ENTRIES: Schema = {
    "step": is_count,
    "policy": lambda value: value is None or isinstance(value, dict),
    "optimizer": lambda value: value is None or isinstance(value, dict),
    "extra": lambda value: isinstance(value, dict),
}
_MODEL, _OPTIMIZER, _RNG = "model/", "optimizer/", "rng"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that training needs to go on as if it had never stopped.

    Args:
        model: the values of the model's variables by path, or `model.variables` itself.
        optimizer: the optimizer's by name, those of its loss scale among them.
        rng: the key, or keys, of `jax.random` that the next step starts from; None for none.
        step: how many steps were made.
        policy: the config of the model's dtype policy.
        optimizer_config: the config of the optimizer; left out of the file where it is not JSON.
        extra: anything else to keep, such as the epoch; JSON values.

    Raises:
        OperandError: for a step that is not a whole number.
        ArgumentError: for a negative one.

    >>> import tempfile
    >>> import numpy as np
    >>> path = tempfile.mkdtemp() + "/state.safetensors"
    >>> Checkpoint({"kernel": np.ones(2)}, {"iterations": np.int32(7)}, step=7, extra={"epoch": 1}).save(path)
    >>> found = Checkpoint.load(path)
    >>> found.model, found.optimizer, found.step, found.extra
    ({'kernel': array([1., 1.])}, {'iterations': array(7, dtype=int32)}, 7, {'epoch': 1})
    """

    model: Mapping[str, Any]
    optimizer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rng: Any = None
    step: int = 0
    policy: Mapping[str, Any] | None = None
    optimizer_config: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", checked_step(self.step))

    def save(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write it, as `save_arrays` does, with the values that variables store.

        Args:
            path: where.
            format: `"safetensors"`, as None, or `"orbax"`; the same arrays and texts in both.

        Raises:
            OperandError: for what no file holds: a policy or extra that is not JSON, an array of objects.
            CheckpointFileError: where it cannot be written; an `OSError`. What was there is as it was.
        """
        arrays = named_arrays(self.model, self.optimizer)
        if self.rng is not None:
            arrays[_RNG] = self.rng
        texts = {
            "step": str(self.step),
            "policy": _as_json("policy", self.policy),
            "optimizer": _config_as_json(self.optimizer_config),
            "extra": _as_json("extra", self.extra),
        }
        save_arrays(path, arrays, labels(_STATE) | texts, format=format)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, like: Mapping[str, Any] | None = None) -> Checkpoint:
        """Read what `save` wrote.

        Args:
            path: the file or folder.
            like: what arrays of a folder are placed like, as for `load_arrays`, by the names of `named_arrays`.

        Returns:
            The state, with arrays of NumPy where nothing else was asked for, and the key as a key.

        Raises:
            CheckpointError: for a file that is damaged, or holds no training state.
        """
        arrays, texts = load_arrays(path, like=like)
        if not is_state(texts):
            raise CheckpointError(f"{path} does not hold a training state; use load_weights(layer, {shown(str(path))})")
        said = {name: parsed(as_path(path), texts.get(name, ""), name) for name in _STATE_ENTRIES}
        validate(as_path(path), "its state", said, _STATE_ENTRIES, _STATE_ENTRIES)
        return cls(
            model=section(arrays, _MODEL),
            optimizer=section(arrays, _OPTIMIZER),
            rng=arrays.get(_RNG),
            step=said["step"],
            policy=said["policy"],
            optimizer_config=said["optimizer"],
            extra=said["extra"],
        )


def checked_step(step: Any) -> int:
    """The number of a step, if it is one."""
    try:
        number = operator.index(step)
    except TypeError:
        number = None
    if number is None or isinstance(step, bool):
        raise OperandError(f"step must be an integer, got {shown(step)}")
    if number < 0:
        raise ArgumentError(f"step must be at least 0, got {number}")
    return number


def named_arrays(model: Mapping[str, Any], optimizer: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of a training state, by the names it is stored under.

    Args:
        model: its variables or their values, by path.
        optimizer: the optimizer's, by name.
    """
    arrays = {_MODEL + name: value for name, value in stored_values(model).items()}
    return arrays | {_OPTIMIZER + name: value for name, value in stored_values(optimizer).items()}


def stored_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays by name; of variables the values they store."""
    return {name: value.read_stored() if isinstance(value, Variable) else value for name, value in values.items()}


def labels(kind: str = _WEIGHTS) -> dict[str, str]:
    """Metadata: what a file holds, and which version of the library wrote it."""
    return {_KIND: kind, "supremum": __version__}


def is_state(texts: Mapping[str, str]) -> bool:
    """Whether a file with this metadata holds a whole training state."""
    return texts.get(_KIND) == _STATE


def section(arrays: Mapping[str, Any], prefix: str = _MODEL) -> dict[str, Any]:
    """The arrays of one part of a training state, under their own names; the model's if nothing else is said."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def weights_among(
    names: Iterable[str], texts: Mapping[str, str], like: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Which stored arrays are a model's weights, and what each is to be placed like.

    Args:
        names: of all arrays.
        texts: the metadata stored with them.
        like: by the weights' own names; None for arrays of NumPy.
    """
    prefix, placed = _MODEL if is_state(texts) else "", like or {}
    return {name: placed.get(name.removeprefix(prefix)) for name in names if name.startswith(prefix)}


def _as_json(what: str, value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise OperandError(f"{what} must be JSON ({error}); use dicts, lists, numbers and strings") from error


def _config_as_json(config: Any) -> str:
    try:
        return _as_json("optimizer_config", config)
    except OperandError:
        return "null"
