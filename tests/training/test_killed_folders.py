"""A process killed while writing a folder leaves a complete folder or none."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from supremum.training.checkpoints.atomic_directories import (
    readable,
    remove_folder,
    remove_leftover_folders,
    whole_folder,
    whole_names,
)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "new" / "state"


def write(folder, text):
    """Write a folder, and check that nothing moves before the write is complete."""
    before = names(folder) if folder.parent.exists() else []
    with whole_folder(folder) as partial:
        partial.mkdir()
        assert [name for name in names(folder) if name != partial.name] == before
        (partial / "text").write_text(text)


def names(folder):
    return sorted(path.name for path in folder.parent.iterdir())


def test_a_folder_is_replaced_only_when_the_new_one_is_complete(folder):
    write(folder, "first")
    with pytest.raises(TypeError):
        write(folder, None)
    assert (folder / "text").read_text() == "first"
    write(folder, "second")
    assert (folder / "text").read_text() == "second"
    assert names(folder) == ["state"]


def test_a_kill_between_the_two_moves_keeps_the_old_folder_readable(folder):
    write(folder, "first")
    aside = folder.with_name(".state.replaced-folder")
    folder.rename(aside)
    folder.with_name(".state.partial-folder").mkdir()
    assert readable(folder) == aside
    assert whole_names(folder.parent) >= {folder}
    with whole_folder(folder) as partial:
        assert (readable(folder) / "text").read_text() == "first"
        partial.mkdir()
    assert readable(folder) == folder
    assert names(folder) == ["state"]


def test_removing_leftovers_restores_the_old_folder(folder):
    write(folder, "first")
    folder.rename(folder.with_name(".state.replaced-folder"))
    folder.with_name(".state.partial-folder").mkdir()
    remove_leftover_folders(folder.parent, "state")
    assert names(folder) == ["state"]
    assert (folder / "text").read_text() == "first"


def test_a_leftover_is_not_read_once_the_folder_is_deleted(folder):
    write(folder, "second")
    folder.with_name(".state.replaced-folder").mkdir()
    shutil.rmtree(folder)
    assert readable(folder) == folder
    assert whole_names(folder.parent) == {folder.with_name(".state.replaced-folder")}


def test_writing_through_a_symlink_replaces_its_target(folder):
    write(folder, "first")
    link = folder.parent.parent / "link"
    link.symlink_to(folder)
    write(link, "second")
    assert link.is_symlink()
    assert (folder / "text").read_text() == "second"
    assert names(folder) == ["state"]
    assert names(link) == ["link", "new"]


def test_a_kill_after_the_moves_leaves_the_new_folder_readable(folder):
    write(folder, "second")
    folder.with_name(".state.replaced-folder").mkdir()
    assert readable(folder) == folder
    remove_leftover_folders(folder.parent, "state")
    assert names(folder) == ["state"]


def test_a_failed_write_keeps_the_old_folder(folder, monkeypatch):
    write(folder, "first")
    with pytest.raises(FileNotFoundError), whole_folder(folder):
        pass  # nothing was written
    assert (folder / "text").read_text() == "first"
    assert names(folder) == ["state"]


def test_leftovers_of_other_folders_are_kept(folder):
    for name in (".other.partial-folder", ".state.partial-folder.orbax-checkpoint-tmp", ".state.partial-folders"):
        (folder.parent / name).mkdir(parents=True)
    remove_leftover_folders(folder.parent, "state")
    assert names(folder) == [".other.partial-folder", ".state.partial-folders"]
    write(folder, "")
    remove_folder(folder)
    remove_folder(folder)
    assert names(folder) == [".other.partial-folder", ".state.partial-folders"]


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

around, kills = Path(sys.argv[1]), int(sys.argv[2])
path = around / "state"
around.mkdir()
random.seed(0)
noise = np.random.default_rng(0).integers(0, 2**32, 200_000, np.uint32)

def write_for_ever(step):
    state = lambda step: Checkpoint({"w": noise + np.uint32(step)}, {"mu": noise * np.uint32(step)}, step=step)
    state(0).save(around.with_name("warm"), format="orbax")  # JAX is started, and what is compiled is compiled
    start = time.monotonic()
    state(0).save(around.with_name("warm"), format="orbax")
    os.write(ready, b"%020.12f" % (time.monotonic() - start))
    while True:
        step += 1
        state(step).save(path, format="orbax")

def look(last):
    try:
        found = Checkpoint.load(path)
    except MissingCheckpointError:
        return 0 if not last else -1
    step = np.uint32(found.step)
    if found.step < last or not np.array_equal(found.model["w"], noise + step):
        return -2
    return found.step if np.array_equal(found.optimizer["mu"], noise * step) else -3

def look_for_ever():
    last = 0
    while os.read(asked, 1):
        last = look(last)
        os.write(answer, b"%d;" % last)
    return 0

def forked(work):
    child = os.fork()
    if not child:
        try:
            os._exit(work())
        finally:
            os._exit(1)
    return child

started, ready = os.pipe()
(asked, ask), (answered, answer) = os.pipe(), os.pipe()
last, torn = 0, 0
looking = forked(look_for_ever)
for kill in range(kills):
    child = forked(lambda: write_for_ever(last))
    time.sleep(random.uniform(0, 4) * float(os.read(started, 20)))  # however slow the machine is just now
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    torn += any(each.name != "state" for each in around.iterdir())
    os.write(ask, b"?")
    last = int(os.read(answered, 100).rstrip(b";"))
    if last < 0:
        break
os.kill(looking, signal.SIGKILL)
if last < 0:
    sys.exit(f"after kill {kill}: {last}")
print(json.dumps({"last": last, "torn": torn}))
"""


@pytest.mark.slow
def test_killing_orbax_writers_never_leaves_a_torn_checkpoint(tmp_path):
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", KILLS, str(tmp_path / "run"), "20"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    assert result.returncode == 0, result.stderr[-2000:]
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["last"] > 3
    assert found["torn"] > 3
