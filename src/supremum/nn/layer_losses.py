"""What layers add to the loss: penalties on weights and outputs, and what their `call` says.

spec/keras-rfc-293-mixed-precision.md, "Loss dtype": weights are regularized in float32, outputs in their own dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format
from supremum.mixed_precision import is_floating, widen
from supremum.nn.input_casting import keeps_dtype
from supremum.nn.loss_collection import Collector
from supremum.nn.regularizers import RegularizerFunction
from supremum.nn.scopes import autocast_to
from supremum.nn.variables import Variable


@dataclass(frozen=True, slots=True)
class OwnLosses:
    """What one layer itself adds to the loss, a value that the layer replaces.

    Args:
        functions: functions of no arguments, each of which gives a loss.
        terms: the losses of the last call that was not traced and had any.
        call: the number of that call.
    """

    functions: tuple[Callable[[], Any], ...] = ()
    terms: tuple[jax.Array, ...] = ()
    call: int = 0

    def with_function(self, function: Callable[[], Any]) -> OwnLosses:
        """These losses and that of a function."""
        return replace(self, functions=(*self.functions, function))

    def with_term(self, term: jax.Array, call: int) -> OwnLosses:
        """These losses and a term of a call; those of the calls before are dropped."""
        return replace(self, terms=(*self.terms_of(call), term), call=call)

    def terms_of(self, call: int) -> tuple[jax.Array, ...]:
        """The losses of a call."""
        return self.terms if self.call == call else ()


def weight_losses(
    variables: Iterable[Variable], losses: Iterable[tuple[object, OwnLosses]], collector: Collector | None = None
) -> list[jax.Array]:
    """The losses that do not depend on a call: the penalties on variables, and those of functions.

    Args:
        variables: trainable variables, each once.
        losses: those of layers, each with its layer.
        collector: where losses are collected; what it has seen is left out. None to leave out nothing.
    """
    found: list[jax.Array] = []
    for variable in variables:
        if variable.regularizer is None:
            continue
        stored = variable.read_stored()
        if collector is None or collector.is_new(variable, stored):
            found.append(loss_of(variable.regularizer, widen(stored)))
    for layer, own in losses:
        found += [loss_of(each) for each in own.functions if collector is None or collector.is_new(layer, each)]
    return found


def activity_losses(regularizer: RegularizerFunction | None, outputs: Any) -> list[jax.Array]:
    """The penalties on the floating outputs of a layer, each in its dtype."""
    if regularizer is None:
        return []
    leaves = jax.tree.leaves(outputs, is_leaf=keeps_dtype)
    return [_activity_term(regularizer, leaf) for leaf in leaves if is_floating(leaf)]


def _activity_term(regularizer: RegularizerFunction, outputs: Any) -> jax.Array:
    """The penalty on outputs for one example, in their dtype; what it is divided by is at least 1."""
    batch = max(outputs.shape[0], 1) if outputs.ndim else 1
    return (loss_scalar(regularizer(outputs)) / batch).astype(outputs.dtype)


def loss_of(function: Callable[..., Any], *args: Any) -> jax.Array:
    """The loss that a function gives, which reads variables as they are stored."""
    with autocast_to(None):
        return loss_scalar(function(*args))


def loss_scalar(value: Any) -> jax.Array:
    """A loss as a scalar of JAX.

    Args:
        value: a real number, or an array of one.

    Raises:
        OperandError: for anything else; a `TypeError`.
        ArgumentError: for an array with axes, or a complex one; a `ValueError`.
    """
    if isinstance(value, (bool, int, float)):
        return jnp.asarray(value, "float32")
    if not isinstance(value, (jax.Array, np.ndarray, np.generic)):
        raise OperandError(f"a loss is a real scalar, not a {type(value).__name__}: give an array of shape ()")
    if value.shape or as_format(value.dtype).category == "complex":
        raise ArgumentError(
            f"a loss is a real scalar, not {as_format(value.dtype)}{list(value.shape)}: give its mean, abs(x).mean()"
        )
    return jnp.asarray(value)
