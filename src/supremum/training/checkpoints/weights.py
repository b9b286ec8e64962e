"""Save and load the weights of a layer, all or none, and load an optimizer, on the devices of the current values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import flag
from supremum.arrays import converted
from supremum.errors import near_names, shown
from supremum.formats import as_format
from supremum.mixed_precision import described, is_floating, keep_64_bits
from supremum.nn import Layer, Variable, built_variables, first_lost
from supremum.nn.functional import check_held
from supremum.optimizers import Optimizer
from supremum.training.checkpoints.errors import CheckpointError
from supremum.training.checkpoints.stored_arrays import save_arrays
from supremum.training.checkpoints.training_state import labels, load_weight_arrays, specs, stored_values

_MOST_LINES, _MOST_CHARACTERS = 40, 2_500


class MismatchError(CheckpointError):
    """Values that do not fit the variables of a layer; the message lists the first 40, or fewer if they are long.

    Attributes:
        problems: what is wrong, one line for each path.

    >>> import tempfile
    >>> import numpy as np
    >>> from supremum import nn, training
    >>> small, large = nn.Dense(2), nn.Dense(4)
    >>> for layer in (small, large):
    ...     nn.initialize(layer, np.ones((1, 3), "float32"))
    >>> path = tempfile.mkdtemp() + "/weights.safetensors"
    >>> training.save_weights(small, path)
    >>> try:
    ...     training.load_weights(large, path)
    ... except training.MismatchError as error:
    ...     print(error.problems[0])
    'kernel' is float32[3, 2], but the variable is float32[3, 4]
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

    >>> import tempfile
    >>> import numpy as np
    >>> from supremum import nn, training
    >>> first, second = nn.Dense(2), nn.Dense(2, use_bias=False)
    >>> for layer in (first, second):
    ...     nn.initialize(layer, np.ones((1, 3), "float32"))
    >>> path = tempfile.mkdtemp() + "/weights.safetensors"
    >>> training.save_weights(first, path)
    >>> report = training.load_weights(second, path, strict=False)
    >>> report.loaded, report.unexpected
    (('kernel',), ('bias',))
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
        format: as for `save_arrays`.

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
    save_arrays(path, stored_values(built_variables(layer)), labels(), format=format)


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

    >>> import tempfile
    >>> import numpy as np
    >>> from supremum import nn
    >>> single, mixed = nn.Dense(2), nn.Dense(2, dtype="mixed_float16")
    >>> for layer in (single, mixed):
    ...     nn.initialize(layer, np.ones((1, 3), "float32"))
    >>> path = tempfile.mkdtemp() + "/weights.safetensors"
    >>> save_weights(single, path)
    >>> load_weights(mixed, path).loaded
    ('kernel', 'bias')
    """
    named = built_variables(layer)
    like = specs({name: variable.read_stored() for name, variable in named.items() if variable.is_initialized})
    arrays = load_weight_arrays(path, like)
    values, report = fit_values(layer, arrays, strict=strict, cast=cast, source=str(path))
    for name, value in values.items():
        named[name].assign(value)
    return report


def fit_values(
    layer: Layer, values: Mapping[str, Any], *, strict: bool = True, cast: bool = False, source: str = "what was given"
) -> tuple[dict[str, jax.Array], LoadReport]:
    """Compute the values that `load_weights` would give to the variables of a layer; nothing is changed.

    Args:
        layer: a built layer.
        values: arrays by path. JAX arrays that are already on the variable's devices are used without a copy, so the
            caller must not keep them.
        strict: as for `load_weights`.
        cast: as for `load_weights`.
        source: where the values come from, for the error.

    Returns:
        JAX arrays by path, with the shapes, dtypes and devices of their variables, so `assign` takes them unchanged;
        and the report.

    Raises:
        MismatchError: for values that do not fit.
    """
    named = built_variables(layer)
    report = _compare(named, values)
    problems = _problems(named, values, report, flag("strict", strict), cast)
    if problems:
        hint = "\nstrict=False loads what fits, and its report names the rest" if strict and report.loaded else ""
        raise _mismatch(f"{source} does not fit {shown(layer)}, which was not changed", problems, hint)
    return {path: _place(path, named[path], values[path]) for path in report.loaded}, report


def _compare(named: Mapping[str, Variable], values: Mapping[str, Any]) -> LoadReport:
    common = [path for path in named if path in values]
    misshapen = tuple(path for path in common if np.shape(values[path]) != named[path].shape)
    return LoadReport(
        loaded=tuple(path for path in common if path not in misshapen),
        missing=tuple(path for path in named if path not in values),
        unexpected=tuple(path for path in values if path not in named),
        misshapen=misshapen,
    )


def _problems(
    named: Mapping[str, Variable], values: Mapping[str, Any], report: LoadReport, strict: bool, cast: bool
) -> tuple[str, ...]:
    """Describe the values that do not fit, one line for each path."""
    problems = {path: _dtype_problem(named[path], values[path], cast) for path in report.loaded}
    if not report.is_complete and (strict or not report.loaded):
        others = report.missing or named
        problems |= {path: _difference(named[path], values[path]) for path in report.misshapen}
        problems |= {path: f"is missing{_near(path, report.unexpected)}" for path in report.missing}
        problems |= {path: f"is not a variable of the layer{_near(path, others)}" for path in report.unexpected}
    return tuple(f"{shown(path)} {problem}" for path, problem in problems.items() if problem)


def _mismatch(what: str, problems: tuple[str, ...], hint: str) -> MismatchError:
    lengths = accumulate(map(len, problems[:_MOST_LINES]))
    count = sum(length <= _MOST_CHARACTERS for length in lengths)
    rest = len(problems) - count
    more = f"\n  ... and {rest} more" if rest else ""
    error = MismatchError(f"{what}:\n  " + "\n  ".join(problems[:count]) + more + hint)
    error.problems = problems
    return error


def load_optimizer(optimizer: Optimizer, saved: Mapping[str, Any]) -> None:
    """Load saved variables into an optimizer, onto the devices of its state.

    Args:
        optimizer: the optimizer.
        saved: arrays by name, to which there are no other references.
    """

    def place(array: jax.Array, spec: jax.ShapeDtypeStruct | None) -> jax.Array:
        return array if spec is None else _place_on(array, spec.sharding)

    before = specs(optimizer.state)
    optimizer.load_variables(saved)
    optimizer.state = jax.tree.map(place, optimizer.state, before)


def _near(path: str, choices: Iterable[str]) -> str:
    near = near_names(path, choices)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _difference(variable: Variable, value: Any) -> str:
    return f"is {described(value)}, but the variable is {variable.true_dtype}{list(variable.shape)}"


def _dtype_problem(variable: Variable, value: Any, cast: bool) -> str | None:
    if value.dtype == variable.true_dtype:
        return None
    difference = _difference(variable, value)
    wanted = as_format(variable.true_dtype)
    if wanted.category != "float" or not is_floating(value):
        return f"{difference}; only floating-point values can be cast, to floating-point dtypes"
    if not cast:
        return f"{difference}; cast=True casts it"
    lost = first_lost(np.asarray(value), wanted)
    return f"{difference}, which cannot hold {lost}; give the layer a wider variable dtype" if lost else None


def _place(path: str, variable: Variable, value: Any) -> jax.Array:
    """Return the value as a JAX array that shares no memory with it, on the variable's devices."""
    dtype = variable.true_dtype
    check_held(
        dtype, f"variable {shown(path)} is stored in {dtype}", "create the layer again with a different param_dtype"
    )
    array = value if value.dtype == dtype else converted(np.asarray(value), dtype)
    if variable.is_initialized:
        stored = variable.read_stored()
        if stored.committed:
            return _place_on(array, stored.sharding)
    return jnp.array(array, dtype)


def _place_on(array: Any, sharding: jax.sharding.Sharding) -> jax.Array:
    """Return the array itself if it is a JAX array with this sharding, otherwise a copy placed there.

    Args:
        array: a NumPy array, the same in every process, or a JAX array.
        sharding: where its parts go.

    >>> _place_on(
    ...     np.ones(2, "float32"), jax.sharding.SingleDeviceSharding(jax.devices()[0])
    ... )
    Array([1., 1.], dtype=float32)
    """
    if isinstance(array, jax.Array) and array.sharding == sharding:
        return array
    # JAX may keep using the memory that it is given, even with may_alias=False, so it gets a copy.
    whole = np.array(array)
    if sharding.is_fully_addressable:
        return jax.device_put(keep_64_bits(whole), sharding)
    return jax.make_array_from_callback(whole.shape, sharding, lambda part: keep_64_bits(whole[part]))
