"""A model as a pure function of its variables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

from supremum.argument_checks import mapping
from supremum.errors import ArgumentError, UnknownNameError, listed, shown
from supremum.nn.functional import as_key
from supremum.nn.layer import Layer, as_layer
from supremum.nn.lazy_build import make_weights, traced_spec, unchanged_on_error
from supremum.nn.scopes import overlay, random_key
from supremum.nn.sharded_values import Shard
from supremum.nn.variables import Variable


def initialize(layer: Layer, *inputs: Any, seed: int | jax.Array = 0, **kwargs: Any) -> None:
    """Make the weights of a layer and of all it holds, without computing anything else.

    The key of each weight comes from the seed and its path, so that a layer starts from the same weights whatever
    stands beside it.

    Args:
        layer: the layer; weights it has already are kept.
        inputs: example inputs; `jax.ShapeDtypeStruct` is enough. A functional model needs none.
        seed: where the random weights come from, a number or a key of `jax.random`; the same gives the same weights.
        kwargs: more example inputs.

    Raises:
        ArgumentError: for a layer that is given no inputs and does not know them; a `ValueError`. After any error the
            layer is as it was.
    """
    as_layer(layer)
    if not (inputs or kwargs or layer.built):
        raise ArgumentError(f"{shown(layer)} does not know its inputs yet: nn.initialize(layer, x, seed=0)")
    key = as_key(seed)
    with unchanged_on_error(layer):
        make_weights(layer, inputs, kwargs, key)


def output_spec(layer: Layer, *inputs: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of a layer's outputs; computes nothing, but builds the layer.

    Args:
        layer: the layer.
        inputs: what to call it with; `jax.ShapeDtypeStruct` is enough.
        kwargs: likewise.

    Returns:
        A tree of `jax.ShapeDtypeStruct`.

    Raises:
        OperandError: for what is not a layer, and for inputs that are not arrays of numbers; a `TypeError`.
    """
    return traced_spec(as_layer(layer), inputs, kwargs)


def split_variables(layer: Layer) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    """The stored values of a layer's variables by path: those optimizers change, and the others."""
    trained = as_layer(layer).trainable_variables
    trainable = {path: variable.read_stored() for path, variable in trained.items()}
    other = {path: variable.read_stored() for path, variable in layer.variables.items() if path not in trained}
    return trainable, other


def load_variables(layer: Layer, values: Mapping[str, Any]) -> None:
    """Assign values to the variables of a built layer, all of them or none.

    Args:
        layer: the layer.
        values: by path, in dtypes that the rules bring to the stored ones without loss.

    Raises:
        UnknownNameError: for a path the layer does not have.
        ArgumentError: for a different shape, or a path that is missing.
    """
    named = _known(layer, values)
    missing = sorted(named.keys() - values.keys())
    if missing:
        raise ArgumentError(f"no value for {listed(missing)}")
    accepted: dict[Variable, Any] = {}
    with overlay(accepted):
        for path, variable in named.items():
            variable.assign(values[path])
    for variable, value in accepted.items():
        variable.assign(value)


def functional_call(
    layer: Layer, variables: Mapping[str, jax.Array | Shard], *inputs: Any, random_key: Any = None, **kwargs: Any
) -> tuple[Any, dict[str, jax.Array]]:
    """Call a built layer with other values in its variables, changing nothing.

    The values are laid over the variables for the time of the call; the variables themselves are never written.

    Args:
        layer: a built layer.
        variables: values by path, as `layer.variables` names them; variables that are not named keep their own. A
            `Shard` is put together whenever it is read.
        inputs: what to call it with.
        random_key: a key of `jax.random` for what is random in it, such as dropout.
        kwargs: more inputs, `training` for one.

    Returns:
        The outputs, and the values that all of `variables` have after the call.

    Raises:
        UnknownNameError: for a path the layer does not have.
        ArgumentError: for a value whose shape or dtype differs from its variable's.
    """
    named = _known(layer, variables)
    for path, value in variables.items():
        variable = named[path]
        if (np.shape(value), value.dtype) != (variable.shape, variable.true_dtype):
            raise ArgumentError(
                f"variable {shown(path)} is {variable.true_dtype}{list(variable.shape)}, and the value given for it "
                f"{value.dtype}{list(np.shape(value))}"
            )
    values: dict[Variable, Any] = {named[path]: value for path, value in variables.items()}
    with overlay(values), nullcontext() if random_key is None else _random_key(random_key):
        outputs = layer(*inputs, **kwargs)
    return outputs, {path: values[named[path]] for path in variables}


_random_key = random_key


def _known(layer: Layer, values: Mapping[str, Any]) -> dict[str, Variable]:
    named = as_layer(layer).variables
    for path in mapping("the values", values, "nn.split_variables(layer)[0]"):
        if path not in named:
            raise UnknownNameError("variable", path, named, repr(layer))
    return named
