"""`narrow_weights` around optax transformations: steps, states and errors."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.formats import as_format
from supremum.mixed_precision import NarrowWeightsState, narrow_weights, weight_memory
from supremum.mixed_precision.weight_storage.counter_hash import random_bits, step_key
from supremum.mixed_precision.weight_storage.rounding import round_to_format, with_rest

RANDOM = np.random.default_rng(0)
STORAGES = ["stochastic", "kahan", "master"]
every_storage = pytest.mark.parametrize("weights", STORAGES)


def start(dtype="bfloat16"):
    return {
        "dense": {"kernel": jnp.asarray(RANDOM.normal(size=(8, 16)), dtype), "bias": jnp.zeros(16, dtype)},
        "norm": jnp.ones(16),
    }


PARAMS = start()
GRADIENTS = [
    jax.tree.map(lambda leaf: jnp.asarray(RANDOM.normal(size=leaf.shape) * 0.1, leaf.dtype), PARAMS) for _ in range(8)
]
BY_MASK = optax.masked(optax.adam(1e-3), {"dense": {"kernel": True, "bias": False}, "norm": True})
OTHERS = {"dense": {"kernel": False, "bias": True}, "norm": False}
OPTIMIZERS = {
    "sgd": optax.sgd(1e-3),
    "momentum": optax.sgd(1e-3, 0.9, nesterov=True),
    "adam": optax.adam(1e-3),
    "adamw": optax.adamw(1e-3, weight_decay=0.1),
    "adamw, masked decay": optax.adamw(1e-3, mask=lambda params: jax.tree.map(lambda leaf: leaf.ndim > 1, params)),
    "lion": optax.lion(1e-3),
    "rmsprop": optax.rmsprop(1e-3, momentum=0.9),
    "adagrad": optax.adagrad(1e-3),
    "chain": optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-3), optax.add_decayed_weights(-1e-4)),
    "multi steps": optax.MultiSteps(optax.adam(1e-3), 3),
    "masked": optax.chain(BY_MASK, optax.masked(optax.sgd(1e-3), OTHERS)),
    "by label": optax.multi_transform(
        {"a": optax.adam(1e-3), "b": optax.sgd(1e-3)}, {"dense": {"kernel": "a", "bias": "b"}, "norm": "b"}
    ),
    "injected": optax.inject_hyperparams(optax.adam)(learning_rate=1e-3),
    "schedule": optax.adam(optax.cosine_decay_schedule(1e-3, 10)),
    "average": optax.chain(optax.adam(1e-3), optax.ema(0.9)),
    "no nan": optax.apply_if_finite(optax.adam(1e-3), 3),
    "adafactor": optax.adafactor(1e-3),
}  # fmt: skip
every_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)


def trained(optimizer, params=PARAMS, gradients=GRADIENTS, jit=True, **options):
    state = optimizer.init(params)
    step = jax.jit(optimizer.step, **options) if jit else optimizer.step
    for gradient in gradients:
        params, state = step(gradient, state, params)
    return params, state


def float32_of(tree):
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)


def reference(optimizer, jit=False):
    """The same training with float32 weights, by optax alone."""
    params = float32_of(PARAMS)
    optimizer = optimizer.gradient_transformation() if isinstance(optimizer, optax.MultiSteps) else optimizer
    state = optimizer.init(params)

    def step(gradient, state, params):
        updates, state = optimizer.update(float32_of(gradient), state, params)
        return optax.apply_updates(params, updates), state

    for gradient in GRADIENTS:
        params, state = (jax.jit(step) if jit else step)(gradient, state, params)
    return params, state


def assert_equal(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(np.asarray(a), np.asarray(b)), one, other)
    assert jax.tree.structure(one) == jax.tree.structure(other)


@pytest.mark.one_in(17)
@pytest.mark.parametrize("weights", ["kahan", "master"])
@every_optimizer
def test_what_is_stored_is_the_float32_weights_of_optax_to_the_last_bit(name, weights):
    expected, expected_state = reference(OPTIMIZERS[name])
    params, state = trained(narrow_weights(OPTIMIZERS[name], weights), jit=False)
    assert jax.tree.map(lambda leaf: leaf.dtype, params) == jax.tree.map(lambda leaf: leaf.dtype, PARAMS)
    if weights == "master":
        assert_equal(state.extra.master["dense"], expected["dense"])
    else:
        assert_equal(jax.tree.map(with_rest, params["dense"], state.extra.compensation["dense"]), expected["dense"])
    assert_equal(params["norm"], expected["norm"])
    assert_equal(jax.tree.leaves(state.inner), jax.tree.leaves(expected_state))
    nearest = jax.tree.map(lambda leaf: np.asarray(leaf).astype(ml_dtypes.bfloat16), expected["dense"])
    assert_equal(params["dense"], nearest)


@pytest.mark.one_in(17)
@every_storage
@every_optimizer
def test_weights_stay_near_those_of_float32_and_keep_their_dtypes(name, weights):
    expected, _ = reference(OPTIMIZERS[name], jit=True)
    params, _ = trained(narrow_weights(OPTIMIZERS[name], weights))
    assert jax.tree.map(lambda leaf: leaf.dtype, params) == jax.tree.map(lambda leaf: leaf.dtype, PARAMS)
    for found, exact in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.float32(found), exact, rtol=2.0**-6, atol=5e-3)


@pytest.mark.compiled
@every_storage
def test_small_updates_add_up(weights):
    """A thousand updates of a 16th of an ulp; rounding to nearest would keep 1."""
    params, optimizer = {"w": jnp.ones(512, "bfloat16")}, narrow_weights(optax.sgd(2.0**-12), weights)
    gradient = {"w": -jnp.ones(512)}

    @jax.jit
    def train(params):
        return jax.lax.scan(lambda carry, _: (tuple(optimizer.step(gradient, carry[1], carry[0])), None),
                            (params, optimizer.init(params)), length=1024)[0]  # fmt: skip

    mean = float(train(params)[0]["w"].astype(jnp.float32).mean())
    assert abs(mean - 1.25) < (2.0**-8 if weights == "stochastic" else 2.0**-9)


@pytest.mark.compiled
def test_stochastic_steps_round_by_the_hash_of_seed_step_and_path():
    optimizer = narrow_weights(optax.sgd(2.0**-7), seed=5)  # a power of two: fused operations round alike
    params, _ = trained(optimizer, gradients=GRADIENTS[:1])
    params_after, state = trained(optimizer, gradients=GRADIENTS[:2])
    wide = np.float32(params["dense"]["kernel"]) - np.float32(GRADIENTS[1]["dense"]["kernel"]) * np.float32(2.0**-7)
    noise = jax.jit(lambda: random_bits(step_key(5, "dense/kernel", jnp.int32(1)), (8, 16)))()
    expected = jax.jit(lambda wide, noise: round_to_format(wide, as_format("bfloat16"), noise))(wide, noise)
    assert_equal(params_after["dense"]["kernel"], expected)
    assert int(state.steps) == 2
    other, _ = trained(narrow_weights(optax.sgd(2.0**-7), seed=6))
    assert not (other["dense"]["kernel"] == trained(optimizer)[0]["dense"]["kernel"]).all()


def stacked(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


ENSEMBLES = {
    "vmap": jax.vmap,
    "jit of vmap": lambda step: jax.jit(jax.vmap(step)),
    "vmap of jit": lambda step: jax.vmap(jax.jit(step)),
    "vmap of cond": lambda step: jax.vmap(
        lambda grads, state, params: jax.lax.cond(
            state.steps < 9, lambda: tuple(step(grads, state, params)), lambda: (params, state)
        )
    ),
    "outer vmap": lambda step: jax.vmap(
        lambda grads, state, params: jax.vmap(
            lambda factor: step(jax.tree.map(lambda leaf: leaf * factor, grads), state, params)
        )(jnp.ones(3))
    ),
}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_an_ensemble_without_seeds_is_refused_with_a_fix_that_works(name):
    optimizer = narrow_weights(optax.adam(1e-3))
    params, grads = stacked([PARAMS] * 3), stacked(GRADIENTS[:3])
    state = jax.vmap(optimizer.init)(params)
    with pytest.raises(ArgumentError, match="all 3 members of this ensemble would round") as caught:
        ENSEMBLES[name](optimizer.step)(grads, state, params)
    fix = str(caught.value).partition("as in ")[2].partition(";")[0]
    names = {"jax": jax, "jnp": jnp, "optimizer": optimizer, "grads": grads, "state": state, "params": params}
    assert eval(fix, names).state.steps.tolist() == [1, 1, 1]


@pytest.mark.compiled
def test_each_member_of_an_ensemble_trains_as_alone_with_its_seed():
    seeds, steps = jnp.asarray([3, 7, 0]), GRADIENTS[:4]
    optimizer = narrow_weights(optax.sgd(2.0**-7))  # a power of two: fused operations round alike
    params = stacked([PARAMS] * 3)
    state, step = jax.vmap(optimizer.init)(params), jax.jit(jax.vmap(optimizer.step))
    for gradient in steps:
        params, state = step(stacked([gradient] * 3), state, params, seed=seeds)
    for place, seed in enumerate(seeds.tolist()):
        alone, _ = trained(narrow_weights(optax.sgd(2.0**-7), seed=seed), gradients=steps)
        assert_equal(jax.tree.map(lambda leaf, place=place: leaf[place], params), alone)
    assert not (params["dense"]["kernel"][0] == params["dense"]["kernel"][1]).all()


def test_only_random_rounding_of_members_needs_seeds():
    params, grads = stacked([PARAMS] * 2), stacked(GRADIENTS[:2])
    for weights in ("kahan", "master"):
        optimizer = narrow_weights(optax.sgd(1e-3), weights)
        jax.eval_shape(jax.vmap(optimizer.step), grads, jax.vmap(optimizer.init)(params), params)
    optimizer = narrow_weights(optax.sgd(2.0**-7))  # a power of two: fused operations round alike
    state = optimizer.init(PARAMS)
    same = jax.jit(jax.vmap(lambda grads: optimizer.step(grads, state, PARAMS, seed=0)))(grads)  # asked for
    alone = jax.jit(optimizer.step)(GRADIENTS[0], state, PARAMS)
    assert_equal(jax.tree.map(lambda leaf: leaf[0], same.params), alone.params)
    # Several sets of one kernel's bits are wanted: only the seed is mapped.
    jax.eval_shape(jax.vmap(lambda seed: optimizer.step(GRADIENTS[0], state, PARAMS, seed=seed)), jnp.arange(2))
    jax.eval_shape(jax.grad(lambda params: optimizer.step(GRADIENTS[0], state, params).params["norm"].sum()), PARAMS)
    for wrong in (jnp.arange(2), jnp.ones(()), 0.5, -1, 2**32):
        with pytest.raises((ValueError, TypeError), match="seed must be"):
            jax.eval_shape(lambda wrong=wrong: optimizer.step(GRADIENTS[0], state, PARAMS, seed=wrong))


@pytest.mark.compiled
@pytest.mark.one_in(3)
@every_storage
def test_runs_replay_under_jit_scan_donation_and_sharding(weights):
    optimizer = narrow_weights(optax.sgd(2.0**-7, 0.5), weights)  # powers of two: fused operations round alike
    expected = trained(optimizer)
    assert_equal(trained(optimizer), expected)

    @jax.jit
    def scanned(params, gradients):
        def step(carry, gradient):
            return tuple(optimizer.step(gradient, carry[1], carry[0])), None

        return jax.lax.scan(step, (params, optimizer.init(params)), gradients)[0]

    assert_equal(scanned(PARAMS, stacked(GRADIENTS)), expected)
    assert_equal(trained(optimizer, jax.tree.map(jnp.copy, PARAMS), donate_argnums=(1, 2)), expected)
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    specs = {"dense": {"kernel": P("a", "b"), "bias": P("b")}, "norm": P()}
    sharded = jax.device_put(PARAMS, jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs))
    assert_equal(trained(optimizer, sharded), expected)


@pytest.mark.one_in(3)
@every_storage
def test_a_skipped_step_changes_nothing(weights):
    optimizer = narrow_weights(optax.adam(1e-3), weights)

    @jax.jit
    def step(params, state, gradient, finite):
        return jax.lax.cond(finite, lambda: tuple(optimizer.step(gradient, state, params)), lambda: (params, state))

    params, state = PARAMS, optimizer.init(PARAMS)
    for gradient in GRADIENTS:
        params, state = step(params, state, gradient, True)
        before = params, state
        params, state = step(params, state, gradient, False)
        assert_equal((params, state), before)
    assert_equal((params, state), trained(optimizer))


@pytest.mark.one_in(3)
@every_storage
def test_gradients_may_be_wider_or_narrower_than_weights(weights):
    optimizer = narrow_weights(optax.sgd(2.0**-7), weights)
    gradient = jax.tree.map(lambda leaf: np.full(leaf.shape, 0.25, np.float32), PARAMS)
    state, step = jax.jit(optimizer.init)(PARAMS), jax.jit(optimizer.step)
    expected = step(gradient, state, PARAMS)
    for dtype in ("bfloat16", "float16", "float8_e5m2"):
        narrow = jax.tree.map(lambda leaf, dtype=dtype: leaf.astype(as_format(dtype).dtype), gradient)
        assert_equal(step(narrow, state, PARAMS), expected)


@pytest.mark.one_in(4)
@every_storage
@pytest.mark.parametrize("dtype", ["float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"])
def test_other_narrow_formats_learn_too(dtype, weights):
    optimizer = narrow_weights(optax.sgd(2.0**-6), weights)
    params = {"w": jnp.ones(4096, dtype)}
    params, state = trained(optimizer, params, [{"w": -jnp.ones(4096)}] * 16)
    wide = np.float32(params["w"])
    if weights == "kahan":
        wide += np.float32(state.extra.compensation["w"])
    assert abs((state.extra.master["w"] if weights == "master" else wide).mean() - 1.25) < 0.01
    assert params["w"].dtype == dtype


@every_storage
def test_infinite_and_nan_weights_stay(weights):
    params = {"w": jnp.asarray([np.inf, -np.inf, np.nan, 1.0], "bfloat16")}
    after, _ = trained(narrow_weights(optax.sgd(0.0), weights), params, [{"w": jnp.ones(4)}] * 3)
    np.testing.assert_array_equal(np.float32(after["w"]), np.float32(params["w"]))


@pytest.mark.one_in(3)
@every_storage
def test_other_leaves_stay_or_are_updated_as_by_optax(weights):
    params = {"w": jnp.ones(3, "bfloat16"), "wide": jnp.ones(3), "complex": jnp.ones(3, "complex64"),
              "count": jnp.arange(3), "none": None, "name": np.ones(2, bool)}  # fmt: skip

    def gradient(leaf):
        return (
            jnp.ones_like(leaf) if jnp.issubdtype(leaf.dtype, jnp.inexact) else np.zeros(leaf.shape, jax.dtypes.float0)
        )

    gradients = jax.tree.map(gradient, params)
    optimizer = narrow_weights(optax.sgd(0.5), weights)
    made, state = optimizer.step(gradients, optimizer.init(params), params)
    assert_equal(made, {**params, "w": jnp.full(3, 0.5, "bfloat16"), "wide": jnp.full(3, 0.5),
                        "complex": jnp.full(3, 0.5, "complex64")})  # fmt: skip
    assert [leaf.shape for leaf in jax.tree.leaves(state.extra)] == ([] if weights == "stochastic" else [(3,)])


@pytest.mark.slow
def test_a_weight_without_gradient_stays():
    optimizer = narrow_weights(optax.sgd(0.5), "kahan")
    gradients = {"dense": {"kernel": GRADIENTS[0]["dense"]["kernel"], "bias": None}, "norm": None}
    after, _ = optimizer.step(gradients, optimizer.init(PARAMS), PARAMS)
    assert_equal((after["dense"]["bias"], after["norm"]), (PARAMS["dense"]["bias"], PARAMS["norm"]))
    assert not (after["dense"]["kernel"] == PARAMS["dense"]["kernel"]).all()


def test_an_assigned_weight_replaces_its_master():
    optimizer, gradient = narrow_weights(optax.sgd(2.0**-12), "master"), {"w": -np.ones(2, np.float32)}
    params = {"w": jnp.ones(2, "bfloat16")}
    state, step = optimizer.init(params), jax.jit(optimizer.step)
    params, state = step(gradient, state, params)
    params = {"w": params["w"].at[0].set(4.0)}
    _, state = step(gradient, state, params)
    np.testing.assert_array_equal(state.extra.master["w"], np.float32([4 + 2.0**-12, 1 + 2.0**-11]))


def test_arguments_of_the_inner_update_are_passed_on():
    optimizer = narrow_weights(optax.contrib.reduce_on_plateau(factor=0.5, patience=1, rtol=0.5, atol=0.0), "kahan")
    params = {"w": jnp.ones(2, "bfloat16")}
    state, step = optimizer.init(params), jax.jit(optimizer.step)
    for _ in range(3):
        params, state = step({"w": np.zeros(2, np.float32)}, state, params, value=1.0)
    assert float(state.inner.scale) < 1


def test_updates_cannot_be_added_by_optax():
    optimizer = narrow_weights(optax.adam(1e-3))
    with pytest.raises(OperandError, match=r"params, state = optimizer\.step\(grads, state, params\)"):
        jax.eval_shape(lambda: optimizer.update(GRADIENTS[0], optimizer.init(PARAMS), PARAMS))
    for outer in (
        optax.chain(optax.clip(1.0), optimizer),
        optax.MultiSteps(optimizer, 2),
        optax.masked(optimizer, True),
    ):
        with pytest.raises(OperandError, match="put other transformations inside"):
            jax.eval_shape(lambda outer=outer: outer.update(GRADIENTS[0], outer.init(PARAMS), PARAMS))
    with pytest.raises(ValueError, match=r"(?i)structure|arity|pytree"):
        jax.eval_shape(
            lambda: optax.apply_updates(PARAMS, optimizer.step(GRADIENTS[0], optimizer.init(PARAMS), PARAMS))
        )


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: narrow_weights(optax.adam), OperandError, r"use optax\.adam\(1e-3\)"),
        (lambda: narrow_weights(optax.sgd(1.0), "kahn"), UnknownNameError, "did you mean 'kahan'"),
        (lambda: narrow_weights(optax.sgd(1.0), seed=-1), ArgumentError, "seed"),
        (lambda: narrow_weights(optax.sgd(1.0), moments="bfloat16"), ArgumentError, "must be a mapping"),
        (lambda: narrow_weights(optax.sgd(1.0), moments={"mu": "bf61"}), ValueError, "unknown dtype"),
        (lambda: narrow_weights(optax.sgd(1.0), moments={"mu": "int8"}), ArgumentError, "real floating dtype"),
        (lambda: narrow_weights(optax.sgd(1.0), moments={"mu(": "bfloat16"}), ArgumentError, "regular expression"),
        (
            lambda: narrow_weights(optax.adam(1.0), moments={"mo": "bfloat16"}).init(PARAMS),
            ArgumentError,
            "has the moments mu, nu",
        ),
        (lambda: narrow_weights(optax.sgd(1.0), moments={"mu": "bfloat16"}).init(PARAMS), ArgumentError, "no moments"),
        (lambda: narrow_weights(optax.sgd(1.0)).init({"w": jnp.ones(2)}), ArgumentError, "cast_floating"),
        (
            lambda: narrow_weights(optax.sgd(1.0)).init({"w": jnp.ones(2, "float4_e2m1fn")}),
            OperandError,
            "at least 8 bits",
        ),
        (lambda: weight_memory({"w": jnp.arange(3)}, None), ArgumentError, "at least one element"),
        (lambda: stepped(grads={"dense": 1}), ArgumentError, "the gradients must have the structure of params"),
        (lambda: stepped(grads={**PARAMS, "norm": jnp.ones(1)}), ArgumentError, "shape of its weight"),
        (lambda: stepped(grads={**PARAMS, "norm": jnp.arange(16)}), OperandError, "must be floating-point"),
        (lambda: stepped(state=optax.EmptyState()), OperandError, "must be a NarrowWeightsState"),
        (lambda: stepped(params=start("float16")), ArgumentError, "another dtype"),
        (lambda: stepped(params=start("float32")), ArgumentError, "another dtype"),
    ],
)
def test_errors_say_what_to_do(call, error, says):
    with pytest.raises(error, match=says):
        call()


def stepped(grads=PARAMS, state=None, params=PARAMS):
    optimizer = narrow_weights(optax.sgd(1.0), "kahan")
    return optimizer.step(grads, optimizer.init(PARAMS) if state is None else state, params)


@pytest.mark.slow
def test_bytes_per_parameter_are_those_of_the_arrays():
    params = {"w": jnp.ones((512, 512), "bfloat16"), "b": jnp.zeros(512, "bfloat16")}
    found = {}
    for weights in STORAGES:
        state = narrow_weights(optax.adam(1e-3), weights, {"mu": "bfloat16", "nu": "dynamic8"}).init(params)
        memory = weight_memory(params, state)
        assert memory.total_bytes == sum(leaf.nbytes for leaf in jax.tree.leaves((params, state)))
        found[weights] = round(memory.bytes_per_parameter, 2)
    assert found == {"stochastic": 5.02, "kahan": 7.02, "master": 9.02}
    assert weight_memory(params, None).bytes_per_parameter == 2


@pytest.mark.slow
def test_the_state_is_a_pytree_that_orbax_restores(tmp_path):
    import orbax.checkpoint as ocp

    optimizer = narrow_weights(optax.adam(1e-3), "kahan", {"mu": "dynamic8", "nu/dense": "bfloat16"})
    params, state = trained(optimizer, gradients=GRADIENTS[:4])
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", {"params": params, "state": state})
        checkpointer.wait_until_finished()
        like = jax.tree.map(jnp.zeros_like, {"params": params, "state": state})
        restored = checkpointer.restore(tmp_path / "state", like)
    assert isinstance(restored["state"], NarrowWeightsState)
    assert_equal(restored, {"params": params, "state": state})
    step = jax.jit(optimizer.step)
    assert_equal(step(GRADIENTS[4], restored["state"], restored["params"]), step(GRADIENTS[4], state, params))


@pytest.mark.slow
def test_modules_of_equinox_and_states_of_nnx_are_parameters():
    import equinox
    from flax import nnx

    x = jnp.ones((8, 4), "bfloat16")
    module = equinox.nn.MLP(4, 2, 64, 2, key=jax.random.key(0), dtype=jnp.bfloat16)
    graph, variables = nnx.split(nnx.Linear(4, 2, param_dtype=jnp.bfloat16, rngs=nnx.Rngs(0)), nnx.Param)

    def mean(outputs):
        return jnp.mean(outputs.astype(jnp.float32) ** 2)

    for params, loss in (
        (module, lambda params: mean(jax.vmap(params)(x))),
        (variables, lambda params: mean(nnx.merge(graph, params)(x))),
    ):
        optimizer = narrow_weights(optax.adam(1e-3), "kahan", {"mu": "bfloat16", "nu": "dynamic8"})
        state = equinox.filter_jit(optimizer.init)(params)
        made, after = equinox.filter_jit(
            lambda params, state, loss=loss, optimizer=optimizer: optimizer.step(
                equinox.filter_grad(loss)(params), state, params
            )
        )(params, state)
        assert type(made) is type(params)
        assert float(loss(made)) < float(loss(params))
        assert {row.name for row in weight_memory(made, after).rows} >= {"weights", "mu", "nu", "compensation"}
