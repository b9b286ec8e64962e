import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.mixed_precision import DynamicLossScale, FixedLossScale, all_finite, cast_floating, scaled_value_and_grad

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


@either_mode
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gradients_come_back_unscaled_in_float32(dtype, jitted):
    scale = DynamicLossScale(1024.0)
    step = scaled_value_and_grad(lambda w, x: (w * x).sum(), scale)
    step = jax.jit(step) if jitted else step
    value, grads, finite, state = step(scale.init(), jnp.full(3, 2, dtype), jnp.full(3, 3, dtype))
    assert (value.dtype, float(value)) == (dtype, 18)
    assert grads.dtype == jnp.float32
    assert np.all(np.asarray(grads) == 3)
    assert bool(finite)
    assert float(state.loss_scale) == 1024


def test_gradients_that_would_flush_to_zero_survive():
    def loss(w):
        return (w.astype(jnp.float16) * jnp.float16(1e-4)).astype(jnp.float32).sum() * 1e-5

    w = jnp.ones(2)
    assert np.all(np.asarray(jax.grad(loss)(w)) == 0)
    _, grads, *_ = scaled_value_and_grad(loss, "dynamic")(DynamicLossScale().init(), w)
    np.testing.assert_allclose(np.asarray(grads), 1e-9, rtol=2e-3)


@either_mode
def test_a_growing_step_unscales_with_the_scale_that_scaled(jitted):
    """mpx 0.2 adjusts the scale first and unscales with the new one: value and gradients come back halved."""
    scale = DynamicLossScale(8.0, increment_period=1)
    step = scaled_value_and_grad(lambda w: 3 * w, scale)
    value, grad, _, state = (jax.jit(step) if jitted else step)(scale.init(), jnp.float32(2))
    assert (float(value), float(grad), float(state.loss_scale)) == (6, 3, 16)


@either_mode
def test_a_float16_loss_does_not_overflow_in_the_scaling(jitted):
    """Flax's DynamicScale multiplies a float16 loss by 65536 in float16 on its first step: inf."""
    scale = DynamicLossScale(2.0**15)
    step = scaled_value_and_grad(lambda w: w * w, scale)
    value, grad, finite, _ = (jax.jit(step) if jitted else step)(scale.init(), jnp.asarray(0.75, jnp.float16))
    assert (float(value), float(grad), bool(finite)) == (0.5625, 1.5, True)
    step = scaled_value_and_grad(lambda w: w * w + 3, scale)  # times 2**15 it is beyond float16
    with jax.debug_infs(True):
        value, grad, *_ = (jax.jit(step) if jitted else step)(scale.init(), jnp.asarray(0.75, jnp.float16))
    assert (float(value), float(grad)) == (3.5625, 1.5)


@either_mode
def test_an_overflow_is_seen_and_backs_off(jitted):
    scale = DynamicLossScale(2.0**15)
    step = scaled_value_and_grad(lambda w: w * w, scale)
    _, _, finite, state = (jax.jit(step) if jitted else step)(scale.init(), jnp.asarray(200.0, jnp.float16))
    assert not bool(finite)
    assert (float(state.loss_scale), int(state.num_skipped_steps)) == (2.0**14, 1)


def test_aux_and_argnums_are_as_in_value_and_grad():
    def loss(x, w, y):
        return (w * x + y).sum(), {"aux": x}

    args = (jnp.float32(2), jnp.float32(3), jnp.float32(4))
    scale = FixedLossScale(16.0)
    for argnums in (0, 2, (0, 1), (1, 2)):
        want_value, want_grads = jax.value_and_grad(loss, argnums, has_aux=True)(*args)
        value, grads, finite, state = scaled_value_and_grad(loss, scale, argnums, has_aux=True)(scale.init(), *args)
        assert jax.tree.map(float, (value, grads)) == jax.tree.map(float, (want_value, want_grads))
        assert (bool(finite), float(state.loss_scale)) == (True, 16)


def test_a_fixed_scale_compiles_no_finite_check():
    def text(scale):
        step = scaled_value_and_grad(lambda w: (w * w).sum(), scale)
        return str(jax.make_jaxpr(step)(scale.init(), jnp.ones(3)))

    assert "is_finite" not in text(FixedLossScale(8.0))
    assert "is_finite" in text(DynamicLossScale(8.0))


def test_no_scale_is_an_error_that_names_the_alternative():
    with pytest.raises(TypeError, match=r"jax\.value_and_grad"):
        scaled_value_and_grad(lambda w: w, None)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float8_e5m2"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@either_mode
def test_all_finite_sees_every_leaf_and_dtype(dtype, bad, jitted):
    check = jax.jit(all_finite) if jitted else all_finite
    good = {"a": jnp.ones((2, 2), dtype), "n": jnp.arange(3), "b": (jnp.zeros((), dtype), jnp.ones(0, dtype))}
    assert bool(check(good))
    assert not bool(check(good | {"b": (jnp.asarray(bad, dtype),)}))


def test_all_finite_of_nothing_and_of_huge_values():
    assert bool(all_finite({}))
    assert bool(all_finite([jnp.full(100, 3e38)]))  # their norm is inf


def test_casting_touches_floating_leaves_only_and_no_container():
    key = jax.random.key(0)
    tree = {
        "x": np.ones(2, np.float64), "s": np.float32(1), "j": jnp.ones(2, jnp.bfloat16), "i": np.arange(2), "k": key,
        "b": np.array([True]), "c": np.ones(1, np.complex64), "p": 1e-8, "t": np.array(["a"]), "n": None,
    }  # fmt: skip
    before = dict(tree)
    for out in (cast_floating(tree, np.dtype("float16")),):
        assert {name: out[name].dtype for name in "xsj"} == dict.fromkeys("xsj", np.dtype("float16"))
        assert all(out[name] is tree[name] for name in "ikbcptn")
    assert tree == before or all(tree[name] is before[name] for name in tree)
