"""The undocumented behaviour of JAX and Python that source positions rely on."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.extend.core import primitives as p

from supremum.jaxprs import walk
from supremum.jaxprs.positions import BETWEEN, USER, Frames, Position, frames_of, owner_of

X, Y = jnp.ones(3, jnp.bfloat16), jnp.ones(3)


def frames(function, *operands):
    """The frames of the only cast."""
    (site,) = (s for s in walk(jax.make_jaxpr(function)(*operands)) if s.equation.primitive is p.convert_element_type_p)
    return frames_of(site.equation)


def test_a_position_has_line_columns_and_function():
    def inner(x, y):
        return x * x + y

    (position, outer) = frames(lambda x, y: inner(x, y), X, Y).positions
    first = inner.__code__.co_firstlineno
    assert position == Position(__file__, inner.__qualname__, first + 1, first + 1, 15, 24, "_ + _")
    assert (outer.line, outer.function.rpartition(".")[2]) == (first + 3, "<lambda>")
    assert str(position) == f"{__file__}:{first + 1}"
    assert position.owner == USER


@pytest.mark.parametrize(
    ("body", "form"),
    [
        *(
            (f"return x {each} y", f"_ {each} _")
            for each in ("+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", ">")
        ),
        ("return x @ y[:, None] if True else 0", "_ @ _"),
        ("return jnp.where(x < y, x, y) if True else 0", "_()"),
        ("return jnp.add(x, y)", "_()"),
        ("return jnp.add(*(x, y))", "_()"),
        ("return jnp.stack(**{'arrays': (x, y)})", "_()"),
        ("return x.__mul__(y)", "_()"),
        ("x **= y; return x", "_ **= _"),
    ],
)
def test_a_position_without_source_has_the_form_of_its_expression(body, form):
    names = {"jnp": jnp}
    exec(f"def f(x, y): {body}", names)
    program = jax.make_jaxpr(names["f"])(X, Y)
    found = [frames_of(site.equation).positions for site in walk(program)]
    assert form in [positions[0].form for positions in found if positions]


def test_an_expression_over_several_lines_has_its_last_line():
    position = frames(
        lambda x, y: (
            x
            + y
        ),
        X, Y,
    ).positions[0]  # fmt: skip
    assert position.end_line == position.line + 1


@pytest.mark.parametrize("call", [
    jax.jit,
    jax.checkpoint,
    lambda f: lambda x, y: lax.scan(lambda c, s: (f(c, s) if False else c, f(c, s)), x[0], y),
    lambda f: lambda x, y: lax.while_loop(lambda c: True, lambda c: f(x, c), y),
    lambda f: lambda x, y: lax.cond(True, lambda: f(x, y), lambda: y),
])  # fmt: skip
def test_frames_end_at_the_call_of_the_traced_function(call):
    def inner(x, y):
        return x + y

    positions = frames(lambda x, y: call(inner)(x, y), X, Y).positions
    assert positions[0].function == inner.__qualname__
    # The call itself is the position of the calling equation.
    assert not any(
        position.function.endswith("test_frames_end_at_the_call_of_the_traced_function") for position in positions
    )


@pytest.mark.parametrize(
    ("function", "entry"),
    [
        (lambda x: x.astype("float32"), "_astype"),
        (lambda x: jnp.astype(x, "float32"), "astype"),
        (lambda x: lax.convert_element_type(x, "float32"), "convert_element_type"),
        (lambda x: jnp.float32(x), "_ScalarMeta.__call__"),
    ],
)
def test_functions_that_only_cast_are_explicit_entries(function, entry):
    assert frames(function, X).entry == entry


def test_derivative_rules_without_frames_are_recognised():
    @jax.custom_vjp
    def double(x):
        return x + x

    @jax.custom_jvp
    def triple(x):
        return 3 * x

    double.defvjp(lambda x: (x + x, None), lambda _, cotangent: ((cotangent * 2).astype("float16").astype("float32"),))
    triple.defjvp(lambda primals, tangents: (3 * primals[0], tangents[0].astype("float16").astype("float32")))
    for function in (lambda x: double(x).sum(), jax.jit(lambda x: triple(x).sum())):
        program = jax.make_jaxpr(jax.grad(function))(Y)
        found = [site for site in walk(program) if site.equation.primitive is p.convert_element_type_p]
        assert [frames_of(site.equation).in_custom_rule for site in found] == [True, True]
    assert not frames(lambda x: x.astype("float32"), X).in_custom_rule


def test_without_a_traceback_there_are_no_frames():
    equation = jax.make_jaxpr(jnp.sin)(1.0).eqns[0]
    bare = equation.replace(source_info=equation.source_info.replace(name_stack=None))
    assert frames_of(bare).positions == frames_of(equation).positions
    del bare
    nothing = type(equation.source_info)(None, equation.source_info.name_stack)
    assert frames_of(equation.replace(source_info=nothing)) == Frames((), "", False)


def test_every_file_has_an_owner():
    import functools

    import flax
    import optax

    import supremum

    assert owner_of(jax.__file__) == owner_of(jnp.__file__) == owner_of(functools.__file__) == BETWEEN
    assert owner_of(flax.__file__) == "flax"
    assert owner_of(optax.__file__) == "optax"
    assert owner_of(supremum.__file__) == "supremum"
    for typed_in in ("<stdin>", "<stdin-0>", "<string>", "<console>", "<python-input-1>", "<ipython-input-3-abc>"):
        assert owner_of(typed_in) == owner_of(__file__) == USER
    assert owner_of("<frozen importlib>") == owner_of("<@beartype(f) at 0x1>") == BETWEEN
    assert owner_of("/home/me/jax_tricks/train.py") == USER
