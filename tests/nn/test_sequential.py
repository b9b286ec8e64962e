"""Sequential models that start from an input, and that grow."""

import copy

import numpy as np
import pytest

from nn.arrays import built
from supremum import nn, training
from supremum.errors import ArgumentError
from supremum.mixed_precision import PolicyMap

X, Y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
shapes = pytest.mark.parametrize(
    "layers",
    [lambda: [nn.Input((3,)), nn.Dense(4, "relu"), nn.Dense(1)],
     lambda: [nn.Dense(4, "relu", input_shape=(3,)), nn.Dense(1)]],
    ids=["Input", "input_shape"],
)  # fmt: skip


@shapes
def test_model_with_an_input_knows_its_weights_and_outputs(layers):
    model = nn.SequentialNetwork(layers(), dtype="mixed_bfloat16")
    assert model.built
    assert {path: each.shape for path, each in model.variables.items()} == {
        "dense/kernel": (3, 4), "dense/bias": (4,), "dense_1/kernel": (4, 1), "dense_1/bias": (1,),
    }  # fmt: skip
    assert (model.output_spec.shape, model.output_spec.dtype) == ((None, 1), "bfloat16")
    assert model.summary().trainable == 21
    nn.initialize(model, seed=3)
    other = built(nn.SequentialNetwork([nn.Dense(4, "relu"), nn.Dense(1)], dtype="mixed_bfloat16"), X, seed=3)
    np.testing.assert_array_equal(model(X), other(X))


@shapes
def test_layers_are_added_one_by_one(layers):
    model = training.Sequential()
    for layer in layers():
        model.add(layer)
    assert len(model) == 2
    assert len(model.variables) == 4
    model.compile("sgd", "mse")
    assert model.fit(X, Y, epochs=2, verbose=0).epoch == [0, 1]


def test_layer_without_an_input_is_added_before_and_after_the_first_call():
    model = nn.SequentialNetwork()
    model.add(nn.Dense(4))
    assert model.variables == {}
    first = np.asarray(model(X))
    model.add(nn.Lambda(lambda x: 2 * x))
    np.testing.assert_array_equal(model(X), 2 * first)
    model.add(nn.Dense(2))
    assert model(X).shape == (8, 2)
    assert isinstance(model.pop(), nn.Dense)
    np.testing.assert_array_equal(model(X), 2 * first)


def test_added_layer_takes_the_policy_of_its_model_and_of_a_model_around_it():
    model = nn.SequentialNetwork(dtype=PolicyMap({"dense_1": "float32"}, default="mixed_float16"))
    model.add(nn.Input((3,)))
    model.add(nn.Dense(4))
    model.add(nn.Dense(4))
    assert [layer.dtype_policy.name for layer in model] == ["mixed_float16", "float32"]
    inner = nn.SequentialNetwork([nn.Input((3,)), nn.Dense(4)])
    inner.add(nn.Dense(2))
    assert inner.output_spec.dtype == "float32"
    nn.SequentialNetwork([inner], dtype="mixed_bfloat16")
    assert inner.output_spec.dtype == "bfloat16"
    assert len(inner) == 2


def test_compiled_model_must_be_compiled_again():
    model = training.Sequential([nn.Input((3,)), nn.Dense(4)])
    model.compile("sgd", "mse")
    model.predict(X, verbose=0)
    model.add(nn.Dense(1))
    assert model.predict(X, verbose=0).shape == (8, 1)
    with pytest.raises(ArgumentError, match="must be compiled first"):
        model.fit(X, Y, verbose=0)
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)
    model.pop()
    assert model.predict(X, verbose=0).shape == (8, 4)


def test_copy_grows_apart_from_the_original():
    model = nn.SequentialNetwork([nn.Input((3,)), nn.Dense(4)])
    nn.initialize(model)
    other = copy.deepcopy(model)
    other.add(nn.Dense(2))
    assert (model(X).shape, other(X).shape) == ((8, 4), (8, 2))
