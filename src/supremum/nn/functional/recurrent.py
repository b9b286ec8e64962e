"""Steps of recurrent cells, which compute the next state from an input and the previous state.

Flax FLIP, default dtypes, "Implementation": the dtype of the new state is the result type of inputs, state and
parameters, or the requested dtype. The state therefore keeps one dtype from its second step on. Gates and activations
also get complex inputs ("Complex number support"); the default ones are analytic functions of complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.argument_checks import function
from supremum.errors import ArgumentError, OperandError, shown
from supremum.mixed_precision import is_array
from supremum.nn.functional.dtype_promotion import promote_dtype, shape_of
from supremum.nn.functional.products import dense

Activation: TypeAlias = Callable[[jax.Array], Any]
"""A function of each value, such as `jax.numpy.tanh`."""


def simple_rnn_step(
    x: Any,
    state: Any,
    kernel: Any,
    recurrent_kernel: Any,
    bias: Any = None,
    *,
    activation: Activation = jnp.tanh,
    dtype: Any = None,
    precision: Any = None,
) -> jax.Array:
    """A step of a fully connected recurrent network (Elman, 1990): activation(x·W + h·U + b).

    Args:
        x: inputs, shape (..., n).
        state: the result of the previous step, shape (..., units).
        kernel: W, shape (n, units).
        recurrent_kernel: U, shape (units, units).
        bias: b, shape (units,), or None.
        activation: a function of each value.
        dtype: the dtype of the result; None for the result type of all arrays, at least inexact.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.

    Returns:
        The new state, which is also the output, shape (..., units).

    Raises:
        ArgumentError: for shapes that do not match; a `ValueError`.

    >>> x, state = jnp.ones((1, 2), jnp.bfloat16), jnp.zeros((1, 3), jnp.bfloat16)
    >>> simple_rnn_step(x, state, jnp.ones((2, 3)), jnp.ones((3, 3))).dtype
    dtype('float32')
    """
    activation = _checked_activation("activation", activation)
    biases = {"bias": (bias, 1)}
    x, state, kernel, recurrent_kernel, bias = _checked(x, {"state": state}, kernel, recurrent_kernel, biases, 1, dtype)
    return _cast_result(activation(_sum_of_products(x, kernel, bias, state, recurrent_kernel, precision)), x)


def lstm_step(
    x: Any,
    state: tuple[Any, Any],
    kernel: Any,
    recurrent_kernel: Any,
    bias: Any = None,
    *,
    activation: Activation = jnp.tanh,
    recurrent_activation: Activation = jax.nn.sigmoid,
    dtype: Any = None,
    precision: Any = None,
) -> tuple[jax.Array, jax.Array]:
    """A step of long short-term memory (Hochreiter and Schmidhuber, 1997; Gers and others, 2000, for the forget gate).

    With i, f, g, o the four parts of x·W + h·U + b, s the recurrent activation and a the other, the new cell state is
    c' = s(f)·c + s(i)·a(g) and the new hidden state is s(o)·a(c').

    Args:
        x: inputs, shape (..., n).
        state: hidden and cell state, h and c, each of shape (..., units).
        kernel: W, shape (n, 4·units), for input gate, forget gate, candidate and output gate in this order.
        recurrent_kernel: U, shape (units, 4·units).
        bias: b, shape (4·units,), or None.
        activation: for the candidate and the cell state.
        recurrent_activation: for the gates.
        dtype: the dtype of the result; None for the result type of all arrays, at least inexact.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.

    Returns:
        The new hidden state, which is also the output, and the new cell state, in the same dtype.

    Raises:
        ArgumentError: for shapes that do not match; a `ValueError`.

    >>> state = jnp.zeros((1, 3), jnp.float16), jnp.zeros((1, 3), jnp.float16)
    >>> h, c = lstm_step(
    ...     jnp.ones((1, 2)),
    ...     state,
    ...     jnp.ones((2, 12)),
    ...     jnp.ones((3, 12)),
    ...     dtype="float16",
    ... )
    >>> h.dtype, c.dtype
    (dtype('float16'), dtype('float16'))
    """
    if not isinstance(state, (tuple, list)) or len(state) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"the state of an LSTM must be a pair of hidden and cell state, got {type(state).__name__}")
    activation = _checked_activation("activation", activation)
    recurrent_activation = _checked_activation("recurrent_activation", recurrent_activation)
    hidden, cell = state
    states, biases = {"hidden state": hidden, "cell state": cell}, {"bias": (bias, 4)}
    x, hidden, cell, kernel, recurrent_kernel, bias = _checked(x, states, kernel, recurrent_kernel, biases, 4, dtype)
    gates = _sum_of_products(x, kernel, bias, hidden, recurrent_kernel, precision)
    i, f, g, o = jnp.split(gates, 4, axis=-1)
    cell = recurrent_activation(f) * cell + recurrent_activation(i) * activation(g)
    return _cast_result(recurrent_activation(o) * activation(cell), x), _cast_result(cell, x)


def gru_step(
    x: Any,
    state: Any,
    kernel: Any,
    recurrent_kernel: Any,
    bias: Any = None,
    recurrent_bias: Any = None,
    *,
    activation: Activation = jnp.tanh,
    recurrent_activation: Activation = jax.nn.sigmoid,
    dtype: Any = None,
    precision: Any = None,
) -> jax.Array:
    """A step of the gated recurrent unit (Cho and others, 2014, in the form of its version 1: reset after the product).

    With r, z, n the three parts of x·W + b and r', z', n' those of h·U, s the recurrent activation and a the other, the
    new state is (1 - u)·a(n + s(r + r')·(n' + b')) + u·h, where u = s(z + z').

    Args:
        x: inputs, shape (..., n).
        state: h, the result of the previous step, shape (..., units).
        kernel: W, shape (n, 3·units), for reset gate, update gate and candidate in this order.
        recurrent_kernel: U, shape (units, 3·units).
        bias: b, shape (3·units,), or None.
        recurrent_bias: b', for the candidate only, shape (units,), or None.
        activation: for the candidate.
        recurrent_activation: for the gates.
        dtype: the dtype of the result; None for the result type of all arrays, at least inexact.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.

    Returns:
        The new state, which is also the output, shape (..., units).

    Raises:
        ArgumentError: for shapes that do not match; a `ValueError`.

    >>> gru_step(
    ...     jnp.ones((1, 2)), jnp.ones((1, 3)), jnp.zeros((2, 9)), jnp.zeros((3, 9))
    ... )
    Array([[0.5, 0.5, 0.5]], dtype=float32)
    """
    activation = _checked_activation("activation", activation)
    recurrent_activation = _checked_activation("recurrent_activation", recurrent_activation)
    biases = {"bias": (bias, 3), "recurrent_bias": (recurrent_bias, 1)}
    x, state, kernel, recurrent_kernel, bias, recurrent_bias = _checked(
        x, {"state": state}, kernel, recurrent_kernel, biases, 3, dtype
    )
    x_reset, x_update, x_candidate = jnp.split(dense(x, kernel, bias, precision=precision), 3, axis=-1)
    h_reset, h_update, h_candidate = jnp.split(dense(state, recurrent_kernel, precision=precision), 3, axis=-1)
    if recurrent_bias is not None:
        h_candidate = h_candidate + recurrent_bias
    reset = recurrent_activation(x_reset + h_reset)
    update = recurrent_activation(x_update + h_update)
    candidate = activation(x_candidate + reset * h_candidate)
    return _cast_result((1 - update) * candidate + update * state, x)


def _sum_of_products(x: Any, kernel: Any, bias: Any, state: Any, recurrent_kernel: Any, precision: Any) -> jax.Array:
    return dense(x, kernel, bias, precision=precision) + dense(state, recurrent_kernel, precision=precision)


def _cast_result(result: jax.Array, x: jax.Array) -> jax.Array:
    """Cast a result to the dtype of the step, which the user's functions may have changed; complex stays complex."""
    return promote_dtype(result, dtype=x.dtype)[0]


def _checked_activation(name: str, activation: Any) -> Activation:
    """Check that an activation is a function and that it returns an array."""
    function(name, activation, "jnp.tanh")

    def activated(x: jax.Array) -> jax.Array:
        result = activation(x)
        if not is_array(result):
            raise OperandError(f"{name} must return an array, got {shown(result)}")
        return result

    return activated


def _checked(
    x: Any, states: dict[str, Any], kernel: Any, recurrent_kernel: Any, biases: dict[str, Any], gates: int, dtype: Any
) -> tuple[Any, ...]:
    """Check the shapes of a step's arrays, and cast the arrays to the dtype of the step.

    Args:
        x: inputs.
        states: the parts of the state by name.
        kernel: the weights of the inputs.
        recurrent_kernel: the weights of the state.
        biases: the biases by name, each with its number of gates.
        gates: the number of gates of the kernels.
        dtype: the dtype of the step; None for the result type.
    """
    shape = shape_of("x", x)
    inner = shape_of("recurrent_kernel", recurrent_kernel)
    if not shape or len(inner) != 2 or inner[1] != gates * inner[0]:
        raise ArgumentError(
            f"x and recurrent_kernel must have shapes (..., n) and (units, {gates}·units), got {shape} and {inner}"
        )
    units = inner[0]
    expected = {"kernel": (kernel, (shape[-1], gates * units))}
    expected |= {name: (state, (*shape[:-1], units)) for name, state in states.items()}
    expected |= {name: (bias, (parts * units,)) for name, (bias, parts) in biases.items() if bias is not None}
    for name, (array, want) in expected.items():
        if shape_of(name, array) != want:
            raise ArgumentError(
                f"{name} must have shape {want} for x of shape {shape} and {units} units, got {jnp.shape(array)}"
            )
    given = (x, *states.values(), kernel, recurrent_kernel, *(bias for bias, _ in biases.values()))
    return promote_dtype(*given, dtype=dtype)
