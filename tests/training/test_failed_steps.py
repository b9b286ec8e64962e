"""Training steps that fail on the device: those that call Python run on a copy, so the model keeps its values."""

import jax
import numpy as np
import pytest

from supremum import nn, training
from supremum.nn import UninitializedError
from training.blobs import equal, values

X = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


class FifthStepError(Exception):
    pass


@pytest.fixture
def failing_loss():
    """Return a loss that raises in its fifth step, inside the compiled program."""
    calls = []

    def count(x):
        calls.append(1)
        if len(calls) == 5:
            raise FifthStepError("the fifth")
        return x

    def loss(y, predictions):
        held_predictions = jax.lax.stop_gradient(predictions)
        counted = jax.pure_callback(count, jax.ShapeDtypeStruct(predictions.shape, predictions.dtype), held_predictions)
        return ((y - predictions) ** 2).mean() + 0 * counted.sum()

    return loss


@pytest.mark.slow
@pytest.mark.parametrize("saved", ["state", "weights"])
def test_loading_state_or_weights_repairs_a_model_after_a_failed_step(failing_loss, saved, tmp_path):
    model = training.Sequential([nn.Dense(8), nn.BatchNorm(), nn.Dense(1)])
    model.compile("adam", loss=failing_loss)
    model.fit(X[:8], Y[:8], epochs=1, batch_size=8, verbose=0)
    model.save_state(tmp_path / "state")
    before = values(model)
    with pytest.raises(Exception, match="the fifth"):
        model.fit(X, Y, batch_size=8, verbose=0)
    if saved == "state":
        assert model.load_state(tmp_path / "state") == 1
    else:
        model.compile("adam", loss=failing_loss)
        model.load_weights(tmp_path / "state")
    assert equal(values(model), before)
    model.fit(X, Y, batch_size=8, verbose=0)


def test_a_model_keeps_its_values_if_a_step_that_calls_python_fails(failing_loss):
    model = training.Sequential([nn.Dense(1)])
    model.compile("adam", loss=failing_loss)
    for _ in range(4):
        model.train_on_batch(X, Y)
    before = values(model)
    with pytest.raises(Exception, match="the fifth"):
        model.train_on_batch(X, Y)
    assert int(model.compiled().count) == int(model.optimizer.iterations) == 4
    assert equal(values(model), before)
    model.train_on_batch(X, Y)


def test_reading_a_value_that_a_failed_step_has_deleted_says_how_to_restore_it():
    variable = nn.Variable(np.zeros(2, "float32"), name="x")
    loan = nn.Donation({"x": variable})
    loan.take()["x"].delete()
    with pytest.raises(UninitializedError, match="lost its value in a failed training step"):
        _ = variable.value


def test_a_failed_step_that_has_deleted_values_says_how_to_restore_them():
    model = training.Sequential([nn.Dense(1)])
    model.compile("adam", loss="mse")
    for _ in range(3):
        model.train_on_batch(X, Y)
    model.compiled().count.delete()
    with pytest.raises(RuntimeError, match="deleted") as caught:
        model.train_on_batch(X, Y)
    assert any("Restore them with model.load_state(path)" in note for note in caught.value.__notes__)
