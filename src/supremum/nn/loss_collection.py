"""Collecting the losses of layers while a model runs, as a training step adds them to its own loss."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import jax
from jax.extend.core import get_opaque_trace_state

from supremum.errors import ArgumentError
from supremum.scoped_values import BlockValue


class Collector:
    """Where the losses of a block go.

    Args:
        terms: the list that they are appended to.
    """

    def __init__(self, terms: list[jax.Array]) -> None:
        self.terms = terms
        self._trace = get_opaque_trace_state()
        self._seen: dict[tuple[int, int], tuple[Any, Any]] = {}

    def add(self, term: jax.Array) -> None:
        """Take a loss.

        Args:
            term: a scalar.

        Raises:
            ArgumentError: inside a function that JAX traces on its own, whose values do not leave it but by `return`.
        """
        if get_opaque_trace_state() != self._trace:
            raise ArgumentError(
                "a loss of a layer is made inside a function that JAX traces on its own, such as that of jax.jit, "
                "jax.vmap, jax.lax.scan or jax.checkpoint, and cannot leave it: put nn.collected_losses() inside of "
                "that function, or return the loss from it and add it outside"
            )
        self.terms.append(term)

    def is_new(self, owner: Any, source: Any) -> bool:
        """Whether what a loss comes from is seen for the first time; it is then known.

        Args:
            owner: a variable, or a layer.
            source: the variable's value, or a function of the layer.
        """
        key = (id(owner), id(source))
        if key in self._seen:
            return False
        self._seen[key] = (owner, source)  # kept, so that no other has the identity
        return True


class _Loop:
    """In place of a collector in the step of a loop, which is traced once and runs often."""


def _fix(collector: Collector | _Loop | None) -> str:
    found = "no losses are collected" if collector is None else "losses are collected"
    return f"{found} in this task: let nn.collected_losses() end before the `await`"


# JAX is told: what was traced while nobody collected does not stand for what adds a loss.
_collector: BlockValue[Collector | _Loop | None] = BlockValue("collector", None, _fix)


@contextmanager
def collected_losses() -> Generator[list[jax.Array]]:
    """Collect what the layers that are called in a block add to the loss.

    Those are the penalties on weights (`kernel_regularizer=`), in at least float32 and of the values that
    `functional_call` lays over the variables, so that gradients reach them; those on outputs
    (`activity_regularizer=`); and what `add_loss` was given. What does not depend on the call, as of
    weights, counts once for a model that is called twice.

    Returns:
        A list, which the block fills with scalars, for `sum(losses)`.

    Raises:
        ArgumentError: if a layer adds a loss inside a function that JAX traces on its own; a `ValueError`.

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
    """The step of a loop, from which no loss can be taken, for the time of a block."""
    with _collector.holding(_Loop(), _collector.key):
        yield


def current_collector() -> Collector | None:
    """Where losses go; None where nobody collects them."""
    collector = _collector.value
    return collector if isinstance(collector, Collector) else None


def is_in_loop() -> bool:
    """Whether this is the step of a loop."""
    return isinstance(_collector.value, _Loop)
