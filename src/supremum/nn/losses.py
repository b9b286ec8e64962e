"""The losses of layers: penalties on weights and outputs, the losses that `call` adds, and their collection.

Keras RFC 293, mixed precision, "Loss dtype": weights are regularized in float32, outputs in their own dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import get_opaque_trace_state

from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format
from supremum.mixed_precision import is_floating, widen
from supremum.nn.inputs import keeps_dtype
from supremum.nn.regularizers import RegularizerFunction
from supremum.nn.scopes import autocast_to, current_overlay
from supremum.scoped_values import BlockValue
from supremum.typing import ArrayLike, PyTree


class Collector:
    """Collects the losses of a block.

    Args:
        terms: the list that losses are appended to.
    """

    def __init__(self, terms: list[jax.Array]) -> None:
        self.terms = terms
        self._trace = get_opaque_trace_state()
        self._seen: dict[tuple[int, int], tuple[Any, Any]] = {}

    def add(self, term: jax.Array) -> None:
        """Append a loss.

        Args:
            term: a scalar.

        Raises:
            ArgumentError: inside a function that JAX traces separately, which values can leave only by `return`.
        """
        if get_opaque_trace_state() != self._trace:
            raise ArgumentError(
                "a layer adds a loss inside a function that JAX traces separately, such as the function of jax.jit, "
                "jax.vmap, jax.lax.scan or jax.checkpoint, and the loss cannot leave it; use nn.collected_losses() "
                "inside that function, or return the loss from it and add it outside"
            )
        self.terms.append(term)

    def is_new(self, owner: object, source: object) -> bool:
        """Whether the source of a loss is new; mark it as seen.

        Args:
            owner: a variable or a layer.
            source: the value of the variable, or a loss function of the layer.
        """
        key = (id(owner), id(source))
        if key in self._seen:
            return False
        self._seen[key] = (owner, source)  # keeps both alive, so their identities stay unique
        return True


class _Loop:
    """Replaces the collector in the step of a loop, which is traced once and runs often."""


def _fix(collector: Collector | _Loop | None) -> str:
    state = "no losses are collected" if collector is None else "losses are collected"
    return f"{state} in this task; end nn.collected_losses() before the `await`"


# Part of JAX's cache key: a program traced without a collector must not be reused with one.
_collector: BlockValue[Collector | _Loop | None] = BlockValue("collector", None, _fix)


@contextmanager
def collected_losses() -> Generator[list[jax.Array]]:
    """Collect the losses of all layers that are called in a block.

    The losses are the penalties on weights (`kernel_regularizer=`), the penalties on outputs (`activity_regularizer=`),
    and the arguments of `add_loss`. Penalties on weights are computed in at least float32 from the values given to
    `functional_call`, so gradients reach those values. Losses that do not depend on the call, such as penalties on
    weights, count once even if a model is called twice.

    Returns:
        A list, which the block fills with scalars, for `sum(losses)`.

    Raises:
        ArgumentError: if a layer adds a loss inside a function that JAX traces separately; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> from supremum import nn
    >>> dense = nn.Dense(2, kernel_regularizer=nn.L2(0.5))
    >>> nn.initialize(dense, jnp.ones((1, 3)))
    >>> def penalty(variables):
    ...     with nn.collected_losses() as losses:
    ...         nn.functional_call(dense, variables, jnp.ones((1, 3)))
    ...     return sum(losses)
    >>> variables, _ = nn.split_variables(dense)
    >>> gradients = jax.grad(penalty)(variables)
    >>> bool((gradients["kernel"] == variables["kernel"]).all())
    True
    """
    terms: list[jax.Array] = []
    with _collector.holding(Collector(terms), True):
        yield terms


@contextmanager
def in_loop() -> Generator[None]:
    """Run a block as the step of a loop, where layers cannot add losses."""
    with _collector.holding(_Loop(), _collector.key):
        yield


def current_collector() -> Collector | None:
    """The collector of losses; None if losses are not collected here."""
    collector = _collector.value
    return collector if isinstance(collector, Collector) else None


def weight_losses(model: Any, collector: Collector | None = None) -> list[jax.Array]:
    """The losses that do not depend on a call: penalties on variables, and losses of functions.

    Args:
        model: the layer whose losses these are, with those of the layers inside it.
        collector: the collector of losses, to skip sources that it has already seen; None to skip nothing.
    """
    losses: list[jax.Array] = []
    for variable in model.trainable_variables.values():
        if variable.regularizer is None:
            continue
        stored = variable.read_stored()
        if collector is None or collector.is_new(variable, stored):
            losses.append(loss_of(variable.regularizer, widen(stored)))
    for layer in model.layers_by_path().values():
        functions = layer._loss_functions
        losses += [loss_of(each) for each in functions if collector is None or collector.is_new(layer, each)]
    return losses


def add_term(layer: Any, term: jax.Array, call: int) -> None:
    """Add a loss of a running call to those that are collected, and to the layer, which keeps no traced ones.

    Args:
        layer: the layer whose `call` is running.
        term: the loss, a scalar.
        call: the number of the call.
    """
    collector = current_collector()
    if collector is not None:
        collector.add(term)
    if current_overlay() is None and not isinstance(term, Tracer):
        before, terms = layer._call_losses
        layer._call_losses = call, (*(terms if before == call else ()), term)


def add_call_losses(layer: Any, outputs: PyTree, call: int, *, is_outermost: bool) -> None:
    """Add the losses of a call that has just returned: the penalties on its floating outputs, each in their dtype.

    Args:
        layer: the layer.
        outputs: its outputs.
        call: the number of the call.
        is_outermost: whether no other layer called it; the penalties on all weights in it are then collected too.
    """
    regularizer = layer.activity_regularizer
    if regularizer is not None:
        for leaf in filter(is_floating, jax.tree.leaves(outputs, is_leaf=keeps_dtype)):
            add_term(layer, _activity_term(regularizer, leaf), call)
    if current_overlay() is None:
        layer._last_call = call
    collector = current_collector()
    if is_outermost and collector is not None:
        for term in weight_losses(layer, collector):
            collector.add(term)


def _activity_term(regularizer: RegularizerFunction, outputs: Any) -> jax.Array:
    """The penalty on outputs in their dtype, divided by the batch size, or by 1 if the batch is empty."""
    batch = max(outputs.shape[0], 1) if outputs.ndim else 1
    return (loss_scalar(regularizer(outputs)) / batch).astype(outputs.dtype)


def loss_to_add(value: ArrayLike | Callable[[], ArrayLike]) -> jax.Array:
    """The loss that `add_loss` gets inside `call`: a scalar, or a function without arguments that returns one.

    Raises:
        ArgumentError: in the step of a loop; a `ValueError`.
    """
    if isinstance(_collector.value, _Loop):
        raise ArgumentError("add_loss cannot be called in the step of a loop; call it in the layer around the loop")
    return loss_of(value) if callable(value) else loss_scalar(value)


def loss_of(function: Callable[..., Any], *args: jax.Array) -> jax.Array:
    """Call a loss function, which reads variables as they are stored."""
    with autocast_to(None):
        return loss_scalar(function(*args))


def loss_scalar(value: object) -> jax.Array:
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
