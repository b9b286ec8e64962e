"""Interrupts during training: the model keeps the weights of its last finished step and can continue."""

import collections
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from slowly import exhaustive, slow
from supremum import nn, training
from training.blobs import equal, values

PROGRAM = Path(__file__).with_name("interrupted_fit.py")


@pytest.mark.parametrize(
    ("rounds", "steps", "devices"),
    [slow(16, 1, 1), slow(16, 8, 2), *(exhaustive(1200, steps, devices) for steps in (1, 8) for devices in (1, 2))],
)
def test_an_interrupted_model_has_the_weights_of_its_last_finished_step(rounds, steps, devices, tmp_path):
    finished = subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, (rounds, steps, devices)), str(tmp_path)],
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
    lines = [line.split() for line in finished.stdout.splitlines()]
    places = collections.Counter(place for _, place, *_ in lines)
    assert places.total() == rounds
    assert places["after"] < max(0.1 * rounds, 4)  # with few rounds, several may land there by chance
    assert rounds < 200 or len(places) > 5, places
    assert set(collections.Counter(kind for _, _, kind, *_ in lines).values()) == {rounds // 4}


class StoppedError(Exception):
    """What a handler raises."""


class InterruptedAt:
    """Raise at the given number of calls and lines of training, as signal handlers and other threads may.

    Args:
        place: the number, from 1.
    """

    FILES = ("supremum/training", "supremum/nn/donation")

    def __init__(self, place):
        self.left = place

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def trace(self, frame, event, _):
        code = frame.f_code
        is_ours = any(each in code.co_filename for each in self.FILES) and code.co_name != "on_train_end"
        if is_ours and event in ("call", "line"):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise StoppedError
        return self.trace


class EndCounter(training.Callback):
    """Count the calls of `on_train_end`; the line that counts is not one to interrupt."""

    def __init__(self):
        self.times = 0

    def on_train_end(self):
        self.times += 1


class Traced(training.Callback):
    """Begin to interrupt at the end of the epoch."""

    def __init__(self, interrupted):
        self.interrupted = interrupted

    def on_epoch_end(self, epoch, logs):
        sys.settrace(self.interrupted.trace)


def test_on_train_end_is_called_once_wherever_an_interrupt_arrives():
    model = training.Sequential([nn.Dense(1)])
    model.compile("sgd", loss="mse")
    x = np.ones((2, 2), "float32")
    before, interrupts = sys.gettrace(), 0
    for place in range(1, 300):
        end_counters, at = [EndCounter(), EndCounter()], InterruptedAt(place)
        try:
            model.fit(x, x[:, :1], verbose=0, callbacks=[end_counters[0], Traced(at), end_counters[1]])
        except StoppedError:
            interrupts += 1
        finally:
            sys.settrace(before)
        assert [each.times for each in end_counters] == [1, 1], place
        if at.left > 0:
            break
    assert interrupts == place - 1 > 20


def state_of(model):
    return values(model) | {name: np.asarray(each) for name, each in model.optimizer.variables.items()}


@pytest.mark.parametrize(("steps", "stride"), [(1, 13), slow(2, 7), exhaustive(1, 1), exhaustive(2, 1)])
def test_a_model_that_is_interrupted_at_any_line_is_that_of_a_finished_step(steps, stride, tmp_path):
    x = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    x, y = np.tile(x, (3 * steps, 1)), np.tile(x[:, :1], (3 * steps, 1))  # all batches are equal

    model = training.Sequential([nn.Dense(2), nn.BatchNorm(), nn.Dense(1)])
    model.compile("adam", loss="mse", steps_per_execution=steps)

    def fit(callbacks=()):
        model.fit(x, y, batch_size=4, shuffle=False, verbose=0, callbacks=callbacks)

    expected, interrupts, counts = {}, 0, set()

    class Keep(training.Callback):
        def on_train_batch_end(self, batch, logs):
            expected[int(model.compiled().count)] = state_of(model)

    fit(Keep())
    model.save_state(tmp_path / "state")
    for _ in range(13):
        fit(Keep())
    for place in range(1, 5000, stride):
        if int(model.compiled().count) > 36 * steps:
            model.load_state(tmp_path / "state")
        try:
            with InterruptedAt(place) as at:
                fit()
        except StoppedError:
            interrupts += 1
        count = int(model.compiled().count)
        counts.add(count // steps % 3)
        assert equal(state_of(model), expected[count]), (place, count)
        if at.left > 0:
            break
    assert at.left > 0
    assert interrupts > 300 // stride
    assert counts == {0, 1, 2}


@pytest.mark.parametrize("train", ["fit", "train_on_batch"])
def test_steps_of_an_interrupted_epoch_are_not_in_the_next_history(train):
    model = training.Sequential([nn.Dense(1)])
    model.compile("sgd", loss="mse")
    x = np.ones((6, 2), "float32")

    class Stopper(training.Callback):
        def on_train_batch_end(self, batch, logs):
            raise StoppedError

    with pytest.raises(StoppedError):
        model.fit(x, x[:, :1], batch_size=2, verbose=0, callbacks=[Stopper()])
    assert int(model.optimizer.iterations) == 1
    if train == "train_on_batch":
        model.train_on_batch(x, x[:, :1])
    assert len(model.fit(x, x[:, :1], batch_size=2, verbose=0).loss) == 3


def test_a_signal_that_arrives_while_a_step_runs_leaves_its_results():
    """The handler runs as soon as Python does, at the line after the call that runs the step and keeps its results."""
    model = training.Sequential([nn.Dense(512), nn.Dense(512), nn.Dense(1)])
    model.compile("adam", loss="mse")
    x = np.ones((64, 512), "float32")
    for _ in range(3):
        model.train_on_batch(x, x[:, :1])

    arrived = []

    def stop(*_):
        arrived.append(True)
        raise StoppedError

    before, notes = signal.signal(signal.SIGALRM, stop), []
    try:
        for delay in np.linspace(1e-4, 4e-2, 60):
            arrived.clear()
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                while not arrived:  # Python ignores what is raised where it frees an object
                    model.train_on_batch(x, x[:, :1])
            except Exception as error:  # JAX and Python may replace an error inside of their own `try`
                if not arrived:
                    raise
                notes.append(" ".join(getattr(error, "__notes__", ())))
            assert not any(
                leaf.is_deleted() for leaf in jax.tree.leaves((model.optimizer.state, model.compiled().count))
            )
            assert int(model.optimizer.iterations) == int(model.compiled().count)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(notes) == 60
    assert "lost" not in str(notes)
    model.fit(x, x[:, :1], verbose=0)
