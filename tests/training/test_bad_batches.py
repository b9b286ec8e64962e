"""A batch that does not fit: the error names the batch, what is in it, and the layer or the loss that refused it."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from slowly import slow
from supremum import nn, training
from supremum.errors import SupremumError


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


GOOD = numbers(4, 3), numbers(4, 1)
TEXTS = np.array(["a"] * 4)
CASES = {
    "x of another length": (
        (numbers(4, 5), GOOD[1]),
        "mse",
        [r"first \(Dense", r"float32\[4,5\]", "must have length 3 along axis -1, got 5"],
    ),
    "x in a dict": (({"a": GOOD[0]}, GOOD[1]), "mse", [r"first \(Dense", "must be one array, got dict"]),
    "x of texts": ((TEXTS, GOOD[1]), "mse", [r"x must hold arrays of numbers, got <U1\[4\]"]),
    "y of another shape": ((GOOD[0], numbers(4, 2)), "mse", ["mean_squared_error", r"\(4, 2\) and \(4, 1\)"]),
    "y of another length": ((GOOD[0], numbers(3, 1)), "mse", [r"x=float32\[4,3\], y=float32\[3,1\]"]),
    "complex y": ((GOOD[0], GOOD[1] + 1j), "mse", ["mean_squared_error", "y_true is complex64"]),
    "no y": (GOOD[0], "mse", ["the labels are nothing"]),
    "four parts": ((1, 2, 3, 4), "mse", ["got 4 parts"]),
    "weights of another length": ((*GOOD, numbers(3)), "mse", [r"sample_weight=float32\[3\]"]),
    "weights of texts": ((*GOOD, TEXTS), "mse", ["sample_weight must hold arrays of numbers, got <U1"]),
}


def model(loss="mse", metrics=(), layers=()):
    made = training.Sequential([nn.Dense(4, name="first"), *layers, nn.Dense(1, name="second")])
    made.compile("sgd", loss, metrics=list(metrics), seed=0)
    return made


def told(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", ["fit", slow("evaluate")])
@pytest.mark.parametrize("case", CASES)
def test_the_batch_what_is_in_it_and_who_refused_it(case, place):
    batch, loss, words = CASES[case]
    trained = model(loss)
    trained.fit(*GOOD, verbose=0)
    with pytest.raises(SupremumError) as caught:
        getattr(trained, place)([GOOD, GOOD, batch], verbose=0)
    for word in [*words, "in batch 2"]:
        assert re.search(word, told(caught.value)), (word, told(caught.value))


def test_several_steps_at_once_are_named_together():
    trained = training.Sequential([nn.Dense(1)])
    trained.compile("sgd", "mse", steps_per_execution=2)
    with pytest.raises(SupremumError, match="needs y_true and y_pred of the same shape") as caught:
        trained.fit([GOOD, GOOD, *[(GOOD[0], numbers(4, 2))] * 2], verbose=0)
    assert r"in one of the batches 2 to 3 (counted from 0), of x=float32[4,3], y=float32[4,2]" in told(caught.value)


def test_arrays_are_told_as_their_batches():
    with pytest.raises(SupremumError) as caught:
        model().fit(numbers(8, 3), numbers(8, 2), batch_size=4, verbose=0)
    assert "in batch 0 (counted from 0), of x=float32[4,3], y=float32[4,2]" in told(caught.value)


def broken(y_true, y_pred):
    return jnp.dot(y_true, y_pred)


def test_errors_of_the_users_own_functions_go_on_with_a_note():
    with pytest.raises(TypeError, match="contracting dimensions") as caught:
        model(broken).fit(*GOOD, verbose=0)
    assert "in the loss broken, given y_true=float32[4,1], y_pred=float32[4,1]" in told(caught.value)
    with pytest.raises(TypeError, match="contracting dimensions") as caught:
        model("mse", [broken]).fit(*GOOD, verbose=0)
    assert "in the metric broken, given y_true=float32[4,1], y_pred=float32[4,1]" in told(caught.value)


class Broken(nn.Layer):
    def call(self, x):
        return x @ jnp.ones((7, 2))


def test_errors_in_a_layer_of_the_users_own_name_it():
    with pytest.raises(TypeError, match="contracting dimensions") as caught:
        model(layers=[Broken(name="mine")]).fit(*GOOD, verbose=0)
    assert "in mine (Broken(dtype='float32')), given float32[4,4]" in told(caught.value)
    assert told(caught.value).count("given") == 1
