"""Find the weights of a layer before its first call, and make their values."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError, OperandError, UnknownDtypeError, shown
from supremum.formats import as_format
from supremum.jaxprs import split_arrays
from supremum.nn.inputs import as_jax_input
from supremum.nn.module_tree import Attributes, Module
from supremum.nn.scopes import declaring, has_random_key, is_declaring, next_random_key
from supremum.nn.variables import UninitializedError, forget_value, has_value, initialize_variable
from supremum.rules import held_dtype


class _FailedError(Exception):
    """Stands in for an error of a layer while JAX traces, since JAX would add a note about its own frames."""


def trace_spec(layer: Callable[..., Any], inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Trace a layer for the shapes and dtypes of its outputs, which computes nothing but builds the layer.

    Args:
        layer: the layer.
        inputs: positional inputs; `jax.ShapeDtypeStruct` is enough.
        kwargs: keyword inputs.
    """
    arguments = jax.tree.map(_traceable, pytree("the inputs of a layer", (inputs, dict(kwargs))))
    arrays, with_arrays = split_arrays(arguments, _has_dtype)
    failed: list[Exception] = []

    def call(arrays: list[jax.Array]) -> Any:
        positional, named = with_arrays(arrays)
        try:
            return layer(*positional, **named)
        except Exception as error:
            failed.append(error)
            raise _FailedError from None

    with declaring(), suppress(_FailedError):
        return jax.eval_shape(call, arrays)
    raise failed[0]


def _has_dtype(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _traceable(leaf: Any) -> Any:
    """An input as JAX takes it, without the values of NumPy's arrays; raises for arrays that do not hold numbers."""
    leaf = as_jax_input(leaf)
    if not _has_dtype(leaf) or isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
        return leaf
    try:
        as_format(leaf.dtype)
    except UnknownDtypeError as error:
        raise OperandError(
            f"the inputs of a layer must be arrays of numbers, got an array of dtype {shown(leaf.dtype)}"
        ) from error
    if not isinstance(leaf, (np.ndarray, np.generic)):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, held_dtype(leaf.dtype))  # JAX 0.12 warns of 64 bits that it does not hold


def build_layer(layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run `build` of a layer, which stays as it was if that fails.

    Args:
        layer: the layer.
        args: its positional inputs, as `call` gets them.
        kwargs: its keyword inputs; the first is passed on if there are no others.

    Raises:
        ArgumentError: for a variable that `build` made with a value, instead of `add_weight`.
        OperandError: if `build` fails since the first input is None; a `TypeError`.
        UninitializedError: if the weights then have no values, outside of `declaring`.
    """
    first = args[0] if args else next(iter(kwargs.values()), None)
    layer._before_build = Attributes(vars(layer))
    try:
        layer.build_inputs = jax.tree.map(_shape_dtype, args)
        layer.build(jax.tree.map(np.shape, first))
        del layer.build_inputs
        for variable in layer.own_variables():
            if variable.is_initialized and isinstance(variable.read_stored(), Tracer):
                raise ArgumentError(
                    f"variable {shown(variable.name)} was made in `build`, which JAX traces, so it has no value; use "
                    f"self.add_weight({shown(variable.name)}, {variable.shape}, initializer)"
                )
        if not is_declaring() and not all(map(has_value, layer.own_variables())):
            raise UninitializedError("the layer has no weights yet; call nn.initialize(model, *inputs, seed=0)")
    except BaseException as error:
        layer._undo_build()
        if first is None and isinstance(error, (TypeError, AttributeError)):
            raise OperandError(f"`build` needs an array as the first input, got None, and failed: {error}") from error
        raise
    layer.built = True


def _shape_dtype(leaf: Any) -> Any:
    dtype = getattr(leaf, "dtype", None)
    return leaf if dtype is None else jax.ShapeDtypeStruct(np.shape(leaf), dtype)


def make_weights(layer: Module[Any], inputs: tuple[Any, ...], kwargs: Mapping[str, Any], key: jax.Array) -> None:
    """Build a layer and the layers inside it, and make the values of variables that have none.

    Args:
        layer: the layer.
        inputs: positional inputs; none if the layer is built.
        kwargs: keyword inputs.
        key: a random key; each value depends on this key and the path of its variable.
    """
    if inputs or kwargs:
        trace_spec(layer, inputs, kwargs)
    missing = {path: variable for path, variable in layer.variables.items() if not variable.is_initialized}
    # Values must be concrete even if the model is being traced. Outside of a trace JAX's own context would only compile
    # random functions with constants as large as their results.
    is_traced = isinstance(_fold_in(key, np.uint32(0)), Tracer)
    with jax.ensure_compile_time_eval() if is_traced else nullcontext():
        for path, variable in missing.items():
            initialize_variable(variable, _fold_in(key, np.uint32(zlib.crc32(path.encode()) & 0x7FFFFFFF)))


_fold_in = jax.jit(jax.random.fold_in)  # jitted, because JAX would dispatch each of its operations


def first_key() -> jax.Array:
    """The random key for the weights of a first call: the next key of `nn.random_key`, or that of seed 0.

    Raises:
        UninitializedError: if JAX is tracing the key.
    """
    with jax.ensure_compile_time_eval():  # a concrete key, even if the model is being traced
        key = next_random_key() if has_random_key() else jax.random.key(0)
    if isinstance(key, Tracer):
        raise UninitializedError(
            "the layer has no weights, and a traced key cannot make them; use nn.initialize(model, *inputs, seed=0)"
        )
    return key


def has_weights(layer: Module[Any]) -> bool:
    """Whether a layer is built and all its variables have values."""
    return layer.built and all(each.is_initialized for each in layer.variables.values())


@contextmanager
def restore_on_error(layer: Module[Any]) -> Generator[None]:
    """Restore a layer, and the layers and variables inside it, if a block fails.

    Args:
        layer: the layer.
    """
    snapshots = [(each, Attributes(vars(each))) for each in layer.layers_by_path().values()]
    without_value = [each for each in layer.variables.values() if not each.is_initialized]
    try:
        yield
    except BaseException:
        for each, before in snapshots:
            before.restore(each)
        for variable in without_value:
            forget_value(variable)
        raise
