"""A layer that runs a recurrent layer over sequences in both directions."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import jax
import jax.numpy as jnp

from supremum.argument_checks import chosen
from supremum.errors import ArgumentError, OperandError, shown
from supremum.nn.functional.dtype_promotion import promote_and_widen
from supremum.nn.layer import Layer
from supremum.nn.layers.recurrent import RNN
from supremum.typing import PyTree

_MERGES: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "concat": lambda a, b: jnp.concatenate([a, b], axis=-1),
    "sum": jnp.add,
    "mul": jnp.multiply,
    "ave": lambda a, b: (a + b) / 2,
}
_SHARED_OPTIONS = ("return_sequences", "return_state")


class Bidirectional(Layer):
    """Run one recurrent layer forwards and one backwards, and merge their outputs (Schuster and Paliwal, 1997).

    Args:
        forward: the layer that runs from the first step to the last.
        backward: the layer that runs from the last step to the first, made with `reverse=True`, and with
            `keep_order=True` if it returns all steps; None for a copy of `forward`, which then must not have weights
            yet, so both get different weights.
        merge: how to merge outputs: `"concat"` on the last axis, `"sum"`, `"mul"`, `"ave"` (mean), or None for a pair.
        name: its name.

    Raises:
        UnknownNameError: for an unknown `merge`; a `ValueError`.
        OperandError: for a layer that is not an `RNN`.
        ArgumentError: for layers with options that do not match.

    >>> from supremum.nn import GRUCell, initialize
    >>> both = Bidirectional(RNN(GRUCell(4)))
    >>> x = jnp.ones((2, 5, 3))
    >>> initialize(both, x)
    >>> both(x).shape
    (2, 5, 8)
    """

    def __init__(
        self, forward: RNN, backward: RNN | None = None, *, merge: str | None = "concat", name: str | None = None
    ) -> None:
        for each in (forward,) if backward is None else (forward, backward):
            if not isinstance(each, RNN):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise OperandError(f"Bidirectional needs RNN layers, got {shown(each)}; use RNN(cell)")
        if merge is not None:
            chosen("merge", merge, _MERGES)
        if forward.reverse:
            raise ArgumentError("the forward layer must be made without reverse=True")
        super().__init__(dtype=forward.dtype_policy, param_dtype=forward.param_dtype, autocast=False, name=name)
        self._chose_policy = forward._chose_policy
        self.forward = forward
        self.backward: RNN = _backward_of(forward, backward)
        self.merge = merge

    def call(self, x: jax.Array, *, initial_state: PyTree = None, **options: Any) -> Any:
        """Run both layers, and merge their outputs.

        Args:
            x: the inputs of both layers.
            initial_state: a pair of states, forwards and backwards; None for the initial states of the cells.
            options: `mask` or `sequence_lengths`, as for `RNN`.

        Returns:
            The merged outputs, in their result type; with `return_state` a pair of them and the pair of last states.

        Raises:
            ArgumentError: for an initial state that is not a pair.
        """
        states = (None, None) if initial_state is None else initial_state
        if not isinstance(states, (tuple, list)) or len(states) != 2:  # pyright: ignore[reportUnknownArgumentType]
            raise ArgumentError("initial_state must be a pair, for the forward and the backward layer")
        outputs = [
            layer(x, initial_state=state, **options)
            for layer, state in zip((self.forward, self.backward), states, strict=True)
        ]
        if not self.forward.return_state:
            return self._merge_outputs(*outputs)
        (a, *first), (b, *second) = outputs
        # An `LSTM` returns the parts of its state separately, an `RNN` the state.
        states = tuple(each[0] if len(each) == 1 else tuple(each) for each in (first, second))
        return self._merge_outputs(a, b), states

    def _merge_outputs(self, a: jax.Array, b: jax.Array) -> Any:
        if self.merge is None:
            return a, b
        target, wide = promote_and_widen(a, b)
        return _MERGES[self.merge](*wide).astype(target)


def _backward_of(forward: RNN, backward: RNN | None) -> RNN:
    """The layer that runs backwards: the given one, which must match, or a copy of the other layer."""
    if backward is None:
        if any(layer.built for layer in forward.layers_by_path().values()):
            raise ArgumentError(
                "the forward layer already has weights, which a copy would share; give a layer as backward="
            )
        shared = {each: getattr(forward, each) for each in (*_SHARED_OPTIONS, "unroll", "name")}
        return RNN(deepcopy(forward.cell), reverse=True, keep_order=True, **shared)
    if backward is forward:
        raise ArgumentError("backward must not be the forward layer itself; leave it out to use a copy")
    if not backward.reverse or (backward.return_sequences and not backward.keep_order):
        raise ArgumentError("the backward layer must be made with reverse=True and keep_order=True")
    for name in _SHARED_OPTIONS:
        value = getattr(forward, name)
        if getattr(backward, name) != value:
            raise ArgumentError(f"both layers must have the same {name}; make backward with {name}={value}")
    return backward
