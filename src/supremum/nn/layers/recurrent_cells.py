"""Recurrent cells: layers that compute an output and the next state from an input and a state.

Flax FLIP, default dtypes, "Implementation": the dtype of the new state is the result type of inputs, state and
parameters, or the compute dtype. The state therefore keeps one dtype from its second step on. Gates and activations
also get complex inputs ("Complex number support"); the default ones are analytic functions of complex numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.argument_checks import flag, iterable
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, argument_dtype
from supremum.mixed_precision import is_array
from supremum.nn.functional.dtype_promotion import new_array, promote_arrays, shape_of
from supremum.nn.functional.named_activations import activate, check_activation
from supremum.nn.functional.products import dense
from supremum.nn.initializers import LECUN_NORMAL, GateInitializer, Initializer, as_initializer, orthogonal
from supremum.nn.inputs import InputSpec, InputSpecs
from supremum.nn.layer import Layer
from supremum.nn.layers.products import KernelLayer
from supremum.nn.regularizers import RegularizerFunction, as_regularizer
from supremum.typing import DTypeLike

Activation: TypeAlias = Callable[[jax.Array], Any]
"""A function of each value, such as `jax.numpy.tanh`."""


class RecurrentCell(Layer):
    """A layer with `call(x, state)`, which returns an output and the next state; `RNN` repeats it.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import RNN
    >>> class RunningSum(RecurrentCell):
    ...     def initial_state(self, batch_shape, dtype=None):
    ...         return jnp.zeros((*batch_shape, 1), dtype or self.compute_dtype)
    ...
    ...     def call(self, x, state):
    ...         return x + state, x + state
    >>> RNN(RunningSum())(jnp.ones((1, 4, 1))).ravel()
    Array([1., 2., 3., 4.], dtype=float32)
    """

    @abstractmethod
    def initial_state(self, batch_shape: tuple[int, ...], dtype: DTypeLike | None = None) -> Any:
        """The state before the first step.

        Args:
            batch_shape: the shape of inputs without the last axis.
            dtype: its dtype; None for the compute dtype, or else float32. `RNN` casts it to the dtype of later states.
        """


def _as_function(activation: Any) -> Activation:
    """The function of an activation; a name of Keras is computed in at least float32 and rounded once."""
    if activation is None:
        activation = "linear"
    return activation if callable(check_activation(activation)) else partial(activate, activation)


def _array(name: str, result: Any) -> jax.Array:
    """Check the result of an activation."""
    if not is_array(result):
        raise OperandError(f"{name} must return an array, got {shown(result)}")
    return result


class _DenseCell(KernelLayer, RecurrentCell):
    """The common base of all cells here: a kernel for the inputs, a kernel for the state, and a bias."""

    _gates: int

    def __init__(
        self,
        units: int,
        *,
        activation: Activation | str | None = jnp.tanh,
        use_bias: bool = True,
        kernel_initializer: Initializer | str = LECUN_NORMAL,
        recurrent_initializer: Initializer | str = orthogonal,
        recurrent_regularizer: RegularizerFunction | str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(kernel_initializer=kernel_initializer, **options)
        self.units = units
        self.activation: Activation = _as_function(activation)
        self.use_bias = use_bias
        self.recurrent_initializer: Initializer = as_initializer(recurrent_initializer)
        self.recurrent_regularizer: RegularizerFunction | None = as_regularizer(recurrent_regularizer)
        self.input_spec: InputSpecs | None = InputSpec(min_ndim=1)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernels and biases."""
        wide = self._gates * self.units
        kernel, recurrent = (
            GateInitializer(each, self._gates) for each in (self.kernel_initializer, self.recurrent_initializer)
        )
        bias = self._initializer_of_bias()
        self.add_kernel_and_bias((input_shape[-1], wide), (wide,) if self.use_bias else None, kernel, bias)
        self.recurrent_kernel: Any = self.add_weight(
            "recurrent_kernel", (self.units, wide), recurrent, regularizer=self.recurrent_regularizer
        )
        self.input_spec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})

    def initial_state(self, batch_shape: tuple[int, ...], dtype: DTypeLike | None = None) -> Any:
        """Zeros, shape (*batch_shape, units).

        Args:
            batch_shape: the shape of inputs without the last axis.
            dtype: their dtype; None for the compute dtype, or float32 if there is none.
        """
        stored = argument_dtype((self.compute_dtype or "float32") if dtype is None else dtype)
        shape = (*iterable("batch_shape", batch_shape, "lengths"), self.units)
        return new_array(shown(self), jnp.zeros, shape, dtype=stored)

    def _initializer_of_bias(self) -> Initializer:
        return GateInitializer(self.bias_initializer, self._gates)

    def _cast_to_step(self, x: Any, **states: Any) -> tuple[Any, ...]:
        """Cast inputs, states and weights, in this order, to the dtype of the step; check the shapes of the states."""
        shape = shape_of("x", x)
        expected = (*shape[:-1], self.units)
        for name, state in states.items():
            if shape_of(name, state) != expected:
                raise ArgumentError(
                    f"{name} must have shape {expected} for x of shape {shape} and {self.units} units, got "
                    f"{jnp.shape(state)}"
                )
        return promote_arrays(x, *states.values(), *self._weights(), dtype=self.compute_dtype)

    def _weights(self) -> tuple[jax.Array | None, ...]:
        kernel, bias = self.kernel_and_bias()
        return kernel, self.recurrent_kernel.value, bias

    def _product(self, x: jax.Array, kernel: jax.Array, bias: jax.Array | None = None) -> jax.Array:
        return dense(x, kernel, bias, precision=self.precision)

    def _activate(self, x: jax.Array) -> jax.Array:
        return _array("activation", self.activation(x))


class _GatedCell(_DenseCell):
    """The common base of cells with gates: an activation for the gates."""

    def __init__(
        self, units: int, *, recurrent_activation: Activation | str | None = jax.nn.sigmoid, **options: Any
    ) -> None:
        super().__init__(units, **options)
        self.recurrent_activation: Activation = _as_function(recurrent_activation)

    def _gate(self, x: jax.Array) -> jax.Array:
        return _array("recurrent_activation", self.recurrent_activation(x))


def _cast_result(result: jax.Array, x: jax.Array) -> jax.Array:
    """Cast a result to the dtype of the step, which the user's functions may have changed; complex stays complex."""
    return promote_arrays(result, dtype=x.dtype)[0]


class SimpleRNNCell(_DenseCell):
    """A fully connected recurrent cell: activation(x·W + h·U + b) (Elman, 1990).

    Args:
        units: the number of outputs, and of values in the state.
        activation: a function of each value.
        use_bias: whether to add a bias.
        kernel_initializer: for W, shape (inputs, units).
        recurrent_initializer: for U, shape (units, units).
        bias_initializer: for b, shape (units,).
        kernel_regularizer: a penalty on W, such as `"l2"` or `nn.L2(1e-4)`.
        recurrent_regularizer: a penalty on U.
        bias_regularizer: a penalty on the biases.
        precision: the precision of products on the device, such as `"highest"`, as in JAX; None for JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import RNN, initialize
    >>> layer = RNN(SimpleRNNCell(4, dtype="mixed_bfloat16"))
    >>> initialize(layer, jnp.ones((2, 10, 3)))
    >>> layer(jnp.ones((2, 10, 3))).shape, layer(jnp.ones((2, 10, 3))).dtype
    ((2, 10, 4), dtype(bfloat16))
    """

    _gates = 1

    def call(self, x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Compute the new state, which is also the output; returns it twice."""
        x, state, kernel, recurrent_kernel, bias = self._cast_to_step(x, state=state)
        total = self._product(x, kernel, bias) + self._product(state, recurrent_kernel)
        new = _cast_result(self._activate(total), x)
        return new, new


@dataclass(frozen=True)
class ForgetBiasInitializer:
    """An initializer for the biases of an `LSTMCell`, with ones for the forget gate.

    Args:
        initializer: for the bias of each other gate.
    """

    initializer: Initializer

    def __call__(self, key: jax.Array, shape: tuple[int, ...], dtype: DType) -> jax.Array:
        """The initial values of the biases."""
        units = shape[-1] // 4
        return GateInitializer(self.initializer, 4)(key, shape, dtype).at[units : 2 * units].set(1)


class LSTMCell(_GatedCell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997; Gers and others, 2000, for the forget gate).

    With i, f, g, o the four parts of x·W + h·U + b, in this order, s the recurrent activation and a the other, the new
    cell state is c' = s(f)·c + s(i)·a(g) and the new hidden state is s(o)·a(c').

    Args:
        units: the number of outputs, and of values in each of hidden and cell state.
        activation: for the candidate and the cell state.
        recurrent_activation: for the gates.
        use_bias: whether to add a bias.
        unit_forget_bias: whether the bias of the forget gate starts at 1 (Jozefowicz and others, 2015).
        kernel_initializer: for each gate's part of W, shape (inputs, units).
        recurrent_initializer: for each gate's part of U, shape (units, units).
        bias_initializer: for the bias of each gate, shape (units,).
        kernel_regularizer: a penalty on W, such as `"l2"` or `nn.L2(1e-4)`.
        recurrent_regularizer: a penalty on U.
        bias_regularizer: a penalty on the biases.
        precision: the precision of products on the device, such as `"highest"`, as in JAX; None for JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import RNN, initialize
    >>> layer = RNN(LSTMCell(4), return_sequences=False)
    >>> initialize(layer, jnp.ones((2, 10, 3)))
    >>> layer(jnp.ones((2, 10, 3))).shape
    (2, 4)
    """

    _gates = 4

    def __init__(self, units: int, *, unit_forget_bias: bool = False, **options: Any) -> None:
        super().__init__(units, **options)
        self.unit_forget_bias: bool = flag("unit_forget_bias", unit_forget_bias)

    def _initializer_of_bias(self) -> Initializer:
        return ForgetBiasInitializer(self.bias_initializer) if self.unit_forget_bias else super()._initializer_of_bias()

    def initial_state(self, batch_shape: tuple[int, ...], dtype: DTypeLike | None = None) -> Any:
        """Zeros for hidden and cell state, each of shape (*batch_shape, units).

        Args:
            batch_shape: the shape of inputs without the last axis.
            dtype: their dtype; None for the compute dtype, or float32 if there is none.
        """
        return super().initial_state(batch_shape, dtype), super().initial_state(batch_shape, dtype)

    def call(self, x: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """Compute the new hidden state, which is also the output, and the pair of new hidden and cell state."""
        if not isinstance(state, (tuple, list)) or len(state) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"the state of an LSTM must be a pair of hidden and cell state, got {type(state).__name__}"
            )
        states = {"hidden state": state[0], "cell state": state[1]}
        x, hidden, cell, kernel, recurrent_kernel, bias = self._cast_to_step(x, **states)
        gates = self._product(x, kernel, bias) + self._product(hidden, recurrent_kernel)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        cell = self._gate(f) * cell + self._gate(i) * self._activate(g)
        hidden = _cast_result(self._gate(o) * self._activate(cell), x)
        return hidden, (hidden, _cast_result(cell, x))


class GRUCell(_GatedCell):
    """The gated recurrent unit (Cho and others, 2014, in the form of its version 1: reset after the product).

    With r, z, n the three parts of x·W + b and r', z', n' those of h·U, s the recurrent activation and a the other, the
    new state is (1 - u)·a(n + s(r + r')·(n' + b')) + u·h, where u = s(z + z').

    Args:
        units: the number of outputs, and of values in the state.
        activation: for the candidate.
        recurrent_activation: for the gates.
        use_bias: whether to add biases, one per gate, and one to the candidate inside the reset gate.
        kernel_initializer: for each gate's part of W, shape (inputs, units).
        recurrent_initializer: for each gate's part of U, shape (units, units).
        bias_initializer: for each bias, shape (units,).
        kernel_regularizer: a penalty on W, such as `"l2"` or `nn.L2(1e-4)`.
        recurrent_regularizer: a penalty on U.
        bias_regularizer: a penalty on the biases.
        precision: the precision of products on the device, such as `"highest"`, as in JAX; None for JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import RNN, initialize
    >>> layer = RNN(GRUCell(4), return_state=True)
    >>> initialize(layer, jnp.ones((2, 10, 3)))
    >>> outputs, state = layer(jnp.ones((2, 10, 3)))
    >>> outputs.shape, state.shape
    ((2, 10, 4), (2, 4))
    """

    _gates = 3

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernels and biases."""
        super().build(input_shape)
        self.recurrent_bias: Any = None
        if self.use_bias:
            self.recurrent_bias = self.add_weight(
                "recurrent_bias", (self.units,), self.bias_initializer, regularizer=self.bias_regularizer
            )

    def _weights(self) -> tuple[jax.Array | None, ...]:
        return *super()._weights(), None if self.recurrent_bias is None else self.recurrent_bias.value

    def call(self, x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Compute the new state, which is also the output; returns it twice."""
        x, state, kernel, recurrent_kernel, bias, recurrent_bias = self._cast_to_step(x, state=state)
        x_reset, x_update, x_candidate = jnp.split(self._product(x, kernel, bias), 3, axis=-1)
        h_reset, h_update, h_candidate = jnp.split(self._product(state, recurrent_kernel), 3, axis=-1)
        if recurrent_bias is not None:
            h_candidate = h_candidate + recurrent_bias
        reset = self._gate(x_reset + h_reset)
        update = self._gate(x_update + h_update)
        candidate = self._activate(x_candidate + reset * h_candidate)
        new = _cast_result((1 - update) * candidate + update * state, x)
        return new, new
