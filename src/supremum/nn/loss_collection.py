"""Collect the losses of layers while a model runs; a training step adds them to its loss."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import jax
from jax.extend.core import get_opaque_trace_state

from supremum.errors import ArgumentError
from supremum.scoped_values import BlockValue


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

    def is_new(self, owner: Any, source: Any) -> bool:
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
    found = "no losses are collected" if collector is None else "losses are collected"
    return f"{found} in this task; end nn.collected_losses() before the `await`"


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


def is_in_loop() -> bool:
    """Whether the step of a loop is running."""
    return isinstance(_collector.value, _Loop)
