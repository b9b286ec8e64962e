"""Ctrl-C while a model trains: it has the weights of its last finished step, and goes on from there."""

import collections
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from slowly import slow
from supremum import nn, training
from supremum.training.interrupts import Interrupts

PROGRAM = Path(__file__).with_name("interrupted_fit.py")


@pytest.mark.parametrize(("steps", "rounds"), [slow(1, 8), slow(1, 200), slow(8, 200)])
def test_an_interrupted_model_has_the_weights_of_its_last_step(steps, rounds, tmp_path):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(rounds), str(steps), str(tmp_path)],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    places = collections.Counter(line.split()[1] for line in done.stdout.splitlines())
    assert places.total() == rounds
    assert places["after"] < max(0.1 * rounds, 4)  # of few rounds chance may put several there
    assert rounds < 200 or len(places) > 5, places


class Told(training.Callback):
    """Counts how often it was told of the end; its own line is no place of ours."""

    def __init__(self):
        self.times = 0

    def on_train_end(self):
        self.times += 1


class InterruptedAt(training.Callback):
    """From the end of the epoch on, sends Ctrl-C at the place of a number: where a function is called, or at a line.

    Lines of functions that say for themselves where Ctrl-C waits are left out: between assignments Python looks for
    no signal.
    """

    AT_CALLS = ("train", "_failure_of")

    def __init__(self, number):
        self.left = number

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


def test_callbacks_are_told_of_the_end_wherever_an_interrupt_comes():
    model = training.Sequential([nn.Dense(1)])
    model.compile("sgd", loss="mse")
    x = np.ones((2, 2), "float32")
    before, interrupted = sys.gettrace(), 0
    for number in range(1, 200):
        told, at = [Told(), Told()], InterruptedAt(number)
        try:
            model.fit(x, x[:, :1], verbose=0, callbacks=[told[0], at, told[1]])
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(before)
        assert [each.times for each in told] == [1, 1], number
        if at.left > 0:
            break
    assert interrupted == number - 1 > 20


def test_an_interrupt_waits_only_while_it_has_to():
    interrupts, said = Interrupts(), []
    before = signal.getsignal(signal.SIGINT)

    def held_back_twice():
        with interrupts.held_back():
            with interrupts.held_back():
                signal.raise_signal(signal.SIGINT)
                said.append("in the inner block")
            said.append("in the outer block")
        said.append("never")

    with interrupts.watched(), pytest.raises(KeyboardInterrupt):
        held_back_twice()
    assert said == ["in the inner block", "in the outer block"]
    with interrupts.watched(), interrupts.held_back(lambda: False), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_users_own_is_called_and_stays():
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append("called"))
    try:
        own = signal.getsignal(signal.SIGINT)
        interrupts = Interrupts()
        with interrupts.watched():
            with interrupts.held_back():
                signal.raise_signal(signal.SIGINT)
                assert came == []
            assert came == ["called"]
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
