"""Optimizers with `weights=`: the same numbers as `mixed_precision.narrow_weights`, in every way to train."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optimizers.problems import START, assert_equal, leaves_of, values_of
from supremum import nn
from supremum.errors import ArgumentError, UnknownNameError
from supremum.mixed_precision import DynamicLossScale, narrow_weights
from supremum.mixed_precision.weight_storage.rounding import with_rest
from supremum.optimizers import SGD, Adagrad, Adam, AdamW, Lion, LossScaleOptimizer, Optimizer, RMSprop
from supremum.training import Batch, DataParallel, FullyShardedDataParallel, Sequential, as_loss, init_state, train_step

RANDOM = np.random.default_rng(0)
GRADIENTS = [{key: np.float32(RANDOM.normal(size=value.shape)) for key, value in START.items()} for _ in range(6)]
STORAGES = ["stochastic", "kahan", "master"]
every_storage = pytest.mark.parametrize("weights", STORAGES)


def narrow_variables(dtype="bfloat16"):
    return {key: nn.Variable(jnp.asarray(value, dtype), key.split("/")[1]) for key, value in START.items()}


def stepped(optimizer, variables, gradients):
    optimizer.build(variables)
    for each in gradients:
        pairs = [(jnp.asarray(each[key], variable.true_dtype), variable) for key, variable in variables.items()]
        optimizer.apply_gradients(pairs)
    return optimizer


@pytest.mark.compiled
@pytest.mark.one_in(3)
@every_storage
def test_steps_are_those_of_narrow_weights(weights):
    transformation = optax.sgd(2.0**-4, 0.5)  # powers of two: fused operations round alike
    variables = narrow_variables()
    params = {key: variable.value for key, variable in variables.items()}
    optimizer = stepped(Optimizer(transformation, weights=weights), variables, GRADIENTS)
    own = narrow_weights(transformation, weights)
    state, step = jax.jit(own.init)(params), jax.jit(own.step)
    for gradients in GRADIENTS:
        gradients = {key: np.asarray(each, jnp.bfloat16) for key, each in gradients.items()}
        params, state = step(gradients, state, params)
    assert_equal(values_of(variables), {key: np.asarray(each) for key, each in params.items()})
    names = optimizer.variables
    field = {"stochastic": None, "kahan": "compensation", "master": "master"}[weights]
    if field is not None:
        for key in START:
            np.testing.assert_array_equal(names[f"{field}/{key}"], getattr(state.extra, field)[key])
    assert sum("compensation" in name or "master" in name for name in names) == (0 if field is None else len(START))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("make", [SGD, Adam, AdamW, RMSprop, Adagrad, Lion])
def test_every_optimizer_keeps_small_steps(make):
    def moved(**options):
        variable = nn.Variable(jnp.ones(64, "bfloat16"), "w")
        optimizer = make(1e-4, **options)
        for _ in range(15):
            optimizer.apply_gradients([(jnp.ones(64, "bfloat16"), variable)])
        beside = optimizer.variables.get("compensation/w")
        wide = variable.value if beside is None else with_rest(variable.value, beside)
        return 1 - np.float32(wide).mean()

    assert moved() == 0  # each step is less than half of 2**-8
    exact = moved(weights="kahan")
    assert exact > 5e-4
    assert abs(moved(weights="stochastic") - exact) < 2.0**-8


@pytest.mark.one_in(3)
@every_storage
def test_float32_variables_are_updated_as_without(weights):
    found = []
    for option in (weights, None):
        variables = narrow_variables("float32")
        stepped(Adam(0.1, weights=option), variables, GRADIENTS)
        found.append(values_of(variables))
    assert_equal(*found)


@pytest.mark.one_in(3)
@every_storage
def test_variables_of_several_dtypes_train_together(weights):
    variables = {"a": nn.Variable(jnp.ones(300, "bfloat16"), "a"), "b": nn.Variable(jnp.ones(3), "b"),
                 "c": nn.Variable(jnp.ones(3, "float16"), "c")}  # fmt: skip
    optimizer = Adam(1e-5, weights=weights, mu_dtype="dynamic8", nu_dtype="float8_e4m3fn")
    stepped(optimizer, variables, [{key: np.ones(each.shape) for key, each in variables.items()}] * 8)
    assert [str(each.true_dtype) for each in variables.values()] == ["bfloat16", "float32", "float16"]
    assert optimizer.variables["mu/a/codes"].dtype == jnp.int8
    assert optimizer.variables["nu/a/codes"].dtype == jnp.dtype("float8_e4m3fn")


def test_constraints_act_on_wide_values():
    """A norm that is limited in bfloat16 after every step would round away what the step added."""
    variable, positive = (nn.Variable(jnp.full(64, 0.125, "bfloat16"), "w") for _ in range(2))
    variable.constraint, positive.constraint = nn.MaxNorm(1.0, axis=None), nn.NonNeg()
    optimizer = SGD(2.0**-12, weights="kahan")
    gradient = jnp.concatenate([jnp.full(32, -1.0, "bfloat16"), jnp.full(32, 1.0, "bfloat16")])
    for _ in range(600):
        optimizer.apply_gradients([(gradient, variable), (jnp.ones(64, "bfloat16"), positive)])
    value = np.float32(variable.value)
    assert value[0] > 0.16
    assert np.linalg.norm(value) < 1.01
    assert (np.float32(positive.value) >= 0).all()
    assert np.float32(positive.value).max() < 1e-3


@pytest.mark.one_in(3)
@every_storage
def test_saved_optimizers_resume_to_the_last_bit(weights):
    options = {"weights": weights, "mu_dtype": "dynamic8", "use_ema": True, "gradient_accumulation_steps": 2}
    variables = narrow_variables()
    source = stepped(Adam(0.1, **options), variables, GRADIENTS[:3])
    others = {key: nn.Variable(each.value, each.name) for key, each in variables.items()}
    target = Adam.from_config(source.get_config())
    assert target.weights == weights
    target.build(others)
    target.load_variables(source.variables)
    for optimizer, held in ((source, variables), (target, others)):
        stepped(optimizer, held, GRADIENTS[3:])
    assert_equal(values_of(others), values_of(variables))
    assert_equal(leaves_of(target), leaves_of(source))


@pytest.mark.slow
def test_settings_can_change_in_training():
    variables = narrow_variables()
    optimizer = stepped(Adam(0.1, mu_dtype="dynamic8"), variables, GRADIENTS[:2])
    mean = np.asarray(optimizer.variables["mu/dense/kernel/scales"])
    optimizer.weights, optimizer.mu_dtype = "master", None
    for key, each in variables.items():
        np.testing.assert_array_equal(optimizer.variables[f"master/{key}"], np.float32(each.value))
    largest = np.abs(optimizer.variables["mu/dense/kernel"]).max()  # the moments were converted
    np.testing.assert_allclose(largest, mean.max(), rtol=0.01)
    stepped(optimizer, variables, GRADIENTS[2:])
    with pytest.raises(UnknownNameError, match="did you mean 'kahan'"):
        optimizer.weights = "kahn"


def test_the_moving_average_sees_the_steps():
    variables = {"w": nn.Variable(jnp.ones(8, "bfloat16"), "w")}
    optimizer = SGD(2.0**-10, weights="kahan", use_ema=True, ema_momentum=0.5)
    stepped(optimizer, variables, [{"w": np.ones(8)}] * 16)
    assert 1 - 2.0**-6 <= float(optimizer.variables["average/w"][0]) < 1


X = np.float32(RANDOM.normal(size=(64, 16)))
Y = np.argmax(X @ RANDOM.normal(size=(16, 4)), 1)


def fitted(weights, distribution=None):
    model = Sequential([nn.Dense(32), nn.ReLU(), nn.Dense(4)], dtype="bfloat16")
    model.compile(Adam(1e-3, weights=weights), "sparse_categorical_crossentropy", distribution=distribution, seed=1)
    model.fit(X, Y, batch_size=16, epochs=2, verbose=0, shuffle=False)
    return model


@pytest.mark.slow
@pytest.mark.one_in(3)
@every_storage
@pytest.mark.parametrize("distribution", [DataParallel, lambda: FullyShardedDataParallel(smallest=8)])
def test_fit_on_several_devices_agrees_with_one(weights, distribution):
    alone, other = fitted(weights), fitted(weights, distribution=distribution())
    for path, variable in other.variables.items():
        value = np.float32(variable.read_stored())
        np.testing.assert_allclose(value, np.float32(alone.variables[path].read_stored()), atol=0.02)
        for shard in variable.read_stored().addressable_shards:  # replicas have the same bits
            np.testing.assert_array_equal(np.float32(shard.data), value[shard.index])


ENSEMBLES = {
    "plain": lambda: SGD(2.0**-7, weights="stochastic"),
    "scaled": lambda: LossScaleOptimizer(SGD(2.0**-7, weights="stochastic"), DynamicLossScale()),
    "averaged": lambda: SGD(2.0**-7, weights="stochastic", use_ema=True),
    "accumulated": lambda: SGD(2.0**-7, weights="stochastic", gradient_accumulation_steps=1),
}


@pytest.mark.compiled
@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ENSEMBLES)
def test_members_of_an_ensemble_round_by_their_seeds(name):
    optimizer, seeds = ENSEMBLES[name](), jnp.asarray([5, 0])
    optimizer.build(narrow_variables())
    values = {key: jnp.asarray(value, "bfloat16") for key, value in START.items()}
    one = GRADIENTS[0], optimizer.state, values
    members = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), one)
    with pytest.raises(ArgumentError, match="all 2 members of this ensemble would round"):
        jax.vmap(optimizer.update)(*members)
    found = jax.jit(jax.vmap(optimizer.update))(*members, seed=seeds).values
    for place, seed in enumerate(seeds.tolist()):
        alone = jax.jit(optimizer.update)(*one, seed=seed).values
        assert_equal(jax.tree.map(lambda leaf, place=place: np.asarray(leaf[place]), found), jax.device_get(alone))
    assert any((np.asarray(each[0]) != np.asarray(each[1])).any() for each in found.values())


def test_an_ensemble_of_training_steps_takes_a_seed_per_member():
    model, optimizer = nn.Dense(4, dtype="bfloat16"), SGD(2.0**-7, weights="stochastic")
    nn.initialize(model, jnp.ones((2, 3)))
    step, batch = train_step(model, as_loss("mse"), optimizer), Batch(jnp.ones((2, 3)), jnp.ones((2, 4)))
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(init_state(model, optimizer, seed=0) for _ in range(8)))
    with pytest.raises(ArgumentError, match=r"steps of training\.train_step take it too"):
        jax.vmap(step, in_axes=(0, None))(states, batch)
    kernels = jax.vmap(lambda state, seed: step(state, batch, seed=seed))(states, jnp.arange(8)).trainable["kernel"]
    assert len({np.asarray(kernel).tobytes() for kernel in kernels}) > 4
