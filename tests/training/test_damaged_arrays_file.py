"""A file that is damaged, foreign or missing is refused by name; nothing of it is loaded."""

import errno
import functools
import json
import os
import pickle
import tempfile
import threading
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from supremum.errors import SupremumError
from supremum.training.checkpoints import CheckpointError, MissingCheckpointError, arrays_file, load_arrays, save_arrays
from supremum.training.checkpoints.arrays_record import VERSION
from training.bits import assert_same


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arrays.safetensors"


@functools.cache
def small():
    """The bytes of a small file, and what is in it."""
    arrays = {
        "w": np.arange(3, dtype=np.float32),
        "b": np.array([1, -2], ml_dtypes.bfloat16),
        "n": np.array(7, np.int8),
    }
    with tempfile.TemporaryDirectory() as folder:
        save_arrays(f"{folder}/a", arrays, {"k": "v"})
        return Path(f"{folder}/a").read_bytes(), arrays


def refusal(path, data):
    """What loading these bytes says against them; None where they load as what was written."""
    path.write_bytes(data)
    try:
        found, metadata = load_arrays(path)
    except CheckpointError as error:
        return str(error)
    assert_same(found, small()[1])
    assert metadata == {"k": "v"}
    return None


def test_a_file_cut_short_anywhere_is_refused(path):
    data, _ = small()
    assert refusal(path, data) is None
    assert all(refusal(path, data[:length]) for length in range(len(data)))
    assert "empty" in refusal(path, b"")


@pytest.mark.slow
def test_a_flipped_bit_anywhere_is_found(path):
    data, _ = small()
    flipped = [(place, bytes([data[place] ^ 1 << bit])) for place in range(len(data)) for bit in range(8)]
    refusals = {(place, byte): refusal(path, data[:place] + byte + data[place + 1 :]) for place, byte in flipped}
    assert all(str(path) in words for words in refusals.values() if words)
    assert [place for place, words in refusals.items() if words is None] == []


@pytest.mark.parametrize("fill", [0, 255])
def test_a_block_that_was_never_written_is_found(path, fill):
    data, _ = small()
    for size in (4, 64):
        for place in range(0, len(data) - size, 7):
            broken = data[:place] + bytes([fill]) * size + data[place + size :]
            assert broken == data or refusal(path, broken), place


def test_bytes_too_many_are_refused(path):
    data, _ = small()
    for broken in (data + b"\0", b"\0" + data, data + data, data[:8] + b" " + data[8:]):
        assert refusal(path, broken)


def test_arrays_that_changed_places_are_found(path):
    save_arrays(path, {"a": np.zeros(4), "b": np.ones(4)})
    data = path.read_bytes()
    path.write_bytes(data[:-64] + data[-32:] + data[-64:-32])
    with pytest.raises(CheckpointError, match="'a' do not match their checksum"):
        load_arrays(path)


def rewritten(path, arrays, entry):
    """A safetensors file with another record."""
    path.write_bytes(
        safetensors.numpy.save(arrays, {"supremum": entry if isinstance(entry, str) else json.dumps(entry)})
    )


def entry_of(content, version=VERSION):
    return {"version": version, "crc32": zlib.crc32(json.dumps(content).encode()), "content": content}


def test_a_newer_version_is_refused_with_what_helps(path):
    rewritten(path, {}, {"version": VERSION + 1, "layout": "unheard of"})
    with pytest.raises(CheckpointError, match=f"version {VERSION + 1}, .* up to {VERSION}; pip install -U supremum"):
        load_arrays(path)


ROW = {"format": "float64", "shape": [2], "crc32": zlib.crc32(np.zeros(2))}
NONSENSE = [
    "",
    "not json",
    "[" * 100_000,
    "null",
    "{}",
    [],
    {"version": "1"},
    {"version": None},
    {"version": 1},
    entry_of({"arrays": {}, "metadata": {}}, version=0),
    entry_of(None),
    entry_of([]),
    entry_of({}),
    entry_of({"arrays": [], "metadata": {}}),
    entry_of({"arrays": {"a": None}, "metadata": {}}),
    entry_of({"arrays": {"a": {}}, "metadata": {}}),
    entry_of({"arrays": {"a": ROW}}),
    entry_of({"arrays": {"a": ROW | {"format": "float65"}}, "metadata": {}}),
    entry_of({"arrays": {"a": ROW | {"format": "bfloat16"}}, "metadata": {}}),
    entry_of({"arrays": {"a": ROW | {"shape": [3]}}, "metadata": {}}),
    entry_of({"arrays": {"a": ROW | {"shape": 2}}, "metadata": {}}),
    entry_of({"arrays": {"a": ROW | {"key": "unheard of"}}, "metadata": {}}),
    entry_of({"arrays": {"a": ROW | {"key": "threefry2x32"}}, "metadata": {}}),
    entry_of({"arrays": {}, "metadata": {}}),
    entry_of({"arrays": {"b": ROW}, "metadata": {}}),
]


@pytest.mark.parametrize("entry", NONSENSE, ids=range(len(NONSENSE)))
def test_a_record_without_sense_is_refused(path, entry):
    rewritten(path, {"a": np.zeros(2)}, entry)
    with pytest.raises(CheckpointError, match="is damaged"):
        load_arrays(path)


def test_the_record_above_is_what_is_wrong(path):
    rewritten(path, {"a": np.zeros(2)}, entry_of({"arrays": {"a": ROW}, "metadata": {}}))
    assert_same(load_arrays(path)[0], {"a": np.zeros(2)})


def test_a_tensor_whose_dtype_numpy_lacks_is_refused(path):
    rewritten(path, {"a": np.zeros(2, ml_dtypes.float8_e5m2)}, entry_of({"arrays": {"a": ROW}, "metadata": {}}))
    with pytest.raises(CheckpointError, match="is damaged"):
        load_arrays(path)


def test_files_of_others_are_refused_and_the_fix_reads_them(path):
    arrays = {"a": np.arange(3.0)}
    safetensors.numpy.save_file(arrays, path)
    with pytest.raises(CheckpointError, match="not by supremum") as caught:
        load_arrays(path)
    fix = str(caught.value).partition("by supremum; ")[2].partition(" reads it")[0]
    assert_same(eval(fix, {"safetensors": safetensors}), arrays)
    path.write_bytes(pickle.dumps(arrays))
    with pytest.raises(CheckpointError, match="not a complete safetensors file"):
        load_arrays(path)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(CheckpointError, match="not a complete safetensors file"):
        load_arrays(path)


def test_a_pickle_is_never_run(path, tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "owned",))

    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(CheckpointError):
        load_arrays(path)
    assert not (tmp_path / "owned").exists()


def test_a_missing_file_is_a_file_not_found_error_with_near_names(path):
    save_arrays(path, {})
    with pytest.raises(FileNotFoundError, match=r"did you mean '.*/arrays\.safetensors'") as caught:
        load_arrays(path.with_name("arays.safetensors"))
    assert isinstance(caught.value, MissingCheckpointError)
    assert isinstance(caught.value, SupremumError)
    assert caught.value.errno == errno.ENOENT
    assert caught.value.filename == str(path.with_name("arays.safetensors"))
    with pytest.raises(MissingCheckpointError, match=r"there is no such file$"):
        load_arrays(path.parent / "nowhere/at/all")


def test_folders_are_refused_and_pipes_are_written_to(path, tmp_path):
    os.mkfifo(path)
    for place, words in [(tmp_path, "is a folder"), (path, "not a regular file")]:
        with pytest.raises(CheckpointError, match=words):
            load_arrays(place)
    with pytest.raises(CheckpointError, match="Is a directory"):
        save_arrays(tmp_path, {})
    data, arrays = small()
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    save_arrays(path, arrays, {"k": "v"})
    reader.join(10)
    assert path.is_fifo()
    assert read == [data]


def test_the_bytes_that_are_checked_are_those_that_are_given(path, monkeypatch):
    """The checksum is of what is stored: without it a flipped bit in the data would pass."""
    save_arrays(path, {"a": np.zeros(4)})
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"\1")
    with pytest.raises(CheckpointError, match="checksum"):
        load_arrays(path)
    monkeypatch.setattr(arrays_file.zlib, "crc32", lambda data: 0)
    save_arrays(path, {"a": np.zeros(4)})
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"\1")
    assert load_arrays(path)[0]["a"].tobytes() == bytes(31) + b"\1"
