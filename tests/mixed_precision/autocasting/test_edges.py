"""NaNs, infinities, 0-d and empty arrays give the same outputs and gradients with autocast as without it."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mixed_precision.autocasting.found import W
from supremum.formats import as_format
from supremum.mixed_precision import autocast

COMPUTE = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
MODES = {"jitted": jax.jit, "eager": lambda function: function}
VALUES = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1.5, -2], np.float32)


def product(x):
    """Return the product of `x` and 1, which is `x` in the compute dtype."""
    return lax.dot_general(x, jnp.float32(1), (((), ()), ((), ())))


# Functions of arrays of any shape, at least one for each rule.
ANY_SHAPE = {
    "product": product,
    "exp": lambda x: jnp.exp(product(x)),
    "square": lambda x: (y := product(x)) * y,
    "reciprocal": lambda x: 1 / product(x),
    "masked": lambda x: jnp.where(x > 0, product(x), -1e9),
    "sum": lambda x: jnp.sum(product(x)),
}
# Functions of matrices.
MATRICES = {
    "matmul": lambda x: x @ W,
    "softmax": lambda x: jax.nn.softmax(x @ W),
    "relu": lambda x: jax.nn.relu(x @ W + W[0]),
}
KINDS = {"of any": ANY_SHAPE, "of matrices": MATRICES}


@cache
def with_gradients(kind, policy=None, mode="jitted"):
    """Return a function that computes the outputs of all functions of a kind, and the gradients of their sums."""

    def both(function, x):
        result, pullback = jax.vjp(function if policy is None else autocast(function, policy), x)
        return [result, *pullback(jnp.ones_like(result))]

    return MODES[mode](lambda x: {name: both(function, x) for name, function in KINDS[kind].items()})


# In separate rows, since a product spreads each over its whole row.
ROWS = np.ones((4, 8), np.float32)
ROWS[:3, 0], ROWS[3, :4] = VALUES[:3], VALUES[3:]
ARRAYS = {"of any": [ROWS, np.zeros((0, 8), np.float32), *VALUES[[0, 1, 3, 5]]], "of matrices": [ROWS, ROWS[:0]]}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", COMPUTE)
def test_outputs_and_gradients_are_those_without_autocast(policy, mode, kind):
    eps = as_format(COMPUTE[policy]).eps
    for x in ARRAYS[kind]:
        got, want = with_gradients(kind, policy, mode)(x), with_gradients(kind)(x)
        for name in KINDS[kind]:
            for ours, theirs in zip(got[name], want[name], strict=True):
                assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
                # NaN equals NaN here, and an infinity equals only itself.
                rounds = 0 if name == "product" else 8 * eps  # each value of a product with 1 is exact
                np.testing.assert_allclose(ours, theirs, rtol=rounds, atol=rounds, err_msg=name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", COMPUTE)
def test_sums_of_no_terms_are_zero(policy, mode):
    empty_product = MODES[mode](autocast(lambda x: x @ W[:0], policy))
    np.testing.assert_array_equal(empty_product(np.zeros((4, 0), np.float32)), np.zeros((4, 8)))
