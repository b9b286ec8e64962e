"""Rules of custom derivatives are rewritten with their functions.

The first two tests check how JAX stores the rules. If they fail, adapt `supremum.jaxprs.custom_derivatives`.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Jaxpr, check_jaxpr

from supremum.jaxprs import walk
from supremum.mixed_precision import autocast

W = jax.random.normal(jax.random.key(0), (8, 8)) * 0.3
X = jax.random.normal(jax.random.key(1), (4, 8))


def test_jax_calls_forward_rules_with_the_zero_tangents():
    @jax.custom_jvp
    def function(x, y):
        return x * y, y

    function.defjvp(lambda p, t: (function(*p), (t[0] * p[1] + p[0] * t[1], t[1])))
    (equation,) = jax.make_jaxpr(function)(1.0, 2.0).eqns
    assert equation.params.keys() == {"call_jaxpr", "jvp_jaxpr_fun", "num_consts", "symbolic_zeros"}
    jaxpr, consts, zeros = equation.params["jvp_jaxpr_fun"].call_wrapped(False, False)
    assert (isinstance(jaxpr, Jaxpr), list(consts), [bool(zero) for zero in zeros]) == (True, [], [False, False])
    assert (len(jaxpr.invars), len(jaxpr.outvars)) == (4, 4)


def test_jax_calls_backward_rules_with_residuals_and_cotangents():
    @jax.custom_vjp
    def function(x, y):
        return x * y

    function.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, g: (g * saved[1], g * saved[0]))
    (equation,) = jax.make_jaxpr(function)(1.0, 2.0).eqns
    wanted = {"call_jaxpr", "fwd_jaxpr_thunk", "bwd", "num_consts", "out_trees", "symbolic_zeros"}
    assert equation.params.keys() == wanted
    jaxpr, consts = equation.params["fwd_jaxpr_thunk"].call_wrapped(True, True)
    # Residuals that are operands are not results.
    assert (isinstance(jaxpr, Jaxpr), list(consts), len(jaxpr.invars), len(jaxpr.outvars)) == (True, [], 2, 1)
    gradients = equation.params["bwd"].call_wrapped(jnp.float32(2), jnp.float32(3), jnp.float32(1))
    assert [float(gradient) for gradient in jax.tree.leaves(gradients)] == [3, 2]


def compared(function, ops=None):
    """The gradients of a function with and without autocast, and the dtypes of its products."""
    cast = jax.grad(lambda x: autocast(function, ops=ops)(x).sum())
    closed = jax.make_jaxpr(cast)(X)
    check_jaxpr(closed.jaxpr)
    found = {str(s.equation.invars[0].aval.dtype) for s in walk(closed) if s.equation.primitive.name == "dot_general"}
    want = jax.jit(jax.grad(lambda x: function(x).sum()))(X)
    np.testing.assert_allclose(jax.jit(cast)(X), want, rtol=0.05, atol=0.05 * float(jnp.abs(want).max()))
    return found


def test_a_rule_may_close_over_tracers_where_jax_allows_it():
    def program(x, scale):
        @jax.custom_jvp
        def function(y):
            return (y @ W) * scale

        function.defjvp(lambda p, t: (function(*p), 10 * (t[0] @ W) * scale))
        return function(x).sum()

    # Around autocast, as around jax.checkpoint, JAX reports a leaked tracer.
    np.testing.assert_allclose(autocast(jax.grad(program))(X, X), 10 * X @ W.T, rtol=0.05, atol=0.5)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.grad(autocast(program))(X, X)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.grad(jax.checkpoint(program))(X, X)


def test_rules_with_symbolic_zeros_are_rewritten():
    @jax.custom_jvp
    def function(x, y):
        return x @ y

    def rule(primals, tangents):
        zero = type(tangents[1]) is jax.custom_derivatives.SymbolicZero
        return function(*primals), (2 if zero else 1) * (tangents[0] @ primals[1])

    function.defjvp(rule, symbolic_zeros=True)
    assert compared(lambda x: function(jnp.sin(x) @ W, W)) == {"bfloat16"}


def test_rules_with_integers_and_several_results_are_rewritten():
    @jax.custom_jvp
    def function(x, n):
        return x @ W, n + 1, jnp.exp(x)

    @function.defjvp
    def _(primals, tangents):
        (x, n), (dx, dn) = primals, tangents
        return function(x, n), (dx @ W, dn, 2 * dx * jnp.exp(x))

    def program(x):
        product, count, grown = function(x @ W, jnp.arange(8))
        return product * count + grown

    assert compared(program) == {"bfloat16"}


def test_results_of_a_rule_have_the_dtypes_of_the_function():
    @jax.custom_jvp
    def function(x):
        return jnp.tanh(x @ W)

    def rule(primals, tangents):
        y = function(*primals)
        return jnp.sum(jnp.stack([y, 0 * y]), 0), (1 - y**2) * (tangents[0] @ W)  # sums and powers run in float32

    function.defjvp(rule)
    assert compared(function) == {"bfloat16"}
    tangent = jax.make_jaxpr(lambda x: jax.jvp(autocast(lambda x: function(x) @ W), (x,), (x,)))(X)
    products = [s.equation for s in walk(tangent) if s.equation.primitive.name == "dot_general"]
    assert {str(atom.aval.dtype) for product in products for atom in product.invars} == {"bfloat16"}


def test_nested_rules_are_rewritten():
    @jax.custom_jvp
    def function(x):
        return jnp.tanh(x @ W)

    function.defjvp(lambda p, t: (function(*p), jax.nn.relu(function(p[0])) * (t[0] @ W)))
    assert compared(lambda x: jax.grad(lambda y: function(y).sum())(x)) == {"bfloat16"}


@pytest.mark.parametrize(
    ("ops", "expected"), [({"function": "declared"}, "float32"), ({"function": "inside"}, "bfloat16")]
)
def test_backward_rules_with_nondiff_arguments_and_none_cotangents_are_rewritten(ops, expected):
    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def function(power, x, n, w):
        return (x @ w) ** power + n

    def forward(power, x, n, w):
        return function(power, x, n, w), (x, w)

    def backward(power, saved, g):
        x, w = saved
        return (power * g * (x @ w) ** (power - 1)) @ w.T, None, None

    function.defvjp(forward, backward)
    assert compared(lambda x: function(2, jnp.sin(x), jnp.arange(8), W), ops) == {expected}
