"""Recurrent layers in both directions."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import jax
import jax.numpy as jnp

from supremum.argument_checks import chosen
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import at_least_float32
from supremum.nn.functional import promote_dtype
from supremum.nn.layer import Layer
from supremum.nn.layers.rnn import RNN

_MERGES: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "concat": lambda a, b: jnp.concatenate([a, b], axis=-1),
    "sum": jnp.add,
    "mul": jnp.multiply,
    "ave": lambda a, b: (a + b) / 2,
}


class Bidirectional(Layer):
    """Run one recurrent layer forwards and one backwards, and merge what they give (Schuster and Paliwal, 1997).

    Args:
        forward: the layer from the first step to the last.
        backward: the layer from the last to the first, made with `reverse=True`, and `keep_order=True` if it gives all
            steps; None for one like `forward` with weights of its own, which then may not have any yet.
        merge: how outputs are joined: `"concat"` along the last axis, `"sum"`, `"mul"`, `"ave"` for the mean, or None
            for a pair of them.
        name: its name.

    Raises:
        UnknownNameError: for another `merge`; a `ValueError`.
        OperandError: for layers that are not an `RNN`.
        ArgumentError: for layers that do not fit together.

    >>> from supremum.nn import initialize
    >>> from supremum.nn.layers.recurrent_cells import GRUCell
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
                raise OperandError(f"Bidirectional takes layers RNN(cell), not {shown(each)}")
        if merge is not None:
            chosen("merge", merge, _MERGES)
        if forward.reverse:
            raise ArgumentError("the forward layer runs backwards: make it without reverse=True")
        super().__init__(dtype=forward.dtype_policy, param_dtype=forward.param_dtype, autocast=False, name=name)
        self.chose_policy = forward.chose_policy
        self.forward = forward
        self.backward = _reversed(forward) if backward is None else backward
        self.merge = merge
        self._check_backward()

    def call(self, x: Any, *, initial_state: Any = None, mask: Any = None, sequence_lengths: Any = None) -> Any:
        """Merged outputs, and both last states if the layers return them.

        Args:
            x: inputs, as the layers take them.
            initial_state: a pair of states, forwards and backwards; None for what the cells begin with.
            mask: as for `RNN`.
            sequence_lengths: likewise.

        Returns:
            The merged outputs, in the dtype that both meet in; with `return_state` a pair of them and the pair of
            states.

        Raises:
            ArgumentError: for an initial state that is not a pair.
        """
        states = (None, None) if initial_state is None else initial_state
        if not isinstance(states, (tuple, list)) or len(states) != 2:  # pyright: ignore[reportUnknownArgumentType]
            raise ArgumentError("the initial state is a pair, of the forward and of the backward layer")
        found = [
            layer(x, initial_state=state, mask=mask, sequence_lengths=sequence_lengths)
            for layer, state in zip((self.forward, self.backward), states, strict=True)
        ]
        if not self.forward.return_state:
            return self._merged(*found)
        (a, first), (b, second) = found
        return self._merged(a, b), (first, second)

    def _merged(self, a: jax.Array, b: jax.Array) -> Any:
        if self.merge is None:
            return a, b
        a, b = promote_dtype(a, b)
        wide = promote_dtype(a, b, dtype=at_least_float32(a.dtype))
        return _MERGES[self.merge](*wide).astype(a.dtype)

    def _check_backward(self) -> None:
        backward = self.backward
        if backward is self.forward:
            raise ArgumentError("one layer cannot run in both directions: leave backward out for one like it")
        if not backward.reverse or (backward.return_sequences and not backward.keep_order):
            raise ArgumentError("the backward layer has to be made with reverse=True and keep_order=True")
        for name in ("return_sequences", "return_state", "time_major"):
            if getattr(backward, name) != getattr(self.forward, name):
                raise ArgumentError(f"both layers need the same {name}: give backward {getattr(self.forward, name)}")


def _reversed(forward: RNN) -> RNN:
    if any(layer.built for layer in forward.layers_by_path().values()):
        raise ArgumentError(
            "the forward layer has weights already, and its copy would begin with the same: give backward= a layer"
        )
    return RNN(
        deepcopy(forward.cell),
        return_sequences=forward.return_sequences,
        return_state=forward.return_state,
        reverse=True,
        keep_order=True,
        time_major=forward.time_major,
        unroll=forward.unroll,
        name=forward.name,
    )
