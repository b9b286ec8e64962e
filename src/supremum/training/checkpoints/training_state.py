"""A complete training state, in memory or saved, from which training resumes bit for bit."""

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
    """Everything that training needs to continue as if it had never stopped.

    Args:
        model: the values of the model's variables by path, or `model.variables` itself.
        optimizer: the values of the optimizer's variables by name, including those of its loss scale.
        rng: the `jax.random` key, or keys, that the next step starts from; None for no key.
        step: how many steps were taken.
        policy: the config of the model's dtype policy.
        optimizer_config: the config of the optimizer; omitted from the file if it is not JSON.
        extra: anything else to keep, such as the epoch; JSON values.

    Raises:
        OperandError: for a step that is not an integer.
        ArgumentError: for a negative step.

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
        """Write the state as `save_arrays` does, with the values that variables store.

        Args:
            path: where to write.
            format: `"safetensors"`, the default, or `"orbax"`; both hold the same arrays and metadata.

        Raises:
            OperandError: for values that cannot be saved: a policy or extra that is not JSON, an array of objects.
            CheckpointFileError: if the path cannot be written; an `OSError`. An existing checkpoint is unchanged.
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
            like: arrays to place the arrays of a folder like, as for `load_arrays`, by the names of `named_arrays`.

        Returns:
            The state, with NumPy arrays except where `like` requests otherwise, and the key as a key.

        Raises:
            CheckpointError: for a file that is damaged or does not hold a training state.
        """
        arrays, texts = load_arrays(path, like=like)
        if not is_state(texts):
            raise CheckpointError(f"{path} does not hold a training state; use load_weights(layer, {shown(str(path))})")
        entries = {name: parsed(as_path(path), texts.get(name, ""), name) for name in _STATE_ENTRIES}
        validate(as_path(path), "its state", entries, _STATE_ENTRIES, _STATE_ENTRIES)
        return cls(
            model=section(arrays, _MODEL),
            optimizer=section(arrays, _OPTIMIZER),
            rng=arrays.get(_RNG),
            step=entries["step"],
            policy=entries["policy"],
            optimizer_config=entries["optimizer"],
            extra=entries["extra"],
        )


def checked_step(step: Any) -> int:
    """Return a step as an int, after checking it."""
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
    """Return the arrays that are stored for a training state, by the names they are stored under.

    Args:
        model: the model's variables or their values, by path.
        optimizer: the optimizer's variables or their values, by name.
    """
    arrays = {_MODEL + name: value for name, value in stored_values(model).items()}
    return arrays | {_OPTIMIZER + name: value for name, value in stored_values(optimizer).items()}


def stored_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays by name, with each variable replaced by the value it stores."""
    return {name: value.read_stored() if isinstance(value, Variable) else value for name, value in values.items()}


def labels(kind: str = _WEIGHTS) -> dict[str, str]:
    """Return metadata with the kind of content, and the version of the library that writes it."""
    return {_KIND: kind, "supremum": __version__}


def is_state(texts: Mapping[str, str]) -> bool:
    """Whether a file with this metadata holds a whole training state."""
    return texts.get(_KIND) == _STATE


def section(arrays: Mapping[str, Any], prefix: str = _MODEL) -> dict[str, Any]:
    """Return the arrays of one part of a training state, by default the model's, without the prefix in their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def weights_among(
    names: Iterable[str], texts: Mapping[str, str], like: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Select the stored arrays that are a model's weights, each with an array to place it like.

    Args:
        names: the names of all stored arrays.
        texts: the metadata stored with them.
        like: arrays by the weights' own names; None for NumPy arrays.
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
