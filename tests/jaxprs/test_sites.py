"""Every equation of a program is found once, with its scopes, its callers and how often it runs."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from jaxprs.custom_rules import with_jvp, with_vjp
from supremum.jaxprs import walk

X = jnp.ones(3)


def walked(function, *operands):
    return list(walk(jax.make_jaxpr(function)(*operands)))


def sites(name, function, *operands):
    return [site for site in walked(function, *operands) if site.equation.primitive.name == name]


def scanned(function, length):
    return lambda x: lax.scan(lambda carry, _: (function(carry), None), x, length=length)[0]


def looped(function):
    return lambda x: lax.while_loop(lambda carry: jnp.all(carry < 1), function, x)


def branched(function):
    return lambda x: lax.cond(jnp.all(x > 0), function, jnp.cos, x)


def mapped(function):
    mesh = jax.make_mesh((1,), ("i",), devices=jax.devices()[:1])
    return jax.shard_map(function, mesh=mesh, in_specs=P(), out_specs=P())


CALLED = {
    "jit": (jax.jit(jnp.sin), ["jit"]),
    "jit in jit": (jax.jit(jax.jit(jnp.sin)), ["jit", "jit"]),
    "remat": (jax.checkpoint(jnp.sin), ["remat2"]),
    "scan": (scanned(jnp.sin, 5), ["scan"]),
    "while": (looped(jnp.sin), ["while"]),
    "cond": (branched(jnp.sin), ["cond"]),
    "custom_jvp": (with_jvp, ["custom_jvp_call"]),
    "custom_vjp": (with_vjp, ["custom_vjp_call"]),
    "shard_map": (mapped(jnp.sin), ["shard_map"]),
    "linear solve": (
        lambda x: lax.custom_linear_solve(jnp.sin, x, lambda _, b: b, symmetric=True),
        ["custom_linear_solve"],
    ),
    "cond in scan in jit": (jax.jit(scanned(branched(jnp.sin), 2)), ["jit", "scan", "cond"]),
}


@pytest.mark.parametrize(("function", "callers"), CALLED.values(), ids=CALLED)
def test_called_functions_are_walked_with_their_callers(function, callers):
    def without_inlining(x):
        return jnp.exp(function(x))

    found = sites("sin", without_inlining, X)
    # Whether a function of jnp is jitted depends on the version of JAX.
    assert {tuple(caller.primitive.name for caller in site.callers)[: len(callers)] for site in found} == {
        tuple(callers)
    }
    (last,) = sites("exp", without_inlining, X)
    assert (last.callers, last.trips) == ((), 1)


@pytest.mark.parametrize(
    ("function", "trips"),
    [
        (jnp.sin, 1),
        (jax.jit(jnp.sin), 1),
        (scanned(jnp.sin, 5), 5),
        (scanned(scanned(jnp.sin, 3), 5), 15),
        (scanned(jax.jit(scanned(jax.checkpoint(scanned(jnp.sin, 2)), 3)), 5), 30),
        (scanned(jnp.sin, 0), 0),
        (branched(jnp.sin), 1),
        (scanned(branched(jnp.sin), 4), 4),
        (looped(jnp.sin), None),
        (looped(scanned(jnp.sin, 3)), None),
        (scanned(looped(jnp.sin), 3), None),
        (lambda x: lax.fori_loop(0, 7, lambda _, carry: jnp.sin(carry), x), 7),
        (lambda x: lax.fori_loop(0, x.astype(int)[0], lambda _, carry: jnp.sin(carry), x), None),
        (jax.vmap(scanned(jnp.sin, 6)), 6),
        (mapped(scanned(jnp.sin, 6)), 6),
        (lambda x: lax.map(jnp.sin, x), 3),
        (lambda x: jax.grad(lambda x: scanned(jnp.sin, 5)(x).sum())(x), 5),
        (lambda x: lax.while_loop(lambda carry: jnp.all(jnp.cos(carry) < 1), jnp.sin, x), None),
    ],
)
def test_trips_multiply(function, trips):
    assert {site.trips for name in ("sin", "cos") for site in sites(name, function, X)} == {trips}


@jax.jit
def inner(x):
    return jnp.cos(jax.jit(lambda x: jnp.tan(x) + 1)(jnp.sin(x)))


@pytest.mark.parametrize(
    ("function", "order"),
    [
        (lambda x: jnp.exp(inner(jnp.log(x))), ["log", "jit", "sin", "jit", "tan", "add", "cos", "exp"]),
        (lambda x: lax.while_loop(lambda carry: jnp.cos(carry) < 1, jnp.sin, x), ["while", "cos", "lt", "sin"]),
        (lambda x: lax.switch(x.astype(int), [jnp.sin, jnp.cos, jnp.tan], x), ["cond", "sin", "cos", "tan"]),
    ],
)
def test_equations_are_in_the_order_of_execution_and_branches_in_that_of_their_index(function, order):
    found = [site.equation.primitive.name for site in walked(function, 1.0)]
    assert [name for name in found if name in order] == order


def test_a_function_called_twice_is_walked_twice():
    called = jax.jit(jnp.sin)
    found = sites("sin", lambda x: called(called(x)), X)
    assert len(found) == 2
    assert found[0].callers != found[1].callers


def test_scopes_of_callers_come_first():
    def block(x, _):
        with jax.named_scope("block"):
            return jax.jit(norm)(x), None

    def norm(x):
        with jax.named_scope("norm"):
            return jnp.sin(x)

    def model(x):
        with jax.named_scope("encoder"):
            return jnp.exp(lax.scan(block, x, length=2)[0])

    (site,) = sites("sin", model, X)
    assert site.scopes == ("encoder", "block", "norm")
    assert site.path == "encoder/block/norm"
    (site,) = sites("exp", model, X)
    assert site.path == "encoder"
    for transformed in (jax.jit(model), jax.vmap(model), jax.grad(lambda x: jnp.sum(model(x)))):
        assert {site.path for site in sites("sin", transformed, X)} == {"encoder/block/norm"}
    assert {site.path for site in sites("cos", jax.grad(lambda x: jnp.sum(model(x))), X)} == {"encoder/block/norm"}
    (site,) = sites("sin", jnp.sin, 1.0)
    assert (site.scopes, site.path) == ((), "")


def test_open_and_closed_jaxprs_have_the_same_sites():
    closed = jax.make_jaxpr(jax.jit(jnp.sin))(1.0)
    assert list(walk(closed)) == list(walk(closed.jaxpr))


def test_walk_supports_deeply_nested_programs():
    closed = jax.make_jaxpr(jax.jit(jnp.sin))(1.0)
    (call,) = closed.eqns
    function = call.params["jaxpr"]
    for _ in range(3000):
        inner = function
        function = inner.replace(jaxpr=inner.jaxpr.replace(eqns=[call.replace(params={**call.params, "jaxpr": inner})]))
    found = list(walk(function))
    assert len(found) == 3001
    assert len(found[-1].callers) == 3000
