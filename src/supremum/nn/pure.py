"""A model as a pure function of its variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from supremum.nn.layer import Layer
from supremum.nn.scopes import initial_keys, overlay
from supremum.nn.variables import Variable


def initialize(layer: Layer, *inputs: Any, seed: int = 0) -> None:
    """Make the weights of a layer and of all it holds, without computing anything.

    Args:
        layer: the layer; weights it has already are kept.
        inputs: example inputs; `jax.ShapeDtypeStruct` is enough.
        seed: where the random weights come from; the same seed gives the same weights.
    """
    with initial_keys(seed):
        jax.eval_shape(layer.__call__, *inputs)


def split_variables(layer: Layer) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    """The stored values of a layer's variables by path: those optimizers change, and the others."""
    named = layer.named_variables()
    trainable = {path: variable.read_stored() for path, variable in named.items() if variable.trainable}
    other = {path: variable.read_stored() for path, variable in named.items() if not variable.trainable}
    return trainable, other


def functional_call(
    layer: Layer, variables: Mapping[str, jax.Array], *inputs: Any, **kwargs: Any
) -> tuple[Any, dict[str, jax.Array]]:
    """Call a built layer with other values in its variables, changing nothing.

    The values are laid over the variables for the time of the call; the variables themselves are never written.

    Args:
        layer: a built layer.
        variables: values by path, as `named_variables` names them; variables that are not named keep their own.
        inputs: what to call it with.
        kwargs: likewise, `training` for one.

    Returns:
        The outputs, and the values that all of `variables` have after the call.

    Raises:
        KeyError: for a path the layer does not have.
    """
    named: dict[str, Variable] = layer.named_variables()
    unknown = sorted(variables.keys() - named.keys())
    if unknown:
        raise KeyError(f"no variable {', '.join(unknown)}: the paths are {', '.join(named)}")
    values = {named[path]: value for path, value in variables.items()}
    with overlay(values):
        outputs = layer(*inputs, **kwargs)
    return outputs, {path: values[named[path]] for path in variables}
