"""What layers add to the loss: penalties on weights and outputs, and what their `call` says.

spec/keras-rfc-293-mixed-precision.md, "Loss dtype": weights are regularised in float32, outputs in their own dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.mixed_precision.tree_casting import is_floating, widen
from supremum.nn.input_casting import keeps_dtype
from supremum.nn.loss_collection import Collector, current_collector, is_in_loop
from supremum.nn.module_tree import Holder
from supremum.nn.regularizers import RegularizerFunction
from supremum.nn.scopes import Running, as_stored, current_overlay, is_declaring, running_layers


class _CallLosses(NamedTuple):
    """The losses that a layer added in a call."""

    call: int
    values: tuple[jax.Array, ...]


_NONE_YET = _CallLosses(0, ())


class LayerLosses(Holder):
    """Something that adds to the loss, and holds what does."""

    _activity_regularizer: RegularizerFunction | None = None
    _loss_functions: tuple[Callable[[], Any], ...] = ()
    _built: bool
    # Those of the last call that was not traced, which is numbered.
    _call_losses: _CallLosses = _NONE_YET
    _last_call_number: int = 0

    @property
    def activity_regularizer(self) -> RegularizerFunction | None:
        """The penalty on its outputs."""
        return self._activity_regularizer

    def add_loss(self, value: Any) -> None:
        """Add something to the loss that a training step makes small.

        Args:
            value: inside `call` a real scalar, or a function of no arguments that gives one. Elsewhere, as in `build`,
                such a function: it is called whenever the losses are asked for, and variables read there as they are
                stored, not in the compute dtype.

        Raises:
            ArgumentError: for what is no scalar, a scalar outside of `call`, or in the step of an `RNN`; a
                `ValueError`.
        """
        if not (self._built and any(running.layer is self for running in running_layers())):
            if not callable(value):
                raise ArgumentError(
                    f"outside of `call` a loss would never change: give {shown(self)}.add_loss a function of no "
                    "arguments"
                )
            vars(self)["_loss_functions"] = (*self._loss_functions, value)
            return
        if is_declaring():
            return
        if is_in_loop():
            raise ArgumentError("a loss in the step of a loop cannot leave it: add it in the layer around the loop")
        self._note(_value_of(value) if callable(value) else _scalar(value))

    @property
    def losses(self) -> list[jax.Array]:
        """What this layer and all it holds add to the loss, each a scalar.

        First the penalties on weights, each variable once, of the values they are stored in whatever surrounds this,
        in at least float32; then penalties on outputs and added losses of the last call that was not traced. Inside a
        `functional_call`, and for the losses of one, use `nn.collected_losses`.
        """
        found = self._weight_terms(None)
        if current_overlay() is not None:
            return found
        call = next((each.call for each in running_layers() if each.layer is self), self._last_call_number)
        noted = [layer._call_losses for layer in self.layers_by_path().values()]
        return found + [value for losses in noted if losses.call == call for value in losses.values]

    def _weight_terms(self, collector: Collector | None) -> list[jax.Array]:
        found: list[jax.Array] = []
        for variable in self.trainable_variables.values():
            if variable.regularizer is None:
                continue
            stored = variable.read_stored()
            if collector is None or collector.is_new(variable, stored):
                found.append(_value_of(variable.regularizer, widen(stored)))
        for layer in self.layers_by_path().values():
            functions = layer._loss_functions
            found += [_value_of(each) for each in functions if collector is None or collector.is_new(layer, each)]
        return found

    def _note(self, term: jax.Array) -> None:
        collector = current_collector()
        if collector is not None:
            collector.add(term)
        if current_overlay() is None and not isinstance(term, Tracer):
            call = running_layers()[-1].call
            values = self._call_losses.values if self._call_losses.call == call else ()
            vars(self)["_call_losses"] = _CallLosses(call, (*values, term))

    def _note_losses(self, outputs: Any, running: Running) -> None:
        """Take what a call that has just returned adds to the loss."""
        if is_declaring():
            return
        if self._activity_regularizer is not None:
            for leaf in jax.tree.leaves(outputs, is_leaf=keeps_dtype):
                if is_floating(leaf):
                    self._note(_activity_term(self._activity_regularizer, leaf))
        if current_overlay() is None:
            vars(self)["_last_call_number"] = running.call
        collector = current_collector() if running.is_outermost else None
        if collector is not None:
            for term in self._weight_terms(collector):
                collector.add(term)


def _activity_term(regularizer: RegularizerFunction, outputs: Any) -> jax.Array:
    """The penalty on outputs for one example, in their dtype; what it is divided by is at least 1."""
    batch = max(outputs.shape[0], 1) if outputs.ndim else 1
    return (_scalar(regularizer(outputs)) / batch).astype(outputs.dtype)


def _value_of(function: Callable[..., Any], *args: Any) -> jax.Array:
    with as_stored():
        return _scalar(function(*args))


def _scalar(value: Any) -> jax.Array:
    if isinstance(value, (bool, int, float)):
        return jnp.asarray(value, "float32")
    if not isinstance(value, (jax.Array, np.ndarray, np.generic)):
        raise OperandError(f"a loss is a real scalar, not a {type(value).__name__}: give an array of shape ()")
    if value.shape or as_format(value.dtype).category == "complex":
        raise ArgumentError(
            f"a loss is a real scalar, not {as_format(value.dtype)}{list(value.shape)}: give its mean, abs(x).mean()"
        )
    return jnp.asarray(value)
