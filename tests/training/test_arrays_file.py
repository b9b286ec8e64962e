"""A file of arrays gives back every bit of every format, or is refused by name."""

import errno
import functools
import json
import os
import pickle
import resource
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from supremum.errors import ArgumentError, OperandError, SupremumError
from supremum.formats import FORMATS, as_format
from supremum.training import arrays_file
from supremum.training.arrays_file import VERSION, load_arrays, save_arrays
from supremum.training.checkpoint_errors import CheckpointError, CheckpointFileError, MissingCheckpointError

IMPLEMENTATIONS = ("threefry2x32", "rbg", "unsafe_rbg")


def any_bits(row, shape, random):
    """An array of any bit patterns, NaNs with payloads among them; True and False are the only bits of a bool."""
    size = int(np.prod(shape)) * row.dtype.itemsize
    pattern = random.integers(0, 2 if row.category == "bool" else 256, size, np.uint8)
    return pattern.view(row.dtype).reshape(shape)


def same(a, b):
    """Whether two arrays, or keys, are the same in every bit."""
    if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        return a.dtype == b.dtype and same(jax.random.key_data(a), jax.random.key_data(b))
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert same(found[name], array), name


def names(folder):
    return [file.name for file in folder.iterdir()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arrays.safetensors"


# Round trips


@pytest.mark.parametrize("row", FORMATS, ids=str)
def test_every_bit_pattern_of_every_format_comes_back(path, row):
    random = np.random.default_rng(0)
    patterns = any_bits(row, (1 << min(row.bits, 12),), random)
    if row.bits == 8 or (row.bits < 8 and row.category != "bool"):
        patterns = np.arange(256).astype(np.uint8).view(row.dtype)
    arrays = {str(shape): any_bits(row, shape, random) for shape in [(), (0,), (3,), (2, 0, 3), (2, 3, 4)]}
    arrays["patterns"] = patterns
    save_arrays(path, arrays)
    found, metadata = load_arrays(path)
    assert_same(found, arrays)
    assert metadata == {}
    assert all(array.flags.writeable for array in found.values())


def test_payloads_of_nan_come_back(path):
    quiet = np.array([0x7FC12345, 0xFFC00001, 0x7F800001], np.uint32).view(np.float32)
    save_arrays(path, {"nan": quiet, "jax": jnp.asarray(quiet)})
    assert load_arrays(path)[0]["nan"].view(np.uint32).tolist() == [0x7FC12345, 0xFFC00001, 0x7F800001]
    assert load_arrays(path)[0]["jax"].view(np.uint32).tolist() == [0x7FC12345, 0xFFC00001, 0x7F800001]


def test_arrays_of_jax_come_back_as_arrays_of_numpy(path):
    names = ["bool", "int4", "uint8", "int32", "bfloat16", "float8_e4m3fn", "float16", "float32", "complex64"]
    arrays = {name: jnp.asarray(np.array([0, 1, 1]).astype(as_format(name).dtype)) for name in names}
    save_arrays(path, arrays)
    found, _ = load_arrays(path)
    assert_same(found, arrays)
    assert all(type(array) is np.ndarray for array in found.values())


def test_keys_come_back_as_keys(path):
    keys = {name: jax.random.key(7, impl=name) for name in IMPLEMENTATIONS}
    keys["many"] = jax.random.split(keys["threefry2x32"], (2, 3))
    keys["raw"] = jax.random.key_data(keys["rbg"])
    save_arrays(path, keys)
    found, _ = load_arrays(path)
    assert_same(found, keys)
    assert found["many"].shape == (2, 3)
    assert type(found["raw"]) is np.ndarray
    for name in IMPLEMENTATIONS:
        assert np.array_equal(jax.random.normal(found[name]), jax.random.normal(keys[name]))


def test_layout_and_byte_order_make_no_difference(path, tmp_path):
    plain = np.arange(24, dtype=np.float32).reshape(4, 6)
    mapped = np.memmap(tmp_path / "mapped", np.float32, "w+", shape=(4, 6))
    mapped[:] = plain
    arrays = {
        "transposed": np.ascontiguousarray(plain.T).T,
        "fortran": np.asfortranarray(plain),
        "strided": np.repeat(np.repeat(plain, 2, 0), 3, 1)[::2, ::3],
        "reversed": plain[::-1][::-1],
        "swapped": plain.astype(">f4"),
        "mapped": mapped,
    }
    save_arrays(path, arrays | {"broadcast": np.broadcast_to(np.float32(3), (4, 6)), "scalar": np.float16(2)})
    found, _ = load_arrays(path)
    for name in arrays:
        assert same(found[name], plain), name
    assert same(found["broadcast"], np.full((4, 6), 3, np.float32))
    assert same(found["scalar"], np.array(2, np.float16))


def test_other_readers_find_the_arrays(path):
    arrays = {"a/b": np.arange(6.0).reshape(2, 3), "c": np.array([True, False]), "d": np.array(3, np.int16)}
    save_arrays(path, arrays | {"bytes": np.array([1, 2], ml_dtypes.bfloat16)}, {"k": "v"})
    found = safetensors.numpy.load_file(path)
    for name, array in arrays.items():
        assert same(found[name], array), name
    assert found["bytes"].tolist() == [128, 63, 0, 64]
    with safetensors.safe_open(path, "numpy") as file:
        assert json.loads(file.metadata()["supremum"])["content"]["metadata"] == {"k": "v"}


def test_the_same_arrays_make_the_same_file(tmp_path):
    arrays = {"b": np.arange(3.0), "a": np.arange(2)}
    for name in ("first", "second"):
        save_arrays(tmp_path / name, arrays, {"x": "1", "y": "2", "z": "3"})
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_nothing_at_all_can_be_saved(path):
    save_arrays(path, {})
    assert load_arrays(path) == ({}, {})


def test_the_home_folder_and_new_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    save_arrays("~/new/folder/a.safetensors", {"a": np.ones(1)})
    assert (tmp_path / "new/folder/a.safetensors").is_file()
    assert_same(load_arrays("~/new/folder/a.safetensors")[0], {"a": np.ones(1)})


NAMES = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["", "__metadata__", "__metadata___", "__metadata____", "supremum", "x" * 100_000, "\0", "a/b", '"']
    ),
)
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(NAMES, st.tuples(st.sampled_from(FORMATS), SHAPES), max_size=6),
    st.dictionaries(NAMES, st.text(max_size=20), max_size=4),
    st.integers(0, 2**32),
)
def test_any_names_shapes_formats_and_texts_come_back(arrays, metadata, seed):
    random = np.random.default_rng(seed)
    arrays = {name: any_bits(row, shape, random) for name, (row, shape) in arrays.items()}
    with tempfile.TemporaryDirectory() as folder:
        save_arrays(f"{folder}/a", arrays, metadata)
        found, texts = load_arrays(f"{folder}/a")
    assert_same(found, arrays)
    assert texts == metadata
    assert list(texts) == list(metadata)


# What is refused when it is saved


def donated():
    array = jnp.ones(3)
    array.delete()
    return array


def test_what_is_no_array_is_refused_by_name_and_the_old_file_stays(path):
    save_arrays(path, {"a": np.ones(2)})
    before = path.read_bytes()
    refused = [
        ([1.0, 2.0], OperandError, r"np\.asarray\(x, 'float32'\)"),
        (1.0, OperandError, "float"),
        (None, OperandError, "NoneType"),
        (np.array(["text"]), OperandError, "no number format"),
        (np.array([object()]), OperandError, "no number format"),
        (np.array(["2020-01-01"], "M8[D]"), OperandError, "no number format"),
        (np.array([(1, 2.0)], [("x", "i4"), ("y", "f4")]), OperandError, "no number format"),
        (np.ma.masked_array([1.0], [True]), OperandError, "MaskedArray"),
        (donated(), ArgumentError, "donated"),
    ]
    for value, error, message in refused:
        with pytest.raises(error, match=message) as caught:
            save_arrays(path, {"good": np.ones(2), "the bad": value})
        assert "'the bad'" in str(caught.value)
    for name, error in [(1, OperandError), (None, OperandError), ("\ud800", ArgumentError)]:
        with pytest.raises(error, match="no name for an array"):
            save_arrays(path, {name: np.ones(2)})
    for metadata in [{"k": 1}, {1: "v"}, {"k": None}]:
        with pytest.raises(OperandError, match=r"json\.dumps"):
            save_arrays(path, {}, metadata)
    assert names(path.parent) == [path.name]
    assert path.read_bytes() == before


def test_a_traced_array_is_refused(path):
    @jax.jit
    def function(x):
        save_arrays(path, {"x": x})

    with pytest.raises(OperandError, match=r"'x' is being traced .* outside of jax\.jit"):
        function(1.0)
    assert names(path.parent) == []


def test_a_header_that_safetensors_could_not_read_is_not_written(path):
    with pytest.raises(ArgumentError, match="header"):
        save_arrays(path, {}, {"k": "x" * 100_000_001})
    assert names(path.parent) == []


# What is refused when it is loaded


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
    with pytest.raises(CheckpointError, match="'a' do not have their checksum"):
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
    with pytest.raises(CheckpointError, match=f"version {VERSION + 1}, .* up to {VERSION}: pip install -U supremum"):
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
    with pytest.raises(CheckpointError, match="not written by supremum") as caught:
        load_arrays(path)
    fix = str(caught.value).partition("program: ")[2].partition(" reads it")[0]
    assert_same(eval(fix, {"safetensors": safetensors}), arrays)
    path.write_bytes(pickle.dumps(arrays))
    with pytest.raises(CheckpointError, match="no whole safetensors file"):
        load_arrays(path)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(CheckpointError, match="no whole safetensors file"):
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


def test_folders_and_pipes_are_refused(path, tmp_path):
    os.mkfifo(path)
    for place, words in [(tmp_path, "is a folder"), (path, "no regular file")]:
        with pytest.raises(CheckpointError, match=words):
            load_arrays(place)
        with pytest.raises(CheckpointError, match=words):
            save_arrays(place, {})
    assert path.is_fifo()


# File systems that refuse


@contextmanager
def largest_file(size):
    """A time in which no file can be larger, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_changes_nothing(path):
    save_arrays(path, {"a": np.ones(2)})
    before = path.read_bytes()
    for size in (0, 1, 1000):
        with largest_file(size), pytest.raises(CheckpointFileError, match="make room") as caught:
            save_arrays(path, {"a": np.ones(1000)})
        assert caught.value.errno == errno.EFBIG
        assert str(path) in str(caught.value)
        assert names(path.parent) == [path.name]
        assert path.read_bytes() == before
    save_arrays(path, {"a": np.ones(1000)})


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_any_call_that_fails_changes_nothing(path, monkeypatch, call):
    save_arrays(path, {"a": np.ones(2)})
    before = path.read_bytes()

    def fail(*args):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(*((os, "fsync", fail) if call == "fsync" else (Path, "replace", fail)))
    with pytest.raises(CheckpointFileError, match=r"cannot be written: Input/output error$"):
        save_arrays(path, {"a": np.ones(3)})
    assert names(path.parent) == [path.name]
    assert path.read_bytes() == before


@contextmanager
def somebody():
    """A time in which we are not root, whom nothing is forbidden."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def test_a_folder_or_file_without_permission(open_folder):
    path = open_folder / "a.safetensors"
    save_arrays(path, {"a": np.ones(2)})
    before = path.read_bytes()
    path.chmod(0o000)
    open_folder.chmod(0o555)
    with somebody():
        with pytest.raises(CheckpointFileError, match="in a folder that you may write to") as caught:
            save_arrays(path, {"a": np.ones(3)})
        assert caught.value.errno == errno.EACCES
        with pytest.raises(CheckpointFileError, match="chmod u\\+r"):
            load_arrays(path)
    path.chmod(0o644)
    assert path.read_bytes() == before


def test_a_file_where_the_folder_should_be(path):
    path.write_text("a file")
    for place in (path / "a.safetensors", path / "deeper/a.safetensors"):
        with pytest.raises(CheckpointFileError, match="cannot be made a folder"):
            save_arrays(place, {})
        with pytest.raises(CheckpointFileError):
            load_arrays(place)
    with pytest.raises(CheckpointFileError, match="shorter name"):
        save_arrays(path.with_name("x" * 300), {})
    assert path.read_text() == "a file"


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
