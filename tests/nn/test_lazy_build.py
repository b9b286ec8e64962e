"""Tests that the first call makes the weights, and changes nothing if it fails."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.arrays import built
from supremum import nn, training
from supremum.nn import UninitializedError

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


def make_model(**options):
    return training.Sequential(
        [nn.Dense(5), nn.BatchNorm(), nn.Dropout(0.5), nn.SequentialNetwork([nn.Dense(6, name="last")])], **options
    )


def values(layer):
    assert layer.variables
    return {path: np.asarray(each.value) for path, each in layer.variables.items()}


def test_first_call_makes_the_weights_of_initialize():
    called, initialized = make_model(), make_model()
    outputs = called(X)
    nn.initialize(initialized, X, seed=0)
    for path, value in values(initialized).items():
        np.testing.assert_array_equal(values(called)[path], value)
    np.testing.assert_array_equal(outputs, initialized(X))


def test_first_call_uses_the_key_of_the_block():
    with nn.random_key(jax.random.key(3)):
        first, second = nn.Dense(3), nn.Dense(3)
        second(first(X))
    assert not np.array_equal(first.kernel.value, second.kernel.value)
    again = nn.Dense(3)
    with nn.random_key(jax.random.key(3)):
        again(X)
    np.testing.assert_array_equal(again.kernel.value, first.kernel.value)


def test_first_call_may_be_a_training_step():
    model = make_model()
    with nn.random_key(jax.random.key(0)):
        model(X, training=True)
    assert not np.array_equal(values(model)["batch_norm/moving_mean"], np.zeros(5))


def test_first_call_may_be_traced():
    model, plain = make_model(), make_model()
    outputs = jax.jit(model)(X)
    np.testing.assert_allclose(outputs, plain(X), rtol=1e-6)
    assert all(isinstance(each, np.ndarray) for each in values(model).values())


def test_traced_key_cannot_make_weights():
    model = make_model()

    @jax.jit
    def call(key):
        with nn.random_key(key):
            return model(X)

    with pytest.raises(
        UninitializedError,
        match=r"the layer has no weights, and a traced key cannot.*; use nn.initialize\(model, \*inputs, seed=0\)",
    ):
        call(jax.random.key(0))
    assert not model.variables


class FailingLayer(nn.Layer):
    def __init__(self, where):
        super().__init__()
        self.where, self.inner = where, nn.Dense(2)

    def build(self, input_shape):
        self.scale = self.add_weight("scale", (2,))
        if self.where == "build":
            raise ValueError("here")

    def call(self, x):
        x = self.inner(x) + self.scale
        if self.where == "call" or (self.where == "values" and not nn.scopes.is_declaring()):
            raise ValueError("here")
        return x


@pytest.mark.slow
@pytest.mark.parametrize("where", ["build", "call", "values"])
@pytest.mark.parametrize("fails", ["call", "initialize", "fit"])
def test_failed_first_call_leaves_the_layer_unchanged(where, fails):
    model = training.Sequential([nn.Dense(5), nn.SequentialNetwork([FailingLayer(where)])])
    model.compile("sgd", "mse")
    if fails == "initialize" and where == "values":
        return  # an abstract call computes nothing
    with pytest.raises(ValueError, match="here"):
        {
            "call": lambda: model(X),
            "initialize": lambda: nn.initialize(model, X),
            "fit": lambda: model.fit(X, X[:, :2], verbose=0),
        }[fails]()
    if fails == "fit" and where == "values":
        return  # the step failed after the model got its weights
    assert not model.built
    assert not model.variables
    inner = model[1][0]
    inner.where = ""
    wider = np.ones((4, 9), "float32")
    model.fit(wider, wider[:, :2], verbose=0)
    assert model.variables["dense/kernel"].shape == (9, 5)
    assert model.predict(wider, verbose=0).shape == (4, 2)


@pytest.mark.slow
def test_state_can_be_saved_and_loaded_once_there_are_weights(tmp_path):
    model = make_model()
    model.compile("adam", "mse")
    for call in (model.save_state, model.load_state):
        with pytest.raises(
            UninitializedError, match=r"call it first, model\(x\), or .*nn.initialize\(model, x, seed=0\)"
        ):
            call(tmp_path / "state")
    model(X)
    model.save_state(tmp_path / "state")
    fresh = make_model()
    fresh.compile("adam", "mse")
    fresh(X + 1)
    assert fresh.load_state(tmp_path / "state") == 0
    np.testing.assert_array_equal(fresh.predict(X, verbose=0), model.predict(X, verbose=0))


def test_layer_with_declared_weights_gets_their_values():
    layer = nn.Dense(2)
    nn.output_spec(layer, X)
    assert not layer.kernel.is_initialized
    with pytest.raises(Exception, match="axis"):
        layer(jnp.ones((4, 8)))
    assert not layer.kernel.is_initialized
    assert layer(X).shape == (4, 2)


def test_values_are_those_of_the_key_folded_from_each_path():
    model = built(make_model(), X, seed=7)
    glorot = jax.nn.initializers.glorot_uniform()
    for path, units in {"dense/kernel": (3, 5), "sequential_network/last/kernel": (5, 6)}.items():
        key = jax.random.fold_in(jax.random.key(7), zlib.crc32(path.encode()) & 0x7FFFFFFF)
        np.testing.assert_array_equal(values(model)[path], glorot(key, units, "float32"))


def test_weights_keep_their_values_when_others_are_made():
    first, second = nn.Dense(3), nn.Dense(4)
    nn.initialize(first, X, seed=1)
    kernel = first.kernel.value
    nn.initialize(nn.SequentialNetwork([first, second]), X, seed=2)
    assert first.kernel.value is kernel
    assert second.kernel.value.shape == (3, 4)
