"""`fit` in several local processes: training matches one process, and a run resumes after a process dies."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from slowly import exhaustive

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "fit_of_processes.py"
# Long enough that only a real hang fails on a loaded machine, and less than the launcher's own limit.
STOPPED_WITHIN = 240


def launch(folder, *arguments, processes, devices, **environment):
    """Launch the script; return the finished process and the seconds it took."""
    start = time.monotonic()
    options = ["-n", str(processes), "--devices-per-process", str(devices), "--timeout", "600"]
    result = subprocess.run(
        [sys.executable, "-m", "supremum", "launch", *options, SCRIPT, "--", folder, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
        env=os.environ | {"PYTHONWARNINGS": "ignore"} | environment,
        check=False,
    )
    return result, time.monotonic() - start


def digests(result):
    assert result.returncode == 0, result.stdout + result.stderr
    return re.findall(r"\[\d\] digest (\w+)", result.stdout)


def values(folder):
    return dict(np.load(folder / "values0.npz"))


def assert_close(ours, theirs, loss=slice(None)):
    assert "loss" in theirs
    for name, value in theirs.items():
        expected = value[loss] if name == "loss" else value
        np.testing.assert_allclose(ours[name], expected, rtol=0, atol=4e-3 * np.abs(expected).max(), err_msg=name)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The values after three epochs in one process with all eight devices."""
    folder = tmp_path_factory.mktemp("one")
    result, _ = launch(folder, 3, "data", "safetensors", processes=1, devices=8)
    assert len(digests(result)) == 1
    return values(folder)


@pytest.mark.parametrize(
    ("kind", "form", "dies", "before", "after"),
    [
        # A worker dies, then the coordinator; each restart has a different number of processes and devices.
        ("data", "safetensors", "2 2 SIGKILL", (4, 2), (2, 2)),
        ("sharded", "orbax", "0 2 SIGKILL", (2, 4), (1, 2)),
        exhaustive("model", "orbax", "1 2 SIGKILL", (2, 4), (4, 2)),
    ],
)
def test_a_killed_process_ends_the_run_and_a_restart_resumes_it(
    tmp_path, uninterrupted, kind, form, dies, before, after
):
    result, seconds = launch(tmp_path, 3, kind, form, processes=before[0], devices=before[1], DIES=dies)
    assert result.returncode == 137, result.stdout + result.stderr
    assert seconds < STOPPED_WITHIN
    assert re.search(rf"Process {dies[0]}.*SIGKILL", result.stdout + result.stderr)
    result, _ = launch(tmp_path, 3, kind, form, processes=after[0], devices=after[1])
    assert len(set(digests(result))) == 1
    assert len(digests(result)) == after[0]
    assert "went on with epoch 2" in result.stdout
    assert_close(values(tmp_path), uninterrupted, slice(6, None))


def test_a_hung_process_ends_the_run(tmp_path):
    result, seconds = launch(tmp_path, 3, "data", "safetensors", processes=2, devices=1, DIES="1 1 SIGSTOP")
    assert result.returncode not in (0, 124), result.stdout + result.stderr
    assert seconds < STOPPED_WITHIN
    assert "Process 1" in result.stdout + result.stderr
    assert (tmp_path / "state").exists()


def test_each_process_can_load_separate_data(tmp_path, uninterrupted):
    result, _ = launch(tmp_path, 3, "data", "safetensors", processes=2, devices=4, DATA="per_process")
    assert len(set(digests(result))) == 1
    ours = values(tmp_path)
    assert len(ours["loss"]) == 9
    np.testing.assert_allclose(ours["loss"].mean(), uninterrupted["loss"].mean(), rtol=0.1)  # in a different order


def test_processes_that_share_replicas_give_the_same_data(tmp_path, uninterrupted):
    result, _ = launch(tmp_path, 3, "model", "orbax", processes=2, devices=4, DATA="same")
    assert len(set(digests(result))) == 1
    assert_close(values(tmp_path), uninterrupted)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"BATCH": "24"}, "gave a batch of 12 examples to its 8 replicas.*batches of 8"),
        ({"UNEVEN": "yes"}, "the processes have 2, 3 batches an epoch.*steps_per_epoch=2"),
    ],
)
def test_mismatched_per_process_data_raises(tmp_path, environment, told):
    run = {"processes": 2, "devices": 8, "DATA": "per_process"} | environment
    result, _ = launch(tmp_path, 1, "data", "safetensors", **run)
    assert result.returncode == 1
    assert re.search(rf"ArgumentError: .*{told}", result.stdout + result.stderr)
