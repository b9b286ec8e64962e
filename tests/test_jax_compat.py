"""The undocumented parts of JAX that this package uses; the tests fail when JAX changes them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Var, jaxpr_as_fun

from supremum.errors import SupremumError, UnsupportedJaxError
from supremum.jax_compat import (
    CLOSED_IS_OPEN,
    broadcast_equation,
    cast_equation,
    function_name,
    is_backend_running,
    is_transposed,
    open_jaxpr,
    parameter,
    primitives,
    raw_frames,
    scope_names,
    type_text,
    with_constants,
    without_constants,
)
from supremum.jaxprs import ENTERED, Rewriter, loop_operands, name_of_call, walk
from supremum.mixed_precision import AUTOCAST_OPERATIONS
from supremum.mixed_precision.autocasting.equation_rules import AutocastRule, Context
from supremum.mixed_precision.autocasting.settings import as_settings
from supremum.tracing import casts_of

X = jnp.ones((3, 4))
W = jnp.eye(4)


@jax.custom_jvp
def with_jvp(x):
    return jnp.sin(x) @ W


with_jvp.defjvp(lambda p, t: (with_jvp(*p), jnp.cos(p[0]) * t[0] @ W))


@jax.custom_vjp
def with_vjp(x):
    return jnp.sin(x) @ W


with_vjp.defvjp(lambda x: (with_vjp(x), x), lambda saved, g: (jnp.cos(saved) * (g @ W.T),))


def scanned(x):
    """A scan with constants, two carries, two inputs and two outputs."""
    return lax.scan(lambda c, t: ((jnp.tanh(c[0] @ W) * x.sum(), c[1] + 1), (c[0] + t[0], t[1])), (x, 0), (x[:, 0], x))


def looped(x):
    return lax.while_loop(lambda c: c[0].sum() < x.sum() * 100, lambda c: (c[0] * 2 @ W + x, c[1] + 1), (x, 0))


def without_carry(x):
    return lax.scan(lambda _, row: (None, row @ W), None, x)[1]


def without_rows(x):
    return lax.scan(lambda c, _: (c @ W, None), x, None, length=0)[0]


PROGRAMS = {
    "scan": scanned,
    "while": looped,
    "scan without a carry": without_carry,
    "scan of no rounds": without_rows,
    "vmap of scan": jax.vmap(scanned),
    "vmap of while": jax.vmap(lambda x: looped(x[None])),
    "derivative of scan": jax.grad(lambda x: scanned(x)[0][0].sum()),
    "tangent of scan": lambda x: jax.jvp(lambda x: scanned(x)[0][0], (x,), (x,)),
    "tangent of while": lambda x: jax.jvp(lambda x: looped(x)[0], (x,), (x,)),
    "derivative of derivative": jax.grad(lambda x: jax.grad(lambda y: scanned(y)[0][0].sum())(x).sum()),
    "derivative with checkpoint": jax.grad(lambda x: jax.checkpoint(scanned)(x)[0][0].sum()),
    "scan of keys": lambda x: lax.scan(lambda k, _: tuple(jax.random.split(k)), jax.random.key(0), None, length=2),
    "map": lambda x: lax.map(jnp.sin, x),
    "associative scan in scan": lambda x: lax.scan(lambda c, _: (lax.associative_scan(jnp.add, c), c), x, None, 2),
}


def batched(name):
    return jnp.stack([X, X]) if name == "vmap of scan" else X


def loops(closed):
    return [s.equation for s in walk(closed) if s.equation.primitive in (primitives.scan_p, primitives.while_p)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_loop_operands_match_the_counts_of_jax(name):
    found = loops(jax.make_jaxpr(PROGRAMS[name])(batched(name)))
    assert found
    for equation in found:
        params, operands = equation.params, loop_operands(equation)
        if equation.primitive is primitives.while_p:
            assert (operands.condition, operands.constants) == (params["cond_nconsts"], params["body_nconsts"])
        elif "num_carry" in params:
            assert (operands.constants, operands.carries) == (params["num_consts"], params["num_carry"])
        else:
            constants, carries, _ = params["ft_in"].unpack()
            assert (operands.constants, operands.carries) == (len(constants), len(carries))
        assert operands.first_carry == operands.condition + operands.constants


def test_constants_can_be_removed_and_restored():
    table = np.arange(4, dtype=np.float32)
    closed = jax.make_jaxpr(lambda x: x * jnp.asarray(table) + jnp.asarray(table[::-1].copy()))(1.0)
    assert len(closed.consts) == 2
    bare = without_constants(closed)
    assert isinstance(bare, Jaxpr)
    assert list(getattr(bare, "consts", [])) == []
    restored = with_constants(bare, closed.consts)
    assert isinstance(restored, ClosedJaxpr)
    assert [len(open_jaxpr(restored).constvars), len(open_jaxpr(restored).invars)] == [2, 1]
    np.testing.assert_array_equal(jaxpr_as_fun(restored)(jnp.float32(2))[0], 2 * table + table[::-1])


def test_open_jaxpr_matches_closed_is_open():
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    assert (open_jaxpr(closed) is closed) == CLOSED_IS_OPEN
    assert open_jaxpr(open_jaxpr(closed)) is open_jaxpr(closed)


def test_raw_frames_lead_to_the_line_of_an_equation():
    def inner(x):
        return x * 2

    (equation,) = jax.make_jaxpr(lambda x: inner(x))(1.0).eqns
    names = [code.co_name for code, offset in raw_frames(equation) if code.co_filename == __file__ and offset >= 0]
    assert names[:2] == ["inner", "<lambda>"]


def test_name_stacks_contain_scopes_and_mark_the_backward_pass():
    def function(x):
        with jax.named_scope("encoder"), jax.named_scope("norm"):
            return jnp.sin(x)

    equations = jax.make_jaxpr(jax.grad(function))(1.0).eqns
    stacks = [equation.source_info.name_stack for equation in equations]
    assert {scope_names(stack) for stack in stacks} == {("encoder", "norm")}
    assert [is_transposed(stack) for stack in stacks] == [False, False, True]


def test_new_equations_cast_and_broadcast_under_a_scope():
    closed = jax.make_jaxpr(lambda x: x + 1)(jnp.full((1, 3), 1.5))
    jaxpr = open_jaxpr(closed)
    (x,), (equation,) = jaxpr.invars, jaxpr.eqns
    narrow = Var(x.aval.update(dtype=np.dtype("float16")))
    full = Var(narrow.aval.update(shape=(4, 3)))
    made = [cast_equation(x, narrow, "cast", equation), broadcast_equation(narrow, full, equation)]
    assert [scope_names(each.source_info.name_stack) for each in made] == [("cast",), ()]
    assert scope_names(cast_equation(x, narrow, "cast", None).source_info.name_stack) == ("cast",)
    (found,) = jaxpr_as_fun(with_constants(jaxpr.replace(eqns=made, outvars=[full]), ()))(jnp.full((1, 3), 1.5))
    assert found.dtype == "float16"
    np.testing.assert_array_equal(found, np.full((4, 3), 1.5))


def test_type_text_shows_dtype_and_shape():
    assert type_text(jax.typeof(X)) == "float32[3,4]"


def test_function_name_returns_the_name_of_the_traced_function():
    (equation,) = jax.make_jaxpr(lambda x: with_vjp(x))(X).eqns
    assert function_name(open_jaxpr(equation.params["call_jaxpr"])) == "with_vjp"


# Errors

ENTERING = {
    **PROGRAMS,
    "cond": lambda x: lax.cond(x.sum() > 0, lambda y: y @ W, lambda y: y, x),
    "jit": lambda x: jax.jit(lambda y: y @ W)(x),
    "checkpoint": lambda x: jax.checkpoint(lambda y: jnp.sin(y) @ W)(x),
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
    "product": lambda x: (x.astype("bfloat16") @ W.astype("bfloat16")).T ** 2.5,
}


def without_parameter(closed, name, removed):
    """Return the program without one parameter in the equations of a primitive."""
    jaxpr = open_jaxpr(closed)
    equations = [
        equation.replace(params={key: value for key, value in equation.params.items() if key != removed})
        if equation.primitive.name == name
        else equation
        for equation in jaxpr.eqns
    ]
    return with_constants(jaxpr.replace(eqns=equations), closed.consts)


def rewrite(closed):
    settings = as_settings("mixed_bfloat16", {"with_vjp": "inside"}, True)
    rewriter = Rewriter(AutocastRule(settings, AUTOCAST_OPERATIONS.values()))
    return rewriter.rewrite(closed, [rewriter.rule.value(var.aval) for var in open_jaxpr(closed).invars], Context())


@pytest.mark.parametrize("program", ENTERING)
def test_a_missing_parameter_raises_with_the_jax_version(program):
    """Each parameter of each equation is either unused, or its absence raises an error that names it."""
    closed = jax.make_jaxpr(ENTERING[program])(batched(program))
    messages = {}
    for name, removed in {(e.primitive.name, key) for e in open_jaxpr(closed).eqns for key in e.params}:
        for use in (casts_of, rewrite):
            try:
                use(without_parameter(closed, name, removed))
            except UnsupportedJaxError as error:
                messages[name, removed] = str(error)
    assert messages
    for (name, removed), message in messages.items():
        assert f"{name!r} has no parameter {removed!r}" in message
        assert f"in JAX {jax.__version__}" in message


def test_a_running_backend_is_recognized():
    jnp.ones(1)
    assert is_backend_running() is True  # that it is False before is tested with the policies, in a new process


def test_a_missing_primitive_raises_with_the_jax_version():
    with pytest.raises(UnsupportedJaxError, match=rf"no primitive 'warp' in JAX {re.escape(jax.__version__)}") as error:
        primitives.warp_p  # noqa: B018
    assert isinstance(error.value, SupremumError)
    with pytest.raises(AttributeError):
        primitives.__wrapped__  # noqa: B018


def test_a_missing_parameter_error_lists_the_existing_parameters():
    (equation,) = loops(jax.make_jaxpr(without_carry)(X))
    assert parameter(equation, "length") == 3
    with pytest.raises(UnsupportedJaxError, match=r"'scan' has no parameter 'warp' \(it has: .*length.*\) in JAX"):
        parameter(equation, "warp")


def test_the_primitives_that_walk_enters_exist():
    existing = {getattr(primitives, f"{name}_p").name for name in ("scan", "while", "cond", "jit", "remat")}
    assert existing < ENTERED


def test_parameters_that_not_every_equation_has_exist_where_they_are_read():
    """`params.get` reads them, which would not notice a new name."""
    x = jnp.ones((2, 2))
    image, kernel = jnp.ones((1, 4, 4, 2)), jnp.ones((3, 3, 2, 2))
    programs = {
        "dot_general": jax.make_jaxpr(jnp.matmul)(x, x),
        "conv_general_dilated": jax.make_jaxpr(
            lambda a, b: lax.conv_general_dilated(a, b, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        )(image, kernel),
    }
    for name, program in programs.items():
        (equation,) = (each.equation for each in walk(program) if each.equation.primitive.name == name)
        assert {"precision", "preferred_element_type"} <= set(equation.params)
    (call,) = jax.make_jaxpr(jax.jit(lambda x: x + 1, donate_argnums=0))(x).eqns
    assert (call.params["donated_invars"], name_of_call(call)) == ((True,), "<lambda>")
