"""Unused casts run 0 times at any depth; the counts of other casts are unchanged."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from supremum.tracing import casts, casts_of
from tracing.lowered import converts

X, Y = jnp.ones(8, jnp.bfloat16), jnp.ones(8)


def pair(x):
    """Two results with a cast each."""
    return x.astype("float32"), x.astype("float16")


def times(function, *operands):
    return {str(cast.target): cast.times for cast in casts(function)(*operands)}


CALLS = {
    "jit": (lambda x: jax.jit(pair)(x)[0], 1),
    "jit in jit": (lambda x: jax.jit(jax.jit(pair))(x)[0], 1),
    "checkpoint": (lambda x: jax.checkpoint(pair)(x)[0], 1),
    "cond": (lambda x: lax.cond(x[0] > 0, pair, lambda x: (x.astype("float32"), jnp.zeros(8, "float16")), x)[0], 1),
    "scan": (lambda x: lax.scan(lambda c, _: (c, pair(x)), 0, length=3)[1][0], 3),
    "plain": (lambda x: pair(x)[0], 1),
    "map": (lambda x: lax.map(lambda row: pair(row)[0], x), 8),
}


@pytest.mark.parametrize("name", CALLS)
def test_casts_of_unused_results_run_0_times(name):
    function, count = CALLS[name]
    found = times(function, X)
    assert found["float32"] == count
    assert found.get("float16", 0) == 0
    # JAX does not lower them either.
    assert ("bfloat16", "float16") not in converts(jax.jit(function).lower(X).as_text())


def unused_call(x):
    jax.jit(lambda x: jax.jit(pair)(x))(x)
    return x


RUNS = {
    "an effect": (lambda x: jax.jit(lambda x: jax.debug.print("{}", x.astype("float32")))(x), {"float32": 1}),
    "carries": (
        lambda x: lax.scan(lambda c, _: (c.astype("float32").astype(c.dtype), None), x, length=2)[0],
        {"float32": 2, "bfloat16": 2},
    ),
    "a loop": (lambda x: lax.while_loop(lambda c: True, lambda c: x.astype("float32"), Y), {"float32": None}),
    "inside an unused call": (unused_call, {"float32": 0, "float16": 0}),
}


@pytest.mark.parametrize("name", RUNS)
def test_effects_and_loops_are_used_and_unused_calls_are_not(name):
    function, expected = RUNS[name]
    assert times(function, X) == expected


def test_liveness_of_deeply_nested_programs():
    (call,) = jax.make_jaxpr(jax.jit(lambda x: x.astype("float32")))(X).eqns
    function = call.params["jaxpr"]
    for _ in range(1500):
        inner = function
        outer = inner.jaxpr.replace(
            eqns=[call.replace(params={**call.params, "jaxpr": inner})], invars=call.invars, outvars=call.outvars
        )
        function = inner.replace(jaxpr=outer)
    (cast,) = casts_of(function)
    assert (cast.times, cast.kind) == (1, "explicit")
