"""Reports on programs of other libraries name the users' lines and have the casts of the lowered text.

Unused casts are not lowered and run 0 times in the report. All others must agree.
"""

from collections import Counter

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx

from mixed_precision.autocasting.programs import PROGRAMS as AUTOCAST_PROGRAMS
from mixed_precision.autocasting.programs import warns_of_left
from optional_packages import import_or_skip
from supremum.jaxprs import callees, walk
from supremum.mixed_precision import autocast
from supremum.tracing import casts
from tracing.lowered import converts

BATCH, LENGTH, WIDTH = 2, 5, 16
X = jax.ShapeDtypeStruct((BATCH, LENGTH, WIDTH), jnp.float32)
KEY = jax.ShapeDtypeStruct((), jax.random.key(0).dtype)
HALF = jnp.bfloat16


class Encoder(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(WIDTH, 32, dtype=HALF, rngs=rngs)
        self.norm = nnx.LayerNorm(32, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(num_heads=4, in_features=32, dtype=HALF, decode=False, rngs=rngs)

    def __call__(self, x):
        hidden = self.norm(jax.nn.gelu(self.dense(x)))
        return self.attention(hidden) * jnp.float32(0.5)


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(8, (3,), dtype=HALF)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=True, dtype=HALF)(x))
        x = nn.RNN(nn.LSTMCell(8, dtype=HALF))(x)
        return nn.Dense(3)(x.mean(1))


def of_nnx():
    graph, state = nnx.split(nnx.eval_shape(lambda: Encoder(nnx.Rngs(0))))
    return lambda state, x: nnx.merge(graph, state)(x), (state, X)


def of_linen():
    model = Recurrent()
    return model.apply, (jax.eval_shape(model.init, KEY, X), X)


def of_equinox(make, call):
    model = eqx.filter_eval_shape(lambda: make(jax.random.key(0)))
    is_array = lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct)  # noqa: E731
    arrays, rest = eqx.partition(model, is_array)
    arrays = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, HALF), arrays)
    return lambda arrays, x: call(eqx.combine(arrays, rest), x), (arrays, X)


def of_attention():
    return of_equinox(
        lambda key: eqx.nn.MultiheadAttention(2, WIDTH, key=key),
        lambda model, x: jax.vmap(lambda row: model(row, row, row))(x),
    )


def of_lstm():
    def call(cell, x):
        start = jnp.zeros(8), jnp.zeros(8)
        return jax.vmap(lambda row: jax.lax.scan(lambda carry, y: (cell(y, carry), None), start, row)[0][0])(x)

    return of_equinox(lambda key: eqx.nn.LSTMCell(WIDTH, 8, key=key), call)


def of_optax():
    model, optimizer = Recurrent(), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    weights = jax.eval_shape(model.init, KEY, X)
    weights = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, HALF), weights)

    def train(weights, state, x):
        loss, gradient = jax.value_and_grad(lambda w: model.apply(w, x).astype(jnp.float32).sum())(weights)
        updates, state = optimizer.update(gradient, state, weights)
        return optax.apply_updates(weights, updates), state, loss

    return train, (weights, jax.eval_shape(optimizer.init, weights), X)


MODELS = {"nnx": of_nnx, "linen": of_linen, "attention": of_attention, "lstm": of_lstm}


def backward(function, arguments):
    return jax.grad(lambda *args: function(*args).astype(jnp.float32).sum()), arguments


PROGRAMS = {
    **MODELS,
    **{f"{name} backward": lambda made=made: backward(*made()) for name, made in MODELS.items()},
    "optax": of_optax,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_report_has_the_casts_of_the_lowered_text(name):
    function, arguments = PROGRAMS[name]()
    report = casts(function)(*arguments)
    found = Counter((str(cast.source), str(cast.target)) for cast in report if cast.times != 0)
    assert found == converts(jax.jit(function).lower(*arguments).as_text())
    assert found.total() > 2
    # Code that JAX moves out of a loop for its backward pass loses the calls that led into the loop.
    taken_out = [cast for cast in report if not cast.path]
    assert len(taken_out) == (12 if name == "linen backward" else 0)
    assert {cast.file for cast in report if cast not in taken_out} == {__file__}
    assert all(cast.file.endswith("flax/linen/dtypes.py") and cast.kind == "library" for cast in taken_out)
    assert "unknown" not in report.by_class
    # A library's casts are not promotions by the user, unless the call hands it floats of two dtypes.
    handed = {"attention": "model(row, row, row)", "lstm": "cell(y, carry)"}.get(name.partition(" ")[0])
    assert {cast.expression for cast in report.promotion} <= {"self.attention(hidden) * jnp.float32(0.5)", handed}
    assert handed is None or handed in {cause.first.expression for cause in report.causes}
    assert str(report.explain(0))


@pytest.mark.parametrize("transform", [lambda function: function, jax.vmap], ids=["alone", "vmap"])
def test_casts_inside_of_a_library_primitive_are_found(transform):
    lineax = import_or_skip("lineax")

    def solve(matrix, vector):
        operator = lineax.MatrixLinearOperator(matrix, lineax.positive_semidefinite_tag)
        return lineax.linear_solve(operator, vector, lineax.CG(rtol=1e-3, atol=1e-3), throw=False).value

    arguments = jnp.ones((2, 4, 4), HALF), jnp.ones((2, 4), HALF)
    arguments = arguments if transform is jax.vmap else tuple(each[0] for each in arguments)
    report = casts(transform(solve))(*arguments)
    found = Counter((str(cast.source), str(cast.target)) for cast in report if cast.times != 0)
    assert found == converts(jax.jit(transform(solve)).lower(*arguments).as_text())
    assert found[("float32", "bfloat16")] == 1
    assert {cast.file for cast in report} == {__file__}
    assert all(cast.expression.startswith("lineax.linear_solve(") for cast in report)
    assert set(report.by_class) == {"library"}
    equations = [site.equation for site in walk(jax.make_jaxpr(transform(solve))(*arguments))]
    called = {(each.parameter, each.trips) for equation in equations for each in callees(equation)}
    assert {each for each in called if each[0] == "impl"} == {("impl", 1)}


# Casts that the lowered text does not write as conversions: complex and real parts, random bits, LAPACK's names.
UNLIKE = {"transformed", "complexes", "random", "linear_algebra"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", sorted(AUTOCAST_PROGRAMS.keys() - UNLIKE))
def test_mixed_precision_programs_have_no_unknown_casts(name):
    function = jax.grad(autocast(AUTOCAST_PROGRAMS[name], "mixed_bfloat16"))
    arguments = jax.ShapeDtypeStruct((8, 8), jnp.float32), jax.ShapeDtypeStruct((4, 8), jnp.float32)
    with warns_of_left(name):
        report = casts(function)(*arguments)
    found = Counter((str(cast.source), str(cast.target)) for cast in report if cast.times != 0)
    assert found == converts(jax.jit(function).lower(*arguments).as_text())
    assert found.total() > 2
    assert [cast.reason for cast in report if cast.kind == "unknown"] == []


@pytest.mark.slow
def test_the_report_names_lines_scopes_and_libraries():
    function, arguments = of_nnx()
    report = casts(function)(*arguments)
    (cast,) = report.promotion
    assert cast.operands == ("self.attention(hidden): bfloat16[2,5,32]", "jnp.float32(0.5)")
    assert {cast.expression for cast in report if cast.kind == "library"} >= {"self.dense(x)", "self.attention(hidden)"}
    assert any(cast.reason.startswith("flax casts at ") for cast in report)
    function, arguments = of_linen()
    assert "Recurrent/Conv_0" in {cast.scope for cast in casts(function)(*arguments)}


def test_lowered_conversions_are_counted():
    @jax.jit
    def helper(x):
        return x.astype(jnp.float16) + 1

    def function(x):
        again = jax.lax.scan(lambda c, _: (c, helper(x)), 0, length=3)[1]
        return helper(x), helper(x), again, x.astype(jnp.float32), x.astype(jnp.int8)

    text = jax.jit(function).lower(jnp.ones(3)).as_text()
    assert converts(text) == {("float32", "float16"): 3, ("float32", "int8"): 1}
