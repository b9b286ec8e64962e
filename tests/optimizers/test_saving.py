"""Saving and configuring optimizers, with and without a LossScaleOptimizer."""

import copy
import json
import pickle

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optimizers.problems import GRADIENTS, SCALE, START, assert_equal, leaves_of, pairs_of, values_of, variables_of
from supremum.mixed_precision import FixedLossScale
from supremum.optimizers import (
    SGD,
    Adagrad,
    Adam,
    AdamW,
    Lion,
    LossScaleOptimizer,
    Optimizer,
    OptimizerWrapper,
    RMSprop,
    deserialize_optimizer,
    serialize_optimizer,
)

SLOTS = {f"{slot}/{key}" for slot in ("mu", "nu") for key in START}
ADAM = {"iterations", "learning_rate", "beta_1", "beta_2", "epsilon", "count", *SLOTS}
SCALING = {f"loss_scale/{name}" for name in (
    "loss_scale", "num_good_steps", "num_skipped_steps", "num_overflows", "num_retries")}  # fmt: skip


def adam(variables, steps=0, wrap=None, **options):
    optimizer = Adam(0.1, **options)
    optimizer = optimizer if wrap is None else wrap(optimizer)
    optimizer.build(variables)
    for gradients in GRADIENTS[:steps]:
        optimizer.apply_gradients(pairs_of(variables, gradients))
    return optimizer


def scaled(optimizer):
    return LossScaleOptimizer(optimizer, SCALE)


def test_wrappers_keep_the_variable_names_of_the_inner_optimizer():
    assert set(adam(variables_of()).variables) == ADAM
    assert set(adam(variables_of(), wrap=scaled).variables) == ADAM | SCALING
    assert list(adam(variables_of()).variables)[:2] == ["iterations", "learning_rate"]
    two = Optimizer(optax.chain(optax.trace(0.5), optax.clip(1.0), optax.trace(0.25), optax.scale(-1.0)))
    two.build(variables_of())
    assert set(two.variables) == {"iterations", *(f"{name}/{key}" for name in ("trace", "trace_1") for key in START)}


@pytest.mark.parametrize("to", [None, scaled], ids=["plain", "scaled"])
@pytest.mark.parametrize("of", [None, scaled], ids=["plain", "scaled"])
def test_checkpoints_load_with_and_without_a_loss_scale(of, to):
    variables = variables_of()
    source = adam(variables, 4, of)
    saved = source.variables
    others = {key: type(each)(each.read_stored(), each.name) for key, each in variables.items()}
    target = adam(others, 0, to)
    own_scale = None if to is None else target.loss_scale.state
    target.load_variables(saved)
    shared = set(saved) & set(target.variables)
    assert_equal({n: leaves_of(target)[n] for n in shared}, {n: leaves_of(source)[n] for n in shared})
    if to is scaled:
        assert int(target.loss_scale.num_good_steps) == (1 if of is scaled else int(own_scale.num_good_steps))
    for optimizer, held in ((source, variables), (target, others)):
        optimizer.apply_gradients(pairs_of(held, GRADIENTS[5]))
    assert_equal(values_of(others), values_of(variables))
    assert int(target.iterations) == 5
    target.load_variables({**target.variables, "iterations": np.int64(7)})
    assert (int(target.iterations), target.iterations.dtype) == (7, jnp.int32)
    with pytest.raises(TypeError, match="dict of arrays by name, got list"):
        target.load_variables([1])


def test_loaded_arrays_are_copies():
    source, target = adam(variables_of(), 1), adam(variables_of())
    target.load_variables(source.variables)
    pointers = [{leaf.unsafe_buffer_pointer() for leaf in each.variables.values()} for each in (source, target)]
    assert not pointers[0] & pointers[1]


def test_loading_hyperparameters_keeps_the_trace_key():
    source, target = adam(variables_of()), adam(variables_of())
    source.learning_rate = 0.25
    key = target.trace_key
    target.load_variables(source.variables)
    assert float(target.learning_rate) == 0.25
    assert target.trace_key == key
    zero = adam(variables_of(), weight_decay=0.5)
    other = adam(variables_of(), weight_decay=0.5)
    zero.weight_decay = 0.0
    other.load_variables(zero.variables)
    assert other.trace_key == zero.trace_key


SCALED = {f"loss_scale/{name}": each for name, each in SCALE.init()._asdict().items()}
BAD = {
    "unknown": ({"mu/dense/kernl": np.zeros(2)}, (), ValueError, "unknown variable of the optimizer 'mu/dense/kernl'"),
    "missing": ({}, ("nu/dense/bias", "count"), ValueError, "no value for count, nu/dense/bias"),
    "shape": ({"mu/dense/bias": np.zeros(3, np.float32)}, (), ValueError, r"must be float32\[2\].*, got float32\[3\]"),
    "dtype": ({"mu/dense/bias": np.zeros(2, np.float16)}, (), ValueError, r"got float16\[2\]"),
    "integers": ({"iterations": np.float32(3)}, (), ValueError, "int32"),
    "too many": ({"iterations": np.int64(2**40)}, (), ValueError, r"to 2147483647 \(int32\), got 1099511627776"),
    "a list": ({"iterations": [3]}, (), ValueError, r"must be an array \(int32\[\]\), got"),
    "a number out of bounds": ({"beta_1": np.float32(2)}, (), ValueError, "beta_1 must be at least 0 and below 1"),
    "a scale out of bounds": ({**SCALED, "loss_scale/loss_scale": jnp.float32(jnp.inf)}, (), ValueError, "loss.scale"),
    "an unknown part of the scale": ({**SCALED, "loss_scale/x": 1}, (), ValueError, "loss.scale"),
    "a scale without a part": (SCALED, ("loss_scale/num_good_steps",), ValueError, "must have 'num_good_steps'"),
}


@pytest.mark.parametrize(
    ("case", "wrap"),
    [(case, wrap) for case in BAD for wrap in (None, scaled) if wrap is scaled or "scale" not in case],
)
def test_mismatched_arrays_raise_and_change_nothing(case, wrap):
    change, without, error, message = BAD[case]
    optimizer = adam(variables_of(), 0, wrap)
    saved = {
        name: np.asarray(each) + np.asarray(1, each.dtype) * (name == "iterations")
        for name, each in optimizer.variables.items()
    }
    saved = {name: each for name, each in {**saved, **change}.items() if name not in without}
    before = leaves_of(optimizer)
    with pytest.raises(error, match=message):
        optimizer.load_variables(saved)
    assert_equal(leaves_of(optimizer), before)


@pytest.mark.parametrize("wrap", [None, scaled, lambda each: OptimizerWrapper(scaled(each))])
def test_get_weights_and_set_weights_use_a_list_of_arrays(wrap):
    source, target = adam(variables_of(), 2, wrap), adam(variables_of(), 0, wrap)
    weights = source.get_weights()
    assert all(type(each) is np.ndarray for each in weights)
    assert len(weights) == len(ADAM)  # without the loss scale
    target.set_weights(weights)
    assert_equal({n: leaves_of(target)[n] for n in ADAM}, {n: leaves_of(source)[n] for n in ADAM})
    with pytest.raises(ValueError, match="got 1 arrays"):
        target.set_weights(weights[:1])
    with pytest.raises(TypeError, match="load_variables"):
        target.set_weights(source.variables)


def test_a_copied_optimizer_is_separate():
    variables = variables_of()
    optimizer = SGD(0.5, momentum=0.5)
    optimizer.build(variables)
    optimizer.apply_gradients(pairs_of(variables, GRADIENTS[0]))
    for copied in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        copied.learning_rate, copied.nesterov = 0.25, True
        copied.apply_gradients(pairs_of(copied.built_for, GRADIENTS[1]))
        g, m = (GRADIENTS[n]["dense/bias"] for n in (1, 0))
        moved = -0.5 * m - 0.25 * (g + 0.5 * (g + 0.5 * m))
        np.testing.assert_allclose(np.asarray(copied.built_for["dense/bias"].value), moved, rtol=1e-5)
        assert (int(copied.iterations), int(optimizer.iterations), float(optimizer.learning_rate)) == (2, 1, 0.5)


def transformer(pairs):
    return pairs


def schedule(step):
    return 0.1 / (step + 1)


TRANSFORMATION = optax.sgd(0.5)
INJECTED = optax.inject_hyperparams(optax.sgd)(0.5)
OPTIMIZERS = [
    SGD(0.1, 0.5, True, mu_dtype="bfloat16", weight_decay=0.25, clipnorm=2.0),
    SGD(schedule, gradient_transformers=[transformer], gradient_aggregator=transformer),
    Adam(0.2, 0.3, 0.4, 0.5, mu_dtype="float16", nu_dtype="bfloat16", clipvalue=3.0),
    Adam(amsgrad=True, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3, gradient_accumulation_steps=2),
    AdamW(0.2, 0.7, beta_1=0.3, global_clipnorm=4.0),
    RMSprop(0.2, 0.3, 0.4, 0.5, True),
    Adagrad(0.2, 0.3, 0.4, nu_dtype="float16"),
    Lion(0.2, 0.3, 0.4),
    Optimizer(TRANSFORMATION, clipnorm=1.0),
    Optimizer(INJECTED, learning_rate=0.25),
    LossScaleOptimizer(SGD(0.1), SCALE, aggregate_in_float16=False),
    LossScaleOptimizer(Optimizer(TRANSFORMATION), 8),
    OptimizerWrapper(LossScaleOptimizer(Adam(0.2, use_ema=True))),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda each: type(each).__name__)
def test_from_config_builds_an_equal_optimizer(optimizer):
    config = optimizer.get_config()
    restored = type(optimizer).from_config(config)
    assert restored is not optimizer
    assert restored.get_config() == config
    assert restored.trace_key == optimizer.trace_key
    assert repr(restored) == repr(optimizer)
    assert repr(deserialize_optimizer(serialize_optimizer(optimizer))) == repr(optimizer)


def test_a_config_has_exact_numbers_and_converts_to_json():
    assert repr(Optimizer(optax.adam(0.1))) == "Optimizer(transformation=<optax transformation of chain()>)"
    optimizer = LossScaleOptimizer(SGD(0.1, 0.9), FixedLossScale(16))
    optimizer.learning_rate = 0.3
    config = json.loads(json.dumps(optimizer.get_config()))
    assert config["optimizer"]["config"]["learning_rate"] == 0.3
    assert config["loss_scale"] == {"class_name": "FixedLossScale", "config": {"loss_scale_value": 16.0}}
    restored = LossScaleOptimizer.from_config(config)
    assert (float(restored.loss_scale()), float(restored.momentum)) == (16, float(np.float32(0.9)))


def test_a_user_class_needs_no_registration():
    class UserSGD(SGD):
        pass

    data = serialize_optimizer(LossScaleOptimizer(UserSGD(0.5)))
    assert type(deserialize_optimizer(data).inner_optimizer) is UserSGD
    with pytest.raises(ValueError, match="unknown class of optimizer 'Adamm': did you mean 'Adam'"):
        deserialize_optimizer({"class_name": "Adamm", "config": {}})
    with pytest.raises(TypeError, match="an optimizer class or its name"):
        deserialize_optimizer({"class_name": int, "config": {}})
    with pytest.raises(ValueError, match="must have 'config'"):
        deserialize_optimizer({"class_name": "SGD"})
    with pytest.raises(ValueError, match="must have 'optimizer'"):
        LossScaleOptimizer.from_config({"loss_scale": {"class_name": "DynamicLossScale", "config": {}}})
