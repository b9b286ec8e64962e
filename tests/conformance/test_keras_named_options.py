"""Activations, constraints and initializers by name, compared with the values measured from Keras."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from conformance.measured import document
from slowly import for_each
from supremum import nn
from supremum.nn.constraints import as_constraint
from supremum.nn.functional.named_activations import NAMED as ACTIVATIONS
from supremum.nn.initializers import NAMED as INITIALIZERS
from supremum.nn.initializers import as_initializer

KERAS = document("keras-layers")
STATISTICS = KERAS["initializers of float32[400,400]"]


def test_activations_agree_with_keras():
    x = jnp.asarray(KERAS["x"], "float32")

    @jax.jit  # one program, because compilation takes long
    def results(x):
        return {name: (nn.Activation(name)(x), nn.Activation(name, dtype="mixed_bfloat16")(x)) for name in wanted}

    wanted = {name: np.asarray(values, "float32") for name, values in KERAS["activations"].items()}
    for name, (result, half) in results(x).items():
        np.testing.assert_allclose(result, wanted[name], rtol=1e-6, atol=1e-7, err_msg=name)
        assert half.dtype == "bfloat16"
        np.testing.assert_allclose(np.asarray(half, "float32"), wanted[name], rtol=2**-8, atol=1e-6, err_msg=name)
    assert len(wanted) > 20


def test_every_name_is_compared():
    assert ACTIVATIONS.keys() == KERAS["activations"].keys()
    assert INITIALIZERS.keys() == STATISTICS.keys()


@for_each("name, jitted", itertools.product(KERAS["constraints"], (False, True)))
def test_constraint_agrees_with_keras(name, jitted):
    constraint = as_constraint(name)
    w = jnp.asarray(KERAS["weight"], "float32")
    made = (jax.jit(constraint) if jitted else constraint)(w)
    np.testing.assert_allclose(made, np.asarray(KERAS["constraints"][name]), rtol=1e-6)
    half = constraint(w.astype("float16"))
    assert half.dtype == "float16"
    np.testing.assert_allclose(np.asarray(half, "float32"), np.asarray(KERAS["constraints"][name]), rtol=2e-3)


@for_each("name", STATISTICS)
def test_initializer_has_the_distribution_of_keras(name):
    drawn = np.asarray(as_initializer(name)(jax.random.key(0), (400, 400), np.dtype("float32")))
    theirs = STATISTICS[name]
    assert drawn.dtype == "float32"
    np.testing.assert_allclose(drawn.std(), theirs["std"], rtol=0.01)
    np.testing.assert_allclose(drawn.mean(), theirs["mean"], atol=1e-3)
    if name not in ("random_normal", "orthogonal"):  # whose largest element varies
        np.testing.assert_allclose(np.abs(drawn).max(), theirs["largest"], rtol=0.02)
