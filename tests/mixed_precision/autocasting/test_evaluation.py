"""JAX's own checks see through autocast: NaNs and infinities, leaked tracers."""

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
def with_a_tangent(x):
    return jnp.log(x - 3)


with_a_tangent.defjvp(lambda primals, tangents: (with_a_tangent(*primals), tangents[0] / (primals[0] - 3)))


@jax.custom_vjp
def with_a_gradient(x):
    return jnp.log(x - 4)


with_a_gradient.defvjp(lambda x: (jnp.log(x - 4), x), lambda x, gradient: (gradient / (x - 4),))


@jax.custom_batching.custom_vmap
def with_batches(x):
    return jnp.log(x - 5)


with_batches.def_vmap(lambda size, batched, x: (jnp.log(x - 5), batched[0]))


BORN = {
    "with a rule for tangents": (lambda x: with_a_tangent(x @ W), "log", "jnp.log(x - 3)"),
    "with a rule for gradients": (lambda x: with_a_gradient(x @ W), "log", "jnp.log(x - 4)"),
    "with a rule for batches": (lambda x: with_batches(x @ W), "log", "jnp.log(x - 5)"),
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


@pytest.mark.parametrize("name", BORN)
@pytest.mark.parametrize("jitted", [False, True])
def test_a_nan_is_found_where_it_is_born(name, jitted):
    function, operation, text = BORN[name]
    function = autocast(function, POLICY)
    assert bool(jnp.isnan((jax.jit(function) if jitted else function)(X)).any())
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        (jax.jit(function) if jitted else function)(X)
    message = str(caught.value).partition("\n")[0]
    assert message.startswith(f"invalid value (nan) encountered in {operation}"), message
    assert f", at {__file__}:{line_with(text)}:" in message
    assert message.endswith(", under autocast")


def test_jax_finds_infinities_itself():
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
def test_functions_that_write_nans_in_themselves_pass(name):
    with jax.debug_nans(True):
        HARMLESS[name](V)
        autocast(HARMLESS[name], POLICY)(V)
        jax.grad(lambda x: autocast(HARMLESS[name], POLICY)(x).sum())(V)


# JAX takes no gradients of functions with a rule for batches.
@pytest.mark.parametrize("name", sorted(BORN.keys() - {"with a rule for batches"}))
def test_gradients_are_looked_at_as_without_autocast(name):
    function = BORN[name][0]
    # A NaN that a rule for tangents gives is found by the next operation, here outside of autocast.
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
def test_no_tracer_leaks(run):
    def function(x, w):
        return {"loss": jnp.tanh(x @ w), "other": (x, 3, "text")[0]}

    with jax.checking_leaks():
        run(autocast(function, POLICY))
