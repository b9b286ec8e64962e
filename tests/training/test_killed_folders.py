"""A process killed while writing a checkpoint leaves a complete one or none."""

import json
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from supremum.training import MissingCheckpointError, load_arrays, save_arrays
from supremum.training.checkpoints import stored_arrays
from training.bits import file_names

pytestmark = pytest.mark.slow


class KilledError(BaseException):
    """Stands for a kill: nothing may be cleaned up after it."""


@pytest.fixture
def kill_before(monkeypatch):
    """Return a function that makes the next save end before a call, with everything left as it is."""

    def kill_before(target, name, number):
        original, calls = getattr(target, name), []

        def call(*args, **kwargs):
            calls.append(name)
            if len(calls) < number:
                return original(*args, **kwargs)
            monkeypatch.setattr(stored_arrays.shutil, "rmtree", lambda *args, **kwargs: None)
            raise KilledError

        monkeypatch.setattr(target, name, call)

    return kill_before


def save(path, number):
    save_arrays(path, {"jax": jnp.full(3, number), "numpy": np.full(3, number)}, format="orbax")


def loaded(path):
    arrays, _ = load_arrays(path)
    (number,) = {int(number) for array in arrays.values() for number in array}
    return number


MOMENTS = {
    "before the arrays have their name": (stored_arrays.Path, "rename", 1),
    "before the record is written": (stored_arrays, "whole_file", 1),
    "before the record has its name": (stored_arrays.Path, "replace", 1),
    "before the folder is moved": (stored_arrays, "_move", 1),
    "before the folder or its arrays are moved": (stored_arrays.Path, "rename", 2),
}


@pytest.mark.parametrize("moment", [*MOMENTS.values(), (stored_arrays.Path, "replace", 2)], ids=[*MOMENTS, "and after"])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_kill_keeps_the_old_folder_and_the_next_writer_cleans_up(tmp_path, monkeypatch, kill_before, moment, is_link):
    path = tmp_path / "state"
    if is_link:
        path.symlink_to(tmp_path / "target")
    save(path, 1)
    before = sorted(file_names(tmp_path)), sorted(file_names(path))
    kill_before(*moment)
    with pytest.raises(KilledError):
        save(path, 2)
    monkeypatch.undo()
    assert loaded(path) == 1
    assert (sorted(file_names(tmp_path)), sorted(file_names(path))) != before
    save(path, 3)
    assert loaded(path) == 3
    assert path.is_symlink() == is_link
    assert sorted(file_names(tmp_path)) == before[0]
    assert len(file_names(path)) == 2


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
@pytest.mark.parametrize("is_there", [False, True])
def test_a_kill_of_the_first_writer_leaves_no_checkpoint(tmp_path, monkeypatch, kill_before, moment, is_there):
    path = tmp_path / "new" / "state"
    if is_there:
        path.mkdir(parents=True)
    kill_before(*moment)
    with pytest.raises(KilledError):
        save(path, 1)
    monkeypatch.undo()
    assert path.exists() == is_there
    if not is_there:
        with pytest.raises(MissingCheckpointError):
            load_arrays(path)
    save(path, 2)
    assert loaded(path) == 2
    assert file_names(path.parent) == ["state"]


def test_a_kill_before_the_old_arrays_are_removed_leaves_the_new_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "state"
    save(path, 1)
    monkeypatch.setattr(stored_arrays.shutil, "rmtree", lambda *args, **kwargs: None)
    save(path, 2)
    monkeypatch.undo()
    assert loaded(path) == 2
    assert len(file_names(path)) == 3
    save(path, 3)
    assert len(file_names(path)) == 2
    assert file_names(tmp_path) == ["state"]


# Every state is computed from its step. Each writer starts where the previous one was killed, and a separate process
# checks the result. The parent process never starts JAX: its threads do not survive a fork.
KILLS = """
import json, os, random, signal, sys, time
from pathlib import Path
import numpy as np
import supremum.training
assert not any(name.startswith("orbax") for name in sys.modules), "orbax is imported before it is needed"
import jax, orbax.checkpoint
from supremum.training import Checkpoint, CheckpointError, MissingCheckpointError

around, kills, kind = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
path = around / "state"
around.mkdir()
random.seed(0)
noise = np.random.default_rng(0).integers(0, 2**32, 200_000, np.uint32)

def write_for_ever(step):
    state = lambda step: Checkpoint({"w": noise + np.uint32(step)}, {"mu": noise * np.uint32(step)}, step=step)
    state(0).save(around.with_name("warm"), format=kind)  # JAX is started, and what is compiled is compiled
    start = time.monotonic()
    state(0).save(around.with_name("warm"), format=kind)
    os.write(ready, b"%020.12f" % (time.monotonic() - start))
    while True:
        step += 1
        state(step).save(path, format=kind)

def look(last):
    try:
        found = Checkpoint.load(path)
    except MissingCheckpointError:
        return 0 if not last else -1
    step = np.uint32(found.step)
    if found.step < last or not np.array_equal(found.model["w"], noise + step):
        return -2
    return found.step if np.array_equal(found.optimizer["mu"], noise * step) else -3

def forked(work):
    child = os.fork()
    if not child:
        try:
            os._exit(work())
        finally:
            os._exit(1)
    return child

started, ready = os.pipe()
answered, answer = os.pipe()
last, torn = 0, 0
for kill in range(kills):
    child = forked(lambda: write_for_ever(last))
    time.sleep(random.uniform(0, 4) * float(os.read(started, 20)))  # however slow the machine is just now
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    torn += any(each.name != "state" for each in around.iterdir())
    os.waitpid(forked(lambda: os.write(answer, b"%d" % look(last))), 0)
    last = int(os.read(answered, 100))
    if last < 0:
        sys.exit(f"after kill {kill}: {last}")
print(json.dumps({"last": last, "torn": torn}))
"""


@pytest.mark.parametrize(("kind", "kills"), [("orbax", 20), ("safetensors", 100)])
def test_killing_writers_never_leaves_a_torn_checkpoint(tmp_path, kind, kills):
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", KILLS, str(tmp_path / "run"), str(kills), kind]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    assert result.returncode == 0, result.stderr[-2000:]
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["last"] > 3
    assert found["torn"] > 3
