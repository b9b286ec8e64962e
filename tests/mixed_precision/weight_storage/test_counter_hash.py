"""The bits of stochastic rounding: uniform, independent of their neighbors, and the same under any sharding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from supremum.mixed_precision.weight_storage.counter_hash import random_bits, step_key

COUNT = 2**18
BITS = jax.jit(lambda step: random_bits(step_key(0, "layers/0/kernel", step), (COUNT,)))
HERE = np.asarray(BITS(jnp.int32(7)))


def bits(seed=0, path="layers/0/kernel", step=7, shape=(COUNT,)):
    return np.asarray(jax.jit(lambda step: random_bits(step_key(seed, path, step), shape))(jnp.int32(step)))


KEY = step_key(0, "layers/0/kernel", jnp.int32(7))


def bits_of_key(key):
    return np.asarray(random_bits(key, (COUNT,)))


NEIGHBORS = {
    "index": lambda: np.roll(HERE, -1),
    "distant index": lambda: np.roll(HERE, -256),
    "step": lambda: bits(step=8),
    "distant step": lambda: bits(step=7 + 2**16),
    "path": lambda: bits(path="layers/1/kernel"),
    "other path": lambda: bits(path="layers/0/bias"),
    "seed": lambda: bits(seed=1),
    "second word of the key": lambda: bits_of_key(KEY._replace(second=KEY.second + 1)),
    "other second word": lambda: bits_of_key(KEY._replace(second=~KEY.second)),
}


def z_of_chi_squared(counts):
    """How many standard deviations chi-squared is from its mean (Wilson and Hilferty, 1931)."""
    expected = counts.sum() / counts.size
    statistic, freedom = ((counts - expected) ** 2 / expected).sum(), counts.size - 1
    return ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / np.sqrt(2 / (9 * freedom))


@pytest.mark.parametrize("shift", [0, 8, 16, 24])
def test_each_byte_is_uniform(shift):
    counts = np.bincount((HERE >> shift) & 255, minlength=256)
    assert abs(z_of_chi_squared(counts)) < 4


@pytest.mark.parametrize("neighbor", NEIGHBORS)
def test_neighbors_are_independent(neighbor):
    """Chi-squared of the 256 pairs of four bits."""
    there = NEIGHBORS[neighbor]()
    for shift in (0, 12, 16, 28):
        pairs = ((HERE >> shift) & 15) * 16 + ((there >> shift) & 15)
        assert abs(z_of_chi_squared(np.bincount(pairs, minlength=256))) < 4, shift
        # The difference shows a common offset, which single pairs do not.
        assert abs(z_of_chi_squared(np.bincount(((HERE ^ there) >> shift) & 15, minlength=16))) < 4, shift


@pytest.mark.slow
def test_one_element_over_many_steps_is_uniform():
    drawn = np.asarray(jax.vmap(lambda step: random_bits(step_key(0, "b", step), (1,)))(jnp.arange(2**15))).ravel()
    for shift in (0, 16, 24):
        assert abs(z_of_chi_squared(np.bincount((drawn >> shift) & 255, minlength=256))) < 4


def test_the_chi_squared_test_finds_a_weak_generator():
    """Marsaglia's xorshift without the multiplications has linear bits, and a plain counter is not random at all."""
    counter = np.arange(COUNT, dtype=np.uint32)
    weak = np.bincount(((counter >> 3) & 15) * 16 + ((np.roll(counter, -1) >> 3) & 15), minlength=256)
    assert abs(z_of_chi_squared(weak)) > 100


def test_seeds_whose_first_words_collide_in_different_steps_differ_in_the_second():
    """A key of 32 bits would repeat the whole stream."""
    seeds = jnp.arange(COUNT, dtype=jnp.uint32)
    keys = [jax.vmap(lambda seed, step=step: step_key(seed, "b", jnp.int32(step))[:2])(seeds) for step in (7, 8)]
    _, *places = np.intersect1d(keys[0][0], keys[1][0], return_indices=True)
    assert len(places[0]) > 1
    assert np.all(keys[0][1][places[0]] != keys[1][1][places[1]])


def worst_of_strides(drawn):
    """The worst chi-squared of indices some powers of two apart, over all groups of four bits."""
    found = 0.0
    for stride in (256, 1024, 4096, 2**14):
        there = np.roll(drawn, -stride)
        for shift in range(0, 29, 4):
            here, other = (drawn >> shift) & 15, (there >> shift) & 15
            found = max(found, abs(z_of_chi_squared(np.bincount(here * 16 + other, minlength=256))))
            found = max(found, abs(z_of_chi_squared(np.bincount(here ^ other, minlength=16))))
    return found


def lowbias32(word):
    """The hash of two multiplications by Wellons (2018)."""
    word = (word ^ (word >> 16)) * np.uint32(0x7FEB352D)
    word = (word ^ (word >> 15)) * np.uint32(0x846CA68B)
    return word ^ (word >> 16)


def test_distant_indices_are_independent_where_a_hash_of_two_multiplications_fails():
    index, keys = np.arange(COUNT, dtype=np.uint32), np.random.default_rng(0).integers(2**32, size=6, dtype="uint32")
    assert max(worst_of_strides(lowbias32(index ^ key)) for key in keys) > 10
    assert max(worst_of_strides(np.asarray(BITS(jnp.int32(step)))) for step in range(6)) < 5


def test_the_same_arguments_give_the_same_bits_and_others_do_not():
    np.testing.assert_array_equal(bits(), HERE)
    for other in (bits(seed=1), bits(path="layers/1/kernel"), bits(step=8)):
        assert (other == HERE).mean() < 1e-4


@pytest.mark.compiled
def test_bits_depend_on_the_index_in_the_whole_array():
    whole = bits(shape=(8, 64))
    np.testing.assert_array_equal(whole.ravel(), bits(shape=(512,)))
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    for spec in (P("a"), P(None, "b"), P("b", "a"), P(("a", "b"))):
        made = jax.jit(
            lambda step: random_bits(step_key(0, "layers/0/kernel", step), (8, 64)),
            out_shardings=NamedSharding(mesh, spec),
        )(jnp.int32(7))
        np.testing.assert_array_equal(np.asarray(made), whole)
