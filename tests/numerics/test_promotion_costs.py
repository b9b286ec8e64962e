"""`promotion_costs` measures what undoing a promotion would cost, and says the same as the program written that way."""

import json
import math
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slowly import for_each
from supremum.errors import OperandError, UnknownNameError
from supremum.numerics import promotion_costs
from supremum.tracing import casts

KEYS = jax.random.split(jax.random.key(3), 4)
X = jax.random.normal(KEYS[0], (500,)).astype("bfloat16")
W = jax.random.normal(KEYS[1], (500,))


def changes(function, *args, **options):
    report = promotion_costs(function, **options)(*args)
    return {cause.first.expression: cause.narrow_error for cause in report.causes}


def relative_error(narrow, exact):
    narrow, exact = np.asarray(narrow, "float64"), np.asarray(exact, "float64")
    return np.linalg.norm(narrow - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_leak_is_harmless_in_one_place_and_costly_in_another(wrapped):
    def function(x, scale, offset):
        gate = jax.nn.sigmoid(x * scale)
        moved = x + offset
        return jnp.mean(moved.astype("float32") - offset) + 1e-3 * jnp.mean(gate.astype("float32"))

    scale, offset = jnp.float32(1.7), jnp.full(500, jnp.float32(1000.3))
    found = changes(wrapped(function), X, scale, offset)
    gate, moved = found["x * scale"], found["x + offset"]
    assert gate.before == moved.before < 1e-3
    assert gate.after < 1e-2  # a rounding of a small summand
    assert moved.after > 0.3  # nearly all digits of x


MATRIX = jax.random.normal(KEYS[2], (500, 7)).astype("bfloat16")
FACTOR = jnp.float32(1.37)


def narrow(w):
    return w.astype("bfloat16")


def looped(x, w):
    def step(carry, each):
        return (carry + each * w).astype("bfloat16"), jnp.sin(each * w)

    return jax.lax.scan(step, jnp.bfloat16(0), x)[1]


def grown(x, w):
    scaled = x * w
    return jnp.exp(jnp.sin(scaled) * 3) - 1


FIXED = {
    # a function, its arguments, the expression, the function with the fix, the same in float64, and the tolerance
    "x * w": (lambda x, w: jnp.tanh(x * w) + x, (X, W), lambda x, w: jnp.tanh(x * narrow(w)) + x, None, 0.02),
    "(x * w) @ m": (lambda x, w, m: (x * w) @ m, (X, W, MATRIX), lambda x, w, m: (x * narrow(w)) @ m, None, 0.1),
    "each * w": (looped, (X, FACTOR), lambda x, w: jnp.sin(x * narrow(w)), lambda x, w: np.sin(x * w), 0.02),
    "exp": (grown, (X, W), lambda x, w: jnp.exp(jnp.sin(x * narrow(w)) * 3) - 1, None, 0.02),
}


@for_each("name, mode", list(product(FIXED, (lambda function: function, jax.jit))))
def test_the_error_is_that_of_the_program_with_the_fix(name, mode):
    function, arguments, fixed, in_float64, tolerance = FIXED[name]
    wide = [np.asarray(each, "float64") for each in arguments]
    with jax.enable_x64(True):
        exact = (in_float64 or function)(*wide)
    expression = name if name == "each * w" else "x * w"
    change = changes(mode(function), *arguments)[expression]
    assert change.after == pytest.approx(relative_error(fixed(*arguments), exact), rel=tolerance)
    if in_float64 is None:
        assert change.before == pytest.approx(relative_error(function(*arguments), exact), rel=tolerance)


def test_float64_leaks_are_undone_in_float32():
    with jax.enable_x64(True):
        x, w = jnp.linspace(1, 2, 100, dtype="float32"), jnp.linspace(1.1, 2.3, 100, dtype="float64")
        change = changes(lambda x, w: x * w, x, w)["x * w"]
        exact = np.asarray(x, "float64") * np.asarray(w)
        assert change.before == 0
        assert change.after == pytest.approx(relative_error(x * w.astype("float32"), exact), rel=1e-6)


def test_the_report_has_the_errors_beside_the_bytes():
    report = promotion_costs(lambda x, w, v: (x * w) @ v)(X, W, X)
    (cause,) = report.causes
    plain = casts(lambda x, w, v: (x * w) @ v, cost=True)(X, W, X)
    assert cause.extra_bytes == plain.causes[0].extra_bytes
    (only,) = json.loads(report.to_json())["causes"]
    change = cause.narrow_error
    assert only["narrow_error"] == {"before": change.before, "alone": change.alone, "after": change.after}
    assert f"undone, {cause.narrow_error}" in " ".join(str(report).split())
    assert "narrow_error" not in str(plain.to_dict())
    assert all(cast.cause is report.causes[0].first for cast in cause.follow)


def test_errors_that_are_not_finite_are_null_in_json():
    change = changes(lambda x, w: x + w, jnp.full(3, 6e4, "float16"), jnp.full(3, 6e4, "float32"))["x + w"]
    assert math.isinf(change.after)
    assert change.to_dict()["after"] is None
    assert "is not finite instead of 0" in str(change)


def test_a_program_without_promotions_does_not_run():
    assert promotion_costs(lambda x: x * 2)(X).casts == ()
    narrowed = promotion_costs(lambda x, i: x * i)(X, jnp.arange(500))
    assert {cause.narrow_error for cause in narrowed.causes} <= {None}  # of integers


def test_a_part_of_the_result_can_be_measured():
    def function(x, w):
        return {"exact": x, "mixed": x * w}

    assert changes(function, X, W, output="exact")["x * w"].after == 0
    assert changes(function, X, W, output="mixed")["x * w"].after > 1e-4


def test_an_output_that_the_result_does_not_have_is_refused():
    with pytest.raises(OperandError, match="output must be"):
        promotion_costs(jnp.sin, output=1.5)
    with pytest.raises(UnknownNameError):
        promotion_costs(lambda x, w: {"y": x * w}, output="z")(X, W)


def test_the_expression_alone_is_undone_beside_all_that_follows():
    def alone(x, w):
        return jnp.exp(jnp.sin((x * narrow(w)).astype("float32")) * 3) - 1

    exact = np.exp(np.sin(np.asarray(X, "float64") * np.asarray(W, "float64")) * 3) - 1
    change = changes(grown, X, W)["x * w"]
    assert change.alone == pytest.approx(relative_error(alone(X, W), exact), rel=0.02)
    assert change.after > 1.2 * change.alone
    assert f"or {change.alone:.2g} if only this expression is undone" in str(change)


def test_the_expression_alone_is_the_operation_that_mixes_dtypes_also_in_products_and_reshaped():
    matrix = jax.random.normal(KEYS[2], (500, 7))
    for function in (lambda x, m: x @ m, lambda x, m: x[:, None] * m):
        (change,) = changes(function, X, matrix).values()
        assert change.alone == change.after > 1e-4
    later = changes(lambda x, w, v: (x * w) * v, X, W, X)["x * w"]
    assert later.before < later.alone < later.after
