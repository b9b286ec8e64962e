"""Whoever is killed while writing a folder leaves a whole one or none."""

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
    """Write a folder; nothing is moved before all of it is written."""
    before = names(folder) if folder.parent.exists() else []
    with whole_folder(folder) as partial:
        partial.mkdir()
        assert [name for name in names(folder) if name != partial.name] == before
        (partial / "text").write_text(text)


def names(folder):
    return sorted(path.name for path in folder.parent.iterdir())


def test_a_folder_is_replaced_when_the_new_one_is_whole(folder):
    write(folder, "first")
    with pytest.raises(TypeError):
        write(folder, None)
    assert (folder / "text").read_text() == "first"
    write(folder, "second")
    assert (folder / "text").read_text() == "second"
    assert names(folder) == ["state"]


def test_killed_between_the_two_moves_the_old_one_is_read(folder):
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


def test_removing_leftovers_puts_the_old_one_back(folder):
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


def test_a_link_stays_and_what_it_points_to_is_replaced(folder):
    write(folder, "first")
    link = folder.parent.parent / "link"
    link.symlink_to(folder)
    write(link, "second")
    assert link.is_symlink()
    assert (folder / "text").read_text() == "second"
    assert names(folder) == ["state"]
    assert names(link) == ["link", "new"]


def test_killed_after_the_moves_the_new_one_is_read(folder):
    write(folder, "second")
    folder.with_name(".state.replaced-folder").mkdir()
    assert readable(folder) == folder
    remove_leftover_folders(folder.parent, "state")
    assert names(folder) == ["state"]


def test_a_folder_that_cannot_be_moved_leaves_the_old_one(folder, monkeypatch):
    write(folder, "first")
    with pytest.raises(FileNotFoundError), whole_folder(folder):
        pass  # nothing was written
    assert (folder / "text").read_text() == "first"
    assert names(folder) == ["state"]


def test_leftovers_of_others_stay(folder):
    for name in (".other.partial-folder", ".state.partial-folder.orbax-checkpoint-tmp", ".state.partial-folders"):
        (folder.parent / name).mkdir(parents=True)
    remove_leftover_folders(folder.parent, "state")
    assert names(folder) == [".other.partial-folder", ".state.partial-folders"]
    write(folder, "")
    remove_folder(folder)
    remove_folder(folder)
    assert names(folder) == [".other.partial-folder", ".state.partial-folders"]


# Every state can be told from its step. Each writer starts where the last one was killed, and another process looks.
# The one that starts them all never starts JAX, whose threads no fork survives.
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
def test_kills_while_orbax_writes_tear_nothing(tmp_path):
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", KILLS, str(tmp_path / "run"), "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["last"] > 3
    assert found["torn"] > 3
