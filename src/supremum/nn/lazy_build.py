"""Before the first call: which weights a layer has, and their values."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import jax
from jax.core import Tracer

from supremum.argument_checks import pytree
from supremum.errors import OperandError, UnknownDtypeError, shown
from supremum.formats import as_format
from supremum.nn.array_arguments import split_arrays
from supremum.nn.attributes import Snapshot
from supremum.nn.input_casting import unmasked
from supremum.nn.module_tree import Module
from supremum.nn.scopes import declaring, has_random_key, next_random_key
from supremum.nn.variables import UninitializedError


class _FailedError(Exception):
    """What JAX sees of an error in a layer: to the error itself it would add that it has left out lines of its own."""


def traced_spec(layer: Callable[..., Any], inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The shapes and dtypes of a layer's outputs; computes nothing, but builds the layer.

    Args:
        layer: the layer.
        inputs: what to call it with; `jax.ShapeDtypeStruct` is enough.
        kwargs: likewise.
    """
    given = jax.tree.map(unmasked, pytree("the inputs of a layer", (inputs, dict(kwargs))))
    failed: list[Exception] = []

    def called(*args: Any, **named: Any) -> Any:
        try:
            return layer(*args, **named)
        except Exception as error:
            failed.append(error)
            raise _FailedError from None

    call, arrays = split_arrays(called, given, lambda leaf: hasattr(leaf, "shape") and hasattr(leaf, "dtype"))
    for array in arrays:
        _check_numeric(array)
    with declaring(), suppress(_FailedError):
        return jax.eval_shape(call, arrays)
    raise failed[0]


def _check_numeric(leaf: Any) -> None:
    if isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):  # of numbers, or keys of `jax.random`
        return
    try:
        as_format(leaf.dtype)
    except UnknownDtypeError as error:
        raise OperandError(f"the inputs of a layer are arrays of numbers, not of {shown(leaf.dtype)}") from error


def make_weights(layer: Module[Any], inputs: tuple[Any, ...], kwargs: Mapping[str, Any], key: jax.Array) -> None:
    """Build a layer and all it holds, and make the values of the variables that have none.

    Args:
        layer: the layer.
        inputs: what to call it with; none where it is built.
        kwargs: likewise.
        key: where the values come from, each from this key and its path.
    """
    if inputs or kwargs:
        traced_spec(layer, inputs, kwargs)
    for path, variable in layer.variables.items():
        with jax.ensure_compile_time_eval():
            own = jax.random.fold_in(key, zlib.crc32(path.encode()) & 0x7FFFFFFF)
        variable.initialize(own)


def first_key() -> jax.Array:
    """What a first call makes weights from: the next key of `nn.random_key`, or the seed 0.

    Raises:
        UninitializedError: for a key that JAX is tracing.
    """
    with jax.ensure_compile_time_eval():  # a real key also while the model is being traced
        key = next_random_key() if has_random_key() else jax.random.key(0)
    if isinstance(key, Tracer):
        raise UninitializedError(
            "there are no weights yet, and a key that JAX is tracing makes none: nn.initialize(model, *inputs, seed=0)"
        )
    return key


def has_weights(layer: Module[Any]) -> bool:
    """Whether a layer is built, and all its variables have values."""
    return layer.built and all(each.is_initialized for each in layer.variables.values())


@contextmanager
def unchanged_on_error(layer: Module[Any]) -> Generator[None]:
    """Have a layer, and all it holds, as they were if a block fails.

    Args:
        layer: the layer.
    """
    snapshots = [(each, Snapshot(each)) for each in layer.layers_by_path().values()]
    without_value = [each for each in layer.variables.values() if not each.is_initialized]
    try:
        yield
    except BaseException:
        for each, before in snapshots:
            before.restore(each)
        for variable in without_value:
            variable.forget()
        raise
