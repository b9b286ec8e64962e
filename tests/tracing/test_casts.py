"""The casts of programs: their types, runs and classes."""

import functools
import importlib
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from supremum import explain
from supremum.formats import FORMATS
from supremum.tracing import casts, casts_of
from supremum.tracing.classify import fix_of, has_cast

FORMATS_OF_JAX = [row.dtype for row in FORMATS if row.name in jnp.__dict__]
X, Y = jnp.ones(8, jnp.bfloat16), jnp.ones(8)


def only(function, *operands):
    (cast,) = casts(function)(*operands)
    return cast


def seen(function, *operands):
    return [(cast.kind, str(cast.source), str(cast.target)) for cast in casts(function)(*operands)]


def test_a_cast_has_types_path_operands_and_fix():
    def inner(x, y):
        return x * y

    def outer(x, y):
        with jax.named_scope("layer"):
            return lax.scan(lambda c, _: (c, inner(x, c)), y, length=5)[1]

    cast = only(outer, X, Y)
    assert (cast.source, cast.target, cast.shape, cast.times) == (X.dtype, Y.dtype, (8,), 5)
    assert (cast.bytes, cast.total_bytes) == (48, 240)
    assert (cast.kind, cast.expression, cast.operation) == ("promotion", "x * y", "convert_element_type")
    assert (cast.file, cast.line) == (__file__, inner.__code__.co_firstlineno + 1)
    assert [text for _, text in cast.path] == [
        "lax.scan(lambda c, _: (c, inner(x, c)), y, length=5)", "inner(x, c)", "x * y"
    ]  # fmt: skip
    assert cast.operands == ("x: bfloat16[8]", "y: float32[8]")
    assert cast.scope == "layer"
    assert cast.decision is not None
    assert (cast.decision.operation, cast.decision.dtype) == ("multiply", Y.dtype)
    assert (cast.widening, cast.lossy, cast.weak) == (True, False, False)


def test_only_changes_of_dtype_are_casts():
    assert seen(lambda x: x.astype(x.dtype) * 2.0 + jnp.asarray(3, x.dtype), Y) == []
    weak_to_strong = jax.make_jaxpr(lambda x: lax.convert_element_type(x, jnp.float32))(1.0)
    assert len(weak_to_strong.eqns) == 1
    assert len(casts_of(weak_to_strong)) == 0


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_casts_between_any_two_formats_are_found():
    found = 0
    with jax.enable_x64(True):
        for source in FORMATS_OF_JAX:
            targets = [each for each in FORMATS_OF_JAX if each != source]
            argument = jax.ShapeDtypeStruct((3,), source)
            report = casts(lambda x, targets=targets: [lax.convert_element_type(x, each) for each in targets])(argument)
            assert {(cast.source, cast.target) for cast in report} == {(source, target) for target in targets}
            found += len(report)
    assert found == len(FORMATS_OF_JAX) * (len(FORMATS_OF_JAX) - 1) > 600


def test_a_python_number_is_not_a_float64_operand():
    decided = explain("float32", 2.0, rules="jax-x64")
    assert has_cast(explain("float64", "float32", rules="jax-x64"), np.dtype("float32"), np.dtype("float64"))
    assert not has_cast(decided, np.dtype("float64"), np.dtype("float32"))
    assert "2.0" not in fix_of(decided, ("x", "2.0"), np.dtype("float64"), np.dtype("float32"))


def test_a_product_of_two_dtypes_counts_as_a_cast():
    for function in (lambda x, y: x @ y, jnp.dot, lambda x, y: lax.dot(x, y, preferred_element_type=jnp.float32)):
        cast = only(function, X, Y)
        assert (cast.operation, cast.source, cast.target) == ("dot_general", X.dtype, Y.dtype)
    assert only(lambda x, y: x @ y, X, Y).kind == "promotion"
    assert seen(lambda x: lax.dot(x, x, preferred_element_type=jnp.float32), X) == []
    # float16 and bfloat16 promote to a third dtype.
    both = seen(lambda x, y: x @ y, X, X.astype(jnp.float16))
    assert sorted(both) == [("promotion", "bfloat16", "float32"), ("promotion", "float16", "float32")]


@pytest.mark.parametrize(
    ("function", "times"),
    [
        (lambda x, y: x + y, 1),
        (lambda x, y: lax.scan(lambda c, _: (c, x + y), 0, length=7)[1], 7),
        (lambda x, y: lax.while_loop(lambda c: True, lambda c: c + x, y), None),
        (lambda x, y: lax.fori_loop(0, 3, lambda _, c: jax.checkpoint(lambda u: u + x)(c), y), 3),
        (lambda x, y: jax.vmap(lambda u: u + y[0])(x), 1),
    ],
)
def test_times_counts_the_runs_of_a_cast(function, times):
    assert only(function, X, Y).times == times


def test_casts_in_both_branches_count():
    report = casts(lambda p, x, y: lax.cond(p, lambda: x + y, lambda: x * y))(True, X, Y)
    assert sorted(cast.expression for cast in report.promotion) == ["x * y", "x + y"]
    assert {cast.times for cast in report} == {1}


def test_a_helper_called_twice_has_two_paths():
    @jax.jit
    def helper(x, y):
        return x + y

    def function(x, y):
        first = helper(x, y)
        return first + helper(x, y)

    report = casts(function)(X, Y)
    first, body = function.__code__.co_firstlineno, helper.__wrapped__.__code__.co_firstlineno + 2
    assert [[at.line for at, _ in cast.path] for cast in report] == [
        [first + 1, body], [first + 2, body]
    ]  # fmt: skip


def without_source(expression):
    names = {"jax": jax, "jnp": jnp, "np": np, "W": Y}
    exec(f"def f(x, y):\n    return {expression}", names)
    return names["f"]


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x, y: jnp.mean(x), "library"),
        (lambda x, y: jax.nn.softmax(x), "library"),
        (lambda x, y: jnp.average(x, weights=y), "promotion"),
        (lambda x, y: jnp.clip(x, 0, y), "promotion"),
        (lambda x, y: [jnp.add][0](x, y), "promotion"),
        (lambda x, y: [jnp.float32][0](x), "explicit"),
        (lambda x, y: [jnp.sum][0](x, dtype="float32"), "explicit"),
        (lambda x, y: jnp.where(x > 0, x.astype(y.dtype), y), "explicit"),
        (lambda x, y: jnp.maximum(x.astype("float32"), y), "explicit"),
        (lambda x, y: sum([x, y]), "promotion"),
        (lambda x, y: functools.reduce(jnp.multiply, [x, y]), "promotion"),
        (lambda x, y: x * np.float32(2), "promotion"),
        (lambda x, y: x * 2.0 + y.astype(x.dtype), "explicit"),
        (lambda x, y: y[jnp.arange(3, dtype=jnp.int8)], "library"),
        (lambda x, y: jnp.ones(3, bool) * y[:3], "conversion"),
        (lambda x, y: jax.tree.map(lambda u: u.astype(y.dtype), {"x": x}), "explicit"),
        (lambda x, y: y.at[0].set(x[0]), "promotion"),
        (lambda x, y: jnp.clip(x, np.float32(0), np.float32(1)), "promotion"),
        (lambda x, y: jnp.where(x > 0, x, jnp.finfo("float32").min), "promotion"),
        (lambda x, y: jnp.quantile(x, 0.5), "library"),
        (lambda x, y: jax.nn.dot_product_attention(*[x.reshape(1, 2, 2, 2)] * 3), "library"),
        (lambda x, y: jax.random.normal(jax.random.key(0), (3,), jnp.bfloat16), "library"),
        (lambda x, y: jax.nn.one_hot(jnp.arange(3), 4, dtype=x.dtype), "explicit"),
        (lambda x, y: jax.vmap(jnp.add)(x, y), "promotion"),
        (lambda x, y: jnp.array([x[0], y[0]]), "promotion"),
        (lambda x, y: jnp.polyval(y, x), "promotion"),
        (lambda x, y: jnp.einsum("b,b", x, y), "promotion"),
        (lambda x, y: types.SimpleNamespace(f=jnp.multiply).f(x, y), "promotion"),
        (lambda x, y: y ** jnp.arange(8), "conversion"),
        (lambda x, y: nnx.Param(y) * x, "promotion"),
        (lambda x, y: x - nnx.Param(y), "promotion"),
        (lambda x, y: jax.tree.map(jnp.subtract, {"x": x}, {"x": y}), "promotion"),
        (lambda x, y: x + np.arange(8, dtype=np.float32), "promotion"),
        (lambda x, y: "é" and x + y, "promotion"),
        (without_source("x * y"), "promotion"),
        (without_source("x / np.sqrt(64)"), "promotion"),
        (without_source("np.float32(2) - x"), "promotion"),
        (without_source("x > np.float32(2)"), "promotion"),
        (without_source("x + np.ones(8)"), "promotion"),
        (without_source("x @ W"), "promotion"),
        (without_source("jnp.add(x, np.float32(2))"), "promotion"),
        (without_source("jnp.power(x, jnp.float32(2))"), "promotion"),
        (without_source("jnp.where(x > 0, x, np.float32(2))"), "promotion"),
        (without_source("jax.lax.scan(lambda c, v: (c, v * np.float32(2)), 0, x)[1]"), "promotion"),
        (without_source("jax.grad(lambda x: (x * np.float32(2)).sum())(x)"), "promotion"),
        (without_source("x.astype('float32')"), "explicit"),
        (without_source("jnp.float32(x) * y"), "explicit"),
        (without_source("jnp.mean(x)"), "library"),
        (without_source("jax.nn.softmax(x)"), "library"),
    ],
)
def test_every_cast_has_the_class_of_its_cause(function, kind):
    kinds = {cast.kind for cast in casts(function)(X, Y)}
    assert kind in kinds
    assert kinds <= {kind, "library"}


@pytest.mark.parametrize(
    ("function", "kind", "reason"),
    [
        (lambda x, y: x.astype("float32"), "explicit", "the call asks for float32"),
        (lambda x, y: jnp.float32(x), "explicit", "the call asks for float32"),
        (lambda x, y: x.astype(y.dtype), "explicit", "the call asks for a dtype"),
        (lambda x, y: jnp.sum(x, dtype=y.dtype), "explicit", "the call asks for a dtype"),
        (lambda x, y: [jnp.float32][0](x), "explicit", "the called function only casts"),
        # The call names a dtype, but not one of this cast.
        (
            lambda x, y: jnp.dot(x, y, preferred_element_type="float16"),
            "promotion",
            "float32 is the least upper bound: bfloat16 -> float32",
        ),
    ],
)
def test_a_cast_is_explicit_only_if_the_call_asks_for_its_dtype(function, kind, reason):
    (cast,) = casts(function)(X, Y)
    assert (str(cast.source), str(cast.target)) == ("bfloat16", "float32")
    assert (cast.kind, cast.reason) == (kind, reason)


def test_only_a_dtype_of_the_cast_makes_it_explicit():
    report = casts(lambda x: jnp.var(x, dtype="float16"))(X)
    reasons = {(str(cast.source), str(cast.target)): cast.reason for cast in report if cast.kind == "explicit"}
    assert reasons == {("float32", "float16"): "the call asks for float16"}
    assert ("bfloat16", "float32", "library") in {(str(c.source), str(c.target), c.kind) for c in report}


def test_the_backward_pass_has_the_class_of_the_forward_pass():
    gradient = jax.grad(lambda x, y: (jnp.where(x > 0, x, y) * y).sum())
    assert {(kind, source) for kind, source, _ in seen(gradient, X, Y)} == {
        ("promotion", "bfloat16"), ("promotion", "float32")
    }  # fmt: skip
    gradient = jax.grad(lambda x: x.astype(jnp.float32).sum())
    assert {kind for kind, _, _ in seen(gradient, X)} == {"explicit"}


@pytest.mark.parametrize("hooks", [False, True])
def test_casts_in_derivative_rules_are_unknown(hooks):
    if hooks:
        importlib.import_module("supremum.nn")  # which must not change how jax.custom_vjp behaves

    @jax.custom_vjp
    def double(x):
        return x + x

    double.defvjp(lambda x: (x + x, None), lambda _, ct: ((ct.astype("bfloat16") * X).astype("float32"),))
    report = casts(jax.grad(lambda x: double(x).sum()))(Y)
    assert [cast.kind for cast in report] == ["unknown", "unknown"]
    assert "in a derivative rule" in report[0].reason
    assert report[0].expression == "double(x)"


def test_a_number_without_a_dtype_of_its_own_does_not_promote_without_source():
    for expression in ("x * 2.0", "jnp.add(x, 2)", "jnp.maximum(x, 0)", "x / 64**0.5", "x.at[0].set(1.0)"):
        assert seen(without_source(expression), X, Y) == []


def test_casts_without_source_name_their_operands():
    cast = only(without_source("x / np.sqrt(64)"), X, Y)
    assert (cast.line, cast.expression, cast.operands) == (2, "", ("bfloat16[8]", "8.0"))
    assert cast.decision is not None
    assert cast.decision.operation == "divide"
    assert cast.fix == (
        ".astype('float32') on the bfloat16 operand to compute in float32, or "
        ".astype('bfloat16') on the float32 operand to stay in bfloat16"
    )


def test_functions_on_one_line_of_a_prompt_keep_their_own_operators():
    names = {}
    for operator in "*-":  # each prompt has the same file name, and starts with line 1
        exec(f"f{'xy'[operator == '-']} = lambda x, y: x {operator} y", names)
    report = casts(lambda x, y: (names["fx"](x, y), names["fy"](x, y)))(X, Y)
    assert [cast.decision.operation for cast in report] == ["multiply", "subtract"]


def test_functions_of_jax_can_be_traced_directly():
    assert seen(jnp.add, X, Y) == [("promotion", "bfloat16", "float32")]
    assert seen(jnp.sum, X) == [("library", "bfloat16", "float32"), ("library", "float32", "bfloat16")]
    assert only(jnp.add, X, Y).where == "-"


def test_jitted_functions_keep_their_static_arguments():
    function = jax.jit(
        lambda x, y, count, name="": x * y if count == 2 else y, static_argnums=2, static_argnames="name"
    )
    assert len(casts(function)(X, Y, 2)) == 1
    assert len(casts(function)(X, Y, 3, name="nobody")) == 0


def test_arguments_other_than_arrays_are_passed_on():
    assert len(casts(lambda x, operator, flag: operator(x, Y) if flag else x)(X, jnp.add, "yes")) == 1
    assert len(casts(lambda x: x + Y)(jax.ShapeDtypeStruct((8,), jnp.bfloat16))) == 1
    assert len(casts(lambda x, *, y: x + y)(X, y=Y)) == 1


def test_errors_of_the_function_are_raised_unchanged():
    with pytest.raises(ZeroDivisionError, match="mine"):
        casts(lambda x: exec("raise ZeroDivisionError('mine')"))(X)
    with pytest.raises(TypeError, match="add got incompatible shapes"):
        casts(lambda x: x + jnp.ones(3))(X)


def test_expressions_after_non_ascii_text_are_read_correctly():
    assert only(lambda x, y: ["é", x + y], X, Y).expression == "x + y"
    assert only(lambda ä, ö: ä * ö, X, Y).expression == "ä * ö"


def test_operands_are_those_of_the_innermost_expression():
    promoted = casts(lambda x: x.astype("float32") + x)(X).promotion[0]
    assert promoted.operands == ('x.astype("float32"): float32[8]', "x: bfloat16[8]")
    assert promoted.decision is not None
    # A condition is not promoted.
    assert only(lambda x, y: jnp.where(x > 0, x, y), X, Y).reason == (
        "float32 is the least upper bound: bfloat16 -> float32"
    )


def test_an_expression_statement_is_read_as_an_expression():
    def function(x, y):
        x.astype(y.dtype)
        x + y

    assert sorted(cast.kind for cast in casts(function)(X, Y)) == ["explicit", "promotion"]


def test_functions_of_jax_with_custom_rules_belong_to_jax():
    report = casts(jax.grad(lambda x: jax.nn.relu(jax.nn.logsumexp(x)).astype("float32")))(X)
    assert {cast.kind for cast in report} <= {"library", "explicit"}


def test_a_number_in_the_source_is_an_operand():
    cast = only(lambda i: i / 2, jnp.arange(3))
    assert cast.operands == ("i: int32[3]", "2")
    assert "divide converts int32 to float32" in cast.reason


def test_keys_are_not_numbers():
    assert seen(lambda key: jax.random.split(key), jax.random.key(0)) == []
