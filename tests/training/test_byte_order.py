"""Arrays of either byte order train alike; IDX and FITS files hold big-endian arrays."""

import numpy as np
import pytest

from supremum import nn
from supremum.training import Sequential

X = np.random.default_rng(0).normal(size=(12, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)
W = np.linspace(0.5, 1, 12, dtype="float32")
CALLS = {
    "fit": lambda model, x, y, w: model.fit(x, y, sample_weight=w, verbose=0),
    "batches": lambda model, x, y, w: model.fit([(x, y, w)], verbose=0),
    "validation": lambda model, x, y, w: model.fit(X, Y, validation_data=(x, y, w), verbose=0),
    "train_on_batch": lambda model, x, y, w: model.train_on_batch(x, y, sample_weight=w),
    "evaluate": lambda model, x, y, w: model.evaluate(x, y, sample_weight=w, verbose=0),
    "predict": lambda model, x, y, w: model.predict(x, verbose=0),
    "call": lambda model, x, y, w: model(x),
    "initialize": lambda model, x, y, w: nn.initialize(model, x),
}


def swap_byte_order(array):
    return array.astype(array.dtype.newbyteorder())


@pytest.mark.one_in(20)
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "infer"])
@pytest.mark.parametrize("name", CALLS)
def test_swapped_byte_order_does_not_change_results(name, policy):
    outputs = []
    for convert in (np.asarray, swap_byte_order):
        model = Sequential([nn.Dense(4, dtype=policy), nn.Dense(1, dtype=policy)])
        model.compile("sgd", "mse")
        CALLS[name](model, convert(X), convert(Y), convert(W))
        outputs.append(model.predict(convert(X), verbose=0))
    np.testing.assert_array_equal(*outputs)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["int32", "float16", "int16", "uint8"])
def test_swapped_byte_order_of_other_dtypes_does_not_change_predictions(kind):
    model = Sequential([nn.Dense(1, dtype="infer")])
    array = np.arange(6).reshape(2, 3).astype(kind)
    np.testing.assert_array_equal(model(array), model(swap_byte_order(array)))
    np.testing.assert_array_equal(model.predict(array, verbose=0), model.predict(swap_byte_order(array), verbose=0))
