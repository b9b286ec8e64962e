"""`fit` in several processes on this machine: the same training as in one, and what is left when one dies."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "fit_of_processes.py"
# Long enough that only a real hang fails on a loaded machine, and less than the launcher's own limit.
STOPPED_WITHIN = 240


def launched(folder, *arguments, processes, devices, **environment):
    """A run, and the seconds it took."""
    start = time.monotonic()
    options = ["-n", str(processes), "--devices-per-process", str(devices), "--timeout", "600"]
    ended = subprocess.run(
        [sys.executable, "-m", "supremum", "launch", *options, SCRIPT, "--", folder, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
        env=os.environ | {"PYTHONWARNINGS": "ignore"} | environment,
        check=False,
    )
    return ended, time.monotonic() - start


def digests(ended):
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return re.findall(r"\[\d\] digest (\w+)", ended.stdout)


def values(folder):
    return dict(np.load(folder / "values0.npz"))


def close(ours, theirs, loss=slice(None)):
    for name, value in theirs.items():
        expected = value[loss] if name == "loss" else value
        np.testing.assert_allclose(ours[name], expected, rtol=0, atol=4e-3 * np.abs(expected).max(), err_msg=name)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Three epochs of one process with all eight devices."""
    folder = tmp_path_factory.mktemp("one")
    ended, _ = launched(folder, 3, "data", "safetensors", processes=1, devices=8)
    assert len(digests(ended)) == 1
    return values(folder)


@pytest.mark.parametrize(
    ("kind", "form", "dies", "before", "after"),
    [
        # A worker, then the coordinator; restarted with other numbers of processes and of devices.
        ("data", "safetensors", "2 2 SIGKILL", (4, 2), (2, 2)),
        ("sharded", "orbax", "0 2 SIGKILL", (2, 4), (1, 2)),
    ],
)
def test_a_killed_process_ends_the_run_and_the_next_goes_on(tmp_path, uninterrupted, kind, form, dies, before, after):
    ended, seconds = launched(tmp_path, 3, kind, form, processes=before[0], devices=before[1], DIES=dies)
    assert ended.returncode == 137, ended.stdout + ended.stderr
    assert seconds < STOPPED_WITHIN
    assert re.search(rf"Process {dies[0]}.*SIGKILL", ended.stdout + ended.stderr)
    ended, _ = launched(tmp_path, 3, kind, form, processes=after[0], devices=after[1])
    assert len(set(digests(ended))) == 1
    assert len(digests(ended)) == after[0]
    assert "went on with epoch 2" in ended.stdout
    close(values(tmp_path), uninterrupted, slice(6, None))


def test_a_hung_process_ends_the_run(tmp_path):
    ended, seconds = launched(tmp_path, 3, "data", "safetensors", processes=2, devices=1, DIES="1 1 SIGSTOP")
    assert ended.returncode not in (0, 124), ended.stdout + ended.stderr
    assert seconds < STOPPED_WITHIN
    assert "Process 1" in ended.stdout + ended.stderr
    assert (tmp_path / "state").exists()


def test_each_process_may_have_data_of_its_own(tmp_path, uninterrupted):
    ended, _ = launched(tmp_path, 3, "data", "safetensors", processes=2, devices=4, DATA="per_process")
    assert len(set(digests(ended))) == 1
    ours = values(tmp_path)
    assert len(ours["loss"]) == 9
    np.testing.assert_allclose(ours["loss"].mean(), uninterrupted["loss"].mean(), rtol=0.1)  # the order is another


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"BATCH": "24"}, "gave a batch of 12 examples to its 8 devices.*batches of 8"),
        ({"UNEVEN": "yes"}, "the processes have 2, 3 batches an epoch.*steps_per_epoch=2"),
    ],
)
def test_data_that_do_not_fit_together_are_refused(tmp_path, environment, told):
    run = {"processes": 2, "devices": 8, "DATA": "per_process"} | environment
    ended, _ = launched(tmp_path, 1, "data", "safetensors", **run)
    assert ended.returncode == 1
    assert re.search(rf"ArgumentError: .*{told}", ended.stdout + ended.stderr)
