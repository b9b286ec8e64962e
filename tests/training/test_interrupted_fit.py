"""Ctrl-C during training: the model keeps the weights of its last finished step and can continue."""

import collections
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from slowly import exhaustive, slow
from supremum import nn, training
from supremum.training.interrupts import Interrupts

PROGRAM = Path(__file__).with_name("interrupted_fit.py")


@pytest.mark.parametrize(("steps", "rounds"), [slow(1, 8), slow(1, 200), exhaustive(8, 200)])
def test_an_interrupted_model_has_the_weights_of_its_last_finished_step(steps, rounds, tmp_path):
    finished = subprocess.run(
        [sys.executable, str(PROGRAM), str(rounds), str(steps), str(tmp_path)],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
    places = collections.Counter(line.split()[1] for line in finished.stdout.splitlines())
    assert places.total() == rounds
    assert places["after"] < max(0.1 * rounds, 4)  # with few rounds, several may land there by chance
    assert rounds < 200 or len(places) > 5, places


class EndCounter(training.Callback):
    """Count the calls of `on_train_end`; the line that counts is not one to interrupt."""

    def __init__(self):
        self.times = 0

    def on_train_end(self):
        self.times += 1


class InterruptedAt(training.Callback):
    """Send Ctrl-C at the given number of calls and lines after the end of the epoch.

    Lines of the functions in `AT_CALLS` do not count. These functions decide themselves where Ctrl-C waits: Python
    does not check for signals between assignments.
    """

    AT_CALLS = ("train", "_failure_of")

    def __init__(self, place):
        self.left = place

    def on_epoch_end(self, epoch, logs):
        sys.settrace(self.trace)

    def trace(self, frame, event, _):
        code = frame.f_code
        is_ours = "supremum/training" in code.co_filename and code.co_name != "on_train_end"
        if is_ours and (event == "call" or (event == "line" and code.co_name not in self.AT_CALLS)):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return self.trace


def test_on_train_end_is_called_once_wherever_an_interrupt_arrives():
    model = training.Sequential([nn.Dense(1)])
    model.compile("sgd", loss="mse")
    x = np.ones((2, 2), "float32")
    before, interrupted = sys.gettrace(), 0
    for place in range(1, 200):
        end_counters, at = [EndCounter(), EndCounter()], InterruptedAt(place)
        try:
            model.fit(x, x[:, :1], verbose=0, callbacks=[end_counters[0], at, end_counters[1]])
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(before)
        assert [each.times for each in end_counters] == [1, 1], place
        if at.left > 0:
            break
    assert interrupted == place - 1 > 20


def test_an_interrupt_is_raised_when_the_outermost_hold_ends():
    interrupts, reached = Interrupts(), []
    before = signal.getsignal(signal.SIGINT)

    def hold_back_twice():
        with interrupts.held_back():
            with interrupts.held_back():
                signal.raise_signal(signal.SIGINT)
                reached.append("in the inner block")
            reached.append("in the outer block")
        reached.append("never")

    with interrupts.watched(), pytest.raises(KeyboardInterrupt):
        hold_back_twice()
    assert reached == ["in the inner block", "in the outer block"]
    with interrupts.watched(), interrupts.held_back(lambda: False), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_custom_sigint_handler_is_called_and_restored():
    calls = []
    before = signal.signal(signal.SIGINT, lambda *_: calls.append("called"))
    try:
        handler = signal.getsignal(signal.SIGINT)
        interrupts = Interrupts()
        with interrupts.watched():
            with interrupts.held_back():
                signal.raise_signal(signal.SIGINT)
                assert calls == []
            assert calls == ["called"]
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
