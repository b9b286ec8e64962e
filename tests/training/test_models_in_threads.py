"""One model in several threads: reads work while it trains, and calls that would change it raise."""

import threading

import numpy as np
import pytest

from supremum import nn, training
from supremum.errors import ModelInUseError

X = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


@pytest.fixture
def model():
    model = training.Sequential([nn.Dense(8), nn.BatchNorm(), nn.Dense(1)])
    model.compile("adam", loss="mse")
    model.fit(X, Y, epochs=1, verbose=0)
    return model


class BackgroundFit:
    """Run `fit` in a background thread until the block ends."""

    def __init__(self, model):
        self.steps, self.model, self.failure = threading.Semaphore(0), model, None
        self.thread = threading.Thread(target=self.run, name="trainer")

    def run(self):
        try:
            self.model.fit(X, Y, epochs=10**6, batch_size=8, verbose=0, callbacks=[StepSignal(self.steps)])
        except BaseException as error:
            self.failure = error

    def __enter__(self):
        self.thread.start()
        assert self.steps.acquire(timeout=600)
        return self

    def __exit__(self, *_):
        self.model.stop_training = True
        self.thread.join(600)
        assert not self.thread.is_alive()


class StepSignal(training.Callback):
    def __init__(self, steps):
        self.steps = steps

    def on_train_batch_end(self, batch, logs):
        self.steps.release()


@pytest.mark.slow
def test_a_model_can_be_read_while_another_thread_trains_it(model, tmp_path):
    with BackgroundFit(model) as running:
        for number in range(60):
            assert np.isfinite(model.predict(X, verbose=0)).all()
            assert np.isfinite(model.evaluate(X, Y, verbose=0))
            assert np.isfinite(np.asarray(model(X))).all()
            assert model.variables
            assert all(np.isfinite(np.asarray(each.value)).all() for each in model.variables.values())
            model.save_weights(tmp_path / str(number % 3))
    assert running.failure is None


@pytest.mark.slow
def test_changing_a_model_that_trains_in_another_thread_raises(model, tmp_path):
    model.save_state(tmp_path / "state")
    with BackgroundFit(model) as running:
        for call in (
            lambda: model.fit(X, Y, verbose=0),
            lambda: model.train_on_batch(X[:8], Y[:8]),
            lambda: model.save_state(tmp_path / "other"),
            lambda: model.load_state(tmp_path / "state"),
            lambda: model.load_weights(tmp_path / "state"),
        ):
            with pytest.raises(ModelInUseError, match="in use by fit in thread 'trainer'"):
                call()
    assert running.failure is None
    model.fit(X, Y, verbose=0)
    assert model.load_state(tmp_path / "state") == 1


@pytest.mark.slow
def test_several_threads_can_predict_with_one_model(model):
    expected, failures = model.predict(X, verbose=0), []

    def predict():
        try:
            for _ in range(20):
                np.testing.assert_array_equal(model.predict(X, verbose=0), expected)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=predict) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(600)
    assert failures == []
