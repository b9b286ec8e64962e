"""A checkpoint folder holds a complete checkpoint whenever its writer is killed."""

import numpy as np
import pytest

from supremum.atomic_files import whole_file
from supremum.errors import ArgumentError, OperandError
from supremum.training.checkpoints import Checkpoint, CheckpointFileError, CheckpointFolder, CheckpointWarning


def state(step):
    return Checkpoint({"w": np.full(3, step, np.float32)}, step=step)


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def steps(folder):
    return [Checkpoint.load(path).step for path in folder.paths()]


@pytest.mark.parametrize(("keep", "kept"), [(1, [6]), (2, [5, 6]), (3, [4, 5, 6]), (None, [1, 2, 3, 4, 5, 6])])
def test_only_the_newest_checkpoints_are_kept(tmp_path, keep, kept):
    folder = CheckpointFolder(tmp_path / "run", keep=keep)
    for step in range(1, 7):
        path = folder.save(state(step))
        assert path == folder.path_of(step) == folder.latest()
    assert steps(folder) == kept
    assert [path.name for path in folder.paths()] == [f"step-{step:06d}.safetensors" for step in kept]


def test_steps_are_sorted_as_numbers(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2)
    for step in (999_998, 999_999, 1_000_000):
        folder.save(state(step))
    assert steps(folder) == [999_999, 1_000_000]
    assert folder.load_latest().step == 1_000_000


def test_step_can_be_saved_again(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2)
    for step in (1, 2, 2):
        folder.save(state(step))
    assert steps(folder) == [1, 2]


def test_folder_without_checkpoints_returns_none(tmp_path):
    for folder in (CheckpointFolder(tmp_path), CheckpointFolder(tmp_path / "not there")):
        assert folder.paths() == []
        assert folder.latest() is None
        assert folder.load_latest() is None
    assert names(tmp_path) == []


def test_folder_expands_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert CheckpointFolder("~/run").save(state(1)) == tmp_path / "run/step-000001.safetensors"


def test_invalid_keep_or_step_raises():
    for keep in (0, -1):
        with pytest.raises(ArgumentError, match="keep must be"):
            CheckpointFolder("run", keep=keep)
    with pytest.raises(ArgumentError, match=r"step must be from 0 to .*, got -1"):
        CheckpointFolder("run").path_of(-1)
    with pytest.raises(OperandError, match=r"step must be a whole number, got 1\.5"):
        CheckpointFolder("run").path_of(1.5)


def test_unrelated_files_are_left_alone(tmp_path):
    unrelated = [
        "best.safetensors",
        "step-12.safetensors",
        "step-000001.safetensors.bak",
        ".step-000001-original.safetensors",
    ]
    for name in unrelated:
        (tmp_path / name).write_text(name)
    (tmp_path / "logs").mkdir()
    folder = CheckpointFolder(tmp_path, keep=1)
    for step in (1, 2, 3):
        folder.save(state(step))
    assert names(tmp_path) == sorted([*unrelated, "logs", "step-000003.safetensors"])
    assert folder.load_latest().step == 3
    assert all((tmp_path / name).read_text() == name for name in unrelated)


def test_partial_files_are_removed_unless_their_writer_is_alive(tmp_path):
    folder = CheckpointFolder(tmp_path)
    (tmp_path / ".step-000005.partial-abcdefgh.safetensors").write_text("left by a writer that was killed")
    (tmp_path / ".best.partial-abcdefgh.safetensors").write_text("no business of this folder")
    with whole_file(folder.path_of(6)) as partial_file:
        partial_file.write_text("half")
        folder.save(state(9))
        assert partial_file.exists()
        Checkpoint({}, step=6).save(partial_file)
    assert names(tmp_path) == [".best.partial-abcdefgh.safetensors", *(folder.path_of(n).name for n in (6, 9))]
    assert steps(folder) == [6, 9]


def test_damaged_checkpoint_is_skipped_with_a_warning(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for step in (1, 2, 3):
        folder.save(state(step))
    data = folder.path_of(3).read_bytes()
    folder.path_of(3).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    folder.path_of(2).write_bytes(b"")
    with pytest.warns(CheckpointWarning) as caught:
        assert folder.load_latest().step == 1
    assert ["000003" in str(caught[0].message), "000002" in str(caught[1].message)] == [True, True]
    assert caught[0].filename == __file__
    with pytest.warns(CheckpointWarning):
        assert folder.latest() == folder.path_of(1)
    assert folder.save(state(2)) == folder.path_of(2)  # allowed because the later checkpoint is damaged
    with pytest.warns(CheckpointWarning):
        assert folder.load_latest().step == 2


def test_unreadable_checkpoint_raises(tmp_path, monkeypatch):
    folder = CheckpointFolder(tmp_path)
    folder.save(state(1))
    folder.save(state(2))

    def forbidden(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "open", forbidden)
    with pytest.raises(CheckpointFileError, match="000002"):
        folder.load_latest()


def test_checkpoint_removed_during_loading_is_skipped(tmp_path, monkeypatch):
    folder = CheckpointFolder(tmp_path)
    folder.save(state(1))
    listed = [*folder.paths(), folder.path_of(2)]
    monkeypatch.setattr(CheckpointFolder, "paths", lambda self: listed)
    assert folder.load_latest().step == 1


def test_saving_an_earlier_step_than_the_latest_raises(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2)
    for step in (100, 110):
        folder.save(state(step))
    with pytest.raises(ArgumentError, match=r"step-000110.* holds a later step than 10, .*load_latest"):
        folder.save(state(10))
    assert steps(folder) == [100, 110]


def test_renamed_checkpoint_is_skipped_with_a_warning(tmp_path):
    folder = CheckpointFolder(tmp_path)
    first, second = (folder.save(Checkpoint({"w": np.full(2, step)}, step=step)) for step in (1, 2))
    second.rename(folder.path_of(9))
    with pytest.warns(CheckpointWarning, match="holds step 2, not the step in its name"):
        assert folder.load_latest().step == 1
    folder.save(Checkpoint({}, step=3))  # the renamed file does not count as a later step
    assert folder.path_of(9).exists()
    assert first.exists()


def test_unrelated_files_with_checkpoint_names_are_never_removed(tmp_path):
    folder = CheckpointFolder(tmp_path)
    unrelated_folder = folder.folder / "step-000002.orbax"
    unrelated_folder.mkdir()
    (unrelated_folder / "notes.txt").write_text("mine")
    unrelated_file = folder.folder / "step-000003.safetensors"
    unrelated_file.write_text("mine too")
    for step in range(10, 20):
        folder.save(Checkpoint({}, step=step))
    assert (unrelated_folder / "notes.txt").read_text() == "mine"
    assert unrelated_file.read_text() == "mine too"
    assert len(folder.paths()) == 2 + folder.keep
