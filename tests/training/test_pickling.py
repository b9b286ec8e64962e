"""Pickled and deep-copied models, layers and counts equal their originals and continue the same way."""

import copy
import inspect
import pickle
import subprocess
import sys

import jax
import numpy as np
import pytest

import supremum
from slowly import mostly_slow, slow
from supremum import nn, training
from supremum.nn import BatchNorm, Dense, Dropout, Input
from supremum.training import Model, Sequential
from training.blobs import equal, values

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(16, 4)).astype("float32")
Y = X.sum(axis=1, keepdims=True)
COPIES = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": copy.deepcopy}
each_copy = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)


def sequential(policy):
    return Sequential([Dense(8), BatchNorm(), nn.ReLU(), Dropout(0.5), Dense(1)], dtype=policy)


def functional(policy):
    inputs = Input((4,))
    hidden = Dense(8, dtype=policy)(inputs)
    return Model(inputs, Dense(1, dtype=policy)(nn.Add()([hidden, Dense(8, dtype=policy)(inputs)])))


class Own(Model):
    def __init__(self, policy):
        super().__init__(dtype=policy)
        self.blocks = [Dense(4), Dense(1)]

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return x


STATES = {
    "made": lambda model: None,
    "built": lambda model: model(X),
    "compiled": lambda model: model.compile("adam", loss="mse", metrics=["mae"]),
    "fitted": lambda model: (model.compile("adam", loss="mse"), model.fit(X, Y, verbose=0)),
    "lent": lambda model: (model.compile("adam", loss="mse"), [model.train_on_batch(X, Y) for _ in range(3)]),
}


@pytest.mark.one_in(4)
@each_copy
@pytest.mark.parametrize("policy", ["mixed_float16", slow("float32")])
@pytest.mark.parametrize("state", mostly_slow(STATES, "built", "lent"))
@pytest.mark.parametrize("make", [sequential, slow(functional), slow(Own)])
def test_a_copied_model_is_equal_and_trains_identically(make, state, policy, copied):
    model = make(policy)
    STATES[state](model)
    other = copied(model)
    assert type(other) is type(model)
    is_compiled = state not in ("made", "built")
    assert [layer.dtype_policy for layer in other.layers_by_path().values()] == [
        layer.dtype_policy for layer in model.layers_by_path().values()
    ]
    before = state == "made" or values(model)
    for each in (other, model):
        assert each is other or state == "made" or equal(values(model), before)
        if not is_compiled:
            each.compile("adam", loss="mse")
        each.fit(X, Y, epochs=2, batch_size=8, verbose=0)
    assert equal(values(model), values(other))
    np.testing.assert_array_equal(model.predict(X, verbose=0), other.predict(X, verbose=0))


@pytest.mark.slow
@each_copy
def test_training_a_copy_leaves_the_original_weights_unchanged(copied):
    model = sequential("float32")
    STATES["fitted"](model)
    other, before = copied(model), values(model)
    other.fit(X, Y, epochs=2, verbose=0)
    assert equal(values(model), before)


@pytest.mark.slow
def test_another_process_can_load_a_pickled_model(tmp_path):
    model = sequential("mixed_float16")
    STATES["fitted"](model)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    code = (
        "import pickle, numpy as np\nmodel = pickle.load(open('model.pickle', 'rb'))\n"
        "np.save('y.npy', model.predict(np.load('x.npy'), verbose=0))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), model.predict(X, verbose=0))


def layers():
    """Yield every layer class that can be built from a few simple arguments."""
    for name in nn.__all__:
        kind = getattr(nn, name)
        if inspect.isclass(kind) and issubclass(kind, nn.Layer) and not inspect.isabstract(kind):
            for arguments in ((), (2,), (2, 2), (2, (2, 2)), ("ab,bc->ac", (2, 2))):
                try:
                    yield name, kind(*arguments)
                    break
                except (TypeError, ValueError):
                    continue


LAYERS = dict(layers()) | {
    "Activation": nn.Activation(jax.nn.gelu), "Activation of relu": nn.Activation(jax.nn.relu),
    "Activation of tanh": nn.Activation(jax.numpy.tanh), "RNN": nn.RNN(nn.LSTMCell(3)),
    "Bidirectional": nn.Bidirectional(nn.RNN(nn.GRUCell(3))),
}  # fmt: skip


def test_more_than_30_layer_classes_are_covered():
    assert len(LAYERS) > 30


@each_copy
@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_can_be_copied(name, copied):
    other = copied(LAYERS[name])
    assert type(other) is type(LAYERS[name])
    assert repr(other) == repr(LAYERS[name])
    assert vars(other).keys() == vars(LAYERS[name]).keys()


@pytest.mark.one_in(2)
@each_copy
def test_a_built_variable_is_copied_without_its_initializer(copied):
    layer = Dense(3, kernel_initializer=jax.nn.initializers.he_normal())
    layer(X)
    vars(layer).pop("kernel_initializer", None)
    variable = copied(layer.variables["kernel"])
    np.testing.assert_array_equal(variable.value, layer.variables["kernel"].value)


@each_copy
def test_conversion_counts_can_be_copied(copied):
    with supremum.use_rules("numpy"), supremum.count_conversions() as counts:
        supremum.asarray(X) + supremum.asarray(X.astype("float64"))
    other = copied(counts)
    assert str(other) == str(counts)
    assert other.total == counts.total == next(iter(counts))[1]
    assert dict(other) == dict(counts)


@pytest.mark.slow
@each_copy
def test_histories_and_callbacks_can_be_copied(copied):
    model = sequential("mixed_float16")
    STATES["fitted"](model)
    assert copied(model.history).history == model.history.history
    assert copied(training.EarlyStopping("loss", patience=2)).monitor == "loss"
