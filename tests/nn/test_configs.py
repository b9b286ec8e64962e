"""`get_config` and `from_config` of layers, models and losses."""

import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn, training
from supremum.mixed_precision import Policy, PolicyMap

X = np.random.default_rng(0).normal(size=(2, 6, 4)).astype("float32")
IMAGES = np.random.default_rng(1).normal(size=(2, 6, 6, 4)).astype("float32")

LAYERS = {
    "dense": (lambda: nn.Dense(3, use_bias=False, kernel_regularizer="l2", name="head"), X),
    "policy": (lambda: nn.Dense(3, dtype="mixed_bfloat16"), X),
    "policy with roles": (lambda: nn.Dense(3, dtype="variable=float32,compute=bfloat16,output=float32"), X),
    "policy with loss scale": (lambda: nn.Dense(3, dtype=Policy("mixed_float16", 128)), X),
    "param_dtype": (lambda: nn.Dense(3, param_dtype=jnp.bfloat16), X),
    "frozen": (lambda: nn.Dense(3, trainable=False), X),
    "general": (lambda: nn.DenseGeneral((2, 3), axis=(-2, -1)), X),
    "einsum": (lambda: nn.Einsum("...i,io->...o", (4, 3), bias_shape=(3,)), X),
    "conv": (lambda: nn.Conv(3, (3, 3), strides=2, padding=((1, 1), (0, 0))), IMAGES),
    "transposed": (lambda: nn.ConvTranspose(3, (3, 3), strides=2, transpose_kernel=True), IMAGES),
    "norm": (lambda: nn.BatchNorm(momentum=0.5), X),
    "embedding": (lambda: nn.Embedding(5, 3), np.array([[1, 2]])),
    "attention": (lambda: nn.MultiHeadAttention(2, dropout_rate=0.5), X),
    "rnn": (lambda: nn.RNN(nn.GRUCell(3), return_sequences=False), X),
    "lstm": (lambda: nn.LSTM(3, go_backwards=True, trainable=False, dtype="mixed_bfloat16"), X),
    "both directions": (lambda: nn.Bidirectional(nn.RNN(nn.LSTMCell(3)), merge="sum"), X),
    "flatten": (nn.Flatten, X),
    "pooling": (lambda: nn.MaxPool((2, 2)), IMAGES),
    "sequential": (lambda: training.Sequential([nn.Dense(3), nn.ReLU(), nn.Dense(2)], dtype="mixed_bfloat16"), X),
    "policy map": (
     lambda: training.Sequential([nn.Dense(3), nn.Dense(2)], dtype=PolicyMap({"dense_1": "float16"}, "bfloat16")), X),
}  # fmt: skip


def same_outputs(one, other, inputs):
    nn.initialize(one, inputs, seed=3)
    nn.initialize(other, inputs, seed=3)
    assert {path: v.dtype for path, v in one.variables.items()} == {
        path: v.dtype for path, v in other.variables.items()
    }
    assert one.trainable_variables.keys() == other.trainable_variables.keys()
    assert {p: each.dtype_policy for p, each in one.layers_by_path().items()} == {
        p: each.dtype_policy for p, each in other.layers_by_path().items()
    }
    outputs = jax.jit(lambda inputs: (one(inputs), other(inputs)))(inputs)
    jax.tree.map(np.testing.assert_array_equal, *outputs)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", LAYERS)
def test_layer_made_of_its_config_is_the_same(name):
    make, inputs = LAYERS[name]
    layer = make()
    config = json.loads(json.dumps(layer.get_config()))
    restored = type(layer).from_config(config)
    assert json.loads(json.dumps(restored.get_config())) == config
    assert restored.name == layer.name
    same_outputs(layer, restored, inputs)
    # a built layer has the same config
    assert json.loads(json.dumps(layer.get_config())) == config


class Block(nn.Layer):
    """A layer of a user that knows nothing of configs."""

    def __init__(self, units, activation=jax.nn.relu, *, inner=None, **options):
        super().__init__(**options)
        self.dense = nn.Dense(units)
        self.activation, self.inner = activation, inner

    def call(self, x):
        x = self.activation(self.dense(x))
        return x if self.inner is None else self.inner(x)


class Keras(nn.Layer):
    """A layer with a `get_config` as one writes it for Keras."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.units = units
        self.dense = nn.Dense(units)

    def call(self, x):
        return self.dense(x)

    def get_config(self):
        config = super().get_config()
        config.update({"units": self.units})
        return config


@pytest.mark.parametrize("make", [lambda: Block(3, jnp.tanh, inner=Keras(2), name="mine"), lambda: Keras(units=3)])
def test_layers_of_users_have_configs(make):
    layer = make()
    restored = type(layer).from_config(layer.get_config())
    assert restored.get_config() == layer.get_config()
    same_outputs(layer, restored, X)
    nested = training.Sequential([make(), nn.Dense(1)])
    assert nested.get_config()["layers"][0]["class_name"] is type(layer)
    same_outputs(nested, training.Sequential.from_config(nested.get_config()), X)
    copied = pickle.loads(pickle.dumps(make()))
    assert copied.get_config() == layer.get_config()


def functional():
    x, z = nn.Input((4,), name="x"), nn.Input((2,), "bfloat16")
    shared = nn.Dense(3, name="shared")
    both = nn.Concatenate()([shared(x), shared(x * 2.0)])
    total = nn.Add()([both[:, :3], nn.Dense(3)(z)]) + both[:, 3:]
    return training.Model({"x": x, "z": z}, [total, nn.Dropout(0.5)(both, training=False)], dtype="mixed_bfloat16")


def test_functional_model_made_of_its_config_is_the_same():
    model = functional()
    restored = training.Model.from_config(model.get_config())
    assert type(restored) is training.Model
    assert [path for path, _ in restored.variables.items()] == [path for path, _ in model.variables.items()]
    assert restored.output_names == model.output_names
    inputs = {"x": X[:, 0], "z": jnp.ones((2, 2), "bfloat16")}
    nn.initialize(model, seed=0)
    nn.initialize(restored, seed=0)
    jax.tree.map(np.testing.assert_array_equal, model(inputs), restored(inputs))
    restored.compile("sgd", ["mse", "mse"])
    assert restored.evaluate(inputs, [np.ones((2, 3), "float32"), np.ones((2, 6), "float32")], verbose=0)


def test_functional_model_of_plain_layers_is_data_for_json():
    x = nn.Input((None, 4))
    hidden = nn.Dense(3)(x)
    model = nn.Network(x, nn.LSTM(2)(hidden))
    config = json.loads(json.dumps(model.get_config()))
    same_outputs(model, nn.Network.from_config(config), X)


def test_config_has_the_current_policy_and_name():
    model = training.Sequential([nn.Dense(3)], dtype="mixed_bfloat16")
    assert model[0].get_config() == {
        "units": 3, "name": "dense", "dtype": "mixed_bfloat16", "trainable": True,
    }  # fmt: skip
    model[0].trainable = False
    assert model[0].get_config()["trainable"] is False


LOSSES = {
    "mse": lambda: training.MeanSquaredError(reduction="sum", name="mine"),
    "huber": lambda: training.Huber(2.0, dtype=np.float64),
    "sparse": lambda: training.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1),
    "focal": lambda: training.CategoricalFocalCrossentropy(alpha=[0.25, 0.5], from_logits=True),
    "tversky": lambda: training.Tversky(0.3, axis=(1, 2)),
    "smooth": lambda: training.CategoricalCrossentropy(label_smoothing=0.1, reduction=None),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss_made_of_its_config_is_the_same(name):
    loss = LOSSES[name]()
    config = json.loads(json.dumps(loss.get_config()))
    restored = type(loss).from_config(config)
    assert restored.get_config() == config
    assert repr(restored) == repr(loss)
    assert restored.name == loss.name
    assert {**vars(restored), "_arguments": None} == {**vars(loss), "_arguments": None}


def test_a_sequential_model_keeps_its_input_and_the_layers_added_since():
    model = training.Sequential([nn.Input((3,), "bfloat16"), nn.Dense(2)])
    model.add(nn.Dense(4))
    config = json.loads(json.dumps(model.get_config()))
    restored = training.Sequential.from_config(config)
    assert [variable.shape for variable in restored.variables.values()] == [(3, 2), (2,), (2, 4), (4,)]
    assert restored.get_config() == config
    assert config["layers"][0]["config"]["dtype"] == "bfloat16"
