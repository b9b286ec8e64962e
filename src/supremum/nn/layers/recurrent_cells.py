"""Recurrent cells: layers that take an input and a state, and give an output and the next state."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from supremum.nn.functional import Activation, gru_step, lstm_step, simple_rnn_step
from supremum.nn.initializers import LECUN_NORMAL, GateInitializer, Initializer, orthogonal
from supremum.nn.input_spec import InputSpec
from supremum.nn.layer import Layer
from supremum.nn.layers.kernel_layer import KernelLayer, KernelOptions
from supremum.nn.regularizers import RegularizerFunction, as_regularizer


class RecurrentCell(Layer):
    """A layer with `call(x, state)`, which gives an output and the next state, for `RNN` to repeat.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    @abstractmethod
    def initial_state(self, batch_shape: tuple[int, ...], dtype: Any = None) -> Any:
        """The state before the first step.

        Args:
            batch_shape: the axes of inputs before the last.
            dtype: its dtype; None for the compute dtype, or float32 where there is none. `RNN` brings it to the one
                that the cell gives.
        """


class _DenseCell(KernelLayer, RecurrentCell):
    """What all cells here share: a kernel for the inputs, one for the state, and a bias."""

    _gates: int

    def __init__(
        self,
        units: int,
        *,
        activation: Activation = jnp.tanh,
        use_bias: bool = True,
        recurrent_initializer: Initializer = orthogonal,
        recurrent_regularizer: RegularizerFunction | str | None = None,
        **options: Unpack[KernelOptions],
    ) -> None:
        options.setdefault("kernel_initializer", LECUN_NORMAL)
        super().__init__(**options)
        self.units = units
        self.activation = activation
        self.use_bias = use_bias
        self.recurrent_initializer = recurrent_initializer
        self.recurrent_regularizer = as_regularizer(recurrent_regularizer)
        self.input_spec = InputSpec(min_ndim=1)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernels and biases."""
        wide = self._gates * self.units
        kernel, recurrent, bias = (
            GateInitializer(each, self._gates)
            for each in (self.kernel_initializer, self.recurrent_initializer, self.bias_initializer)
        )
        bias_shape = (wide,) if self.use_bias else None
        self.add_kernel_and_bias((input_shape[-1], wide), bias_shape, kernel, bias)
        self.recurrent_kernel = self.add_weight(
            "recurrent_kernel", (self.units, wide), recurrent, regularizer=self.recurrent_regularizer
        )
        self.input_spec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})

    def initial_state(self, batch_shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Zeros, shape (*batch_shape, units).

        Args:
            batch_shape: the axes of inputs before the last.
            dtype: their dtype; None for the compute dtype, or float32 where there is none.
        """
        return jnp.zeros((*batch_shape, self.units), dtype or self.compute_dtype or "float32")

    def _weights(self) -> tuple[jax.Array, jax.Array, jax.Array | None]:
        kernel, bias = self.kernel_and_bias()
        return kernel, self.recurrent_kernel.value, bias


class _GatedCell(_DenseCell):
    """What the cells with gates share: an activation of the gates."""

    def __init__(self, units: int, *, recurrent_activation: Activation = jax.nn.sigmoid, **options: Any) -> None:
        super().__init__(units, **options)
        self.recurrent_activation = recurrent_activation


class SimpleRNNCell(_DenseCell):
    """A fully connected recurrent cell: activation(x·W + h·U + b) (Elman, 1990).

    Args:
        units: number of outputs, and of values in the state.
        activation: a function of each value.
        use_bias: whether to add a bias.
        kernel_initializer: for W, shape (inputs, units).
        recurrent_initializer: for U, shape (units, units).
        bias_initializer: for b, shape (units,).
        kernel_regularizer: a penalty on W, such as `"l2"` or `nn.L2(1e-4)`.
        recurrent_regularizer: a penalty on U.
        bias_regularizer: a penalty on the biases.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    _gates = 1

    def call(self, x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The new state, twice: as output and as state."""
        new = simple_rnn_step(x, state, *self._weights(), activation=self.activation, dtype=self.compute_dtype)
        return new, new


class LSTMCell(_GatedCell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); `functional.recurrent.lstm_step` has the formulas.

    Args:
        units: number of outputs, and of values in each of hidden and cell state.
        activation: for the candidate and the cell state.
        recurrent_activation: for the gates.
        use_bias: whether to add a bias.
        kernel_initializer: for the part of W of each gate, shape (inputs, units).
        recurrent_initializer: for the part of U of each gate, shape (units, units).
        bias_initializer: for the bias of each gate, shape (units,).
        kernel_regularizer: a penalty on W, such as `"l2"` or `nn.L2(1e-4)`.
        recurrent_regularizer: a penalty on U.
        bias_regularizer: a penalty on the biases.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    _gates = 4

    def initial_state(self, batch_shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Zeros for hidden and cell state, each of shape (*batch_shape, units).

        Args:
            batch_shape: the axes of inputs before the last.
            dtype: their dtype; None for the compute dtype, or float32 where there is none.
        """
        return super().initial_state(batch_shape, dtype), super().initial_state(batch_shape, dtype)

    def call(self, x: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """The new hidden state as output; new hidden and cell state."""
        hidden, cell = lstm_step(
            x,
            state,
            *self._weights(),
            activation=self.activation,
            recurrent_activation=self.recurrent_activation,
            dtype=self.compute_dtype,
        )
        return hidden, (hidden, cell)


class GRUCell(_GatedCell):
    """The gated recurrent unit (Cho and others, 2014); `functional.recurrent.gru_step` has the formulas.

    Args:
        units: number of outputs, and of values in the state.
        activation: for the candidate.
        recurrent_activation: for the gates.
        use_bias: whether to add biases, one per gate, and one to the candidate inside the reset gate.
        kernel_initializer: for the part of W of each gate, shape (inputs, units).
        recurrent_initializer: for the part of U of each gate, shape (units, units).
        bias_initializer: for each bias, shape (units,).
        kernel_regularizer: a penalty on W, such as `"l2"` or `nn.L2(1e-4)`.
        recurrent_regularizer: a penalty on U.
        bias_regularizer: a penalty on the biases.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    _gates = 3

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernels and biases."""
        super().build(input_shape)
        self.recurrent_bias = None
        if self.use_bias:
            self.recurrent_bias = self.add_weight(
                "recurrent_bias", (self.units,), self.bias_initializer, regularizer=self.bias_regularizer
            )

    def call(self, x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The new state, twice: as output and as state."""
        new = gru_step(
            x,
            state,
            *self._weights(),
            None if self.recurrent_bias is None else self.recurrent_bias.value,
            activation=self.activation,
            recurrent_activation=self.recurrent_activation,
            dtype=self.compute_dtype,
        )
        return new, new
