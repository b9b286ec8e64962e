"""A checksum does not depend on how an array is sharded, and changes with every bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.formats import FORMATS, as_format
from supremum.training.checkpoints.record import checksum
from training.bits import any_bits
from training.spread import mesh_of, spread

ON_DEVICES = ["bool", "int2", "int4", "uint4", "uint8", "int32", "bfloat16", "float8_e4m3fn", "float32", "complex64"]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", ON_DEVICES)
def test_numpy_jax_and_sharded_arrays_have_the_same_checksum(name):
    array = any_bits(as_format(name), (8, 3), np.random.default_rng(0))
    if name == "complex64":
        array = np.arange(24).reshape(8, 3).astype(name)  # XLA may change the payloads of complex NaNs
    found = {checksum(array), checksum(jnp.asarray(array))}
    found |= {checksum(spread(jnp.asarray(array), mesh_of(devices))) for devices in (2, 8)}
    assert len(found) == 1


@pytest.mark.parametrize("row", FORMATS, ids=str)
def test_flipping_any_bit_changes_the_checksum(row):
    bits = any_bits(row, (2,), np.random.default_rng(0)).view(np.uint8)
    assert checksum(bits.view(row.dtype)) == checksum(bits.copy().view(row.dtype))
    for position in range(8 * bits.size):
        if position % 8 < row.bits:
            assert checksum(flip_bit(bits, position).view(row.dtype)) != checksum(bits.view(row.dtype)), position


def flip_bit(bits, position):
    copy = bits.copy()
    copy[position // 8] ^= 1 << position % 8
    return copy


def test_moved_or_zeroed_elements_change_the_checksum():
    array = np.random.default_rng(0).integers(0, 2**32, (64, 64), np.uint32)
    others = [array.T, array[::-1], np.roll(array, 1), np.roll(array, 1, 0), array * (np.arange(64) > 0)]
    assert len({checksum(each) for each in [array, *others]}) == 6


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(2,), (64, 64), (1, 3, 4)])
def test_negating_numbers_changes_the_checksum(name, shape):
    """The sign is the top bit of a word, and only the top bits of an even number of words change."""
    array = np.ones(shape).astype(as_format(name).dtype)
    assert array.size % 2 == 0
    assert checksum(array) != checksum(-array)


def test_64_bit_arrays_have_the_same_checksum_in_numpy_and_jax():
    with jax.enable_x64(True):
        array = np.random.default_rng(0).normal(size=(8, 2))
        assert checksum(array) == checksum(jnp.asarray(array)) == checksum(spread(jnp.asarray(array), mesh_of(4)))
        assert checksum(array + 1j) == checksum(jnp.asarray(array + 1j))


def test_checksum_of_an_empty_array_is_zero():
    assert checksum(np.zeros((0, 3), np.float32)) == checksum(jnp.zeros((0, 3))) == 0
