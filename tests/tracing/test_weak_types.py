"""Weak inputs and outputs, the retracing that they cause, and carries that change type."""

import json

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from supremum.errors import OperandError
from supremum.tracing import carry_mismatches, weak_types

X, HALF = jnp.ones(3), jnp.ones(3, jnp.bfloat16)


def momentum(state, gradient):
    velocity = 0.9 * state["velocity"] + gradient.sum()
    return {"count": state["count"] + 1, "velocity": velocity}, velocity * 2


def traces(function, state, *rest):
    count = 0

    def counted(*args):
        nonlocal count
        count += 1
        return function(*args)

    step = jax.jit(counted)
    for _ in range(3):
        state = step(state, *rest)[0]
    return count


def test_a_weak_state_that_comes_back_strong_is_traced_again():
    state = {"count": 0, "velocity": 0.0}
    report = weak_types(momentum)(state, X)
    assert traces(momentum, state, X) == 2
    (velocity,) = report.retraces
    assert (velocity.role, velocity.path) == ("argument", "[0]['velocity']")
    assert (str(velocity.type), str(velocity.returns)) == ("float32[] (weak)", "float32[]")
    line = momentum.__code__.co_firstlineno + 1
    assert velocity.place.where == f"{__file__}:{line}"
    assert velocity.place.expression == '0.9 * state["velocity"] + gradient.sum()'
    # The count stays weak, so the function is not traced again.
    assert [value.path for value in report if value.role == "argument"] == ["[0]['count']", "[0]['velocity']"]
    assert [(value.role, value.path) for value in report if value.role == "result"] == [("result", "[0]['count']")]
    fixed = state | {"velocity": eval(velocity.fix.removeprefix("start with "), {"jnp": jnp, "args": [state]})}
    assert weak_types(momentum)(fixed, X).retraces == ()
    assert traces(momentum, fixed, X) == 1


def test_a_state_that_comes_back_in_a_different_dtype_is_traced_again():
    report = weak_types(lambda state, x: (state * x, 0))(HALF, X)
    (value,) = report.retraces
    assert (str(value.type), str(value.returns)) == ("bfloat16[3]", "float32[3]")
    assert "JAX traces again if you pass it back" in str(value)


def test_each_result_comes_back_as_one_argument():
    report = weak_types(lambda mean, count: (mean * X[0], count + 1))(0.0, 0.0)
    assert [value.path for value in report.retraces] == ["[0]"]


def test_weak_results_are_reported():
    (value,) = weak_types(lambda x: (x, 3.0))(X)
    assert (value.role, value.path, value.retraces) == ("result", "[1]", False)
    assert str(weak_types(lambda x: x)(X)) == "no weak arguments or results"
    data = json.loads(json.dumps(weak_types(momentum)({"count": 0, "velocity": 0.0}, X).to_dict()))
    assert data["values"][1]["returns"] == "float32[]"


BODIES = {
    "int to float": (lambda c, x: (c + x, None), jnp.int32(0), X),
    "half to float": (lambda c, x: (c + x, None), jnp.bfloat16(0), X),
    "float to half": (lambda c, x: (x, None), jnp.float32(0), HALF),
    "weak int to float": (lambda c, x: (c + x, None), 0, X),
    "weak float to half": (lambda c, x: (c + x, None), 0.0, HALF),
    "weak float to int": (lambda c, x: (x, None), 0.0, X.astype("int32")),
    "half to weak": (lambda c, x: (0.0, None), jnp.bfloat16(1), X),
    "float to weak": (lambda c, x: (0.0, None), jnp.float32(1), X),
    "shape": (lambda c, x: (c + jnp.ones(2), None), jnp.float32(0), X),
    "same": (lambda c, x: (c * x, None), jnp.float32(0), X),
    "container": (lambda c, x: ({"a": c["a"], "b": x}, None), {"a": jnp.float32(0)}, X),
    "one of two": (lambda c, x: ((c[0], c[1] * x), None), (jnp.float32(0), jnp.bfloat16(0)), X),
}


@pytest.mark.parametrize("name", BODIES)
def test_carry_mismatches_are_those_that_scan_refuses(name):
    body, init, xs = BODIES[name]
    found = carry_mismatches(body, init, xs)
    try:
        lax.scan(body, init, xs)
    except TypeError:
        assert found
    else:
        assert not found


def test_a_mismatch_has_its_path_line_and_fix():
    body, init, xs = BODIES["one of two"]
    (found,) = carry_mismatches(body, init, xs)
    assert (found.path, str(found.before), str(found.after)) == ("[1]", "bfloat16[]", "float32[]")
    assert found.place.expression == "c[1] * x"
    start, back = found.fix.split(", or ")
    assert start == "start with jnp.asarray(carry[1], 'float32')"
    assert back == "return (c[1] * x).astype('bfloat16')"
    lax.scan(body, (init[0], jnp.asarray(init[1], "float32")), xs)
    lax.scan(lambda c, x: ((c[0], (c[1] * x).astype("bfloat16")), None), init, xs)
    assert "goes in as bfloat16[] and comes out as float32[]" in str(found)
    assert f"made at {__file__}:" in str(found)


def test_carry_mismatches_takes_while_bodies_and_scans_without_xs():
    (found,) = carry_mismatches(lambda c: c + X, HALF)
    assert found.place.expression == "c + X"
    assert carry_mismatches(lambda c: c + 1, jnp.float32(0)) == ()
    assert len(carry_mismatches(lambda c, _: (c * 1.5, None), jnp.int32(0), None)) == 1


def test_the_body_of_a_scan_must_return_a_pair():
    with pytest.raises(OperandError, match="return carry, None"):
        carry_mismatches(lambda c, x: c, X[0], X)


@pytest.mark.parametrize(
    ("xs", "where"),
    [
        ([1.0, 2.0], "got 1.0 at xs[0]. "),
        ({"a": (1, 2)}, "got 1 at xs['a'][0]. "),
        (3, "got 3 at xs. "),
        (jnp.float32(3), "got Array(3."),
    ],
)
def test_xs_without_a_leading_axis_raises_like_jax(xs, where):
    def body(carry, x):
        return carry, x

    with pytest.raises(OperandError) as caught:
        carry_mismatches(body, X, xs)
    assert str(caught.value).startswith("xs must have a leading axis to iterate over, ")
    assert where in str(caught.value)
    assert "jnp.asarray([1.0, 2.0])" in str(caught.value)
    with pytest.raises((ValueError, IndexError)):
        jax.lax.scan(body, X, xs)
    assert carry_mismatches(body, X, jnp.asarray([1.0, 2.0])) == ()
