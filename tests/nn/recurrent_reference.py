"""A NumPy reference of recurrent layers, and helpers of their tests."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from nn import arrays
from nn.arrays import built, data
from supremum.nn import RNN, GRUCell, LSTMCell, SimpleRNNCell

CELLS = {"simple": SimpleRNNCell, "lstm": LSTMCell, "gru": GRUCell}
every_cell = pytest.mark.parametrize("name", CELLS)
either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
BATCH, TIME, N, UNITS = 3, 5, 2, 4


def call(layer, x, jitted=True, **kwargs):
    if not layer.built:
        built(layer, x)
    return arrays.call(layer, x, jitted, **kwargs)[0]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(name, weights, x):
    """Compute all outputs for inputs of shape (batch, time, n) in float64 NumPy."""
    w, u, b = (np.asarray(weights[key], "float64") for key in ("kernel", "recurrent_kernel", "bias"))
    x = np.asarray(x, "float64")
    h = c = np.zeros((x.shape[0], u.shape[0]))
    outputs = []
    for t in range(x.shape[1]):
        if name == "gru":
            xr, xz, xn = np.split(x[:, t] @ w + b, 3, -1)
            hr, hz, hn = np.split(h @ u, 3, -1)
            z = sigmoid(xz + hz)
            h = (1 - z) * np.tanh(
                xn + sigmoid(xr + hr) * (hn + np.asarray(weights["recurrent_bias"], "float64"))
            ) + z * h
        elif name == "lstm":
            i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, -1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            h = np.tanh(x[:, t] @ w + h @ u + b)
        outputs.append(h)
    return np.stack(outputs, 1)


def rnn(name, dtype="float32", cell_options=None, **options):
    biases = {"bias_initializer": jax.nn.initializers.normal(0.5)}
    layer = RNN(CELLS[name](UNITS, dtype=dtype, **biases, **(cell_options or {})), **options)
    return built(layer, data(BATCH, TIME, N))


def with_weights(cell, **weights):
    """Give a cell weights of any dtype, which it reads as they are."""
    for name, value in weights.items():
        vars(cell)[name] = None if value is None else SimpleNamespace(value=value)
    return cell


def weights_of(layer):
    return {path.removeprefix("cell/"): variable.read_stored() for path, variable in layer.variables.items()}
