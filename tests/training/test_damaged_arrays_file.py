"""A damaged, foreign or missing file raises an error that names it, and none of its arrays are loaded."""

import errno
import functools
import itertools
import os
import pickle
import tempfile
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from slowly import mostly_slow
from supremum.errors import SupremumError
from supremum.training.checkpoints import CheckpointError, MissingCheckpointError, load_arrays, save_arrays
from training.bits import assert_same


@functools.cache
def small_file():
    """Return the bytes of a small file, and the arrays in it."""
    arrays = {
        "w": np.arange(3, dtype=np.float32),
        "b": np.array([1, -2], ml_dtypes.bfloat16),
        "n": np.array(7, np.int8),
    }
    with tempfile.TemporaryDirectory() as folder:
        save_arrays(f"{folder}/a", arrays, {"k": "v"})
        return Path(f"{folder}/a").read_bytes(), arrays


def load_error(path, data):
    """Return the error message from loading these bytes; None if they load as the arrays of `small_file`."""
    path.write_bytes(data)
    try:
        found, metadata = load_arrays(path)
    except CheckpointError as error:
        return str(error)
    assert_same(found, small_file()[1])
    assert metadata == {"k": "v"}
    return None


def flipped(data):
    for place in range(8 * len(data)):
        yield data[: place // 8] + bytes([data[place // 8] ^ 1 << place % 8]) + data[place // 8 + 1 :]


def overwritten(data):
    for size, fill in itertools.product((4, 64), (b"\0", b"\xff")):
        for start in range(0, len(data) - size, 7):
            yield data[:start] + size * fill + data[start + size :]


DAMAGES = {
    "cut": lambda data: [data[:length] for length in range(len(data))],
    "longer": lambda data: [data + b"\0", b"\0" + data, data + data, data[:8] + b" " + data[8:]],
    "flipped": flipped,
    "overwritten": overwritten,
}


@pytest.mark.parametrize("damage", mostly_slow(DAMAGES, "longer", "overwritten"))
def test_a_damaged_file_raises(path, damage):
    data, _ = small_file()
    assert load_error(path, data) is None
    for number, broken in enumerate(DAMAGES[damage](data)):
        assert broken == data or str(path) in load_error(path, broken), number
    assert "empty" in load_error(path, b"")


def test_swapped_arrays_raise(path):
    save_arrays(path, {"a": np.zeros(4), "b": np.ones(4)})
    data = path.read_bytes()
    path.write_bytes(data[:-64] + data[-32:] + data[-64:-32])
    with pytest.raises(CheckpointError, match="'a' do not match their checksum"):
        load_arrays(path)


def test_foreign_file_raises_and_the_suggested_fix_reads_it(path):
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


def test_pickle_is_never_executed(path, tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "owned",))

    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(CheckpointError):
        load_arrays(path)
    assert not (tmp_path / "owned").exists()


def test_missing_file_raises_file_not_found_error_with_similar_names(path):
    save_arrays(path, {})
    with pytest.raises(FileNotFoundError, match=r"did you mean '.*/arrays\.safetensors'") as caught:
        load_arrays(path.with_name("arays.safetensors"))
    assert isinstance(caught.value, MissingCheckpointError)
    assert isinstance(caught.value, SupremumError)
    assert caught.value.errno == errno.ENOENT
    assert caught.value.filename == str(path.with_name("arays.safetensors"))
    with pytest.raises(MissingCheckpointError, match=r"there is no such file$"):
        load_arrays(path.parent / "nowhere/at/all")


def test_folders_raise_and_named_pipes_can_only_be_written_to(path, tmp_path):
    os.mkfifo(path)
    for path_to_read, message in [(tmp_path, "is a folder"), (path, "not a regular file")]:
        with pytest.raises(CheckpointError, match=message):
            load_arrays(path_to_read)
    with pytest.raises(CheckpointError, match="Is a directory"):
        save_arrays(tmp_path, {})
    data, arrays = small_file()
    received = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()
    save_arrays(path, arrays, {"k": "v"})
    reader.join(10)
    assert path.is_fifo()
    assert received == [data]
