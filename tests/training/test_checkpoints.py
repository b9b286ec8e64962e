"""A checkpoint restores the whole training state, and training resumes from it bit for bit."""

import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import supremum
from supremum import nn
from supremum.errors import ArgumentError, OperandError
from supremum.mixed_precision import Policy
from supremum.training.checkpoints import Checkpoint, CheckpointError, MissingCheckpointError, load_arrays, save_arrays
from training.bits import assert_same, same


def test_every_part_is_restored_under_its_name(path):
    checkpoint = Checkpoint(
        model={"rng": np.float32(1), "model/x": np.arange(3), "": np.ones(1), "optimizer/x": np.ones(2)},
        optimizer={
            "rng": np.float64(2),
            "model/x": np.arange(4, dtype=np.int8),
            "mu/w": np.ones(2, ml_dtypes.bfloat16),
        },
        rng=jax.random.key(5),
        step=np.int32(12),
        policy=Policy("mixed_float16", 128).get_config(),
        optimizer_config={"learning_rate": 0.1, "name": "adam"},
        extra={"epoch": 3, "best": 0.1 + 0.2, "worst": math.inf, "names": ["ä", None, True]},
    )
    checkpoint.save(path)
    assert load_arrays(path)[1]["step"] == "12"
    found = Checkpoint.load(path)
    assert_same(found.model, checkpoint.model)
    assert_same(found.optimizer, checkpoint.optimizer)
    assert same(found.rng, checkpoint.rng)
    assert found.step == 12
    assert type(found.step) is int
    assert Policy.from_config(found.policy) == Policy("mixed_float16", 128)
    assert found.optimizer_config == checkpoint.optimizer_config
    assert found.extra == checkpoint.extra


def test_omitted_parts_load_as_defaults(path):
    Checkpoint({}).save(path)
    found = Checkpoint.load(path)
    assert (found.model, found.optimizer, found.rng, found.step) == ({}, {}, None, 0)
    assert (found.policy, found.optimizer_config, found.extra) == (None, None, {})
    metadata = load_arrays(path)[1]
    assert (metadata["supremum"], metadata["holds"], metadata["step"]) == (supremum.__version__, "training state", "0")


def test_variables_are_saved_in_their_stored_dtype(path):
    layer = nn.Dense(2, dtype="mixed_float16")
    nn.initialize(layer, np.ones((1, 3), np.float32))
    Checkpoint(layer.variables, {"counted": nn.Variable(3)}).save(path)
    found = Checkpoint.load(path)
    assert_same(found.model, {name: variable.read_stored() for name, variable in layer.variables.items()})
    assert found.optimizer["counted"] == 3


def test_invalid_step_raises():
    for wrong in (1.0, 1.5, "1", None, True, np.True_, [1], -1):
        with pytest.raises(ArgumentError if wrong == -1 else OperandError, match="step must be"):
            Checkpoint({}, step=wrong)
    assert Checkpoint({}, step=jnp.int32(3)).step == 3


def test_non_json_policy_or_extra_raises_and_optimizer_config_is_dropped(path):
    Checkpoint({}, step=1).save(path)
    before = path.read_bytes()
    circular = {}
    circular["self"] = circular
    for what in ("policy", "extra"):
        for wrong in ({"x": np.float32(1)}, {"x": object()}, circular):
            with pytest.raises(OperandError, match=f"{what} must be JSON"):
                Checkpoint({}, **{what: wrong}).save(path)
    assert path.read_bytes() == before
    Checkpoint({}, optimizer_config={"schedule": lambda step: 0.1}, step=2).save(path)
    assert Checkpoint.load(path).optimizer_config is None
    assert Checkpoint.load(path).step == 2


def test_file_without_a_training_state_raises(path):
    save_arrays(path, {"w": np.ones(1)})
    with pytest.raises(CheckpointError, match=r"does not hold a training state; use load_weights\(layer, '.*arrays"):
        Checkpoint.load(path)
    with pytest.raises(MissingCheckpointError):
        Checkpoint.load(path.with_name("other"))
    Checkpoint({}).save(path)
    arrays, metadata = load_arrays(path)
    for name, text in [("step", "x"), ("step", "-1"), ("step", "1.5"), ("extra", "{"), ("policy", None)]:
        wrong = metadata | {name: text} if text else {key: value for key, value in metadata.items() if key != name}
        save_arrays(path, arrays, wrong)
        with pytest.raises(CheckpointError, match="is damaged"):
            Checkpoint.load(path)
