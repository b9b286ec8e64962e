"""NumPy masked arrays raise, since JAX does not support masks."""

import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.errors import OperandError
from supremum.optimizers import SGD
from supremum.training import FunctionLoss, Mean, MeanSquaredError, Sequential, as_metric

X, Y, W = np.ones((4, 2), "float32"), np.ones((4, 1), "float32"), np.ones(4, "float32")


def masked(array):
    return np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) == 1)


@pytest.fixture(scope="module")
def model():
    model = Sequential([nn.Dense(1)])
    model.compile(SGD(0.1), "mse")
    model.fit(X, Y, verbose=0)
    return model


CALLS = {
    "fit x": lambda m: m.fit(masked(X), Y, verbose=0),
    "fit y": lambda m: m.fit(X, masked(Y), verbose=0),
    "fit sample_weight": lambda m: m.fit(X, Y, sample_weight=masked(W), verbose=0),
    "fit without a masked element": lambda m: m.fit(np.ma.masked_array(X), Y, verbose=0),
    "fit in a dict": lambda m: m.fit({"a": masked(X)}, Y, verbose=0),
    "fit in batches": lambda m: m.fit([(X, masked(Y))], verbose=0),
    "fit in a generator": lambda m: m.fit((part for part in [(masked(X), Y)]), verbose=0),
    "fit a list of labels": lambda m: m.fit([(X, [1.0, np.ma.masked, 1.0, 1.0])], verbose=0),
    "validation_data": lambda m: m.fit(X, Y, validation_data=(masked(X), Y), verbose=0),
    "validation in batches": lambda m: m.fit(X, Y, validation_data=[(masked(X), Y)], verbose=0),
    "validation_split": lambda m: m.fit(masked(X), Y, validation_split=0.5, verbose=0),
    "evaluate": lambda m: m.evaluate(X, masked(Y), verbose=0),
    "evaluate in batches": lambda m: m.evaluate([(masked(X), Y)], verbose=0),
    "predict": lambda m: m.predict(masked(X), verbose=0),
    "predict in batches": lambda m: m.predict([masked(X)], verbose=0),
    "train_on_batch": lambda m: m.train_on_batch(X, masked(Y)),
    "test_on_batch": lambda m: m.test_on_batch(masked(X), Y),
    "predict_on_batch": lambda m: m.predict_on_batch(masked(X)),
    "a loss": lambda m: MeanSquaredError()(masked(Y), Y),
    "outputs of a loss": lambda m: MeanSquaredError()(Y, masked(Y)),
    "weights of a loss": lambda m: MeanSquaredError()(Y, Y, masked(W)),
    "a function": lambda m: FunctionLoss(lambda y_true, y_pred: masked(Y)[:, 0])(Y, Y),
    "a metric": lambda m: as_metric("mae").update_state(masked(Y), Y),
    "a mean": lambda m: Mean().update_state(masked(Y)),
    "a layer": lambda m: m(masked(X)),
}


@pytest.mark.parametrize("run", CALLS.values(), ids=CALLS)
def test_masked_arrays_raise_with_a_fix(run, model):
    with pytest.raises(OperandError, match=r"masked array.*\.filled\(0\)"):
        run(model)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "infer", "int32"])
def test_layers_reject_masked_arrays_under_every_policy(dtype):
    layer = nn.ReLU(dtype=dtype)
    with pytest.raises(OperandError, match="masked array"):
        layer(masked(X.astype("float32")))
    with pytest.raises(OperandError, match="masked array"):
        layer([jnp.ones(2), masked(np.ones(2, "int32"))])


def test_filling_masked_arrays_and_weighting_them_trains(model):
    x = masked(X)
    counts = ~np.ma.getmaskarray(x).any(1)
    model.fit(x.filled(0), Y, sample_weight=counts, verbose=0)
    assert np.isfinite(model.history.loss[0])
