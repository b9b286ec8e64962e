"""Recurrent layers under Keras' names, which make their cells themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from supremum.argument_checks import flag
from supremum.keyword_signature import KeywordSignature
from supremum.nn.layers.recurrent import RNN
from supremum.nn.layers.recurrent_cells import GRUCell, LSTMCell, RecurrentCell, SimpleRNNCell
from supremum.typing import PyTree


class _KerasRNN(RNN):
    """An `RNN` with Keras' arguments, which makes its cell itself.

    Args:
        units: the number of outputs, and of values in the state.
        return_sequences: whether to return the outputs of all steps, or only the last one.
        return_state: whether to return the last state too.
        go_backwards: whether to go from the last step to the first; outputs are then in that order.
        unroll: the number of steps to compile into one iteration of the loop, or True for all.
        name: its name.
        options: the options of the cell.
    """

    _cell_class: ClassVar[Callable[..., RecurrentCell]]
    __signature__: ClassVar[KeywordSignature] = KeywordSignature("_cell_class")

    def __init__(
        self,
        units: int,
        *,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        unroll: bool | int = False,
        name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            self._cell_class(units, **options),
            return_sequences=return_sequences,
            return_state=return_state,
            reverse=flag("go_backwards", go_backwards),
            unroll=1 if unroll is False else unroll,
            name=name,
        )


class SimpleRNN(_KerasRNN):
    """A fully connected recurrent layer, as in Keras: an `RNN` that makes a `SimpleRNNCell`.

    Args:
        units: the number of outputs, and of values in the state.
        return_sequences: whether to return the outputs of all steps, or only the last one.
        return_state: whether to return the last state too: outputs, state.
        go_backwards: whether to go from the last step to the first; outputs are then in that order.
        unroll: the number of steps to compile into one iteration of the loop, or True for all.
        name: its name.
        options: the options of the cell, such as `activation`, `kernel_initializer` and `dtype`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = SimpleRNN(4, dtype="mixed_bfloat16")
    >>> initialize(layer, jnp.ones((2, 10, 3)))
    >>> layer(jnp.ones((2, 10, 3))).shape
    (2, 4)
    """

    _cell_class = SimpleRNNCell


class GRU(_KerasRNN):
    """A layer of gated recurrent units, as in Keras: an `RNN` that makes a `GRUCell`.

    Args:
        units: the number of outputs, and of values in the state.
        return_sequences: whether to return the outputs of all steps, or only the last one.
        return_state: whether to return the last state too: outputs, state.
        go_backwards: whether to go from the last step to the first; outputs are then in that order.
        unroll: the number of steps to compile into one iteration of the loop, or True for all.
        name: its name.
        options: the options of the cell, such as `activation`, `kernel_initializer` and `dtype`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = GRU(4, return_sequences=True)
    >>> initialize(layer, jnp.ones((2, 10, 3)))
    >>> layer(jnp.ones((2, 10, 3))).shape
    (2, 10, 4)
    """

    _cell_class = GRUCell


class LSTM(_KerasRNN):
    """A layer of long short-term memory, as in Keras: an `RNN` that makes an `LSTMCell`.

    Args:
        units: the number of outputs, and of values in each of hidden and cell state.
        return_sequences: whether to return the outputs of all steps, or only the last one.
        return_state: whether to return the last state too: outputs, hidden state, cell state.
        go_backwards: whether to go from the last step to the first; outputs are then in that order.
        unroll: the number of steps to compile into one iteration of the loop, or True for all.
        unit_forget_bias: whether the bias of the forget gate starts at 1.
        name: its name.
        options: the options of the cell, such as `activation`, `kernel_initializer` and `dtype`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = LSTM(4, return_state=True)
    >>> initialize(layer, jnp.ones((2, 10, 3)))
    >>> output, hidden, cell = layer(jnp.ones((2, 10, 3)))
    >>> layer(jnp.ones((2, 10, 3)), initial_state=[hidden, cell])[0].shape
    (2, 4)
    """

    _cell_class = LSTMCell

    def __init__(self, units: int, *, unit_forget_bias: bool = True, **options: Any) -> None:
        super().__init__(units, unit_forget_bias=unit_forget_bias, **options)

    def _with_state(self, output: PyTree, state: PyTree) -> tuple[Any, ...]:
        """The outputs with `return_state`: the two parts of the last state are separate."""
        return output, *state
