"""Arrays of every format round-trip through a file bit for bit; unsupported values raise."""

import errno
import json
import os
import resource
import tempfile
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

from supremum.errors import ArgumentError, OperandError
from supremum.formats import FORMATS, as_format
from supremum.training.checkpoints import CheckpointFileError, load_arrays, save_arrays
from training.bits import any_bits, assert_same, file_names, same

IMPLEMENTATIONS = ("threefry2x32", "rbg", "unsafe_rbg")


# Round trips


@pytest.mark.parametrize("row", FORMATS, ids=str)
def test_every_bit_pattern_of_every_format_round_trips(path, row):
    random = np.random.default_rng(0)
    patterns = any_bits(row, (1 << min(row.bits, 12),), random)
    if row.bits <= 8:
        patterns = np.arange(1 << row.bits).astype(np.uint8).view(row.dtype)
    arrays = {str(shape): any_bits(row, shape, random) for shape in [(), (0,), (3,), (2, 0, 3), (2, 3, 4)]}
    arrays["patterns"] = patterns
    save_arrays(path, arrays)
    found, metadata = load_arrays(path)
    assert_same(found, arrays)
    assert metadata == {}
    assert all(array.flags.writeable for array in found.values())


def test_jax_arrays_load_as_numpy_arrays(path):
    formats = ["bool", "int4", "uint8", "int32", "bfloat16", "float8_e4m3fn", "float16", "float32", "complex64"]
    arrays = {name: jnp.asarray(np.array([0, 1, 1]).astype(as_format(name).dtype)) for name in formats}
    arrays["nan payloads"] = jnp.asarray(np.array([0x7FC12345, 0xFFC00001, 0x7F800001], np.uint32).view(np.float32))
    save_arrays(path, arrays)
    found, _ = load_arrays(path)
    assert_same(found, arrays)
    assert all(type(array) is np.ndarray for array in found.values())


def test_prng_keys_load_as_keys(path):
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


def test_memory_layout_and_byte_order_do_not_change_loaded_values(path, tmp_path):
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


def test_safetensors_reads_the_file(path):
    arrays = {"a/b": np.arange(6.0).reshape(2, 3), "c": np.array([True, False]), "d": np.array(3, np.int16)}
    save_arrays(path, arrays | {"bytes": np.array([1, 2], ml_dtypes.bfloat16)}, {"k": "v"})
    found = safetensors.numpy.load_file(path)
    for name, array in arrays.items():
        assert same(found[name], array), name
    assert found["bytes"].tolist() == [[128, 63], [0, 64]]
    with safetensors.safe_open(path, "numpy") as file:
        assert json.loads(file.metadata()["supremum"].partition(" ")[2])["metadata"] == {"k": "v"}


def test_saving_the_same_arrays_writes_the_same_bytes(tmp_path):
    arrays = {"b": np.arange(3.0), "a": np.arange(2)}
    for name in ("first", "second"):
        save_arrays(tmp_path / name, arrays, {"x": "1", "y": "2", "z": "3"})
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    save_arrays(tmp_path / "first", {})
    assert load_arrays(tmp_path / "first") == ({}, {})


def test_save_arrays_expands_home_and_creates_folders(tmp_path, monkeypatch):
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


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(NAMES, st.tuples(st.sampled_from(FORMATS), SHAPES), max_size=6),
    st.dictionaries(NAMES, st.text(max_size=20), max_size=4),
    st.integers(0, 2**32),
)
def test_any_names_shapes_formats_and_metadata_round_trip(arrays, metadata, seed):
    random = np.random.default_rng(seed)
    arrays = {name: any_bits(row, shape, random) for name, (row, shape) in arrays.items()}
    with tempfile.TemporaryDirectory() as folder:
        save_arrays(f"{folder}/a", arrays, metadata)
        found, loaded_metadata = load_arrays(f"{folder}/a")
    assert list(found) == list(arrays)
    assert [name for name, array in arrays.items() if not same(found[name], array)] == []  # there may be no arrays
    assert loaded_metadata == metadata
    assert list(loaded_metadata) == list(metadata)


# Values that cannot be saved


def donated_array():
    array = jnp.ones(3)
    array.delete()
    return array


def test_unsupported_value_raises_and_keeps_the_old_file(path):
    save_arrays(path, {"a": np.ones(2)})
    before = path.read_bytes()
    cases = [
        ([1.0, 2.0], OperandError, r"np\.asarray\(x, 'float32'\)"),
        (1.0, OperandError, "float"),
        (None, OperandError, "NoneType"),
        (np.array(["text"]), OperandError, "must be an array of numbers"),
        (np.array([object()]), OperandError, "must be an array of numbers"),
        (np.array(["2020-01-01"], "M8[D]"), OperandError, "must be an array of numbers"),
        (np.array([(1, 2.0)], [("x", "i4"), ("y", "f4")]), OperandError, "must be an array of numbers"),
        (np.ma.masked_array([1.0], [True]), OperandError, "MaskedArray"),
        (donated_array(), ArgumentError, "donated"),
    ]
    for value, error, message in cases:
        with pytest.raises(error, match=message) as caught:
            save_arrays(path, {"good": np.ones(2), "the bad": value})
        assert "'the bad'" in str(caught.value)
    for name, error in [(1, OperandError), (None, OperandError), ("\ud800", ArgumentError)]:
        with pytest.raises(error, match="the name of an array must be"):
            save_arrays(path, {name: np.ones(2)})
    for metadata in [{"k": 1}, {1: "v"}, {"k": None}]:
        with pytest.raises(OperandError, match=r"json\.dumps"):
            save_arrays(path, {}, metadata)
    assert file_names(path.parent) == [path.name]
    assert path.read_bytes() == before


def test_traced_array_raises(path):
    @jax.jit
    def function(x):
        save_arrays(path, {"x": x})

    with pytest.raises(OperandError, match=r"'x' is being traced .* outside of jax\.jit"):
        function(1.0)
    assert file_names(path.parent) == []


@pytest.mark.slow
def test_header_too_long_for_safetensors_raises(path):
    with pytest.raises(ArgumentError, match="header"):
        save_arrays(path, {}, {"k": "x" * 100_000_001})
    assert file_names(path.parent) == []


# File system errors


@contextmanager
def limited_file_size(size):
    """Limit the size of written files, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_full_disk_keeps_the_old_file(path):
    save_arrays(path, {"a": np.ones(2)})
    before = path.read_bytes()
    for size in (0, 1, 1000):
        with limited_file_size(size), pytest.raises(CheckpointFileError, match="make room") as caught:
            save_arrays(path, {"a": np.ones(1000)})
        assert caught.value.errno == errno.EFBIG
        assert str(path) in str(caught.value)
        assert file_names(path.parent) == [path.name]
        assert path.read_bytes() == before
    save_arrays(path, {"a": np.ones(1000)})


@contextmanager
def unprivileged_user():
    """Drop root's privileges if the tests run as root, because root ignores file permissions."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def readable_folder():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def test_missing_permission_raises(readable_folder):
    path = readable_folder / "a.safetensors"
    save_arrays(path, {"a": np.ones(2)})
    before = path.read_bytes()
    path.chmod(0o000)
    readable_folder.chmod(0o555)
    with unprivileged_user():
        with pytest.raises(CheckpointFileError, match="in a folder that you may write to") as caught:
            save_arrays(path, {"a": np.ones(3)})
        assert caught.value.errno == errno.EACCES
        with pytest.raises(CheckpointFileError, match="chmod u\\+r"):
            load_arrays(path)
    path.chmod(0o644)
    assert path.read_bytes() == before


def test_file_in_place_of_a_folder_raises(path):
    path.write_text("a file")
    for place in (path / "a.safetensors", path / "deeper/a.safetensors"):
        with pytest.raises(CheckpointFileError, match="cannot be made a folder"):
            save_arrays(place, {})
        with pytest.raises(CheckpointFileError):
            load_arrays(place)
    with pytest.raises(CheckpointFileError, match="shorter name"):
        save_arrays(path.with_name("x" * 300), {})
    assert path.read_text() == "a file"
