"""A file is complete or absent, and leftovers of killed writers are distinguished from files of live writers."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from supremum.atomic_files import check_writable, remove_leftovers, whole_file
from supremum.errors import FileError


def names(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", ["a.txt", "a", "a.b.txt", ".a", "a.partial-abcdefgh.txt", "ä b\n.t"])
def test_the_next_writer_removes_leftovers_of_a_killed_writer(tmp_path, name):
    script = "import os,sys,pathlib\nfrom supremum.atomic_files import whole_file\n"
    script += "with whole_file(pathlib.Path(sys.argv[1])) as t: os._exit(9)"
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", script, tmp_path / name]).returncode == 9
        assert len(names(tmp_path)) == 1  # the second writer removed the leftover of the first
    with whole_file(tmp_path / name) as temporary:
        temporary.write_text("whole")
        assert names(tmp_path) == [temporary.name]
    assert names(tmp_path) == [name]


def test_temporary_files_of_live_writers_are_kept(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path) as first:
        first.write_text("first")
        with whole_file(path) as second:
            second.write_text("second")
        remove_leftovers(tmp_path, ".*")
        assert first.exists()
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert names(tmp_path) == ["a.txt"]


def test_only_leftovers_with_matching_names_are_removed(tmp_path):
    others = [
        "a.txt",
        ".a-abcdefgh.txt",
        ".a.partial-abcdefg.txt",
        ".a.partial-abcdefghi.txt",
        ".a.partial-ABCDEFGH.txt",
        ".b.partial-abcdefgh.txt",
        "a.partial-abcdefgh.txt",
    ]
    for name in [*others, ".a.partial-abcdefgh.txt"]:
        (tmp_path / name).write_text(name)
    (tmp_path / ".a.partial-abcdefgi.txt").mkdir()
    (tmp_path / ".a.partial-abcdefgj.txt").symlink_to(tmp_path / "a.txt")
    remove_leftovers(tmp_path, r"a\.txt")
    assert names(tmp_path) == sorted([*others, ".a.partial-abcdefgi.txt", ".a.partial-abcdefgj.txt"])


def test_an_error_keeps_the_old_file_and_leaves_no_leftover(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half():
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert names(tmp_path) == ["a.txt"]
    assert path.read_text() == "old"


def test_the_file_is_synced_before_the_rename_and_the_folder_after(tmp_path, monkeypatch):
    path, syncs = tmp_path / "a.txt", []
    original_fsync = os.fsync

    def fsync(handle):
        status = os.fstat(handle)
        syncs.append(("folder" if stat.S_ISDIR(status.st_mode) else "file", status.st_size, path.exists()))
        original_fsync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with whole_file(path) as temporary:
        temporary.write_bytes(b"x" * 77)
    assert [(kind, exists) for kind, _, exists in syncs] == [("file", False), ("folder", True)]
    assert syncs[0][1] == 77


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists them")
def test_file_handles_are_closed(tmp_path):
    before = len(names(Path("/proc/self/fd")))
    for _ in range(5):
        with whole_file(tmp_path / "a") as temporary:
            temporary.write_text("x")
        remove_leftovers(tmp_path, ".*")
    assert len(names(Path("/proc/self/fd"))) == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists them")
def test_a_temporary_file_that_cannot_be_removed_hides_no_result_and_no_error(tmp_path, monkeypatch):
    def unlink(path, **options):
        raise PermissionError(errno.EPERM, "no unlink")

    before = len(names(Path("/proc/self/fd")))
    monkeypatch.setattr(Path, "unlink", unlink)
    with whole_file(tmp_path / "a") as temporary:
        temporary.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
    with pytest.raises(KeyError), whole_file(tmp_path / "a"):
        raise KeyError
    with pytest.raises(FileError, match="no unlink"):
        check_writable(tmp_path / "a")
    assert len(names(Path("/proc/self/fd"))) == before


def test_a_temporary_file_removed_before_locking_is_created_again(tmp_path, monkeypatch):
    import supremum.atomic_files

    original_flock, removed = supremum.atomic_files.flock, []

    def flock(handle, operation):
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        original_flock(handle, operation)

    monkeypatch.setattr(supremum.atomic_files, "flock", flock)
    with whole_file(tmp_path / "a.txt") as temporary:
        temporary.write_text("whole")
        remove_leftovers(tmp_path, ".*")
        assert temporary.exists()
    assert removed
    assert names(tmp_path) == ["a.txt"]


def test_files_have_the_default_permissions(tmp_path):
    (tmp_path / "plain").write_text("")
    with whole_file(tmp_path / "whole"):
        pass
    assert (tmp_path / "plain").stat().st_mode == (tmp_path / "whole").stat().st_mode
