"""A profile has a row for each operation, with the runs of loops."""

import json
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import supremum
from slowly import for_each, slow
from supremum.numerics import Profile, profile

X = jnp.arange(1.0, 5.0)
SLOW_WHEN_JITTED = pytest.mark.parametrize(
    "mode", [pytest.param(lambda function: function, id="eager"), slow(jax.jit, id="jitted")]
)


def runs(found):
    """The runs of each primitive, in the order of the rows."""
    return {row.primitive: row.values.runs for row in found.rows}


@jax.custom_jvp
def double(x):
    return x * 2


double.defjvp(lambda primals, tangents: (double(*primals), tangents[0] * 2))


def looped(x):
    def step(carry, row):
        return lax.fori_loop(0, 3, lambda _, c: jnp.sin(c), carry) + row, jnp.cos(carry)

    return lax.scan(step, x[0], x)


def grown(limit):
    return lambda x: lax.while_loop(lambda c: jnp.exp(c[0]) < limit, lambda c: (c[0] * 2, c[1] + 1), (x[0], 0))


def switched(index):
    branches = [jnp.sin, jnp.cos, lambda x: jnp.exp(jnp.tanh(x))]
    return lambda x: lax.switch(x[0].astype(int) * index, branches, x)


def unused(x):
    jnp.exp(x)
    return jax.jit(lambda x: (jnp.sin(x), jnp.cos(x)))(x)[0]


def moved(x):
    return jnp.transpose(x.reshape(2, 2))[None][0, ::-1] + jnp.full((2, 2), 1e6)


RUNS = {
    "loops": (looped, {"sin": 12, "add": 4, "cos": 4}),
    "a while loop and its condition": (grown(1000.0), {"exp": 4, "mul": 3}),
    "a while loop that ends at once": (grown(0.0), {"exp": 1, "mul": 0}),
    "the first branch": (switched(0), {"sin": 1, "cos": 0, "tanh": 0, "exp": 0}),
    "the second branch": (switched(1), {"sin": 0, "cos": 1, "tanh": 0, "exp": 0}),
    "the last branch": (switched(2), {"sin": 0, "cos": 0, "tanh": 1, "exp": 1}),
    "calls": (
        lambda x: jax.jit(jnp.sin)(x) + jax.checkpoint(jnp.cos)(x) + double(x), {"sin": 1, "cos": 1, "mul": 1, "add": 1}
    ),
    "operations that the results do not need": (unused, {"sin": 1}),
    "operations that move values; a constant is made": (moved, {"broadcast_in_dim": 1, "add": 1}),
    "results that are not floating": (lambda x: (x > 2, jnp.argmax(x), x * 2), {"mul": 1}),
}  # fmt: skip


@for_each("name, mode", list(product(RUNS, (lambda function: function, jax.jit))))
def test_runs_of_operations_are_added_up(name, mode):
    function, expected = RUNS[name]
    found = mode(profile(function))(X)
    assert runs(found) == expected
    for value, result in zip(jax.tree.leaves(found.outputs), jax.tree.leaves(jax.jit(function)(X)), strict=True):
        assert value.dtype == result.dtype
        np.testing.assert_array_equal(value, result)


def test_all_values_of_a_repeated_constant_are_counted():
    rows = profile(moved)(X).rows
    assert {row.primitive: row.values.formats["float16"].overflow for row in rows} == {"broadcast_in_dim": 4, "add": 4}


@SLOW_WHEN_JITTED
def test_an_operation_that_never_ran_has_no_values(mode):
    found = mode(profile(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, length=0)[0] * 2))(X)
    values = next(row.values for row in found.rows if row.primitive == "sin")
    assert (values.runs, values.values, values.least, values.largest, values.zeros) == (0, 0, None, None, 0)
    assert values.formats["float16"].shares == (0, 0, 0)
    assert "sin" in str(found)


@SLOW_WHEN_JITTED
def test_the_backward_rule_of_a_custom_vjp_is_counted(mode):
    @jax.custom_vjp
    def scaled(x):
        return jnp.sum(x)

    scaled.defvjp(lambda x: (scaled(x), x), lambda x, cotangent: (jnp.exp(x) * cotangent * 1e6,))
    found = mode(profile(jax.grad(scaled)))(X)
    row = next(row for row in found.rows if row.primitive == "exp")
    assert row.backward
    assert [row.values.formats["float16"].overflow for row in found.rows if row.primitive == "mul"] == [4, 0]
    np.testing.assert_array_equal(found.outputs, jax.grad(scaled)(X))


def test_gradients_of_remat_equal_those_of_the_function():
    gradient = jax.value_and_grad(jax.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.exp(x)) ** 2)))
    found = profile(gradient)(X)
    for value, expected in zip(found.outputs, jax.jit(gradient)(X), strict=True):
        assert (np.asarray(value) == np.asarray(expected)).all()
    assert [row.primitive for row in found.rows].count("exp") == 2


def test_vmap_around_counts_the_values_of_all_examples():
    def function(x):
        return lax.while_loop(lambda c: c < 9, lambda c: c * 2, x) + lax.cond(x > 2, jnp.sin, jnp.cos, x)

    found = jax.vmap(profile(function))(X)
    assert (np.asarray(found.outputs) == np.asarray(jax.jit(jax.vmap(function))(X))).all()
    trips = sum(int(np.ceil(np.log2(9 / x))) for x in np.asarray(X))
    assert runs(found) == {"add": 4, "mul": trips, "sin": 2, "cos": 2}
    assert next(row.values for row in found.rows if row.primitive == "add").values == 4


def test_a_loop_under_vmap_runs_as_often_as_its_longest():
    def function(x):
        return lax.while_loop(lambda c: jnp.exp(c) < 9e3, lambda c: c * 2, x)

    found = profile(jax.vmap(function))(X)
    assert (np.asarray(found.outputs) == np.asarray(jax.jit(jax.vmap(function))(X))).all()
    assert runs(found)["mul"] == 4
    assert runs(found)["exp"] == 5


def test_a_profile_is_a_pytree():
    found = profile(jnp.exp)(X)
    again = jax.tree.map(lambda leaf: leaf, found)
    assert isinstance(again, Profile)
    assert again.to_dict() == found.to_dict()


def test_a_function_may_close_over_traced_values():
    found = jax.jit(lambda w: profile(lambda x: x * w)(X))(2.0)
    assert (runs(found), found.outputs.tolist()) == ({"mul": 1}, [2.0, 4.0, 6.0, 8.0])


def test_an_argument_that_the_function_changes_is_refused():
    def function(values):
        values["x"] = values["x"] * 2
        return values["x"]

    with pytest.raises(supremum.errors.ArgumentError, match="under profile it gets copies"):
        profile(function)({"x": X})


def test_nans_are_counted_where_jax_would_stop_at_them():
    with jax.debug_nans(True):
        found = profile(lambda x: jnp.log(x - 3))(X)
    assert (found.rows[0].primitive, found.rows[0].values.nans, found.rows[0].values.infinities) == ("log", 2, 1)


def test_python_arguments_are_passed_on():
    found = profile(lambda x, *, power, name: {"y": x**power, name: "kept"})(X, power=2, name="z")
    assert found.outputs["z"] == "kept"
    assert runs(found) == {"integer_pow": 1} or runs(found) == {"square": 1}


def test_numpy_arguments_and_python_numbers():
    assert runs(profile(jnp.exp)(np.ones(3, "float32"))) == {"exp": 1}
    assert profile(jnp.exp)(1.0).outputs == jnp.exp(1.0)


def test_modules_of_flax_nnx_are_updated_as_by_a_call():
    nnx = pytest.importorskip("flax.nnx")

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.dense = nnx.Linear(4, 4, rngs=rngs)
            self.norm = nnx.BatchNorm(4, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            return self.dropout(self.norm(self.dense(x)))

    plain, profiled, x = Block(nnx.Rngs(0)), Block(nnx.Rngs(0)), jnp.ones((8, 4)) * 1e3
    expected = nnx.jit(lambda block, x: block(x))(plain, x)
    found = profile(lambda block, x: block(x))(profiled, x)
    assert (np.asarray(found.outputs) == np.asarray(expected)).all()
    states = (jax.tree.leaves(nnx.state(block, nnx.BatchStat)) for block in (plain, profiled))
    assert all((a == b).all() for a, b in zip(*states, strict=True))
    assert "dot_general" in runs(found)


def softmax(x):
    with jax.named_scope("head"), jax.named_scope("softmax"):
        e = jnp.exp(x)
        return e / e.sum()


def program(x):
    with jax.named_scope("body"):
        return jnp.sum(softmax(x * 3.0))


FOUND = profile(program)(jnp.array([1.0, 2.0, 12.0, 20.0]))


def test_rows_have_line_expression_scope_and_types():
    row = next(row for row in FOUND.rows if row.primitive == "exp")
    assert (row.expression, row.scope, row.types) == ("jnp.exp(x)", "body/head/softmax", ("float32[4]",))
    assert row.where == f"{__file__}:{softmax.__code__.co_firstlineno + 2}"
    assert not row.backward


def test_rows_that_suffer_most_come_first():
    severities = [row.values.severity for row in FOUND.rows]
    assert severities == sorted(severities, reverse=True)
    found = profile(lambda x: (x * 1.0, jnp.log(-x), jnp.exp(x * 4)))(X)
    assert [row.primitive for row in found.rows[:2]] == ["log", "exp"]


def test_values_are_added_up_by_line_scope_and_primitive():
    lines = FOUND.by("line")
    first = softmax.__code__.co_firstlineno
    assert lines[f"{__file__}:{first + 3}"].runs == 2  # the sum and the division
    assert FOUND.by("scope")["body"].values == 4 + 1
    assert FOUND.by("primitive")["reduce_sum"].runs == 2
    total = sum(row.values.formats["float16"].overflow for row in FOUND.rows)
    assert sum(values.formats["float16"].overflow for values in lines.values()) == total > 0
    with pytest.raises(supremum.UnknownNameError, match="did you mean 'line'"):
        FOUND.by("lines")


def test_rows_are_filtered_by_scope():
    assert {row.primitive for row in FOUND.matching("body/head").rows} == {"exp", "reduce_sum", "div"}
    assert len(FOUND.matching("body")) == len(FOUND) == 5
    assert len(FOUND.matching("*/softmax")) == 3
    assert len(FOUND.matching("bod")) == 0
    assert str(FOUND.matching("bod")).startswith("0 operations")


def test_the_profile_is_plain_data():
    assert json.loads(FOUND.to_json()) == FOUND.to_dict()
    row = next(row for row in FOUND.to_dict()["rows"] if row["primitive"] == "exp")
    assert row["formats"]["float16"] == {"overflow": 2, "overflow_to": "inf", "flushed": 0, "subnormal": 0}


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_text_fits_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = str(FOUND).splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0] == "5 operations, float16, bfloat16, float8_e4m3fn, float8_e5m2"
    assert "50% inf" in str(FOUND) or "50% overflow to inf" in str(FOUND)
    assert any(line.endswith("jnp.exp(x)") or " jnp.exp" in line for line in lines)


def test_shares_are_shown_as_none_or_all_only_if_they_are(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    x = jnp.ones(10_000).at[0].set(1e6)
    assert "<0.1% inf" in str(profile(lambda x: x * 1.0)(x))
    assert "99% inf" in str(profile(lambda x: 1e6 / x)(x))
    assert "100% inf" in str(profile(lambda x: x + 1e6)(x))


def test_html_escapes_the_source():
    page = profile(lambda x: jnp.where(x < 2, x * 2, 1e9))(X)._repr_html_()
    assert "&lt; 2" in page
    assert "overflow to inf" in page
    assert "< 2" not in page
