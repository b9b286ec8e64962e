"""A complete training state, from which training resumes bit for bit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from supremum.argument_checks import whole_number
from supremum.atomic_files import as_path
from supremum.errors import OperandError, shown
from supremum.nn import Variable
from supremum.training.checkpoints.errors import CheckpointError, damage_error
from supremum.training.checkpoints.record import LARGEST_COUNT, Schema, is_count, parse_json, validate
from supremum.training.checkpoints.stored_arrays import load_arrays, load_section, save_arrays
from supremum.typing import PyTree
from supremum.version import __version__

_KIND, _STATE, _WEIGHTS = "holds", "training state", "weights"
_STATE_ENTRIES: Schema = {
    "step": is_count,
    "policy": lambda value: value is None or isinstance(value, dict),
    "optimizer": lambda value: value is None or isinstance(value, dict),
    "extra": lambda value: isinstance(value, dict),
}
_RESUMED_ENTRIES: Schema = {
    "epoch": is_count,
    "seed": lambda value: type(value) is int,
    "step": lambda value: is_count(value) and value < 2**31,  # steps store it as an int32
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
    >>> Checkpoint(
    ...     {"kernel": np.ones(2)},
    ...     {"iterations": np.int32(7)},
    ...     step=7,
    ...     extra={"epoch": 1},
    ... ).save(path)
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
        object.__setattr__(self, "step", whole_number("step", self.step, 0, LARGEST_COUNT))

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
            "optimizer": _as_json("optimizer_config", self.optimizer_config, is_optional=True),
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
        if not _is_state(texts):
            raise CheckpointError(f"{path} does not hold a training state; use load_weights(layer, {shown(str(path))})")
        entries = {name: parse_json(as_path(path), texts.get(name, ""), name) for name in _STATE_ENTRIES}
        validate(as_path(path), "its state", entries, _STATE_ENTRIES)
        config = entries.pop("optimizer")
        model, optimizer = _section(arrays, _MODEL), _section(arrays, _OPTIMIZER)
        return cls(model, optimizer, arrays.get(_RNG), optimizer_config=config, **entries)


def load_resumable(
    path: str | os.PathLike[str], model: Mapping[str, Any], optimizer: Mapping[str, Any], key: jax.Array
) -> Checkpoint:
    """Read the state of a model, onto the devices of its current values, and check all that training resumes from.

    Args:
        path: the file or folder.
        model: the model's variables, by path.
        optimizer: the optimizer's variables, by name.
        key: data of a random key of the model.

    Raises:
        CheckpointError: for a file that is damaged or does not hold the training state of a model.
    """
    state = Checkpoint.load(path, like=specs(named_arrays(model, optimizer)))
    if state.rng is None or not {"epoch", "seed"} <= state.extra.keys():
        raise CheckpointError(
            f"{path} does not hold the training state of a model; use model.load_weights({shown(str(path))})"
        )
    resumed = {"epoch": state.extra["epoch"], "seed": state.extra["seed"], "step": state.step}
    validate(as_path(path), "its state", resumed, _RESUMED_ENTRIES)
    is_key = jnp.issubdtype(state.rng.dtype, jax.dtypes.prng_key)
    if not is_key or jax.random.key_data(state.rng).shape != key.shape:
        raise damage_error(as_path(path), f"its random key is {state.rng.dtype}{list(state.rng.shape)}")
    return state


def specs(tree: PyTree) -> Any:
    """Return the shape, dtype and sharding of each array that is committed to devices, and None for the others."""

    def spec(value: jax.Array) -> jax.ShapeDtypeStruct | None:
        return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=value.sharding) if value.committed else None

    return jax.tree.map(spec, tree)


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


def load_weight_arrays(path: str | os.PathLike[str], like: Mapping[str, Any]) -> dict[str, Any]:
    """Read the arrays of a model's weights, by their own names, from saved weights or from a training state.

    Args:
        path: the file or folder.
        like: arrays to place the arrays of a folder like, by the weights' own names.
    """
    return load_section(path, like, lambda texts: _MODEL if _is_state(texts) else "")[0]


def _is_state(texts: Mapping[str, str]) -> bool:
    """Whether a file with this metadata holds a whole training state."""
    return texts.get(_KIND) == _STATE


def _section(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the arrays of one part of a training state, without the prefix in their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _as_json(what: str, value: object, *, is_optional: bool = False) -> str:
    """Write a value as JSON; a value that is not JSON raises, or becomes null if it is optional."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        if is_optional:
            return "null"
        raise OperandError(f"{what} must be JSON ({error}); use dicts, lists, numbers and strings") from error
