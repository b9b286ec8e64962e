"""A call that hands a library floats of two dtypes is a promotion of the caller, with a fix that was tried."""

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from supremum.tracing import ForbiddenCastError, casts, forbid_casts

KEY, X = jax.random.key(0), jnp.ones(16)
BF16 = jnp.bfloat16
LINEN = nn.Sequential([nn.Dense(8, param_dtype=BF16), nn.relu, nn.Dense(4, param_dtype=BF16)])
WEIGHTS = LINEN.init(KEY, X)


def call(model, x):
    return model(x)


def scaled(model, x):
    return model(x / 255.0).sum()


def mapped(model, x):
    return jax.vmap(model)(jnp.stack([x, x]))


def applied(weights, inputs):
    return LINEN.apply(weights, inputs)


def mlp(dtype=BF16):
    return eqx.nn.MLP(16, 4, 64, 3, dtype=dtype, key=KEY)


def linear(**dtypes):
    return nnx.Linear(16, 4, rngs=nnx.Rngs(0), **dtypes)


NARROW = {
    "Equinox": (call, mlp, "model(x)", "x"),
    "Equinox, jitted": (eqx.filter_jit(call), mlp, "model(x)", "x"),
    "Equinox, a computed input": (scaled, mlp, "model(x / 255.0)", "(x / 255.0)"),
    "Equinox, mapped": (mapped, mlp, "jax.vmap(model)(jnp.stack([x, x]))", "jnp.stack([x, x])"),
    "Equinox, without bias": (
        call, lambda: eqx.nn.Linear(16, 4, use_bias=False, dtype=BF16, key=KEY), "model(x)", "x"
    ),
    "nnx": (call, lambda: linear(param_dtype=BF16), "model(x)", "x"),
    "nnx without bias": (call, lambda: linear(param_dtype=BF16, use_bias=False), "model(x)", "x"),
    "linen": (applied, lambda: WEIGHTS, "LINEN.apply(weights, inputs)", "inputs"),
    "linen, jitted": (jax.jit(applied), lambda: WEIGHTS, "LINEN.apply(weights, inputs)", "inputs"),
}  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
def test_a_float32_input_of_a_bfloat16_model_is_a_promotion_with_a_fix(name):
    function, make, expression, text = NARROW[name]
    report = casts(function)(make(), X)
    (cause,) = report.causes
    assert (cause.first.kind, cause.first.expression) == ("promotion", expression)
    assert (str(cause.first.source), str(cause.first.target)) == ("bfloat16", "float32")
    assert cause.fixes == (f"{text}.astype('bfloat16') to stay in bfloat16",)
    assert len(cause.casts) + len(cause.follow) == len(report)
    with pytest.raises(ForbiddenCastError, match="hands"):
        forbid_casts()(function)(make(), X)
    forbid_casts()(function)(make(), X.astype(BF16))
    forbid_casts(allow="tf-rfc-safe")(function)(make(), X)


def test_a_bfloat16_input_of_a_float32_model_is_a_promotion_with_a_fix():
    for function, model in [(call, mlp("float32")), (call, linear()), (applied, LINEN.init(KEY, X))]:
        if function is applied:
            model = jax.tree.map(lambda w: w.astype("float32"), model)
        (cause,) = casts(function)(model, X.astype(BF16)).causes
        text = "inputs" if function is applied else "x"
        assert cause.fixes == (f"{text}.astype('float32') to compute in float32",)
        forbid_casts()(function)(model, X)


def test_a_fix_is_shown_only_if_it_was_tried():
    model = linear(param_dtype=BF16, dtype=jnp.float32)  # which computes in float32, whatever its input is
    (cause,) = casts(call)(model, X).causes
    assert (cause.first.kind, cause.fixes) == ("promotion", ())
    (cause,) = casts(lambda x: mlp()(x.astype("float32")))(X.astype(BF16)).causes
    assert cause.first.asked_for.expression == 'x.astype("float32")'
    assert cause.fixes == ()


def test_a_fix_casts_arrays_and_no_containers():
    def loss(weights, batch):
        return LINEN.apply(weights, batch["x"] / 2).sum()

    (cause,) = casts(loss)(WEIGHTS, {"x": X, "y": X}).causes
    assert cause.fixes == ("(batch[\"x\"] / 2).astype('bfloat16') to stay in bfloat16",)
    optimizer = optax.adam(1e-3, mu_dtype="float32")
    weights = {"w": X.astype(BF16)}
    (cause,) = casts(lambda g, s: optimizer.update(g, s))(weights, optimizer.init(weights)).causes
    assert (cause.first.kind, cause.fixes) == ("promotion", ())


def test_a_wider_bias_is_handed_too():
    model = linear(param_dtype=BF16)
    model.bias.set_value(jnp.zeros(4))
    (cause,) = casts(call)(model, X.astype(BF16)).causes
    assert (cause.first.kind, cause.first.expression) == ("promotion", "model(x)")
    assert cause.fixes == ()  # of inputs, none helps


def test_inputs_that_the_caller_makes_are_handed():
    for make in (lambda: jnp.ones(16), lambda: jax.random.normal(KEY, (16,)), lambda: np.ones(16, "float32")):
        (cause,) = casts(lambda model, make=make: model(make()))(mlp()).causes
        assert (cause.first.kind, cause.first.expression) == ("promotion", "model(make())")


def test_models_with_a_compute_dtype_promote_nothing():
    def step(model, x):
        return model(x).sum()

    norm = nnx.BatchNorm(16, dtype=BF16, use_running_average=True, rngs=nnx.Rngs(0))
    for model in (linear(dtype=BF16), nnx.LayerNorm(16, dtype=BF16, rngs=nnx.Rngs(0)), norm):
        for x in (X, X.astype(BF16)):
            forbid_casts()(step)(model, x[None])
    forbid_casts()(step)(eqx.nn.LayerNorm(16, dtype=BF16), X.astype(BF16))
    forbid_casts()(lambda x: jax.nn.softmax(x).mean())(X.astype(BF16))


def test_a_library_that_mixes_values_of_its_own_is_not_the_callers_promotion():
    noise = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    forbid_casts()(call)(noise, X.astype(BF16))
    optimizer = optax.adamw(1e-3)
    weights = {"w": X.astype(BF16)}
    forbid_casts()(lambda g, s, w: optimizer.update(g, s, w)[0])(weights, optimizer.init(weights), weights)
    rate = optax.sgd(optax.linear_schedule(1e-3, 1e-4, 100))
    forbid_casts()(lambda g, s: rate.update(g, s)[0])(weights, rate.init(weights))


def test_functions_of_jax_are_a_library_too():
    (cause,) = casts(lambda x, xp: jnp.interp(x, xp, xp))(X.astype(BF16), X).causes
    assert (cause.first.kind, cause.first.expression) == ("promotion", "jnp.interp(x, xp, xp)")
