"""`ModelCheckpoint` keeps a checkpoint that non-finite weights would replace."""

import signal
import warnings

import numpy as np
import pytest

from slowly import slow
from supremum import nn
from supremum.errors import OperandError
from supremum.optimizers import SGD
from supremum.training import Callback, ModelCheckpoint, Sequential, TrainingWarning
from supremum.training.callbacks import monitor_callbacks
from supremum.training.checkpoints import load_arrays

X = np.ones((16, 3), "float32")
Y = np.ones((16, 1), "float32")


class SpoilAfter(Callback):
    """Make a weight NaN after an epoch, before the checkpoint sees it."""

    def __init__(self, epoch, value=np.nan):
        self._epoch, self._value = epoch, value

    def on_epoch_end(self, epoch, logs):
        if epoch >= self._epoch:
            self.model.variables["dense/bias"].assign(np.full(1, self._value, "float32"))


def fitted(path, epochs=4, spoiled=2, before=(), value=np.nan, **options):
    """Train, and return the model and the warnings."""
    model = Sequential([nn.Dense(1)])
    model.compile(SGD(0.01), "mse")
    callbacks = [SpoilAfter(spoiled, value), *before, ModelCheckpoint(path, **options)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrainingWarning)
        model.fit(X, Y, epochs=epochs, callbacks=callbacks, verbose=0)
    return model, [str(each.message) for each in caught if each.category is TrainingWarning]


@pytest.mark.parametrize("weights_only", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_finite_weights_stay_and_a_warning_names_the_others(tmp_path, weights_only, value):
    path = tmp_path / "run.safetensors"
    model, told = fitted(path, save_weights_only=weights_only, value=value)
    (message,) = told
    assert "dense/bias has inf or NaN after epoch 2" in message
    assert "run.safetensors' stays as it was" in message
    load = model.load_weights if weights_only else model.load_state
    load(path)
    assert all(np.isfinite(np.asarray(each.read_stored())).all() for each in model.variables.values())
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]


@pytest.mark.parametrize("kind", ["safetensors", slow("orbax")])
def test_the_state_that_stays_is_the_last_finite_one(tmp_path, kind):
    model, told = fitted(tmp_path / "run", format=kind)
    assert len(told) == 1
    assert model.load_state(tmp_path / "run") == 2


@pytest.mark.parametrize(
    ("name", "options", "files"),
    [
        ("run.safetensors", {"allow_nonfinite": True, "save_weights_only": True}, 1),
        ("epoch-{epoch}.safetensors", {"save_weights_only": True}, 4),
        ("epoch-{epoch}.safetensors", {}, 4),
    ],
)
def test_they_are_saved_if_asked_to_and_in_new_files(tmp_path, name, options, files):
    _, told = fitted(tmp_path / name, **options)
    assert told == []
    assert len(list(tmp_path.iterdir())) == files
    weights = "dense/bias" if "save_weights_only" in options else "model/dense/bias"
    assert np.isnan(load_arrays(max(tmp_path.iterdir()))[0][weights]).all()


def test_a_refused_epoch_is_not_the_best(tmp_path):
    """The mean loss of an epoch is finite even if its last step spoiled the weights."""
    saving = ModelCheckpoint(tmp_path / "best.safetensors", monitor="loss", save_best_only=True)
    model = Sequential([nn.Dense(1)])
    model.compile(SGD(0.01), "mse")
    with pytest.warns(TrainingWarning, match="dense/bias"):
        history = model.fit(X, Y, epochs=2, callbacks=[SpoilAfter(1), saving], verbose=0).history
    assert history["loss"][1] < history["loss"][0] == saving.best


def test_an_interrupt_during_the_check_leaves_the_old_file(tmp_path, monkeypatch):
    def interrupted(weights):
        if np.isnan(np.asarray(weights["dense/bias"])).any():
            signal.raise_signal(signal.SIGINT)
        return True

    monkeypatch.setattr(monitor_callbacks, "_all_finite", interrupted)
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        fitted(path, save_weights_only=True)
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]
    assert all(np.isfinite(each).all() for each in load_arrays(path)[0].values())


def test_allow_nonfinite_must_be_a_bool(tmp_path):
    with pytest.raises(OperandError, match="allow_nonfinite must be True or False"):
        ModelCheckpoint(tmp_path / "run.safetensors", allow_nonfinite="no")
