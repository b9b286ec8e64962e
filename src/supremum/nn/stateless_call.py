"""Use a model as a pure function of its variables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

from supremum.argument_checks import mapping
from supremum.errors import ArgumentError, UnknownNameError, listed, shown
from supremum.nn import scopes
from supremum.nn.functional import as_key
from supremum.nn.layer import Layer, as_layer
from supremum.nn.lazy_build import make_weights, restore_on_error, trace_spec
from supremum.nn.variables import Shard, Variable
from supremum.typing import PyTree


def initialize(layer: Layer, *inputs: PyTree, seed: int | jax.Array = 0, **kwargs: PyTree) -> None:
    """Make the weights of a layer and of all layers inside it, without computing anything else.

    The random key of each weight depends only on the seed and the weight's path, so a layer starts from the same
    weights whatever other layers there are.

    Args:
        layer: the layer; it keeps weights that it already has.
        inputs: example inputs; `jax.ShapeDtypeStruct` is enough. A functional model needs none.
        seed: an integer or a key of `jax.random`; the same seed gives the same weights.
        kwargs: more example inputs.

    Raises:
        ArgumentError: for a layer that needs inputs and is given none; a `ValueError`. After any error the layer is as
            it was before.

    >>> from supremum import nn
    >>> layer = nn.Dense(4, dtype="mixed_float16")
    >>> initialize(layer, jax.ShapeDtypeStruct((1, 3), "float32"), seed=0)
    >>> layer.kernel
    AutoCastVariable('kernel', shape=(3, 4), dtype=float32)
    """
    as_layer(layer)
    if not (inputs or kwargs or layer.built):
        raise ArgumentError(f"{shown(layer)} does not know its inputs yet; use nn.initialize(layer, x, seed=0)")
    key = as_key(seed)
    with restore_on_error(layer):
        make_weights(layer, inputs, kwargs, key)


def output_spec(layer: Layer, *inputs: PyTree, **kwargs: PyTree) -> Any:
    """Find the shapes and dtypes of a layer's outputs, which computes nothing but builds the layer.

    Args:
        layer: the layer.
        inputs: positional inputs; `jax.ShapeDtypeStruct` is enough.
        kwargs: keyword inputs.

    Returns:
        A tree of `jax.ShapeDtypeStruct`.

    Raises:
        OperandError: if `layer` is not a layer, or the inputs are not arrays of numbers; a `TypeError`.

    >>> from supremum import nn
    >>> output_spec(
    ...     nn.Dense(4, dtype="mixed_bfloat16"), jax.ShapeDtypeStruct((8, 3), "float32")
    ... )
    ShapeDtypeStruct(shape=(8, 4), dtype=bfloat16)
    """
    return trace_spec(as_layer(layer), inputs, kwargs)


def split_variables(layer: Layer) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    """Split the stored values of a layer's variables by path into trainable ones and others.

    >>> from supremum import nn
    >>> layer = nn.BatchNorm()
    >>> initialize(layer, jax.numpy.ones((2, 3)))
    >>> trainable, other = split_variables(layer)
    >>> list(trainable), list(other)
    (['gamma', 'beta'], ['moving_mean', 'moving_variance'])
    """
    trained = as_layer(layer).trainable_variables
    trainable = {path: variable.read_stored() for path, variable in trained.items()}
    other = {path: variable.read_stored() for path, variable in layer.variables.items() if path not in trained}
    return trainable, other


def assign_variables(layer: Layer, values: Mapping[str, Any]) -> None:
    """Assign values to the variables of a built layer, all of them or none.

    Args:
        layer: the layer.
        values: the values by path, in dtypes that the rules convert to the stored dtypes without loss.

    Raises:
        UnknownNameError: for a path that the layer does not have.
        ArgumentError: for a different shape, or a missing path.
    """
    named = _known(layer, values)
    missing = sorted(named.keys() - values.keys())
    if missing:
        raise ArgumentError(f"values must have every variable of the layer, missing {listed(missing)}")
    accepted: dict[Variable, Any] = {}
    with scopes.overlay(accepted):
        for path, variable in named.items():
            variable.assign(values[path])
    for variable, value in accepted.items():
        variable.assign(value)


def functional_call(
    layer: Layer,
    variables: Mapping[str, jax.Array | Shard],
    *inputs: PyTree,
    random_key: jax.Array | None = None,
    **kwargs: PyTree,
) -> tuple[Any, dict[str, jax.Array]]:
    """Call a built layer with given values for its variables, without changing the variables.

    The values replace those of the variables during the call; the variables themselves are never written.

    Args:
        layer: a built layer.
        variables: values by path, as in `layer.variables`; other variables keep their own values. A `Shard` is gathered
            whenever it is read.
        inputs: the inputs of the layer.
        random_key: a key of `jax.random` for random layers, such as dropout.
        kwargs: more inputs, for example `training`.

    Returns:
        The outputs, and the values of `variables` after the call.

    Raises:
        UnknownNameError: for a path that the layer does not have.
        ArgumentError: for a value whose shape or dtype differs from its variable's.

    >>> from supremum import nn
    >>> layer = nn.Dense(1, use_bias=False)
    >>> initialize(layer, jax.numpy.ones((1, 2)))
    >>> outputs, after = functional_call(
    ...     layer, {"kernel": jax.numpy.ones((2, 1))}, jax.numpy.ones((1, 2))
    ... )
    >>> outputs, list(after)
    (Array([[2.]], dtype=float32), ['kernel'])
    """
    named = _known(layer, variables)
    for path, value in variables.items():
        variable = named[path]
        if (np.shape(value), value.dtype) != (variable.shape, variable.true_dtype):
            raise ArgumentError(
                f"the value of variable {shown(path)} must be {variable.true_dtype}{list(variable.shape)}, got "
                f"{value.dtype}{list(np.shape(value))}"
            )
    values: dict[Variable, Any] = {named[path]: value for path, value in variables.items()}
    with scopes.overlay(values), nullcontext() if random_key is None else scopes.random_key(random_key):
        outputs = layer(*inputs, **kwargs)
    return outputs, {path: values[named[path]] for path in variables}


def _known(layer: Layer, values: Mapping[str, Any]) -> dict[str, Variable]:
    named = as_layer(layer).variables
    for path in mapping("the values", values, "nn.split_variables(layer)[0]"):
        if path not in named:
            raise UnknownNameError("variable", path, named, repr(layer))
    return named
