"""`attribute`: shares, the sentence, the change that is tried, loops and decisions, and bad input."""

import json
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from numerics.programs import program
from slowly import slow
from supremum import SupremumError, numerics
from supremum.jaxprs import interpret, plan_of, traced_call
from supremum.numerics.error_flow import ErrorFlow
from supremum.numerics.paired_values import Pair, full
from supremum.numerics.widening import is_floating


def variance(x):
    squares = jnp.mean(x * x)
    mean = jnp.mean(x)
    return squares - mean * mean


def numbers(count=100, offset=20):
    return jnp.asarray(np.random.default_rng(0).normal(size=count) + offset, "bfloat16")


@pytest.fixture(scope="module")
def cancelled():
    return numerics.attribute(variance, "declared")(numbers())


def test_a_cancelling_variance_is_named_with_a_change_that_helps(cancelled):
    row = cancelled.rows[0]
    assert (row.expression, row.effect) == ("squares - mean * mean", "cancellation")
    assert row.relative_in < 2**-6
    assert row.relative_out > 1
    assert abs(cancelled.change.error) < 1e-4 < abs(cancelled.error)
    assert "a difference of nearly equal numbers: 2^-7 relative error in" in cancelled.sentence
    assert str(cancelled).replace("\n", " ").startswith("test_attribution.py:")


def test_the_shares_add_up_to_the_error_of_the_runs(cancelled):
    exact = np.var(np.asarray(numbers(), "float64"))
    assert cancelled.error == pytest.approx(float(cancelled.outputs) - exact, rel=1e-6)
    assert cancelled.relative_error == pytest.approx(abs(cancelled.error) / exact, rel=1e-6)
    assert cancelled.predicted == pytest.approx(cancelled.error, rel=1e-3)
    assert cancelled.bound >= abs(cancelled.predicted)
    assert sum(each.estimate for each in cancelled.by("line").values()) == pytest.approx(cancelled.predicted)


def test_an_attribution_is_plain_data_a_picture_and_html(cancelled):
    data = json.loads(cancelled.to_json())
    assert data["rows"][0]["effect"] == "cancellation"
    assert cancelled.to_svg().startswith("<svg")
    assert "cancellation" in cancelled._repr_html_()
    assert "<h2>loss</h2>" in numerics.attribution_page({"loss": cancelled})


def test_a_long_sum_in_a_scan_is_named():
    def total(x):
        return lax.scan(lambda c, t: (c + t, None), jnp.bfloat16(0), x)[0]

    x = jnp.asarray(np.random.default_rng(1).uniform(size=500), "bfloat16")
    found = numerics.attribute(total, "declared")(x)
    assert found.rows[0].runs == 500
    assert found.rows[0].effect == "long sum"
    assert found.predicted == pytest.approx(found.error, rel=0.05)
    assert abs(found.change.error) < 0.01 * abs(found.error)


def test_operations_in_a_while_loop_have_their_own_error_only():
    def grown(x):
        return lax.while_loop(lambda c: c < 100, lambda c: c * 1.3, x)

    found = numerics.attribute(grown, "declared")(jnp.bfloat16(1.1))
    rows = {row.primitive: row for row in found.rows}
    assert rows["mul"].estimate is None
    assert rows["mul"].local_error > 0
    assert "no derivative" in rows["mul"].words
    assert rows["while"].estimate == pytest.approx(found.error)


def test_a_branch_taken_in_one_run_only_is_a_decision():
    def branch(x):
        y = x + 0.001
        return lax.cond(y > 1, lambda v: v * 3, lambda v: v - 5, y)

    found = numerics.attribute(branch, "declared")(jnp.bfloat16(1.0))
    assert found.predicted == pytest.approx(found.error)
    assert {row.primitive: row.effect for row in found.rows}["cond"] == "decision"


def nearly_one(x):
    """A number that bfloat16 rounds up to 1."""
    return x + 0.002


def inverse_across_zero(x):
    """The inverse of numbers whose midpoint is 0, where the derivative is infinite."""
    return 1 / (x + 2.0**-9 - 1 - 2.0**-10)


JUMPS = {
    # a function, its argument, the operation that jumps, and the error
    "a step": (lambda x: jnp.floor(nearly_one(x)), 0.99609375, "floor", 1),
    "a choice": (
        lambda x: jnp.where(nearly_one(x) < 1, jnp.bfloat16(5), jnp.bfloat16(3)), 0.99609375, "select_n", -2
    ),
    "a choice of values with errors": (
        lambda x: jnp.where(nearly_one(x) < 1, jnp.bfloat16(3), nearly_one(x) * 5), 0.99609375, "select_n", 2
    ),
    "an index": (lambda x: jnp.bfloat16([2, 7])[nearly_one(x).astype(int)], 0.99609375, "dynamic_slice", 5),
    "a pole": (inverse_across_zero, 1.0, "div", -2048),
}  # fmt: skip


@pytest.mark.parametrize("name", JUMPS)
def test_the_whole_error_of_a_result_that_jumps_belongs_to_its_operation(name):
    function, x, primitive, error = JUMPS[name]
    found = numerics.attribute(function, "declared")(jnp.bfloat16(x))
    (row,) = (row for row in found.rows if row.primitive == primitive)
    assert row.effect == "decision"
    assert [found.error, found.predicted, row.estimate] == pytest.approx([error] * 3, rel=1e-2)


def exact(x):
    return x


def inexact(x):
    return jnp.sin(x) * x


def in_a_branch(run):
    return lambda x: lax.cond(x[0] > 0, run, jnp.sum, x)


@pytest.mark.parametrize(
    ("inside", "before"), [(exact, exact), slow(exact, inexact), slow(in_a_branch, exact), (in_a_branch, inexact)]
)
def test_a_kernel_runs_as_declared_and_its_row_says_so(inside, before):
    def run(x):
        called = jax.pure_callback(
            lambda each: np.sin(np.asarray(each)), jax.ShapeDtypeStruct(x.shape, x.dtype), before(x)
        )
        return jnp.sum(called * called)

    x = numbers(30, offset=2)
    found = numerics.attribute(inside(run), "declared")(x)
    assert found.predicted == pytest.approx(found.error)
    rows = [row for row in found.rows if row.primitive == "pure_callback"]
    # The kernel adds no error to exact operands, because both runs call it with the same numbers.
    assert [row.effect for row in rows if row.estimate] == ([] if before is exact else ["kernel"])


def test_random_numbers_are_the_same_in_both_runs():
    def dropped(key, x):
        return jnp.sum(jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0) @ jnp.ones((4, 1)))

    found = numerics.attribute(dropped)(jax.random.key(0), jnp.full((2, 4), 1.01))
    assert found.relative_error < 0.01


@pytest.mark.parametrize("output", [1, "1", lambda result: result[1]])
def test_output_chooses_what_is_explained(output):
    def both(x):
        return jnp.exp(x), jnp.sum(x + 1e-3)

    found = numerics.attribute(both, "declared", output=output)(jnp.ones(4, "bfloat16"))
    assert found.error == pytest.approx(-0.004, rel=0.01)
    assert found.rows[0].effect == "absorbed addition"


def test_results_of_several_numbers_have_a_relative_norm():
    w = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4)), "float32")
    found = numerics.attribute(jax.jit(lambda w: {"y": jnp.tanh(w @ w), "z": w @ w}))(w)
    assert 0 < found.relative_error == found.error < 0.02
    assert found.predicted == pytest.approx(found.error, rel=0.05)
    product = np.asarray(w, "float64") @ np.asarray(w, "float64")
    exact = np.concatenate([np.tanh(product), product])
    narrow = np.concatenate([np.asarray(found.outputs[name], "float64") for name in ("y", "z")])
    assert found.error == pytest.approx(np.linalg.norm(narrow - exact) / np.linalg.norm(exact), rel=1e-6)


def test_a_policy_of_float32_is_compared_with_float64():
    found = numerics.attribute(lambda x: jnp.sum(x / 3), "float32")(jnp.arange(9.0))
    assert 0 < found.relative_error < 1e-6


def cancelling(x):
    y = x + 16
    squares, mean = jnp.mean(y * y), jnp.mean(y)
    return (squares - mean * mean) * x


PLANTED = {
    # a function, the dtype of its argument, and the expression to blame
    "cancellation": (cancelling, "bfloat16", "squares - mean * mean"),
    "overflow": (lambda x: (x * x + 4096) * 4096, "float16", "(x * x + 4096) * 4096"),
    "absorbed addition": (lambda x: (x + 2048) - 2048, "bfloat16", "x + 2048"),
}
AROUND = {
    "jit": jax.jit,
    "remat": jax.checkpoint,
    "vmap": lambda function: lambda x: jax.vmap(function)(x.reshape(2, -1)),
    "scan": lambda function: lambda x: lax.scan(lambda _, row: (0, function(row)), 0, x.reshape(2, -1))[1],
}


@pytest.mark.slow
@pytest.mark.parametrize(("effect", "around"), list(zip([*PLANTED, *PLANTED], [*AROUND, "scan", "vmap"], strict=True)))
def test_a_planted_line_is_named_inside_of_calls_and_loops(effect, around):
    function, dtype, expression = PLANTED[effect]
    x = jnp.asarray(np.random.default_rng(5).uniform(0.5, 2, 8), dtype)
    found = numerics.attribute(lambda x: jnp.sum(jnp.sin(AROUND[around](function)(-x) * 0.75)), "declared")(x)
    assert (found.rows[0].expression, found.rows[0].effect) == (expression, effect)


def forward_errors(made):
    """The narrow results, the wide results and the errors of the first order, which are only added up forwards here."""
    call = traced_call(made.function, made.arguments, {}, "attribute")
    with warnings.catch_warnings(), jax.enable_x64(True), jax.disable_jit():
        warnings.simplefilter("ignore")
        pairs, _ = interpret(plan_of(call.program), [Pair(each) for each in call.arrays], ErrorFlow({}))
        pairs = [full(each) for each in pairs if is_floating(each.narrow)]
    parts = zip(*((each.narrow, each.wide, each.error) for each in pairs), strict=True)
    return [np.concatenate([np.ravel(np.asarray(each, "float64")) for each in part]) for part in parts]


@pytest.mark.slow
def test_the_shares_of_the_backward_pass_add_up_to_the_errors_that_flow_forwards():
    made = program(25, "bfloat16")
    found = numerics.attribute(
        made.function, "declared", output=lambda results: jnp.mean(jnp.concatenate(list(map(jnp.ravel, results))))
    )(*made.arguments)
    narrow, wide, error = forward_errors(made)
    assert found.predicted / found.error == pytest.approx(error.mean() / (narrow - wide).mean(), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [28, 62])
def test_errors_that_flow_forwards_are_within_a_factor_of_two(seed):
    narrow, wide, error = forward_errors(program(seed, "bfloat16"))
    gap, size = narrow - wide, np.linalg.norm(wide)
    length = np.linalg.norm(gap)
    summaries = {
        # the measured, the predicted and the reference value
        "first number": (gap[0], error[0], wide[0]),
        "mean": (gap.mean(), error.mean(), wide.mean()),
        "norm": (length / size, gap @ error / (length * size), 1.0),
    }
    with np.errstate(divide="ignore"):  # Errors of at most eight units in the last place of bfloat16 are not judged.
        units = {name: 2.0 ** (np.floor(np.log2(abs(of))) - 7) for name, (_, _, of) in summaries.items()}
    judged = {name: each for name, each in summaries.items() if abs(each[0]) > 8 * units[name]}
    assert "mean" in judged
    for name, (measured, predicted, _) in judged.items():
        assert 0.5 <= predicted / measured <= 2, name


WRONG = [
    # arguments, options, the call, and the message
    (jnp.sin, {"policy": "int8"}, None, "autocast needs a policy"),
    (jnp.sin, {"policy": "declared", "ops": {"sin": "float32"}}, None, "leave out ops"),
    (jnp.sin, {"output": 1.5}, None, "output must be"),
    (lambda x: {"loss": x}, {"output": "los"}, jnp.ones(3), "did you mean 'loss'"),
    (lambda x: (x, jnp.argmax(x)), {"output": 1}, jnp.ones(3), r"floating-point result to explain, got int32\[\]"),
    (lambda x: 2.0, {}, jnp.ones(3), "floating-point result to explain, got only Python numbers"),
    (jnp.sin, {"output": 1}, jnp.ones(3), "leave it out"),
]


@pytest.mark.parametrize(("function", "options", "x", "message"), WRONG)
def test_wrong_options_are_refused(function, options, x, message):
    with pytest.raises(SupremumError, match=message):
        numerics.attribute(function, **options)(x)


def test_64_bits_are_off_again_after_an_error():
    def fails(result):
        raise ValueError(result)

    with pytest.raises(ValueError, match="Tracer"):
        numerics.attribute(jnp.sin, output=fails)(jnp.ones(3))
    assert jnp.asarray(np.float64(1)).dtype == "float32"


def test_the_sentence_says_whether_the_change_helps():
    def product(x):
        return jnp.sum(x @ jnp.outer(x, x) * x)

    spread_out = numerics.attribute(product, "declared")(jnp.full(2, 1.01, "bfloat16")).sentence
    assert re.search(r"In float32 the error stays -[0-9.]+\.$", spread_out)

    cancelled = numerics.attribute(variance, "declared")(jnp.linspace(30, 34, 100, dtype="bfloat16"))
    assert " instead of " in cancelled.sentence

    def overflow(x):
        return jnp.log(jnp.sum(jnp.exp(x)))

    endless = numerics.attribute(overflow, "declared")(jnp.float32([400.0, 1.0]))
    assert "is not finite, so the operations have no shares of it" in " ".join(str(endless).split())
