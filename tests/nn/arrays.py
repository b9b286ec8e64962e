"""Random arrays, and layers built for them."""

import jax
import numpy as np

from supremum import nn
from supremum.formats import as_format


def data(*shape, dtype="float32", seed=0):
    """Return normal numbers. NumPy makes and casts them, because JAX compiles a program for each shape and dtype."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    if as_format(dtype).category == "complex":
        values = values + 1j * rng.normal(size=shape)
    return jax.device_put(values.astype(as_format(dtype).dtype))


def built(layer, *inputs, seed=0):
    """Return the layer after `nn.initialize`."""
    nn.initialize(layer, *inputs, seed=seed)
    return layer


def call(layer, x, jitted=True, **kwargs):
    """Return the outputs of a layer for its own variables, and the values of these after the call."""

    def run(variables, x):
        return nn.functional_call(layer, variables, x, **kwargs)

    trainable, other = nn.split_variables(layer)
    return (jax.jit(run) if jitted else run)(trainable | other, x)
