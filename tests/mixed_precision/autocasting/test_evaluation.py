"""JAX's checks for NaNs, infinities and leaked tracers work under autocast."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from supremum.mixed_precision import autocast

X, W, V = jnp.ones((2, 2)), jnp.ones((2, 2)), jnp.arange(4.0).reshape(2, 2)
POLICY = "mixed_bfloat16"


def logarithm(x):
    return jnp.log(x - 2) @ W


def quotient(x):
    return (x @ W) / (x - 1)


@jax.custom_jvp
def custom_jvp_log(x):
    return jnp.log(x - 3)


custom_jvp_log.defjvp(lambda primals, tangents: (custom_jvp_log(*primals), tangents[0] / (primals[0] - 3)))


@jax.custom_vjp
def custom_vjp_log(x):
    return jnp.log(x - 4)


custom_vjp_log.defvjp(lambda x: (jnp.log(x - 4), x), lambda x, gradient: (gradient / (x - 4),))


@jax.custom_batching.custom_vmap
def custom_vmap_log(x):
    return jnp.log(x - 5)


custom_vmap_log.def_vmap(lambda size, batched, x: (jnp.log(x - 5), batched[0]))


NAN_CASES = {
    "with a rule for tangents": (lambda x: custom_jvp_log(x @ W), "log", "jnp.log(x - 3)"),
    "with a rule for gradients": (lambda x: custom_vjp_log(x @ W), "log", "jnp.log(x - 4)"),
    "with a rule for batches": (lambda x: custom_vmap_log(x @ W), "log", "jnp.log(x - 5)"),
    "computed again": (lambda x: jax.checkpoint(lambda x: jnp.log(x @ W - 6))(x), "log", "jnp.log(x @ W - 6)"),
    "in a branch": (lambda x: lax.cond(x[0, 0] > 0, lambda x: jnp.log(x @ W - 7), jnp.sin, x), "cond", "lax.cond(x[0"),
    "in a batch": (lambda x: jax.vmap(lambda row: jnp.log(row @ W - 8))(x), "log", "jnp.log(row @ W - 8)"),
    "log": (logarithm, "log", "jnp.log(x - 2)"),
    "inside of a loop": (
        lambda x: lax.scan(lambda c, _: (jnp.log(c @ W - 9), None), x, length=2)[0],
        "scan",
        "lax.scan",
    ),
    "inside of a jitted function": (lambda x: jax.jit(logarithm)(x) + 1, "log", "jnp.log(x - 2)"),
    "softmax of infinities": (lambda x: jax.nn.softmax(x * -jnp.inf) @ W, "sub", "jax.nn.softmax(x"),
}


def line_with(text):
    return next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("name", NAN_CASES)
@pytest.mark.parametrize("jitted", [False, True])
def test_debug_nans_names_the_line_that_made_the_nan(name, jitted):
    function, operation, text = NAN_CASES[name]
    function = autocast(function, POLICY)
    assert bool(jnp.isnan((jax.jit(function) if jitted else function)(X)).any())
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        (jax.jit(function) if jitted else function)(X)
    message = str(caught.value).partition("\n")[0]
    assert message.startswith(f"invalid value (nan) encountered in {operation}"), message
    assert f", at {__file__}:{line_with(text)}:" in message
    assert message.endswith(", under autocast")


def test_debug_infs_finds_infinities():
    with jax.debug_nans(True):
        assert bool(jnp.isinf(autocast(quotient, POLICY)(X)).all())
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div"):
        autocast(quotient, POLICY)(X)


HARMLESS = {
    "variance": lambda x: jnp.var(x @ W) + jnp.std(x),
    "quantile": lambda x: jnp.quantile(x @ W, 0.5) + jnp.median(x),
    "sort": lambda x: jnp.sort(x @ W),
    "logsumexp": lambda x: jax.nn.logsumexp(x @ W, b=x),
    "nanmean": lambda x: jnp.nanmean(jnp.where(x > 5, jnp.inf, x @ W)),
    "a NaN that is not taken": lambda x: jnp.where(x > 5, jnp.nan, x @ W),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", HARMLESS)
def test_functions_that_use_nans_internally_pass_debug_nans(name):
    with jax.debug_nans(True):
        HARMLESS[name](V)
        autocast(HARMLESS[name], POLICY)(V)
        jax.grad(lambda x: autocast(HARMLESS[name], POLICY)(x).sum())(V)


# JAX cannot differentiate functions with a custom vmap rule.
@pytest.mark.parametrize("name", sorted(NAN_CASES.keys() - {"with a rule for batches"}))
def test_debug_nans_checks_gradients(name):
    function = NAN_CASES[name][0]
    # JAX finds a NaN from a JVP rule in the next operation, which is outside of autocast here.
    where = "(nan)" if name == "with a rule for tangents" else "under autocast"
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError):
            jax.grad(lambda x: function(x).sum())(X)
        with pytest.raises(FloatingPointError, match=re.escape(where)):
            jax.grad(lambda x: autocast(function, POLICY)(x).sum())(X)


@pytest.mark.parametrize(
    "run",
    [
        lambda f: f(X, W),
        lambda f: f.report(X, W),
        lambda f: jax.jit(f)(X, W),
        lambda f: jax.grad(lambda x: f(x, W)["loss"].sum())(X),
        lambda f: jax.jit(jax.vmap(f, in_axes=(0, None)))(X, W),
        lambda f: f(X, w=W),
    ],
)
def test_no_tracers_leak(run):
    def function(x, w):
        return {"loss": jnp.tanh(x @ w), "other": (x, 3, "text")[0]}

    with jax.checking_leaks():
        run(autocast(function, POLICY))
