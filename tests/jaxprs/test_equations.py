"""The properties of equations: scopes, names, callees and lines."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import Jaxpr, Primitive

from supremum.jax_compat import INLINE
from supremum.jaxprs import CALLS, callees, line_of, name_of_call, scopes_of, walk
from supremum.jaxprs.plans import plan_of


def equations(function, *operands):
    return jax.make_jaxpr(function)(*operands).eqns


def equation(name, function, *operands):
    closed = jax.make_jaxpr(function)(*operands)
    return next(site.equation for site in walk(closed) if site.equation.primitive.name == name)


def in_scopes(x):
    with jax.named_scope("encoder"), jax.named_scope("norm"):
        return jnp.sin(x)


@pytest.mark.parametrize(
    "transformed",
    [
        *(in_scopes, jax.jit(in_scopes, inline=INLINE), jax.vmap(in_scopes), jax.vmap(jax.vmap(in_scopes))),
        *(derivative(lambda x: in_scopes(x).sum()) for derivative in (jax.grad, jax.value_and_grad)),
        *(jax.jacfwd(in_scopes), jax.jacrev(in_scopes), lambda x: jax.linearize(in_scopes, x)[1](x)),
    ],
)
def test_scopes_exclude_transformations(transformed):
    found = equations(lambda x: jax.tree.map(jnp.exp, transformed(x)), jnp.ones((2, 2)))
    inside = {scopes_of(each) for each in found if each.primitive.name in ("jit", "sin", "cos", "mul")}
    assert inside == {("encoder", "norm")}
    assert scopes_of(found[-1]) == ()  # it is outside of the scope


def double(x):
    return 2 * x


@jax.custom_jvp
def forward(x):
    return 2 * x


forward.defjvp(lambda primals, tangents: (forward(*primals), tangents[0]))


@jax.custom_vjp
def backward(x):
    return 2 * x


backward.defvjp(lambda x: (2 * x, None), lambda _, cotangent: (cotangent,))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (jax.jit(double), "double"),
        (jax.nn.silu, "silu"),
        (forward, "forward"),
        (backward, "backward"),
        (jax.jit(lambda x: x + 1), "<lambda>"),
        (double, ""),
        (jax.checkpoint(double), ""),
        (lambda x: lax.scan(lambda carry, _: (double(carry), None), x, length=2)[0], ""),
        (lambda x: lax.cond(x > 0, double, double, x), ""),
        (lambda x: checkpoint_name(x, "kept"), ""),
    ],
)
def test_calls_have_the_names_of_their_functions(function, name):
    assert name_of_call(equations(function, 1.0)[-1]) == name


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (double, []),
        (jax.jit(double), [("jaxpr", 1)]),
        (jax.checkpoint(double), [("jaxpr", 1)]),
        (forward, [("call_jaxpr", 1)]),
        (backward, [("call_jaxpr", 1)]),
        (lambda x: lax.scan(lambda carry, _: (double(carry), None), x, length=4)[0], [("jaxpr", 4)]),
        (
            lambda x: lax.while_loop(lambda carry: carry < 1, double, x),
            [("body_jaxpr", None), ("cond_jaxpr", None)],
        ),
        (lambda x: lax.switch(x.astype(int), [double, jnp.sin, jnp.cos], x), [("branches", 1)] * 3),
        (lambda x: lax.cond(x > 0, double, jnp.sin, x), [("branches", 1), ("branches", 1)]),
        (lambda x: lax.reduce(jnp.ones(3), x, lambda a, b: a * b + 1, (0,)), [("jaxpr", 1)]),
    ],
)
def test_callees_are_the_functions_that_an_equation_calls(function, parameters):
    call = equations(function, 1.0)[-1]
    found = callees(call)
    assert sorted((callee.parameter, callee.trips) for callee in found) == parameters
    assert all(isinstance(callee.jaxpr, Jaxpr) for callee in found)
    if call.primitive.name in CALLS:
        assert found[0].parameter == CALLS[call.primitive.name]
        assert len(found[0].jaxpr.invars) == len(call.invars)


@pytest.mark.parametrize(
    ("impl", "inside"),
    [
        (lambda x, *, by: jnp.sin(x.astype("bfloat16")) * by, ["convert_element_type", "sin", "mul"]),
        (lambda x, *, by: np.sin(x) * by, []),  # needs values
        (None, []),
    ],
    ids=["traceable", "numpy", "none"],
)
def test_a_primitive_of_a_library_is_opened_where_jax_can_trace_its_function(impl, inside):
    primitive = Primitive("scaled_sine")
    primitive.def_abstract_eval(lambda x, *, by: x)
    if impl is not None:
        primitive.def_impl(impl)
    program = jax.make_jaxpr(lambda x: primitive.bind(x, by=2))(jnp.ones(3))
    first, *others = walk(program)
    assert [site.equation.primitive.name for site in others] == inside
    assert callees(first.equation) == callees(first.equation)
    assert {line_of(site.equation) for site in others} <= {line_of(first.equation)}
    # Nobody runs the function instead of the primitive.
    assert [step.inner for step in plan_of(program).steps] == [()]


def test_a_line_names_file_line_and_function():
    def here(x):
        return jnp.sin(x)

    _, first = inspect.getsourcelines(here)
    line = line_of(equation("sin", here, 1.0))
    assert line.split(":")[0].endswith("test_equations.py")
    assert line.split(":")[1] == str(first + 1)
    assert line.endswith(f"({here.__qualname__})")
