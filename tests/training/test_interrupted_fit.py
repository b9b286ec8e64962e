"""Ctrl-C while a model trains: it has the weights of its last finished step, and goes on from there."""

import collections
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slowly import slow
from supremum.training.interrupts import Interrupts

PROGRAM = Path(__file__).with_name("interrupted_fit.py")


@pytest.mark.parametrize(("steps", "rounds"), [(1, 8), slow(1, 200), slow(8, 200)])
def test_an_interrupted_model_has_the_weights_of_its_last_step(steps, rounds, tmp_path):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(rounds), str(steps), str(tmp_path)],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    places = collections.Counter(line.split()[1] for line in done.stdout.splitlines())
    assert places.total() == rounds
    assert places["after"] < 0.1 * rounds
    assert rounds < 200 or len(places) > 5, places


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
