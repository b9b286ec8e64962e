import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optional_packages import import_or_skip
from supremum.mixed_precision import (
    DynamicLossScale,
    FixedLossScale,
    LossScaleState,
    ScaledOptimizerState,
    all_finite,
    find_loss_scale_state,
    loss_scaled,
    narrow_weights,
    scale_loss,
)

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
INPUTS = jnp.asarray(np.random.default_rng(0).normal(size=(12, 8, 4)), jnp.float32)
# This scale rises by powers of two during training, so results match unscaled float32 training bit by bit.
RISING = DynamicLossScale(2.0**15, increment_period=3)


def params_of(dtype="float32"):
    return {"w": jnp.asarray(INPUTS[0, :4, :3], dtype), "b": jnp.zeros(3, dtype)}


def loss(params, x, bad=1.0):
    return jnp.mean(jnp.square(x @ params["w"] + params["b"] - 1)) * bad


def train(optimizer, inputs=INPUTS, bads=None, scaled=True):
    def step(carry, case):
        params, state = carry
        grads = jax.grad(lambda p: scale_loss(loss(p, *case), state) if scaled else loss(p, *case))(params)
        updates, state = optimizer.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), None

    bads = jnp.ones(len(inputs)) if bads is None else jnp.asarray(bads, jnp.float32)
    return jax.lax.scan(step, (params_of(), optimizer.init(params_of())), (inputs, bads))[0]


def assert_equal(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert jax.tree.leaves(one)
    jax.tree.map(np.testing.assert_array_equal, one, other)


INNER = {
    "adam": optax.adam(1e-2),
    "accumulated": optax.MultiSteps(optax.adam(1e-2), every_k_schedule=4),
    "both": optax.MultiSteps(optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-2)), every_k_schedule=3),
}


@pytest.fixture
def one_by_one():
    """Run operations one by one, since compiled programs fuse operations and may differ in the last bit."""
    with jax.disable_jit():
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("bad", [(), (1, 2, 7)], ids=["no overflows", "overflows"])
@pytest.mark.parametrize("name", INNER)
def test_scaled_training_equals_float32_training_without_skipped_steps_bit_by_bit(name, bad):
    bads = np.ones(len(INPUTS))
    bads[[*bad]] = (np.inf, -np.inf, np.nan)[: len(bad)]
    params, state = train(loss_scaled(INNER[name], RISING), bads=bads)
    want, inner = train(INNER[name], inputs=INPUTS[bads == 1], scaled=False)
    assert_equal(params, want)
    assert_equal(state.inner, inner)
    assert not np.array_equal(params["w"], params_of()["w"])
    assert int(state.scaling.num_skipped_steps) == len(bad)
    assert bad or float(state.scaling.loss_scale) == 2.0**19


@pytest.mark.slow
def test_clipping_outside_clips_gradients_that_are_still_scaled():
    right = train(loss_scaled(optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(1.0)), RISING))[0]
    wrong = train(optax.chain(optax.clip_by_global_norm(0.1), loss_scaled(optax.sgd(1.0), RISING)))[0]
    moved = [optax.tree.norm(jax.tree.map(jnp.subtract, after, params_of())) for after in (right, wrong)]
    assert float(moved[0]) > 0.1
    assert float(moved[1]) < 1e-4  # every step was clipped to 0.1 and then divided by 2**15


@pytest.mark.slow
def test_accumulating_outside_never_recovers_from_an_overflow():
    bads = np.ones(len(INPUTS))
    bads[1] = np.inf
    right = train(loss_scaled(optax.MultiSteps(optax.sgd(0.1), 4), RISING), bads=bads)[1]
    assert (int(right.inner.gradient_step), int(right.inner.mini_step)) == (2, 3)  # eleven good micro-steps of twelve
    outside = optax.MultiSteps(loss_scaled(optax.sgd(0.1), RISING), 4).gradient_transformation()
    state = train(outside, bads=bads)[1]
    assert (int(state.gradient_step), int(find_loss_scale_state(state).num_skipped_steps)) == (3, 3)
    assert not bool(all_finite(state.acc_grads))


@pytest.mark.one_in(2)
@either_mode
def test_a_skipped_step_returns_zeros_and_keeps_the_inner_state(jitted):
    optimizer = loss_scaled(optax.adamw(1e-2), DynamicLossScale(8.0))
    params = params_of()
    update = jax.jit(optimizer.update) if jitted else optimizer.update
    _, state = update(params, optimizer.init(params), params)
    bad = {**params, "b": params["b"].at[1].set(jnp.nan)}
    updates, after = update(bad, state, params)
    assert jax.tree.structure(updates) == jax.tree.structure(params)
    assert all(not leaf.any() for leaf in jax.tree.leaves(updates))
    assert_equal(after.inner, state.inner)
    assert [float(leaf) for leaf in after.scaling] == [4, 0, 1, 1, 0]


def test_a_fixed_scale_applies_unconditionally():
    optimizer, params = loss_scaled(optax.sgd(1.0), 8), params_of()
    text = str(jax.make_jaxpr(optimizer.update)(params, optimizer.init(params), params))
    assert "is_finite" not in text
    assert "cond" not in text
    assert "cond" in str(jax.make_jaxpr(loss_scaled(optax.sgd(1.0)).update)(params, optimizer.init(params), params))
    updates, state = optimizer.update(jax.tree.map(lambda leaf: leaf * jnp.inf, params), optimizer.init(params), params)
    assert not bool(all_finite(updates))
    assert state.scaling == FixedLossScale(8.0).init()


OPTIMIZERS = {
    "momentum": optax.sgd(0.1, momentum=0.9),
    "adamw": optax.adamw(optax.cosine_decay_schedule(1e-2, 10)),
    "adafactor": optax.adafactor(1e-2),
    "injected": optax.inject_hyperparams(optax.sgd)(learning_rate=lambda count: 0.1 / (count + 1)),
    "masked": optax.masked(optax.adam(1e-2), {"w": True, "b": False}),
    "noisy": optax.chain(optax.add_noise(0.1, 0.5, key=jax.random.key(3)), optax.sgd(0.1)),
}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_keep_the_optimizers_dtypes_and_are_traced_once(name, dtype):
    optimizer, params = loss_scaled(OPTIMIZERS[name], DynamicLossScale(8.0)), params_of(dtype)
    update = jax.jit(optimizer.update)
    native = jax.eval_shape(OPTIMIZERS[name].update, params, OPTIMIZERS[name].init(params), params)[0]
    state = first = optimizer.init(params)
    for _ in range(3):
        updates, state = update(params, state, params)
        params = optax.apply_updates(params, updates)
        assert jax.tree.map(lambda leaf: leaf.dtype, updates) == jax.tree.map(lambda leaf: leaf.dtype, native)
    assert jax.tree.map(lambda leaf: leaf.dtype, state) == jax.tree.map(lambda leaf: leaf.dtype, first)
    assert update._cache_size() == 1


def test_gradients_are_unscaled_in_float32_before_they_are_used():
    """In float16, 1e-3 / 2**16 is zero."""
    optimizer = loss_scaled(optax.scale_by_sign(), 2.0**16)
    params = jnp.ones(2, jnp.float16)
    updates, _ = optimizer.update(jnp.full(2, 1e-3, jnp.float16), optimizer.init(params), params)
    assert (updates.dtype, updates.tolist()) == ("float16", [1, 1])


def test_extra_arguments_reach_the_inner_optimizer():
    def update(updates, state, params=None, *, factor):
        return jax.tree.map(lambda leaf: leaf * factor, updates), state

    inside = optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)
    optimizer = loss_scaled(inside, 8)
    updates, _ = optimizer.update(
        updates=jnp.ones(2), state=optimizer.init(jnp.ones(2)), params=jnp.ones(2), factor=4.0
    )
    assert updates.tolist() == [0.5, 0.5]
    plain = loss_scaled(optax.GradientTransformation(optax.sgd(1.0).init, lambda g, s, p=None: (-g, s)), 8)
    assert plain.update(jnp.ones(2), plain.init(jnp.ones(2)), factor=4.0)[0].tolist() == [-0.125, -0.125]


def test_the_state_is_found_at_any_depth():
    params = params_of()
    wrapped = loss_scaled(optax.adam(1e-3), DynamicLossScale(8.0))
    for optimizer in (wrapped, optax.chain(optax.identity(), wrapped), optax.named_chain(("a", wrapped))):
        state = optimizer.init(params)
        assert isinstance(find_loss_scale_state({"optimizer": state}), LossScaleState)
        assert float(scale_loss(jnp.float32(3), state)) == 24
    assert float(optax.tree.get(wrapped.init(params), "loss_scale")) == 8
    for number, state in ((0, optax.adam(1e-3).init(params)), (2, [wrapped.init(params)] * 2)):
        with pytest.raises(ValueError, match=f"must contain one LossScaleState, got {number}: wrap"):
            scale_loss(jnp.float32(3), state)


@either_mode
@pytest.mark.parametrize(("dtype", "wide"), [("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32")])
def test_a_loss_is_scaled_in_at_least_float32(dtype, wide, jitted):
    state = loss_scaled(optax.sgd(1.0)).init(jnp.ones(2))
    scaled = (jax.jit(scale_loss) if jitted else scale_loss)(jnp.asarray(60000, dtype), state)
    assert (scaled.dtype, float(scaled)) == (wide, float(jnp.asarray(60000, dtype)) * 2**15)
    with jax.numpy_dtype_promotion("strict"), jax.enable_x64(True):
        assert scale_loss(jnp.float64(3), state).dtype == "float64"


@pytest.mark.parametrize("bad", [jnp.asarray(1), jnp.complex64(1), None, "loss", 3], ids=repr)
def test_a_loss_that_is_not_real_floating_raises(bad):
    with pytest.raises(TypeError, match="the loss must be a real floating scalar, got"):
        scale_loss(bad, loss_scaled(optax.sgd(1.0)).init(jnp.ones(2)))
    assert float(scale_loss(2.0, loss_scaled(optax.sgd(1.0), 8).init(jnp.ones(2)))) == 16


@pytest.mark.parametrize("scale", [8.0, np.float16(8), jnp.float16(8)], ids=repr)
def test_a_scale_restored_in_a_different_dtype_becomes_float32(scale):
    optimizer = loss_scaled(optax.sgd(1.0))
    state = optimizer.init(jnp.ones(2))._replace(scaling=LossScaleState(scale, 0, 0, 0, 0))
    assert (scale_loss(jnp.float32(3), state).dtype, float(scale_loss(jnp.float32(3), state))) == ("float32", 24)
    updates, after = jax.jit(optimizer.update)(jnp.full(2, 8.0), state)
    assert (updates.tolist(), after.scaling.loss_scale.dtype) == ([-1, -1], "float32")
    assert optimizer.update(jnp.full(2, 8.0), state)[0].tolist() == [-1, -1]


def test_invalid_arguments_raise():
    for bad in (1e-3, None, optax.adam, "adam"):
        with pytest.raises(TypeError, match="loss_scaled needs an optax transformation"):
            loss_scaled(bad)
    with pytest.raises(TypeError, match="use the optimizer without loss_scaled"):
        loss_scaled(optax.adam(1e-3), None)
    with pytest.raises(TypeError, match="must be a ScaledOptimizerState, got"):
        loss_scaled(optax.adam(1e-3)).update(jnp.ones(2), optax.adam(1e-3).init(jnp.ones(2)))
    assert isinstance(loss_scaled(optax.adam(1e-3)).init(jnp.ones(2)), ScaledOptimizerState)


@pytest.mark.parametrize("wrap", [loss_scaled, narrow_weights])
def test_a_state_that_orbax_restored_without_its_structure_names_the_call_that_keeps_its_moments(wrap, tmp_path):
    orbax = import_or_skip("orbax.checkpoint")
    params = jnp.ones(2, "bfloat16")
    optimizer = wrap(optax.adam(1e-3))
    state = optimizer.init(params)._replace(inner=jax.tree.map(lambda each: each + 7, optimizer.init(params).inner))
    checkpointer, path = orbax.StandardCheckpointer(), tmp_path / "state"
    checkpointer.save(path, state)
    checkpointer.wait_until_finished()
    step = optimizer.update if wrap is loss_scaled else optimizer.step
    calls = [lambda bare: step(params, bare, params)]
    if wrap is loss_scaled:
        calls.append(lambda bare: scale_loss(jnp.float32(1), bare))
    for call in calls:
        with pytest.raises((TypeError, ValueError), match="to keep a saved state, restore it as ") as caught:
            call(checkpointer.restore(path))
        fix = str(caught.value).rpartition("restore it as ")[2]
        restored = eval(fix, {"checkpointer": checkpointer, "path": path, "optimizer": optimizer, "params": params})
        assert restored.inner[0].count == 7
        call(restored)


@pytest.mark.slow
@pytest.mark.usefixtures("one_by_one")
def test_loss_scaled_works_with_flax_train_state():
    train_state = import_or_skip("flax.training.train_state")
    params = params_of()
    scaled = train_state.TrainState.create(apply_fn=None, params=params, tx=loss_scaled(optax.adam(1e-2), RISING))
    plain = train_state.TrainState.create(apply_fn=None, params=params, tx=optax.adam(1e-2))
    for x in INPUTS[:3]:
        grads = jax.grad(lambda p, s=scaled, x=x: scale_loss(loss(p, x), s.opt_state))(scaled.params)
        scaled = scaled.apply_gradients(grads=grads)
        plain = plain.apply_gradients(grads=jax.grad(loss)(plain.params, x))
    assert_equal(scaled.params, plain.params)
    assert float(scale_loss(jnp.float32(1), scaled)) == 2.0**16


@pytest.mark.slow
def test_loss_scaled_works_with_flax_nnx_optimizer():
    nnx = import_or_skip("flax.nnx")
    model = nnx.Linear(4, 3, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, loss_scaled(optax.adam(1e-2), RISING), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x):
        def scaled_loss(model):
            return scale_loss(jnp.square(model(x) - 1).mean(), optimizer.opt_state)

        optimizer.update(model, nnx.grad(scaled_loss)(model))

    before = model.kernel[...]
    for factor, skipped in ((1.0, 0), (jnp.inf, 1)):
        step(model, optimizer, jnp.ones((2, 4)) * factor)
        assert int(find_loss_scale_state(optimizer.opt_state).num_skipped_steps) == skipped
        assert bool(all_finite(model.kernel[...]))
    np.testing.assert_allclose(np.abs(model.kernel[...] - before), 1e-2, rtol=1e-3)
