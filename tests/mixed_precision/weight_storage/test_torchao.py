"""Rounding and storage have the bits of torchao 0.18, whose published algorithms are written here in NumPy."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from supremum.formats import as_format
from supremum.mixed_precision.weight_storage.moments import dynamic_map, store_array
from supremum.mixed_precision.weight_storage.rounding import round_to_format

F = np.float32
RANDOM = np.random.default_rng(0)


def stochastic(values, noise):
    """Round towards zero, or away from zero with the probability of the lower 16 bits."""
    bits = values.view(np.uint32)
    away = noise < (bits & np.uint32(0xFFFF))
    kept = np.where(away, (bits & np.uint32(0xFFFF0000)) + np.uint32(0x10000), bits & np.uint32(0xFFFF0000))
    return kept.view(F).astype(ml_dtypes.bfloat16)


def quantized(values, numbers):
    """Scale each block of 256 to 1, and find the nearest number, the upper one if it is halfway."""
    blocks = values.reshape(-1, 256)
    scale = np.maximum(np.abs(blocks).max(1), F(1e-12))
    shares = (blocks / scale[:, None]).reshape(values.shape)
    code = np.clip(np.searchsorted(numbers, shares, side="right") - 1, 0, 255)
    above = np.minimum(code + 1, 255)
    code = np.where(shares - numbers[code] >= (numbers[above] - numbers[code]) * F(0.5), above, code)
    return code.astype(np.uint8), scale


@pytest.mark.compiled
def test_stochastic_rounding_has_the_bits_of_torchao():
    with np.errstate(over="ignore"):
        values = F(RANDOM.normal(size=100_000) * 10.0 ** RANDOM.uniform(-38, 37, 100_000))
    noise = RANDOM.integers(0, 2**16, values.shape, np.uint32)
    found = round_to_format(jnp.asarray(values), as_format("bfloat16"), jnp.asarray(~(noise << np.uint32(16))))
    np.testing.assert_array_equal(np.float32(found), stochastic(values, noise).astype(F))


@pytest.mark.compiled
def test_a_stored_moment_has_the_codes_of_torchao():
    values = F(RANDOM.normal(size=(64, 256)) * 10.0 ** RANDOM.uniform(-6, 0, (64, 256)))
    for signed in (True, False):
        given = values if signed else values**2
        made = jax.jit(lambda x, signed=signed: store_array(x, "dynamic8", signed=signed))(given)
        code, scale = quantized(given, dynamic_map(signed))
        np.testing.assert_array_equal(np.asarray(made.codes).astype(int) - np.iinfo(made.codes.dtype).min, code)
        np.testing.assert_array_equal(made.scales, scale)
