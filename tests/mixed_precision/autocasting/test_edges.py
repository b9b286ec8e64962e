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
MODES = {"eager": lambda function: function, "jitted": jax.jit}
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


def check(kind, x, policy, mode):
    eps = as_format(COMPUTE[policy]).eps
    got, want = with_gradients(kind, policy, mode)(x), with_gradients(kind)(x)
    for name in KINDS[kind]:
        for ours, theirs in zip(got[name], want[name], strict=True):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            # NaN equals NaN here, and an infinity equals only itself.
            np.testing.assert_allclose(ours, theirs, rtol=8 * eps, atol=8 * eps, err_msg=name)
    return got


either_mode = pytest.mark.parametrize("mode", MODES)
either_policy = pytest.mark.parametrize("policy", COMPUTE)


@pytest.mark.slow
@either_mode
@either_policy
def test_nans_and_infinities_are_kept(policy, mode):
    # In separate rows, since a product spreads each over its whole row.
    x = np.ones((4, 8), np.float32)
    x[:3, 0], x[3, :4] = VALUES[:3], VALUES[3:]
    got = check("of any", x, policy, mode)
    np.testing.assert_array_equal(got["product"][0], x)
    assert np.isnan(got["sum"][0])
    got = check("of matrices", x, policy, mode)
    assert np.isnan(got["matmul"][0]).all(1).tolist() == [True, False, False, False]
    assert np.isinf(got["matmul"][0]).all(1).tolist() == [False, True, True, False]


@pytest.mark.one_in(2)
@either_mode
@either_policy
def test_0d_arrays_give_the_same_as_without_autocast(policy, mode):
    for value in VALUES[[0, 1, 3, 5]]:
        check("of any", value, policy, mode)


@pytest.mark.slow
@either_mode
@either_policy
def test_empty_arrays_keep_their_shape_and_dtype(policy, mode):
    got = check("of any", np.zeros((0, 8), np.float32), policy, mode)
    assert [each.shape for each in got["product"]] == [(0, 8), (0, 8)]
    check("of matrices", np.zeros((0, 8), np.float32), policy, mode)
    empty_product = autocast(lambda x: x @ W[:0], policy)
    np.testing.assert_array_equal(MODES[mode](empty_product)(np.zeros((4, 0), np.float32)), np.zeros((4, 8)))
