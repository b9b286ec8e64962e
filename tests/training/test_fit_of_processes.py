"""`fit` in several local processes: training matches one process, and a run resumes after a process dies."""

import re
import signal
from pathlib import Path

import numpy as np
import pytest

from documents import fences
from processes import run_processes
from slowly import exhaustive

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "fit_of_processes.py"
GUIDE = Path(__file__).parents[2] / "docs/distributed.md"


def digests(run):
    codes, printed = run
    assert not any(codes), printed
    return re.findall(r"digest (\w+)", "\n".join(printed))


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
    assert len(digests(run_processes(SCRIPT, folder, 3, "data", "safetensors", processes=1, devices=8))) == 1
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
def test_a_restart_resumes_a_run_of_which_a_process_was_killed(
    tmp_path, uninterrupted, kind, form, dies, before, after
):
    codes, printed = run_processes(SCRIPT, tmp_path, 3, kind, form, processes=before[0], devices=before[1], DIES=dies)
    assert codes[int(dies[0])] == -signal.SIGKILL, printed
    run = run_processes(SCRIPT, tmp_path, 3, kind, form, processes=after[0], devices=after[1])
    assert len(set(digests(run))) == 1
    assert len(digests(run)) == after[0]
    assert all("went on with epoch 2" in output for output in run[1])
    assert_close(values(tmp_path), uninterrupted, slice(6, None))


def test_each_process_can_load_separate_data(tmp_path, uninterrupted):
    run = run_processes(SCRIPT, tmp_path, 3, "data", "safetensors", processes=2, devices=4, DATA="per_process")
    assert len(set(digests(run))) == 1
    ours = values(tmp_path)
    assert len(ours["loss"]) == 9
    np.testing.assert_allclose(ours["loss"].mean(), uninterrupted["loss"].mean(), rtol=0.1)  # in a different order


def test_processes_that_share_replicas_give_the_same_data(tmp_path, uninterrupted):
    run = run_processes(SCRIPT, tmp_path, 3, "model", "orbax", processes=2, devices=4, DATA="same")
    assert len(set(digests(run))) == 1
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
    codes, printed = run_processes(SCRIPT, tmp_path, 1, "data", "safetensors", **run)
    assert 1 in codes
    assert all(re.search(rf"ArgumentError: .*{told}", output) for output in printed), printed


def test_the_script_of_the_guide_trains_in_two_processes(tmp_path):
    (script,) = (code for _, code in fences(GUIDE.read_text()) if "jax.distributed.initialize()" in code)
    (tmp_path / "train.py").write_text(script)
    codes, printed = run_processes(tmp_path / "train.py", processes=2)
    assert codes == [0, 0], printed
    # Only the first process shows the epochs.
    assert ["epoch 3/3" in output for output in printed] == [True, False]
    losses = [re.findall(r"^loss (\S+)$", output, flags=re.MULTILINE) for output in printed]
    assert losses[0] == losses[1] != []
