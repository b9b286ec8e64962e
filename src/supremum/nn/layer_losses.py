"""The losses of layers: penalties on weights and outputs, and the losses that `call` adds.

Keras RFC 293, mixed precision, "Loss dtype": weights are regularized in float32, outputs in their own dtype.
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
    """The losses of one layer itself, an immutable value that the layer replaces.

    Args:
        functions: functions without arguments, each of which returns a loss.
        terms: the losses of the last call that had any and was not traced.
        call: the number of that call.
    """

    functions: tuple[Callable[[], Any], ...] = ()
    terms: tuple[jax.Array, ...] = ()
    call: int = 0

    def with_function(self, function: Callable[[], Any]) -> OwnLosses:
        """Add the loss of a function."""
        return replace(self, functions=(*self.functions, function))

    def with_term(self, term: jax.Array, call: int) -> OwnLosses:
        """Add a loss of a call, and drop the losses of earlier calls."""
        return replace(self, terms=(*self.terms_of(call), term), call=call)

    def terms_of(self, call: int) -> tuple[jax.Array, ...]:
        """The losses of a call."""
        return self.terms if self.call == call else ()


def weight_losses(
    variables: Iterable[Variable], losses: Iterable[tuple[object, OwnLosses]], collector: Collector | None = None
) -> list[jax.Array]:
    """The losses that do not depend on a call: penalties on variables, and losses of functions.

    Args:
        variables: trainable variables, each once.
        losses: the losses of layers, each with its layer.
        collector: the collector of losses, to skip sources that it has already seen; None to skip nothing.
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
    """The penalties on the floating outputs of a layer, each in the dtype of its output."""
    if regularizer is None:
        return []
    leaves = jax.tree.leaves(outputs, is_leaf=keeps_dtype)
    return [_activity_term(regularizer, leaf) for leaf in leaves if is_floating(leaf)]


def _activity_term(regularizer: RegularizerFunction, outputs: Any) -> jax.Array:
    """The penalty on outputs in their dtype, divided by the batch size, or by 1 if the batch is empty."""
    batch = max(outputs.shape[0], 1) if outputs.ndim else 1
    return (loss_scalar(regularizer(outputs)) / batch).astype(outputs.dtype)


def loss_of(function: Callable[..., Any], *args: Any) -> jax.Array:
    """Call a loss function, which reads variables as they are stored."""
    with autocast_to(None):
        return loss_scalar(function(*args))


def loss_scalar(value: Any) -> jax.Array:
    """Convert a loss to a scalar of JAX.

    Args:
        value: a real number, or an array of shape () that holds one.

    Raises:
        OperandError: for anything else; a `TypeError`.
        ArgumentError: for an array with axes, or a complex one; a `ValueError`.
    """
    if isinstance(value, (bool, int, float)):
        return jnp.asarray(value, "float32")
    if not isinstance(value, (jax.Array, np.ndarray, np.generic)):
        raise OperandError(f"a loss must be a real scalar, got {type(value).__name__}; use an array of shape ()")
    if value.shape or as_format(value.dtype).category == "complex":
        raise ArgumentError(
            f"a loss must be a real scalar, got {as_format(value.dtype)}{list(value.shape)}; use abs(x).mean()"
        )
    return jnp.asarray(value)
