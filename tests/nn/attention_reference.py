"""A float64 NumPy reference of attention, and test data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.formats import as_format

BATCH, QUERIES, KEYS, HEADS, GROUPS, DIM, VALUE_DIM = 2, 5, 7, 4, 2, 3, 6
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seed_rng():
    rng.bit_generator.state = np.random.default_rng(0).bit_generator.state


def normal(*shape, dtype="float32", scale=1.0):
    return jax.device_put(np.asarray(scale * rng.normal(size=shape), as_format(dtype).dtype))


def operands(dtype="float32"):
    shapes = (BATCH, QUERIES, HEADS, DIM), (BATCH, KEYS, GROUPS, DIM), (BATCH, KEYS, GROUPS, VALUE_DIM)
    return tuple(normal(*shape, dtype=dtype) for shape in shapes)


def additive(mask, dtype):
    """Return the mask as numbers to add to scores: zero, or the smallest number of the dtype, as Flax does."""
    return jnp.where(mask, 0, jnp.finfo(dtype).min).astype(dtype)


def exact(query, key, value, cotangent, *, mask=True, bias=0.0):
    """Return float64 outputs and gradients of query, key, value and scores. `members` query heads share a key head."""
    query, key, value, cotangent, bias = (np.asarray(a, np.float64) for a in (query, key, value, cotangent, bias))
    members, scale = query.shape[-2] // key.shape[-2], query.shape[-1] ** -0.5
    wide_key, wide_value = (np.repeat(array, members, -2) for array in (key, value))
    mask = np.broadcast_to(np.asarray(mask), (*query.shape[:-3], query.shape[-2], query.shape[-3], key.shape[-3]))
    scores = np.where(mask, np.einsum("...qhd,...khd->...hqk", query, wide_key) * scale + bias, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    p = weights / np.where(total == 0, 1, total)
    of_p = np.einsum("...qhd,...khd->...hqk", cotangent, wide_value)
    of_scores = p * (of_p - (p * of_p).sum(-1, keepdims=True))

    def by_group(array):
        return array.reshape(*array.shape[:-2], -1, members, array.shape[-1]).sum(-2)

    return (
        np.einsum("...hqk,...khd->...qhd", p, wide_value),
        np.einsum("...hqk,...khd->...qhd", of_scores, wide_key) * scale,
        by_group(np.einsum("...hqk,...qhd->...khd", of_scores, query) * scale),
        by_group(np.einsum("...hqk,...qhd->...khd", p, cotangent)),
        of_scores,
    )


def ulps(got, want):
    """Return the distance of two arrays in units of the last place of the largest number."""
    assert np.isfinite(np.asarray(got)).all()
    return np.abs(np.asarray(got, np.float64) - want).max() / np.abs(want).max() / as_format(got.dtype).eps


def outputs_and_gradients(run, cotangent, *args, jitted=True):
    def both(args, cotangent):
        outputs, pull = jax.vjp(run, *args)
        return outputs, *pull(cotangent)

    return (jax.jit(both) if jitted else both)(args, cotangent)
