import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mixed_precision.meshes import on_replicas
from supremum.errors import ArgumentError, UnknownDtypeError, UnknownNameError
from supremum.formats import as_format
from supremum.mixed_precision import (
    DynamicLossScale,
    FixedLossScale,
    all_finite,
    all_reduce_gradients,
    cast_floating,
    scaled_value_and_grad,
)

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


@pytest.mark.parametrize(
    ("dtype", "jitted"), [("float16", False), ("float16", True), ("bfloat16", True), ("float32", True)]
)
def test_gradients_come_back_unscaled_in_float32(dtype, jitted):
    scale = DynamicLossScale(1024.0)
    step = scaled_value_and_grad(lambda w, x: (w * x).sum(), scale)
    step = jax.jit(step) if jitted else step
    two, three = (np.full(3, number, as_format(dtype).dtype) for number in (2, 3))
    value, grads, finite, state = step(scale.init(), two, three)
    assert (value.dtype, float(value)) == (dtype, 18)
    assert grads.dtype == jnp.float32
    assert np.all(np.asarray(grads) == 3)
    assert bool(finite)
    assert float(state.loss_scale) == 1024


def flushing(w):
    return (w.astype(jnp.float16) * jnp.float16(1e-4)).astype(jnp.float32).sum() * 1e-5


# A loss of a number, its value, its gradient, whether it is finite, and the scale after the step.
STEPS = {
    "a float16 loss": (lambda w: w * w, jnp.float16(0.75), 0.5625, 1.5, True, 2.0**15),
    # Flax's DynamicScale multiplies it by 65536 in float16 on its first step: inf.
    "a float16 loss above 2": (
        lambda w: w * w + 3,
        jnp.float16(0.75),
        3.5625,
        1.5,
        True,
        2.0**15,
    ),
    "an overflow": (lambda w: w * w, jnp.float16(200), np.float16(40000), np.inf, False, 2.0**14),
    "a gradient that flushes to zero without scaling": (flushing, jnp.float32(1), 1e-9, 1e-9, True, 2.0**15),
    "a constant": (lambda w: 3.0, jnp.float32(2), 3, 0, True, 2.0**15),
    **{
        f"NumPy's constant in {form.__name__}": (lambda w, form=form: form(3), jnp.float32(2), 3, 0, True, 2.0**15)
        for form in (np.float16, np.float32, np.float64)
    },
}


@pytest.mark.compiled
@either_mode
def test_a_step_returns_value_gradient_and_state(jitted):
    assert float(jax.grad(flushing)(jnp.float32(1))) == 0
    scale = DynamicLossScale(2.0**15)
    for name, (loss, w, value, gradient, finite, after) in STEPS.items():
        step = scaled_value_and_grad(loss, scale)
        with jax.debug_infs(name == "a float16 loss above 2"):  # not even the scaled loss is infinite
            made = (jax.jit(step) if jitted else step)(scale.init(), w)
        bound = 2e-3 if loss is flushing else 0
        np.testing.assert_allclose((made.value, made.grads), (value, gradient), rtol=bound, err_msg=name)
        found = bool(made.finite), float(made.state.loss_scale), int(made.state.num_skipped_steps)
        assert found == (finite, after, not finite), name


def test_a_fixed_scale_compiles_no_finite_check():
    def text(scale):
        step = scaled_value_and_grad(lambda w: (w * w).sum(), scale)
        return str(jax.make_jaxpr(step)(scale.init(), jnp.ones(3)))

    assert "is_finite" not in text(FixedLossScale(8.0))
    assert "is_finite" in text(DynamicLossScale(8.0))


@pytest.mark.parametrize("has_aux", [False, True])
@pytest.mark.parametrize(
    ("loss", "shown"),
    [
        (lambda w: w.astype(jnp.int32), "int32[]"), (lambda w: w + 0j, "complex64[]"), (lambda w: w > 0, "bool[]"),
        (lambda w: jnp.stack([w, w]), "float32[2]"), (lambda w: None, "NoneType"), (lambda w: 1, "int"),
        (lambda w: "w", "str"), (lambda w: (w, w), "tuple"), (lambda w: np.int8(1), "int8[]"),
    ],
)  # fmt: skip
def test_a_loss_that_is_not_a_real_floating_scalar_raises(loss, shown, has_aux):
    scale = DynamicLossScale()
    step = scaled_value_and_grad((lambda w: (loss(w), w)) if has_aux else loss, scale, has_aux=has_aux)
    for each in (step, jax.jit(step)):
        with pytest.raises(TypeError, match=f"the loss must be a real floating scalar, got {re.escape(shown)}"):
            each(scale.init(), jnp.float32(2))


@pytest.mark.parametrize(("dtype", "held"), [("float16", 2.0**15), ("float8_e5m2", 2.0**15), ("bfloat16", 2.0**40)])
def test_a_narrow_loss_limits_the_scale(dtype, held):
    for scale in (DynamicLossScale(2.0**40, increment_period=1), FixedLossScale(2.0**40)):
        step = scaled_value_and_grad(lambda w: w.astype(dtype), scale)
        _, grad, finite, state = jax.jit(step)(scale.init(), jnp.float32(2))
        assert (float(grad), bool(finite)) == (1, True)
        assert float(state.loss_scale) == (2 * held if scale.skips else 2.0**40)
    step = scaled_value_and_grad(lambda w: w.astype(dtype) * np.inf, "dynamic")
    _, _, finite, state = jax.jit(step)(DynamicLossScale(2.0**40).init(), jnp.float32(0))
    assert (bool(finite), float(state.loss_scale)) == (False, held / 2)


@pytest.mark.slow
def test_float64_gradients_stay_float64():
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        scale = DynamicLossScale(1024.0)
        step = scaled_value_and_grad(lambda w, v: (w * w).sum() + (v * v).sum().astype(w.dtype), scale, (0, 1))
        value, (wide, narrow), _, state = step(scale.init(), jnp.full(2, 1 / 3), jnp.ones(2, jnp.bfloat16))
        assert (value.dtype, wide.dtype, narrow.dtype, state.loss_scale.dtype) == ("f8", "f8", "f4", "f4")
        assert wide.tolist() == [2 / 3, 2 / 3]


@pytest.mark.slow
def test_gradients_of_complex_parameters_are_checked():
    scale = DynamicLossScale()
    for times, expected in ((1.0, True), (np.inf, False)):
        step = scaled_value_and_grad(lambda z, times=times: (z * times).real, scale)
        assert bool(step(scale.init(), jnp.complex64(1 + 1j)).finite) == expected


@pytest.mark.parametrize("on_overflow", ["skip", "retry"])
def test_strict_promotion_works_without_a_retrace(on_overflow):
    scale = DynamicLossScale()
    with jax.numpy_dtype_promotion("strict"):
        step = jax.jit(scaled_value_and_grad(lambda w: (w * w).sum(), scale, on_overflow=on_overflow))
        state, w = scale.init(), jnp.ones(2, jnp.bfloat16)
        for _ in range(3):
            _, grads, _, state = step(state, w)
            w = (w.astype(jnp.float32) - grads * 0.25).astype(w.dtype)
    assert step._cache_size() == 1


@pytest.mark.slow
@pytest.mark.parametrize("on_overflow", ["skip", "retry"])
def test_vmap_works(on_overflow):
    scale = DynamicLossScale(2.0**15)
    step = scaled_value_and_grad(lambda w: w * w, scale, on_overflow=on_overflow)
    states = jax.vmap(lambda _: scale.init())(jnp.arange(3))
    w = jnp.asarray([1, 200, 0.5], jnp.float16)
    batched = jax.vmap(step)(states, w)
    alone = [step(scale.init(), each) for each in w]
    assert len(jax.tree.leaves(batched)) == 8
    for leaf, *each in zip(*map(jax.tree.leaves, (batched, *alone)), strict=True):
        np.testing.assert_array_equal(leaf, jnp.stack(each))


def test_cast_floating_handles_every_byte_order():
    out = cast_floating(np.ones(2, ">f4"), "float16")
    assert (out.dtype, out.tolist()) == ("float16", [1, 1])


@pytest.mark.parametrize("argnums", [0, 2, (0, 1), (1, 2), -1, -2, -3, (-1, 0), [0, 2], [-1]], ids=str)
def test_aux_argnums_and_keywords_match_value_and_grad(argnums):
    def loss(x, w, y, *, by):
        return (w * x * x + y * y * y).sum() * by, {"aux": x}

    args, scale = tuple(map(jnp.float32, (2, 3, 5))), FixedLossScale(16.0)
    wanted = jax.value_and_grad(loss, tuple(argnums) if isinstance(argnums, list) else argnums, has_aux=True)
    made = scaled_value_and_grad(loss, scale, argnums, has_aux=True)(scale.init(), *args, by=2.0)
    assert jax.tree.map(float, (made.value, made.grads)) == jax.tree.map(float, wanted(*args, by=2.0))
    assert (bool(made.finite), float(made.state.loss_scale)) == (True, 16)


@either_mode
def test_all_finite_checks_every_leaf_and_dtype(jitted):
    check = jax.jit(all_finite) if jitted else all_finite
    for dtype in ("float16", "bfloat16", "float32", "float8_e5m2", "complex64"):
        good = {"a": jnp.ones((2, 2), dtype), "n": jnp.arange(3), "b": (jnp.zeros((), dtype), jnp.ones(0, dtype))}
        assert bool(check(good))
        for bad in (np.inf, -np.inf, np.nan, *([complex(0, np.nan)] if dtype == "complex64" else [])):
            assert not bool(check(good | {"b": (jnp.asarray(bad, dtype),)})), (dtype, bad)


def test_all_finite_accepts_all_kinds_of_leaves_and_huge_values():
    for tree in ({}, [jnp.full(100, 3e38)], [np.float64(1), jax.random.key(0), np.arange(3)]):  # the norm of one is inf
        assert bool(all_finite(tree))
    assert not bool(all_finite([np.float32(np.inf), jax.random.key(0), None, "name"]))


def differentiate(loss=lambda w: w, scale="dynamic", *, state=None, **kwargs):
    state = DynamicLossScale().init() if state is None else state
    return scaled_value_and_grad(loss, scale, **kwargs)(state, jnp.float32(1))


def reduce(*args, axis="data", **kwargs):
    return on_replicas(lambda part: all_reduce_gradients(part, axis, *args, **kwargs), 2)(jnp.ones(2))


INVALID = [
    (lambda: differentiate(scale=None), TypeError, r"jax\.value_and_grad"),
    (lambda: differentiate(state=jnp.float32(2)), TypeError, "the state of a loss scale must be a LossScaleState"),
    *(
        (lambda loss=loss: differentiate(loss, has_aux=True), TypeError, "must return a pair of loss and auxil")
        for loss in (lambda w: w, lambda w: (w,), lambda w: (w, w, w))
    ),
    (lambda: differentiate(argnums=3), TypeError, "argnums=3 requires at least 4 positional"),
    (lambda: differentiate(scale=FixedLossScale(8.0), on_overflow="retry"), ValueError, "cannot retry: use on_overfl"),
    (lambda: differentiate(on_overflow="retyr"), UnknownNameError, "did you mean 'retry'"),
    (lambda: differentiate(on_overflow=None), ValueError, "choose from skip, retry"),
    (lambda: differentiate(on_overflow="retry", max_retries=-1), ValueError, "^max_retries must be from 0"),
    (lambda: differentiate(lambda w: (w, {"name": "w"}), has_aux=True, on_overflow="retry"), TypeError,
     r"got str \(at '1/name'\): do not return it"),
    (lambda: differentiate(reduce_dtype="float16"), ArgumentError, "'float16' needs an axis: pass axis_name, such"),
    (lambda: differentiate(axis_name="data", reduce_dtype="int8"), ArgumentError, "must be reduced in .*, got int8"),
    (lambda: differentiate(axis_name="data", reduce_dtype="flaot16"), UnknownDtypeError, "did you mean 'float16'"),
    (lambda: differentiate(axis_name="data"), ArgumentError, "there is no axis 'data' here"),
    (lambda: reduce("flaot16"), UnknownDtypeError, "did you mean 'float16'"),
    (lambda: reduce("float64"), ArgumentError, "no float64 while x64 is off"),
    (lambda: reduce(scaled=True), ArgumentError, "scaled=True needs loss_scale_state"),
    (lambda: reduce(None, 2.0**15), TypeError, "must be a LossScaleState"),
    *(
        (lambda name=name: reduce(axis=name), ArgumentError, "must be an axis name or a tuple of different names")
        for name in [(), ("data", "data")]
    ),
    *(
        (lambda dtype=dtype: reduce(dtype), ArgumentError, f"in bfloat16, float16, float32 or float64, got {dtype}")
        for dtype in ("int32", "complex64", "float8_e5m2", "float4_e2m1fn", "bool")
    ),
    *(
        (lambda dtype=dtype: cast_floating([jnp.ones(2)], dtype), TypeError, "real floating dtype, got .*: for other")
        for dtype in ("int32", "bool", "complex64", np.uint8)
    ),
]  # fmt: skip


def test_invalid_arguments_raise_errors_that_help():
    for call, error, message in INVALID:
        with pytest.raises(error, match=message):
            call()
