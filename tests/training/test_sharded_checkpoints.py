"""A training state sharded over devices is saved in parts and loads onto any number of devices."""

import gc
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint
import pytest

from supremum.errors import ArgumentError, UnknownNameError
from supremum.formats import FORMATS, as_format
from supremum.training import (
    Checkpoint,
    CheckpointError,
    CheckpointFileError,
    MismatchError,
    MissingCheckpointError,
    ModelCheckpoint,
    load_arrays,
    save_arrays,
)
from training.bits import any_bits, assert_same, file_names, same
from training.spread import X, Y, compiled, mesh_of, put_on, spread, state_of

pytestmark = pytest.mark.slow

NARROW_FORMATS = {
    name: as_format(name) for name in ("int2", "int4", "uint4", "float4_e2m1fn", "float8_e4m3", "float8_e5m2")
}
TRAIN = {"batch_size": 32, "verbose": 0, "shuffle": False}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model on eight devices after one epoch, and a folder with its state in orbax and single-file form."""
    model = put_on(compiled(), 8)
    model.fit(X, Y, epochs=1, **TRAIN)
    at = tmp_path_factory.mktemp("trained")
    model.save_state(at / "folder", format="orbax")
    model.save_state(at / "file")
    return model, at


def shardings_of(model):
    return {name: value.sharding for name, value in state_of(model).items()}


# Loading onto devices


@pytest.mark.one_in(8)
@pytest.mark.parametrize("kind", ["folder", "file"])
@pytest.mark.parametrize("devices", [8, 4, 2, 1])
def test_a_state_saved_on_eight_devices_loads_onto_fewer(trained, devices, kind):
    model, at = trained
    other = put_on(compiled(seed=1), devices)
    before = shardings_of(other)
    assert len(before["dense/kernel"].device_set) == devices
    assert other.load_state(at / kind) == 1
    assert_same(state_of(other), state_of(model))
    assert shardings_of(other) == before
    assert all(value.committed for value in state_of(other).values())


def test_a_sharded_state_loads_into_a_model_without_a_sharding(trained):
    model, at = trained
    other = compiled(seed=1)
    other.load_state(at / "folder")
    assert_same(state_of(other), state_of(model))
    assert not other.variables["dense/kernel"].read_stored().committed


def test_orbax_restores_directly_into_the_shardings_of_the_model(trained, monkeypatch):
    wanted = {}
    read = orbax.checkpoint.PyTreeCheckpointHandler.restore

    def record_restore_args(self, folder, args):
        wanted.update(args.restore_args)
        return read(self, folder, args=args)

    monkeypatch.setattr(orbax.checkpoint.PyTreeCheckpointHandler, "restore", record_restore_args)
    other = put_on(compiled(seed=1), 4)
    before = shardings_of(other)
    other.load_weights(trained[1] / "folder")
    weights = {f"model/{name}": before[name] for name in other.variables}
    assert {name: each.sharding for name, each in wanted.items()} == weights
    other.load_state(trained[1] / "folder")
    rest = {name: sharding for name, sharding in before.items() if name.startswith("optimizer/")}
    wanted.pop("rng")
    assert {name: each.sharding for name, each in wanted.items()} == weights | rest


def test_training_resumes_with_identical_bits(trained):
    model, at = trained
    again = put_on(compiled(seed=1), 8)
    again.load_state(at / "folder")
    whole = put_on(compiled(), 8)
    whole.load_state(at / "file")
    for each in (again, whole):
        each.fit(X, Y, initial_epoch=1, epochs=2, **TRAIN)
    assert_same(state_of(again), state_of(whole))
    assert not same(state_of(again)["dense/kernel"], state_of(model)["dense/kernel"])


# The two formats


def test_a_state_from_orbax_saves_to_a_byte_identical_file(trained, path):
    _, at = trained
    first = compiled(seed=1)
    first.load_state(at / "folder")
    first.save_state(path)
    assert path.read_bytes() == (at / "file").read_bytes()
    second = put_on(compiled(seed=2), 2)
    second.load_state(path)
    second.save_state(path.with_name("folder"), format="orbax")
    third = compiled(seed=3)
    third.load_state(path.with_name("folder"))
    third.save_state(path)
    assert path.read_bytes() == (at / "file").read_bytes()
    Checkpoint.load(at / "folder").save(path)
    assert path.read_bytes() == (at / "file").read_bytes()


def test_orbax_alone_can_read_a_sharded_checkpoint(trained):
    model, at = trained
    (folder,) = (at / "folder").glob("arrays-*")
    found = orbax.checkpoint.PyTreeCheckpointHandler().restore(
        folder,
        args=orbax.checkpoint.args.PyTreeRestore(
            restore_args=dict.fromkeys(
                load_arrays(at / "file")[0], orbax.checkpoint.RestoreArgs(restore_type=np.ndarray)
            )
        ),
    )
    expected = {f"model/{name}": variable.read_stored() for name, variable in model.variables.items()}
    assert found.keys() > expected.keys()
    assert all(same(found[name], value) for name, value in expected.items())


def test_every_format_keeps_its_bits(path):
    random = np.random.default_rng(0)
    arrays = {}
    for row in FORMATS:
        used = (1 << row.bits) - 1 if row.bits < 8 else 255
        for shape in [(), (0, 2), (3,), (2, 3)]:
            bits = any_bits(row, shape, random)
            arrays[f"{row}{shape}"] = (bits.reshape(-1).view(np.uint8) & used).view(row.dtype).reshape(shape)
    save_arrays(path, arrays, {"k": "v"}, format="orbax")
    found, metadata = load_arrays(path)
    assert_same(found, arrays)
    assert metadata == {"k": "v"}


def test_formats_unknown_to_orbax_keep_their_sharding(path):
    mesh = mesh_of(8)
    arrays = {
        name: spread(jnp.asarray(np.arange(16).reshape(8, 2).astype(np.int8).astype(row.dtype)), mesh)
        for name, row in NARROW_FORMATS.items()
    }
    save_arrays(path, arrays, format="orbax")
    like = {name: jax.device_put(value, spread(value, mesh_of(4)).sharding) for name, value in arrays.items()}
    found, _ = load_arrays(path, like=like)
    assert_same(found, arrays)
    assert all(found[name].sharding == like[name].sharding for name in like)
    assert_same(load_arrays(path)[0], arrays)


def test_unusual_names_and_random_keys_round_trip(path):
    names = ["a/b", "a", "a/0", "", ".", "../a", "a//b", "/a", "__metadata__", "ä\n", "\0", "a/.zarray", "x" * 60_000]
    arrays = {name: jnp.full((2,), at, jnp.float32) for at, name in enumerate(names)}
    arrays |= {"numpy": np.full((2,), 7, np.float32), "empty": jnp.zeros((0, 2)), "key": jax.random.key(1)}
    arrays["rbg"] = jax.random.key(3, impl="rbg")
    arrays["many"] = jax.random.split(jax.random.key(5), 8)
    save_arrays(path, arrays, format="orbax")
    assert_same(load_arrays(path)[0], arrays)
    with pytest.raises(
        CheckpointError, match=f"{path}: cannot be written: .*Key .*an existing checkpoint is unchanged"
    ):
        save_arrays(path, {"x" * 70_000: jnp.ones(1)}, format="orbax")
    assert_same(load_arrays(path)[0], arrays)
    save_arrays(path, {"x": jnp.ones(0)}, {"k": "v"}, format="orbax")
    assert_same(load_arrays(path)[0], {"x": jnp.ones(0)})
    assert file_names(path) == ["supremum.safetensors"]


# Mismatched and damaged checkpoints


def assert_load_raises(model, path, error, match):
    before, where = {name: np.asarray(value) for name, value in state_of(model).items()}, shardings_of(model)
    with pytest.raises(error, match=match):
        model.load_state(path)
    assert_same(state_of(model), before)
    assert shardings_of(model) == where


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_mismatched_states_raise_with_the_variable_name(trained, path, kind):
    _, at = trained
    assert_load_raises(put_on(compiled(units=8), 4), at / kind, MismatchError, r"'dense/kernel' is float32\[8, 16\]")
    assert_load_raises(put_on(compiled(optimizer="sgd"), 4), at / kind, UnknownNameError, "variable of the optimizer")
    arrays, metadata = load_arrays(at / kind)
    written = {"format": "orbax" if kind == "folder" else None}
    save_arrays(path, {name: each for name, each in arrays.items() if name != "optimizer/count"}, metadata, **written)
    assert_load_raises(put_on(compiled(), 4), path, ArgumentError, "no value for count: the optimizer must be built")
    wrong = arrays["optimizer/mu/dense/kernel"].astype(np.float16)
    save_arrays(path, {**arrays, "optimizer/mu/dense/kernel": wrong}, metadata, **written)
    assert_load_raises(
        put_on(compiled(), 4), path, ArgumentError, r"'mu/dense/kernel' must be float32\[8, 16\] .*float16\[8, 16\]"
    )
    compiled().save_weights(path, **written)
    assert_load_raises(put_on(compiled(), 4), path, CheckpointError, "does not hold a training state")
    arrays["model/dense/kernal"] = arrays.pop("model/dense/kernel")
    save_arrays(path, arrays, metadata, **written)
    assert_load_raises(
        put_on(compiled(), 4), path, MismatchError, "'dense/kernel' is missing; did you mean 'dense/kernal'"
    )


def save_small_checkpoint(path):
    arrays = {
        "w": spread(jnp.arange(4096.0).reshape(64, 64), mesh_of(2)),
        "b": jnp.arange(8, dtype=jnp.bfloat16),
        "n": np.uint8(7),
    }
    save_arrays(path, arrays, {"k": "v"}, format="orbax")
    return arrays


def raises_checkpoint_error(path, arrays, like):
    try:
        found, metadata = load_arrays(path, like=like)
    except CheckpointError as error:
        return str(path) in str(error) and not isinstance(error, MissingCheckpointError)
    assert_same(found, arrays)
    assert metadata == {"k": "v"}
    return False


# When orbax fails to read a file, its unfinished reads of other arrays warn at garbage collection.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("is_placed", [False, True])
def test_a_damaged_file_raises_or_loads_the_original_values(path, is_placed):
    arrays = save_small_checkpoint(path)
    like = {name: value for name, value in arrays.items() if is_placed and isinstance(value, jax.Array)}
    whole = path.with_name("whole")
    path.rename(whole)
    random = np.random.default_rng(0)
    errors = {"flip": 0, "cut": 0, "gone": 0}
    for file in sorted(each.relative_to(whole) for each in whole.rglob("*") if each.is_file()):
        data = (whole / file).read_bytes()
        damages = [("gone", None), ("cut", b""), ("cut", data[: len(data) // 2])]
        places = random.integers(8 * len(data), size=6)
        damages += [
            ("flip", data[: at // 8] + bytes([data[at // 8] ^ 1 << at % 8]) + data[at // 8 + 1 :]) for at in places
        ]
        for damage, damaged in damages:
            shutil.copytree(whole, path)
            (path / file).write_bytes(damaged) if damaged is not None else (path / file).unlink()
            errors[damage] += raises_checkpoint_error(path, arrays, like)
            shutil.rmtree(path)
    gc.collect()
    assert all(errors.values())


def test_changed_values_with_the_old_checksum_raise(path):
    arrays = save_small_checkpoint(path)
    (folder,) = path.glob("arrays-*")
    for factor in (2, -1):
        forged = {"w": factor * np.asarray(arrays["w"]), "b": arrays["b"]}
        orbax.checkpoint.PyTreeCheckpointer().save(folder, forged, force=True)
        with pytest.raises(CheckpointError, match="'w' do not match their checksum"):
            load_arrays(path)


def test_foreign_folders_raise_and_are_not_replaced(path):
    with pytest.raises(MissingCheckpointError):
        load_arrays(path)
    path.mkdir()
    with pytest.raises(CheckpointError, match="is a folder, not a checkpoint"):
        load_arrays(path)
    (path / "thesis.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match="a folder of other files and is not replaced"):
        save_arrays(path, {"w": np.ones(2)}, format="orbax")
    with pytest.raises(CheckpointError, match="not a folder and is not replaced"):
        save_arrays(path / "thesis.txt", {"w": np.ones(2)}, format="orbax")
    assert (path / "thesis.txt").read_text() == "years of work"
    theirs = path.with_name("theirs")
    orbax.checkpoint.PyTreeCheckpointer().save(theirs, {"w": np.ones(2)})
    with pytest.raises(CheckpointError, match=r"no supremum record.*PyTreeCheckpointer\(\).restore"):
        load_arrays(theirs)


def test_a_failed_write_keeps_the_previous_checkpoint(path, monkeypatch):
    arrays = save_small_checkpoint(path)

    def disk_full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(orbax.checkpoint.PyTreeCheckpointHandler, "finalize", disk_full)
    with pytest.raises(CheckpointError, match="No space left on device: make room"):
        save_arrays(path, {"w": jnp.ones(3)}, format="orbax")
    monkeypatch.undo()
    assert_same(load_arrays(path)[0], arrays)
    assert file_names(path.parent) == [path.name]
    inside = sorted(file_names(path))

    def failing_replace(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "replace", failing_replace)  # of the record, when the arrays are written
    with pytest.raises(CheckpointFileError, match="No space left on device: make room"):
        save_arrays(path, {"w": jnp.ones(3)}, format="orbax")
    monkeypatch.undo()
    assert_same(load_arrays(path)[0], arrays)
    assert sorted(file_names(path)) == inside
    assert file_names(path.parent) == [path.name]


def test_late_writes_of_a_failed_save_do_not_reach_the_next_one(path, monkeypatch):
    save, places = orbax.checkpoint.PyTreeCheckpointer.save, []

    def fail_first(self, place, arrays):
        places.append(place)
        if len(places) == 1:
            raise ValueError("an array cannot be written")
        places[0].mkdir(parents=True)
        save(self, place, arrays)

    monkeypatch.setattr(orbax.checkpoint.PyTreeCheckpointer, "save", fail_first)
    with pytest.raises(CheckpointFileError, match="cannot be written"):
        save_small_checkpoint(path)
    arrays = save_small_checkpoint(path)
    monkeypatch.undo()
    assert_same(load_arrays(path)[0], arrays)
    save_small_checkpoint(path)
    assert file_names(path.parent) == [path.name]


def test_unknown_formats_and_a_missing_orbax_raise(path, monkeypatch):
    model = compiled()
    for call in (model.save_state, model.save_weights, ModelCheckpoint):
        with pytest.raises(UnknownNameError, match="unknown format 'orbaks': did you mean 'orbax'"):
            call(path, format="orbaks")
    save_small_checkpoint(path)
    monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
    for call in (lambda: load_arrays(path), lambda: model.save_state(path, format="orbax")):
        with pytest.raises(ImportError, match=r"pip install 'supremum\[orbax\]'"):
            call()
    assert not path.with_name("other").exists()


# During training


def test_model_checkpoint_writes_orbax_folders(tmp_path):
    model = put_on(compiled(), 2)
    model.fit(X, Y, epochs=2, callbacks=ModelCheckpoint(tmp_path / "{epoch}", format="orbax"), **TRAIN)
    assert (tmp_path / "0").is_dir()
    again = compiled(seed=1)
    assert again.load_state(tmp_path / "1") == 2
    assert_same(state_of(again), state_of(model))
