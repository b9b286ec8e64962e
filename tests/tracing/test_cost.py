"""`casts(..., cost=True)` says how many bytes a promotion adds to the values that are wider because of it."""

import jax
import jax.numpy as jnp
import pytest

from supremum.errors import OperandError
from supremum.tracing import casts

NARROW, WIDE = jnp.ones(1000, "bfloat16"), jnp.ones(1000)


def roots(function, *args):
    return {cast.expression: cast.extra_bytes for cast in casts(function, cost=True)(*args) if cast.cause is None}


def test_each_value_made_wider_counts_once():
    def function(x, w):
        return jnp.tanh(x * w).astype("bfloat16") + x

    assert roots(function, NARROW, WIDE)["x * w"] == 2 * (1000 + 1000 + 1000)  # the cast, the product, the tanh


def test_values_in_loops_count_for_each_iteration():
    def function(x, w):
        def step(carry, _):
            return (carry * w).astype("bfloat16"), None

        return jax.lax.scan(step, x, length=5)[0]

    assert roots(function, NARROW, WIDE)["carry * w"] == 5 * 2 * 2 * 1000


def test_casts_that_follow_count_for_the_first():
    report = casts(lambda x, w, v: (x * w) @ v, cost=True)(NARROW, WIDE, jnp.ones((1000, 10), "bfloat16"))
    (cause,) = report.causes
    assert [cast.expression for cast in cause.follow] == ["(x * w) @ v"]
    assert cause.extra_bytes == 2 * (
        1000 + 1000 + 10
    )  # the cast, the product and the result; the cast of v is part of the product
    assert "costs 4,020 bytes more in values that are wider than in bfloat16" in str(report)


def test_what_the_user_widened_costs_nothing_and_unused_values_neither():
    assert casts(lambda x: jnp.tanh(x.astype("float32")), cost=True)(NARROW)[0].extra_bytes == 0

    def unused(x, w):
        x * w
        return x

    assert set(roots(unused, NARROW, WIDE).values()) <= {0}


def test_without_cost_nothing_is_said():
    report = casts(lambda x, w: x * w)(NARROW, WIDE)
    assert report[0].extra_bytes is None
    assert "costs" not in str(report)
    assert "extra_bytes" not in str(report.to_dict())
    assert casts(lambda x, w: x * w, cost=True)(NARROW, WIDE).to_dict()["causes"][0]["extra_bytes"] == 4000
    with pytest.raises(OperandError, match="cost must be True or False"):
        casts(jnp.sin, cost="yes")
