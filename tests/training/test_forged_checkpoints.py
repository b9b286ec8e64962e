"""Checkpoints with a valid checksum but invalid content: loading raises and leaves the model unchanged."""

import json
import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from supremum import nn
from supremum.optimizers import Adam
from supremum.training import Checkpoint, CheckpointError, MismatchError, Sequential, load_arrays, save_arrays
from supremum.training.checkpoints.record import ENTRY, VERSION, checksum, describe, sign
from training.blobs import equal, values


def forge(path, change, arrays=None):
    """Change the record of a file and update its checksum."""
    with safe_open(path, "numpy") as tensors:
        entry = json.loads(tensors.metadata()[ENTRY].partition(" ")[2])
        found = {name: tensors.get_tensor(name) for name in list(tensors.keys())} | (arrays or {})
    changed = change(entry)
    entry = entry if changed is None else changed
    save_file(found, path, {ENTRY: sign(entry if isinstance(entry, str) else json.dumps(entry))})


def with_row(**parts):
    return lambda entry: entry["arrays"]["a"].update(parts)


def with_text(name, text):
    return lambda entry: entry["metadata"].update({name: text})


def test_newer_version_raises_and_suggests_an_upgrade(path):
    save_arrays(path, {"a": np.ones(2)})
    forge(path, lambda entry: {"version": VERSION + 1, "layout": "unheard of"})
    with pytest.raises(CheckpointError, match=f"version {VERSION + 1}, .* up to {VERSION}; pip install -U supremum"):
        load_arrays(path)


@pytest.mark.parametrize(
    "change", [lambda text: "", lambda text: text[9:], lambda text: text.replace("arrays", "arrows")]
)
def test_a_record_without_its_checksum_raises(path, change):
    save_arrays(path, {"a": np.ones(2)})
    with safe_open(path, "numpy") as tensors:
        entry = tensors.metadata()[ENTRY]
    save_file({"a": np.ones(2)}, path, {ENTRY: change(entry)})
    with pytest.raises(CheckpointError, match="its record does not match its checksum"):
        load_arrays(path)


def test_tensor_with_a_dtype_that_numpy_lacks_raises(path):
    save_arrays(path, {"a": np.ones(2)})
    forge(path, lambda entry: None, {"a": np.zeros(2, ml_dtypes.float8_e5m2)})
    with pytest.raises(CheckpointError, match="is damaged"):
        load_arrays(path)


DEEP = "[" * 100_000 + "]" * 100_000
RECORDS = {
    "empty": lambda entry: "",
    "null": lambda entry: "null",
    "a list": lambda entry: "[1]",
    "an empty list": lambda entry: "[]",
    "no entries": lambda entry: "{}",
    "deep": lambda entry: DEEP,
    "never closed": lambda entry: "[" * 100_000,
    "no JSON": lambda entry: "{",
    "version NaN": lambda entry: entry | {"version": math.nan},
    "version null": lambda entry: entry | {"version": None},
    "version true": lambda entry: entry | {"version": True},
    "version a text": lambda entry: entry | {"version": "1"},
    "version 0": lambda entry: entry | {"version": 0},
    "no metadata": lambda entry: entry.pop("metadata") and None,
    "arrays null": lambda entry: entry.update(arrays=None),
    "arrays a list": lambda entry: entry.update(arrays=["a"]),
    "no arrays": lambda entry: entry.update(arrays={}),
    "another array": lambda entry: entry.update(arrays={"b": entry["arrays"]["a"]}),
    "an array too many": lambda entry: entry["arrays"].update(b=entry["arrays"]["a"]),
    "an array too many in a folder": lambda entry: (
        entry["arrays"].update(b=entry["arrays"]["a"]) or entry.update(folder="arrays-1")
    ),
    "metadata null": lambda entry: entry.update(metadata=None),
    "a folder elsewhere": lambda entry: entry.update(folder="/tmp"),
    "a folder above": lambda entry: entry.update(folder="../arrays-1"),
    "folder 1": lambda entry: entry.update(folder=1),
    "metadata of numbers": lambda entry: entry["metadata"].update(x=1),
    "a row null": lambda entry: entry["arrays"].update(a=None),
    "a row without entries": lambda entry: entry["arrays"].update(a={}),
    "no format": lambda entry: entry["arrays"]["a"].pop("format") and None,
    "format 5": with_row(format=5),
    "format of nothing": with_row(format="float9"),
    "another format": with_row(format="bfloat16"),
    "shape null": with_row(shape=None),
    "shape 2": with_row(shape=2),
    "another shape": with_row(shape=[3]),
    "shape of bools": with_row(shape=[True, 2]),
    "shape of texts": with_row(shape=["2"]),
    "shape below 0": with_row(shape=[-2]),
    "shape of floats": with_row(shape=[2.0]),
    "shape of 2**63": with_row(shape=[0, 2**63]),
    "shape beyond all": with_row(shape=[10**30]),
    "key of nothing": with_row(key="nothing"),
    "key of another kind": with_row(key="threefry2x32"),
    "key 5": with_row(key=5),
    "checksum a text": with_row(checksum="0"),
    "checksum of nothing": with_row(checksum=0),
    "something unknown": with_row(more=1),
}  # fmt: skip


@pytest.mark.parametrize("change", RECORDS.values(), ids=RECORDS)
def test_an_invalid_record_raises(path, change):
    save_arrays(path, {"a": np.ones(2, "float32")})
    forge(path, change)
    with pytest.raises(CheckpointError, match="is damaged") as caught:
        load_arrays(path)
    assert len(str(caught.value)) < 1000


def test_an_array_dimension_must_be_less_than_2_to_the_63(path):
    save_arrays(path, {"a": np.empty((0, 2**63 - 1), "int8")})
    assert load_arrays(path)[0]["a"].shape == (0, 2**63 - 1)
    forge(path, with_row(shape=[0, 2**63]))
    with pytest.raises(CheckpointError, match="invalid 'shape'"):
        load_arrays(path)


@pytest.mark.parametrize(
    ("dtype", "bytes_"), [("bool", [0, 5]), ("int4", [3, 0x7F]), ("uint2", [255, 0]), ("float6_e2m3fn", [64, 0])]
)
def test_bytes_that_are_invalid_in_the_format_raise(path, dtype, bytes_):
    held_dtype = np.dtype(dtype if dtype == "bool" else getattr(ml_dtypes, dtype))
    save_arrays(path, {"a": np.ones(2, held_dtype)})
    stored = np.array(bytes_, np.uint8)
    stored = stored.view(bool) if dtype == "bool" else stored[:, None]
    forge(path, with_row(checksum=checksum(stored)), {"a": stored})
    with pytest.raises(CheckpointError, match=f"has bytes that are not valid {dtype}"):
        load_arrays(path)
    # NumPy arrays may contain these bytes; saving writes the number that they stand for.
    save_arrays(path, {"a": np.array(bytes_, np.uint8).view(held_dtype)})
    load_arrays(path)


TEXTS = {
    "step": ["true", "-1", "1.5", '"1"', "null", DEEP, "", str(2**31), str(2**63 - 1), str(10**30)],
    "policy": ["[]", "5", DEEP],
    "optimizer": ["[]", "true", DEEP],
    "extra": [
        "null", "[]", DEEP, '{"epoch": "abc", "seed": 0}', '{"epoch": -5, "seed": 0}', '{"epoch": 1, "seed": "x"}',
        '{"epoch": true, "seed": 0}', '{"epoch": 1.5, "seed": 0}', '{"epoch": 1, "seed": null}', "{}",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    model = Sequential([nn.Dense(2)])
    model.compile(Adam(0.1), "mse")
    x = np.ones((4, 3), "float32")
    model.fit(x, np.ones((4, 2), "float32"), epochs=1, verbose=0)
    path = tmp_path_factory.mktemp("state") / "state.safetensors"
    model.save_state(path)
    return model, path


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_loading_an_invalid_state_raises_and_changes_nothing(trained, path, name, text):
    model, good = trained
    path.write_bytes(good.read_bytes())
    model.fit(np.ones((4, 3), "float32"), np.zeros((4, 2), "float32"), epochs=1, verbose=0)
    before = values(model), dict(model.optimizer.variables)
    forge(path, with_text(name, text))
    with pytest.raises(CheckpointError):
        model.load_state(path)
    assert equal((values(model), dict(model.optimizer.variables)), before)
    assert model.load_state(good) == 1


def test_arrays_with_many_long_names_raise_a_short_message(trained, path):
    model, good = trained
    path.write_bytes(good.read_bytes())
    arrays = {f"model/{number}{'y' * 300}": np.ones(1, "float32") for number in range(60)}
    rows = {name: describe(name, array, by_orbax=False)[0] for name, array in arrays.items()}
    forge(path, lambda entry: entry["arrays"].update(rows), arrays)
    with pytest.raises(MismatchError, match=r"(?s)'0yyy.*\.\.\. and \d\d more") as caught:
        model.load_state(path)
    assert (len(str(caught.value)) < 3000, len(caught.value.problems)) == (True, 60)


def test_a_model_resumes_from_the_largest_int32_step(trained, path):
    model, good = trained
    path.write_bytes(good.read_bytes())
    forge(path, with_text("step", str(2**31 - 1)))
    assert model.load_state(path) == 1
    model.load_state(good)


def test_a_checkpoint_keeps_a_64_bit_step(path):
    Checkpoint({"a": np.ones(2)}, step=2**63 - 1).save(path)
    assert Checkpoint.load(path).step == 2**63 - 1


@pytest.mark.parametrize("key", [jax.random.key(0, impl="rbg"), jax.random.split(jax.random.key(0)), jnp.ones(2)])
def test_loading_a_state_with_an_incompatible_random_key_raises(trained, path, key):
    model, good = trained
    found = Checkpoint.load(good)
    Checkpoint(found.model, found.optimizer, key, found.step, extra=found.extra).save(path)
    with pytest.raises(CheckpointError, match="random key"):
        model.load_state(path)
