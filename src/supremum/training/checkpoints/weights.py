"""Save and load the weights of a layer: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import flag
from supremum.arrays import converted
from supremum.errors import UnknownDtypeError, near_names, shown
from supremum.formats import Format, as_format
from supremum.nn import Layer, UninitializedError, Variable, as_layer
from supremum.nn.functional import check_held
from supremum.training.checkpoints.errors import CheckpointError
from supremum.training.checkpoints.stored_arrays import load_chosen, save_arrays
from supremum.training.checkpoints.training_state import is_state, labels, section, stored_values, weights_among
from supremum.training.distributed import committed, placed

_MOST_LINES = 40


class MismatchError(CheckpointError):
    """Values that do not fit the variables of a layer; the message lists the first 40.

    Attributes:
        problems: what is wrong, one line for each path.
    """

    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadReport:
    """A report of what was loaded.

    Args:
        loaded: the paths of the variables that were given a value.
        missing: the paths of the variables without a given value, which are unchanged.
        unexpected: the given paths that the layer does not have.
        misshapen: the paths of the variables whose value has a different shape, which are unchanged.
    """

    loaded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every variable was given a value, and every value was used."""
        return not (self.missing or self.unexpected or self.misshapen)


def save_weights(layer: Layer, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
    """Write the weights of a layer to a file or folder, in the dtypes they are stored in.

    Autocast variables are stored like any others, so a float32 model loads what a mixed-precision one wrote
    (Keras RFC 293, mixed precision, "AutoCastVariable API").

    Args:
        layer: the layer.
        path: where to write; as for `save_arrays`.
        format: likewise.

    Raises:
        UninitializedError: if the layer has no weights yet.
        CheckpointFileError: if the file or folder cannot be written; an `OSError`. An existing one is unchanged.

    >>> import tempfile
    >>> from supremum import nn
    >>> mixed, plain = nn.Dense(2, dtype="mixed_bfloat16"), nn.Dense(2, dtype="float32")
    >>> nn.initialize(mixed, np.ones((1, 3), "float32"), seed=1)
    >>> nn.initialize(plain, np.ones((1, 3), "float32"), seed=2)
    >>> path = tempfile.mkdtemp() + "/dense.safetensors"
    >>> save_weights(mixed, path)
    >>> load_weights(plain, path).loaded
    ('kernel', 'bias')
    >>> bool(jnp.all(mixed.kernel.value == plain.kernel.value))
    True
    """
    save_arrays(path, stored_values(_variables(layer)), labels(), format=format)


def load_weights(layer: Layer, path: str | os.PathLike[str], *, strict: bool = True, cast: bool = False) -> LoadReport:
    """Read the weights of a layer that `save_weights` or `Checkpoint.save` wrote, onto the layer's devices.

    Args:
        layer: a built layer.
        path: the file or folder.
        strict: whether paths and shapes must match the layer's; otherwise what fits is loaded, the rest is unchanged,
            and the report lists it.
        cast: whether to cast floating-point values to the dtype of their variable if that is a different
            floating-point dtype.

    Returns:
        What was loaded.

    Raises:
        MismatchError: for values that do not fit; the layer is unchanged.
        CheckpointError: for a file that is damaged or that supremum did not write.
        UninitializedError: if the layer has no variables yet.
    """
    named = _variables(layer)
    like = committed({name: variable.read_stored() for name, variable in named.items() if variable.is_initialized})
    arrays, texts = load_chosen(path, lambda names, texts: weights_among(names, texts, like))
    values, report = fitted_values(
        layer, section(arrays) if is_state(texts) else arrays, strict=strict, cast=cast, source=str(path)
    )
    for name, value in values.items():
        named[name].assign(value)
    return report


def fitted_values(
    layer: Layer,
    values: Mapping[str, Any],
    *,
    strict: bool = True,
    cast: bool = False,
    source: str = "what was given",
) -> tuple[dict[str, jax.Array], LoadReport]:
    """Compute the values that `load_weights` would give to the variables of a layer; nothing is changed.

    Args:
        layer: a built layer.
        values: arrays by path. JAX arrays that are already on the variable's devices are used without a copy, so the
            caller must not keep them.
        strict: as for `load_weights`.
        cast: likewise.
        source: where the values come from, for the error.

    Returns:
        JAX arrays by path, with the shapes, dtypes and devices of their variables, so `assign` takes them unchanged;
        and the report.

    Raises:
        MismatchError: for values that do not fit.
    """
    named = _variables(layer)
    common = [path for path in named if path in values]
    misshapen = tuple(path for path in common if np.shape(values[path]) != named[path].shape)
    report = LoadReport(
        loaded=tuple(path for path in common if path not in misshapen),
        missing=tuple(path for path in named if path not in values),
        unexpected=tuple(path for path in values if path not in named),
        misshapen=misshapen,
    )
    problems = {path: _dtype_problem(named[path], values[path], cast) for path in report.loaded}
    if not report.is_complete and (flag("strict", strict) or not report.loaded):
        problems |= {path: _difference(named[path], values[path]) for path in misshapen}
        problems |= {path: f"is missing{_near(path, report.unexpected)}" for path in report.missing}
        problems |= {
            path: f"is not a variable of the layer{_near(path, report.missing or named)}" for path in report.unexpected
        }
    lines = tuple(f"{shown(path)} {problem}" for path, problem in problems.items() if problem)
    if lines:
        first = [*lines[:_MOST_LINES], *([f"... and {len(lines) - _MOST_LINES} more"] * (len(lines) > _MOST_LINES))]
        hint = "\nstrict=False loads what fits, and its report names the rest" if strict and report.loaded else ""
        error = MismatchError(
            f"{source} does not fit {shown(layer)}, which was not changed:\n  " + "\n  ".join(first) + hint
        )
        error.problems = lines
        raise error
    return {path: _placed(path, named[path], values[path]) for path in report.loaded}, report


def _variables(layer: Layer) -> dict[str, Variable]:
    if not as_layer(layer).built:
        raise UninitializedError(f"{shown(layer)} has no variables yet; create them with nn.initialize(layer, x)")
    return layer.variables


def _near(path: str, choices: Iterable[str]) -> str:
    near = near_names(path, choices)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _difference(variable: Variable, value: Any) -> str:
    return f"is {value.dtype}{list(np.shape(value))}, but the variable is {_spec(variable)}"


def _spec(variable: Variable) -> str:
    return f"{variable.true_dtype}{list(variable.shape)}"


def _dtype_problem(variable: Variable, value: Any, cast: bool) -> str | None:
    if value.dtype == variable.true_dtype:
        return None
    difference = _difference(variable, value)
    wanted, given = as_format(variable.true_dtype), _format_of(value)
    if given is None or (given.category, wanted.category) != ("float", "float"):
        return f"{difference}; only floating-point values can be cast, to floating-point dtypes"
    if not cast:
        return f"{difference}; cast=True casts it"
    lost = _lost(np.asarray(value), wanted)
    return f"{difference}, which cannot hold {lost}; give the layer a wider variable dtype" if lost else None


def _format_of(value: Any) -> Format | None:
    try:
        return as_format(value.dtype)
    except UnknownDtypeError:  # a jax.random key
        return None


def _lost(value: np.ndarray, wanted: Format) -> str:
    """Return the first value that the cast would make infinite or NaN, or finite again; empty if there is none."""
    wide = as_format("float64").dtype
    with np.errstate(all="ignore"):
        before = converted(value, wide).reshape(-1)
        after = converted(converted(value, wanted.dtype), wide).reshape(-1)
        is_kept = (np.isnan(before) == np.isnan(after)) & (np.isinf(before) == np.isinf(after))
        if not wanted.inf:  # some of these formats saturate at their largest number
            is_kept &= ~(np.abs(before) > wanted.max)
    return "" if is_kept.all() else str(before[~is_kept][0])


def _placed(path: str, variable: Variable, value: Any) -> jax.Array:
    """Return the value as a JAX array that shares no memory with it, on the variable's devices."""
    dtype = variable.true_dtype
    check_held(
        dtype, f"variable {shown(path)} is stored in {dtype}", "create the layer again with a different param_dtype"
    )
    array = value if value.dtype == dtype else converted(np.asarray(value), dtype)
    if variable.is_initialized:
        stored = variable.read_stored()
        if stored.committed:
            return placed(array, stored.sharding)
    return jnp.array(array, dtype)
