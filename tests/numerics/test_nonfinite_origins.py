"""NonfiniteOrigins have line, iteration, result and cause; sources are listed."""

import json
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from slowly import for_each, mostly_slow, slow
from supremum.numerics import NonfiniteOrigins, first_nonfinite

X = jnp.array([0.0, 1.0, 4.0])


def kinds_of(found):
    return [(origin.kind, origin.primitive, origin.reached_output) for origin in found]


def nested(x):
    def inner(j, c):
        return c + jnp.where(c < 0, jnp.log(jnp.where(j == 2, x[0], 1.0)), 0.0)

    def step(c, i):
        return lax.fori_loop(0, 4, inner, jnp.where(i == 3, -1.0, c)), i

    return lax.scan(step, 1.0, jnp.arange(5))[0]


def counted_down(x):
    return lax.while_loop(lambda c: 1.0 / c[1] < 1e9, lambda c: (c[0] + 1, c[1] - 1.0), (0.0, x[2]))[0]


def scanned(function, **options):
    return lambda x: lax.scan(lambda c, row: (c + function(row), c), 0.0, x, **options)[0]


def branch(sign):
    return lambda x: lax.cond(sign * x[1] > 0, lambda x: x * 2, lambda x: jnp.log(x - 4), x)


def with_custom_rules(x):
    @jax.custom_jvp
    def log(x):
        return jnp.log(x)

    log.defjvp(lambda primals, tangents: (log(*primals), tangents[0] / jnp.maximum(primals[0], 1e-3)))

    def loss(x):
        return jnp.sum(jax.vmap(jax.checkpoint(lambda row: jnp.where(row > 0, log(row), 0.0)))(x))

    value, gradient = jax.value_and_grad(loss)(x)
    return value + gradient


LOG, NAN_OF_LOG = ("infinity", "log"), ("nan", "log")
REACHED, MASKED = True, False
PROGRAMS = {
    # a function of X; kind and primitive of each origin, whether it reached the result, its iterations and its runs
    "in order": (lambda p: -jnp.sum(p * jnp.log(p)), [(*LOG, REACHED, (), 1), ("nan", "mul", REACHED, (), 1)]),
    "masked": (lambda x: jnp.where(x > 0, jnp.log(x), 0.0).sum() + jnp.sum(1 / x[1:]), [(*LOG, MASKED, (), 1)]),
    "both reach": (lambda x: (jnp.log(x) + x / x).sum(), [(*LOG, REACHED, (), 1), ("nan", "div", REACHED, (), 1)]),
    "none": (jnp.exp, []),
    "nested loops": (nested, [(*LOG, REACHED, (0, 2), 5)]),
    "condition of a loop": (counted_down, [("infinity", "div", MASKED, (4,), 1)]),
    "scan": (scanned(jnp.log), [(*LOG, REACHED, (0,), 1)]),
    "scan in reverse": (lambda x: scanned(jnp.log, reverse=True)(x[::-1]), [(*LOG, REACHED, (2,), 1)]),
    "scan of nothing": (lambda x: scanned(jnp.log)(x[:0]), []),
    "scan of nothing in reverse": (lambda x: scanned(jnp.log, reverse=True)(x[:0]), []),
    "gradient of a scan": (lambda x: jax.grad(scanned(jnp.sqrt))(x[::-1]), [("infinity", "div", REACHED, (2,), 1)]),
    "the other branch": (branch(1), []),
    "a branch": (branch(-1), [(*NAN_OF_LOG, REACHED, (), 1)]),
    "vmap, remat and custom_jvp": (with_custom_rules, [(*LOG, MASKED, (), 1)]),
}  # fmt: skip


@for_each("name, mode", list(product(PROGRAMS, (lambda function: function, jax.jit))))
def test_origins_are_found(name, mode):
    function, expected = PROGRAMS[name]
    found = mode(first_nonfinite(function))(X)
    assert [(each.kind, each.primitive, each.reached_output, each.iterations, each.runs) for each in found] == expected
    assert [each for each in found if each.reached_output] == list(found.reached)
    assert found.first is (found.reached or tuple(found) or (None,))[0]
    outputs = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(found.outputs)])
    assert found.bad_outputs == (np.isnan(outputs).sum(), np.isinf(outputs).sum())
    np.testing.assert_allclose(outputs, np.ravel(jax.jit(function)(X)), rtol=1e-6)


def test_no_origin_is_said_in_words():
    found = first_nonfinite(jnp.exp)(X)
    assert str(found) == "no NaN and no infinity was made."
    assert not found


def test_an_element_with_a_bad_operand_does_not_hide_the_origin_beside_it():
    found = first_nonfinite(lambda x: jnp.log(x))(jnp.array([jnp.nan, 0.0, 1.0]))
    assert [(origin.kind, origin.infinities, origin.nans) for origin in found] == [("infinity", 1, 0)]
    assert [(source.name, source.nans, source.reached_output) for source in found.sources] == [("x", 1, True)]


def test_a_fully_masked_softmax_is_named_with_its_source():
    def function(x, mask):
        return jax.jit(lambda x: jax.nn.softmax(jnp.where(mask, x, -jnp.inf)))(x)

    found = first_nonfinite(function)(jnp.ones((2, 3)), jnp.array([[True] * 3, [False] * 3]))
    assert found[0].cause == "infinity minus infinity: a row of the softmax is masked completely"
    assert (found[0].nans, found[0].line) == (3, function.__code__.co_firstlineno + 1)
    (source,) = found.sources
    assert (source.kind, source.infinities, source.reached_output) == ("constant", 1, True)
    assert "-jnp.inf" in source.expression


def test_constants_and_literals_are_sources_unless_they_are_neutral():
    table = jnp.array([1.0, jnp.inf])
    found = first_nonfinite(lambda x: jax.jit(lambda x: jnp.sum(x * table))(x) + jnp.max(x, initial=-jnp.inf))(X[:2])
    assert [(source.type, source.infinities) for source in found.sources] == [("float32[2]", 1)]
    assert kinds_of(found) == []
    assert "no operation made a NaN or an infinity, but non-finite values came in" in " ".join(str(found).split())


def test_in_a_jitted_function_it_needs_no_arrays_of_its_own():
    inside = jax.jit(lambda y: (first_nonfinite(lambda: jnp.log(y))(), first_nonfinite(lambda: jnp.log(0 * X))()))
    for found in inside(jnp.zeros(3)):
        assert kinds_of(found) == [("infinity", "log", True)]


def test_a_constant_that_is_only_compared_with_is_no_source():
    table = jnp.array([1.0, jnp.inf])
    assert not first_nonfinite(lambda x: jnp.where((x == -jnp.inf) | (x >= table), x, 2 * x))(X[:2]).sources
    (source,) = first_nonfinite(lambda x: jnp.where(x < table, x, table))(X[:2]).sources
    assert source.type == "float32[2]"


def test_sources_that_are_the_same_are_shown_once():
    def function(x, y):
        return [jnp.where(x > limit, x, -jnp.inf).max() for limit in range(3)], y + 1

    found = first_nonfinite(function)(X, jnp.array(jnp.inf))
    assert len(found.sources) == 4
    text = " ".join(str(found).split())
    assert text.count("constant in") == 1
    assert "(3 times)" in text
    assert text.index("argument y") < text.index("constant in")  # what reached the result comes first
    assert found._repr_html_().count("constant in") == 1


def test_arguments_are_named_by_their_path():
    found = first_nonfinite(lambda params, *rest, scale: params["w"] * scale + rest[0])(
        {"w": X}, jnp.array([jnp.nan, 0, 0]), scale=jnp.inf * jnp.ones(3)
    )
    assert {source.name for source in found.sources} == {"args[1]", "scale"} or {
        source.name for source in found.sources
    } == {"rest", "scale"}
    assert kinds_of(found) == [("nan", "mul", True)]


TRAPS = {
    "log": jnp.log, "sqrt": jnp.sqrt, "reciprocal": lambda x: 1.0 / x, "root": lambda x: x**0.5,
    "norm": lambda x: jnp.sqrt(x * x), "jitted log": jax.jit(jnp.log),
}  # fmt: skip


@pytest.mark.parametrize("name", mostly_slow(TRAPS, "log", "jitted log", "norm"))
def test_the_classic_trap_is_said_in_words_and_its_fix_works(name):
    f = TRAPS[name]
    found = first_nonfinite(jax.grad(lambda x: jnp.where(x > 0, f(x), 0.0).sum()))(X)
    (origin,) = (origin for origin in found if "branch that where did not choose" in origin.cause)
    assert origin.reached_output
    assert origin.backward
    assert "`jnp.where(ok, f(safe), other)`" in origin.fix

    def repaired(x):
        ok = x > 0
        safe = jnp.where(ok, x, 1.0)
        return jnp.where(ok, f(safe), 0.0).sum()

    found = first_nonfinite(jax.grad(repaired))(X)
    assert np.isfinite(found.outputs).all()
    assert not found


def test_a_gradient_without_where_is_no_trap():
    found = first_nonfinite(jax.grad(lambda x: (jnp.log(x) * 0.0).sum()))(X)
    assert not any("where" in origin.cause for origin in found)


INSIDE = 1 - np.finfo("float32").eps
OVERFLOW = "overflows {}, whose largest value is {}"
CAUSES = {
    # a function, its argument, the cause, and the function with the fix
    "log": (jnp.log, X, "the logarithm of zero", lambda x: jnp.log(jnp.maximum(x, jnp.finfo(x.dtype).tiny))),
    "negative log": (jnp.log, -X - 1, "the logarithm of a negative number", None),
    "zero by zero": (lambda x: x / x, X, "zero divided by zero", lambda x: x / jnp.where(x == 0, 1.0, x)),
    "one by zero": (lambda x: 1 / x, X, "a division by zero", lambda x: 1 / jnp.where(x == 0, 1.0, x)),
    "inf - inf": (lambda x: x - x, X.at[0].set(jnp.inf), "infinity minus infinity", None),
    "root": (jnp.sqrt, -X, "the square root of a negative number", lambda x: jnp.sqrt(jnp.maximum(x, 0.0))),
    "root's gradient": (
        jax.grad(lambda x: jnp.sqrt(x).sum()), X, "the derivative of a square root at zero",
        jax.grad(lambda x: jnp.sqrt(x + 1e-12).sum()),
    ),
    "log's gradient": (
        jax.grad(lambda x: jnp.log(x).sum()), X, "the derivative of a logarithm at zero is infinite",
        jax.grad(lambda x: jnp.log(jnp.maximum(x, jnp.finfo(x.dtype).tiny)).sum()),
    ),
    "rsqrt": (lax.rsqrt, X, "the inverse square root of zero", lambda x: lax.rsqrt(x + 1e-6)),
    "exp": (jnp.exp, X * 100, "the exponential of 400 " + OVERFLOW.format("float32", "3.40282e+38"), jax.nn.softmax),
    "float16": (lambda x: x.astype("float16"), X * 1e5, "4e+05 " + OVERFLOW.format("float16", "65504"), None),
    "float16 product": (
        lambda x: x * x, X.astype("float16") * 99, "a result " + OVERFLOW.format("float16", "65504"),
        lambda x: x.astype("float32") * x,
    ),
    "float8": (lambda x: x.astype("float8_e4m3fn"), X * 1e3, "4000 " + OVERFLOW.format("float8_e4m3fn", "448"), None),
    "bfloat16": (
        lambda x: x * x, (X * 1e30).astype("bfloat16"), "a result " + OVERFLOW.format("bfloat16", "3.38"), None
    ),
    "sum": (lambda x: x.sum(), jnp.full(3, 2e38), "a result overflows float32", None),
    "power": (lambda x: lax.integer_pow(x, -2), X, "zero to a negative power", None),
    "index": (
        lambda x: x.at[jnp.array([7])].get(mode="fill"), X, "an index is out of bounds",
        lambda x: x.at[jnp.array([7])].get(mode="clip"),
    ),
    "cholesky": (
        lambda x: jnp.linalg.cholesky(-1e-7 * jnp.eye(3) * x), X + 1, "the matrix is not positive definite",
        lambda x: jnp.linalg.cholesky(-1e-7 * jnp.eye(3) * x + 1e-6 * jnp.eye(3)),
    ),
    "arccos": (
        jax.grad(lambda x: jnp.arccos(x).sum()), X / X.max(), "the derivative of arccos is infinite at 1 and -1",
        jax.grad(lambda x: jnp.arccos(jnp.clip(x, -INSIDE, INSIDE)).sum()),
    ),
    "arcsin": (
        jax.grad(lambda x: jnp.arcsin(x).sum()), -X / X.max(), "the derivative of arcsin is infinite at 1 and -1",
        jax.grad(lambda x: jnp.arcsin(jnp.clip(x, -INSIDE, INSIDE)).sum()),
    ),
    "arctanh": (
        jnp.arctanh, X / X.max(), "arctanh is infinite at 1 and -1",
        lambda x: jnp.arctanh(jnp.clip(x, -INSIDE, INSIDE)),
    ),
    "arctan2": (
        jax.jit(jax.grad(lambda x: jnp.arctan2(x, 0 * x).sum())), X, "the derivative of arctan2 of two zeros",
        jax.grad(lambda x: jnp.arctan2(x, jnp.where((0 * x == 0) & (x == 0), 1.0, 0 * x)).sum()),
    ),
    "operand of arccos": (lambda x: jnp.arccos(jnp.sin(1 / x)), X, "a division by zero", None),
    "svd": (
        jax.grad(lambda m: jnp.linalg.svd(m)[0].sum()), jnp.eye(3),
        "the derivative of svd divides by zero: singular values are equal", None,
    ),
    "eigh": (
        jax.grad(lambda m: jnp.linalg.eigh(m)[1].sum()), jnp.eye(3),
        "the derivative of eigh divides by zero: eigenvalues are equal", None,
    ),
    "logsumexp": (
        jax.grad(lambda x: jax.nn.logsumexp(x + jnp.full(x.shape, -jnp.inf))), X,
        "all terms of a logsumexp are minus infinity",
        jax.grad(lambda x: jax.nn.logsumexp(x + jnp.full(x.shape, jnp.finfo(x.dtype).min))),
    ),
    "log of a sum": (
        jax.grad(lambda x: jnp.log(x[0] + jnp.exp(-1e4 * x[1:]).sum())), X,
        "the derivative of a logarithm at zero is infinite", None,
    ),
    "softmax of infinity": (jax.nn.log_softmax, X.at[0].set(jnp.inf), "infinity minus infinity", None),
    "masked softmax": (
        lambda x: jax.nn.softmax(jnp.where(x > 9, x, -jnp.inf)), X,
        "infinity minus infinity: a row of the softmax is masked completely",
        lambda x: jax.nn.softmax(jnp.where(x > 9, x, jnp.finfo(x.dtype).min)),
    ),
}  # fmt: skip


@for_each("case", CAUSES, one_in=2)
def test_causes_are_named_and_their_fixes_work(case):
    function, x, cause, fixed = CAUSES[case]
    found = first_nonfinite(function)(x)
    assert found.first.cause.startswith(cause)
    assert found.first.reached_output
    if fixed is not None:
        found = first_nonfinite(fixed)(x)
        assert (list(found), found.bad_outputs) == ([], (0, 0))


def test_a_rule_of_a_custom_vjp_has_the_line_of_the_call_and_says_so():
    @jax.custom_vjp
    def scaled(x):
        return jnp.sum(x)

    scaled.defvjp(lambda x: (scaled(x), x), lambda x, cotangent: (cotangent / x,))

    def loss(x):
        return scaled(x)

    found = first_nonfinite(jax.grad(loss))(X)
    assert [(origin.line, origin.in_custom_rule, origin.backward) for origin in found] == [
        (loss.__code__.co_firstlineno + 1, True, True)
    ]
    assert "in the derivative rule of the function called here" in " ".join(str(found).split())


def test_vmap_around_finds_the_origins_of_all_examples():
    found = jax.vmap(first_nonfinite(lambda x: jnp.log(x) + lax.cond(x > 2, jnp.sqrt, lambda x: 0 / x, x)))(X)
    assert kinds_of(found) == [("infinity", "log", True), ("nan", "div", True)]
    assert (found[0].runs, found[0].operands[0].largest) == (1, 0.0)


@pytest.mark.parametrize("check", [True, slow(False)])
def test_shard_map_around(check):
    mesh, spec = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("i",)), jax.sharding.PartitionSpec("i")
    looked = first_nonfinite(
        lambda x: lax.scan(
            lambda c, _: (lax.cond(c[0] < 0, jnp.abs, lambda c: c * 0.5, c), None), jnp.log(x), length=2
        )[0]
    )
    found = jax.jit(jax.shard_map(looked, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=check))(X[:2])
    assert kinds_of(found) == [("infinity", "log", True)]
    assert found.outputs.tolist() == [np.inf, 0.0]


FORMATS = ["float16", "bfloat16", "float8_e5m2", "float8_e4m3fn", "complex64"]


@pytest.mark.parametrize("dtype", mostly_slow(FORMATS, "float8_e4m3fn", "complex64"))
def test_formats(dtype):
    found = first_nonfinite(lambda x: x.astype(dtype) * jnp.ones((), dtype))(jnp.array([1.0, jnp.inf]))
    is_finite_format = dtype == "float8_e4m3fn"
    assert [source.infinities for source in found.sources] == [1]
    if not is_finite_format:
        assert not found or found[0].kind == "nan"
    found = first_nonfinite(lambda x: x / (x - x))(jnp.ones(2, dtype))
    assert len(found) == 1
    assert found[0].operands[0].largest == 1.0


def test_float64():
    with jax.enable_x64(True):
        found = first_nonfinite(lambda x: (x * x, jnp.float32(1e30) * x.astype("float32") ** 2))(
            jnp.array([1e200, 5e-324])
        )
        assert next((b.kind, b.operands[0].largest, b.operands[0].smallest) for b in found) == (
            "infinity",
            1e200,
            5e-324,
        )
        assert "float64, whose largest value is 1.79769e+308" in found[0].cause


def test_ranges_have_subnormal_numbers():
    (origin,) = first_nonfinite(lambda x: 1e30 / x)(jnp.array([1e-40, -2.0, 0.0], "float32"))
    operand = origin.operands[1]
    assert (operand.least, operand.largest, operand.zeros) == (-2.0, float(np.float32(1e-40)), 1)
    assert operand.smallest == float(np.float32(1e-40))


WITHOUT_FLOATING_ARGUMENTS = {
    "numbers": (lambda x: jax.grad(lambda x: jnp.sqrt(jnp.abs(x)))(x), (0.0,), "div"),
    "keys": (lambda key: jnp.log(0 * jax.random.uniform(key, (3,))), (jax.random.key(0),), "log"),
    "integers": (jnp.log, (jnp.arange(2),), "log"),
    "no arguments": (lambda: jnp.log(jnp.zeros(2)), (), "log"),
    "no operations": (lambda: jnp.zeros(2), (), None),
    "a number as result": (lambda x: 2.0, (X,), None),
}


@pytest.mark.parametrize("case", WITHOUT_FLOATING_ARGUMENTS)
def test_a_function_without_floating_arguments_or_operations_has_a_report(case):
    function, arguments, primitive = WITHOUT_FLOATING_ARGUMENTS[case]
    found = first_nonfinite(function)(*arguments)
    assert (found.first and found.first.primitive) == primitive
    assert found.sources == ()
    assert found.title in " ".join(str(found).split())
    assert f"{found.title}." in found._repr_html_()
    assert json.loads(found.to_json())["sources"] == []


def test_python_numbers_among_the_results_are_counted():
    found = first_nonfinite(lambda x: (float("nan"), complex(0, float("inf")), 1.0, "text"))(X)
    assert found.bad_outputs == (1, 1)
    assert found.outputs[2:] == (1.0, "text")


def test_the_origins_are_a_pytree_and_plain_data(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = first_nonfinite(lambda x: lax.scan(lambda c, r: (c + jnp.log(r), None), 0.0, x)[0])(X)
    again = jax.tree.map(lambda leaf: leaf, found)
    assert isinstance(again, NonfiniteOrigins)
    assert json.loads(found.to_json()) == found.to_dict() == again.to_dict()
    assert found.to_dict()["origins"][0]["iterations"] == [0]
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80
    assert "first in iteration 0" in text
    assert "&lt;" in first_nonfinite(lambda x: jnp.log(x * (x < 0)))(X)._repr_html_()


@pytest.mark.slow
def test_a_masked_attention_of_flax_nnx_is_named():
    nnx = pytest.importorskip("flax.nnx")

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.norm, self.dense = nnx.LayerNorm(8, rngs=rngs), nnx.Linear(8, 8, rngs=rngs)

        def __call__(self, x, mask):
            q = self.dense(self.norm(x))
            scores = jnp.where(mask, q @ q.T, -jnp.inf)
            return x + jax.nn.softmax(scores) @ q

    def loss(block, x, mask):
        return jnp.sum(block(x, mask)[:2] ** 2)

    mask = jnp.tril(jnp.ones((4, 4), bool)).at[3].set(False)
    x = jax.random.normal(jax.random.key(0), (4, 8))
    found = first_nonfinite(nnx.value_and_grad(loss))(Block(nnx.Rngs(0)), x, mask)
    first = found[0]
    assert first.cause == "infinity minus infinity: a row of the softmax is masked completely"
    assert (first.nans, first.expression) == (4, "jax.nn.softmax(scores)")
    assert np.isfinite(found.outputs[0])  # the loss leaves the masked row out, but its gradient does not
    assert first.reached_output
    assert not np.isfinite(jax.tree.leaves(found.outputs[1])[0]).all()
