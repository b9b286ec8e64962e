"""Errors about a bad batch name the batch, its contents, and the layer or loss that raised."""

import re
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

from slowly import slow
from supremum import nn, training
from supremum.errors import SupremumError


def random_array(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


GOOD = random_array(4, 3), random_array(4, 1)
STRINGS = np.array(["a"] * 4)
CASES = {
    "x of another length": (
        (random_array(4, 5), GOOD[1]),
        "mse",
        [r"first \(Dense", r"float32\[4,5\]", "must have length 3 along axis -1, got 5"],
    ),
    "x in a dict": (({"a": GOOD[0]}, GOOD[1]), "mse", [r"first \(Dense", "must be one array, got dict"]),
    "x of texts": ((STRINGS, GOOD[1]), "mse", [r"x must hold arrays of numbers, got <U1\[4\]"]),
    "y of another shape": ((GOOD[0], random_array(4, 2)), "mse", ["mean_squared_error", r"\(4, 2\) and \(4, 1\)"]),
    "y of another length": ((GOOD[0], random_array(3, 1)), "mse", [r"x=float32\[4,3\], y=float32\[3,1\]"]),
    "complex y": ((GOOD[0], GOOD[1] + 1j), "mse", ["mean_squared_error", "y_true is complex64"]),
    "no y": (GOOD[0], "mse", ["the labels are nothing"]),
    "four parts": ((1, 2, 3, 4), "mse", ["got 4 parts"]),
    "weights of another length": ((*GOOD, random_array(3)), "mse", [r"sample_weight=float32\[3\]"]),
    "weights of texts": ((*GOOD, STRINGS), "mse", ["sample_weight must hold arrays of numbers, got <U1"]),
}


def make_model(loss="mse", metrics=(), layers=()):
    model = training.Sequential([nn.Dense(4, name="first"), *layers, nn.Dense(1, name="second")])
    model.compile("sgd", loss, metrics=list(metrics), seed=0)
    return model


@cache
def fitted_model(loss):
    model = make_model(loss)
    model.fit(*GOOD, verbose=0)
    return model


def full_message(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", ["fit", slow("evaluate")])
@pytest.mark.parametrize("case", CASES)
def test_error_names_the_batch_its_contents_and_the_layer_or_loss(case, place):
    batch, loss, patterns = CASES[case]
    model = fitted_model(loss)
    with pytest.raises(SupremumError) as caught:
        getattr(model, place)([GOOD, GOOD, batch], verbose=0)
    for pattern in [*patterns, "in batch 2"]:
        assert re.search(pattern, full_message(caught.value)), (pattern, full_message(caught.value))


def test_error_names_all_batches_of_a_dispatch():
    model = training.Sequential([nn.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=2)
    with pytest.raises(SupremumError, match="needs y_true and y_pred of the same shape") as caught:
        model.fit([GOOD, GOOD, *[(GOOD[0], random_array(4, 2))] * 2], verbose=0)
    assert r"in one of the batches 2 to 3 (counted from 0), of x=float32[4,3], y=float32[4,2]" in full_message(
        caught.value
    )


def test_error_names_the_batch_when_fit_is_given_arrays():
    with pytest.raises(SupremumError) as caught:
        make_model().fit(random_array(8, 3), random_array(8, 2), batch_size=4, verbose=0)
    assert "in batch 0 (counted from 0), of x=float32[4,3], y=float32[4,2]" in full_message(caught.value)


def broken(y_true, y_pred):
    return jnp.dot(y_true, y_pred)


def test_error_in_a_user_loss_or_metric_gets_a_note():
    with pytest.raises(TypeError, match="contracting dimensions") as caught:
        make_model(broken).fit(*GOOD, verbose=0)
    assert "in the loss broken, given y_true=float32[4,1], y_pred=float32[4,1]" in full_message(caught.value)
    with pytest.raises(TypeError, match="contracting dimensions") as caught:
        make_model("mse", [broken]).fit(*GOOD, verbose=0)
    assert "in the metric broken, given y_true=float32[4,1], y_pred=float32[4,1]" in full_message(caught.value)


class Broken(nn.Layer):
    def call(self, x):
        return x @ jnp.ones((7, 2))


def test_error_in_a_user_layer_names_the_layer():
    with pytest.raises(TypeError, match="contracting dimensions") as caught:
        make_model(layers=[Broken(name="mine")]).fit(*GOOD, verbose=0)
    assert "in mine (Broken(dtype='float32')), given float32[4,4]" in full_message(caught.value)
    assert full_message(caught.value).count("given") == 1
