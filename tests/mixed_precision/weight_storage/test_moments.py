"""Moments in 16 and 8 bits: their errors, and training with them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from supremum.errors import ArgumentError
from supremum.mixed_precision import BlockScaled, narrow_weights
from supremum.mixed_precision.weight_storage.moments import (
    BLOCK,
    dynamic_map,
    read,
    read_moments,
    store_array,
    store_moments,
)

RANDOM = np.random.default_rng(0)


def spread(shape, decades, signed):
    values = RANDOM.normal(size=shape) * 10.0 ** RANDOM.uniform(-decades, 0, shape)
    return np.float32(values if signed else values**2)


@partial(jax.jit, static_argnames=("name", "signed"))
def stored_and_read(values, name, signed):
    made = store_array(values, name, signed=signed)
    return made, read(made)


@pytest.mark.parametrize("signed", [True, False])
def test_the_dynamic_map_has_256_numbers_in_7_decades(signed):
    numbers = dynamic_map(signed)
    assert (len(np.unique(numbers)), numbers.dtype, numbers[-1]) == (256, np.float32, 1)
    assert (numbers < 0).sum() == (127 if signed else 0)
    positive = numbers[numbers > 0]
    counts = [((positive > low) & (positive < 10 * low)).sum() for low in 10.0 ** np.arange(-7, 0)]
    assert counts == [2 ** (place + (not signed)) for place in range(7)]
    if signed:
        np.testing.assert_array_equal(numbers[:127], -numbers[128:255][::-1])


@pytest.mark.compiled
@pytest.mark.parametrize("signed", [True, False])
def test_each_number_becomes_the_nearest_of_the_map(signed):
    numbers = dynamic_map(signed).astype(np.float64)
    values = np.concatenate([spread(65536, 7, signed), dynamic_map(signed)])
    made, again = stored_and_read(values, "dynamic8", signed)
    assert made.codes.dtype == (np.int8 if signed else np.uint8)
    scales = np.repeat(np.asarray(made.scales), BLOCK)[: len(values)]
    shares = values.astype(np.float64) / scales
    code = np.asarray(made.codes).astype(int) - np.iinfo(made.codes.dtype).min
    nearest = np.abs(shares[:, None] - numbers[None]).min(1)
    np.testing.assert_allclose(np.abs(shares - numbers[code]), nearest, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(np.asarray(again), dynamic_map(signed)[code] * scales)
    # A block that has the map itself keeps it.
    np.testing.assert_array_equal(np.asarray(again)[-256:], dynamic_map(signed))


@pytest.mark.parametrize("signed", [True, False])
def test_a_share_halfway_between_two_decades_becomes_the_upper_number(signed):
    """Also halfway between 0 and the first number, and between the last decade and 1."""
    numbers = dynamic_map(signed)
    numbers = numbers[numbers >= 0]
    lower = np.cumsum([0, *(2 ** (place + (not signed)) for place in range(7))])
    halfway = (numbers[lower] + numbers[lower + 1]) / 2
    shares = np.concatenate([halfway, np.nextafter(halfway, np.float32(0)), [1]])  # the 1 makes the scale 1
    _, found = stored_and_read(np.float32(shares), "dynamic8", signed)
    np.testing.assert_array_equal(found, numbers[[*(lower + 1), *lower, -1]])


ERRORS = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3, "float32": 0}


@pytest.mark.parametrize("name", ERRORS)
def test_the_error_of_a_dtype_is_half_its_last_place(name):
    values = np.float32(RANDOM.uniform(0.05, 1, (100, 30)) * RANDOM.choice([-1, 1], (100, 30)))
    made, again = stored_and_read(values, name, signed=True)
    assert isinstance(made, BlockScaled) == name.startswith("float8")
    assert np.max(np.abs(np.asarray(again) - values) / np.abs(values)) <= ERRORS[name] * (1 + 1e-6)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", ["dynamic8", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("shape", [(), (1,), (255,), (257,), (3, 200), (0,)])
def test_blocks_of_any_shape_are_stored_and_read(name, shape):
    values = np.float32(RANDOM.normal(size=shape))
    made, again = stored_and_read(values, name, signed=True)
    assert (made.codes.shape, made.codes.dtype.itemsize) == (shape, 1)
    assert made.scales.shape == (-(-values.size // BLOCK),)
    np.testing.assert_allclose(again, values, rtol=0.13, atol=0.02)
    _, zero = stored_and_read(np.zeros_like(values), name, signed=True)
    assert (np.asarray(zero) == 0).all()


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["dynamic8", "float8_e4m3fn"])
def test_nan_and_infinity_make_nan_and_stay_in_their_block(name):
    for bad in (np.nan, np.inf):
        values = np.ones((3, BLOCK), np.float32)
        values[1, 7] = bad
        found = np.asarray(stored_and_read(values, name, signed=True)[1])
        assert (found[[0, 2]] == 1).all()
        assert not np.isfinite(found[1, 7])


@pytest.mark.slow
def test_small_squares_do_not_vanish():
    """A float8 cast without a scale would make every one of them zero."""
    values = np.full(512, 1e-18, np.float32)
    for name in ("dynamic8", "float8_e4m3fn", "bfloat16"):
        np.testing.assert_allclose(stored_and_read(values, name, signed=False)[1], 1e-18, rtol=0.01)


def test_storage_does_not_change_from_step_to_step():
    tree = {"a": store_array(jnp.ones(300), "dynamic8", signed=False), "b": jnp.ones(3, "bfloat16"), "n": jnp.int32(3)}
    again = store_moments(read_moments(tree), tree)
    assert jax.tree.structure(again) == jax.tree.structure(tree)
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(tree), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one, np.float32), np.asarray(other, np.float32))


PARAMS = {"dense": {"kernel": jnp.ones((32, 32), "bfloat16")}, "norm": jnp.ones(32, "bfloat16")}


def test_moments_are_chosen_by_field_and_by_path():
    optimizer = narrow_weights(
        optax.chain(optax.clip(1.0), optax.adam(1e-3)),
        moments={"mu/norm": "float32", "mu": "bfloat16", "nu/dense/ker.*": "dynamic8"},
    )
    adam = jax.eval_shape(optimizer.init, PARAMS).inner[1][0]
    assert (adam.mu["norm"].dtype, adam.mu["dense"]["kernel"].dtype) == (jnp.float32, jnp.bfloat16)
    assert adam.nu["norm"].dtype == jnp.float32
    assert adam.nu["dense"]["kernel"].codes.dtype == jnp.uint8
    with pytest.raises(ArgumentError, match="mu/dense/bias"):
        narrow_weights(optax.adam(1e-3), moments={"mu/dense/bias": "bfloat16"}).init(PARAMS)


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("moments", [
    {}, {"mu": "bfloat16"}, {"mu": "dynamic8", "nu": "dynamic8"}, {"mu": "float8_e4m3fn"},
], ids=["float32", "bfloat16", "dynamic8", "float8"])  # fmt: skip
def test_training_with_narrow_moments_reaches_the_loss_of_float32(moments):
    random = np.random.default_rng(3)
    x = jnp.asarray(random.normal(size=(256, 32)), jnp.float32)
    target = jnp.asarray(random.normal(size=(32, 4)), jnp.float32)

    def loss(params):
        return jnp.mean((x @ params["w"].astype(jnp.float32) - x @ target) ** 2)

    optimizer = narrow_weights(optax.adam(1e-2), "kahan", moments)
    params = {"w": jnp.zeros((32, 4), "bfloat16")}

    @jax.jit
    def train(params):
        def step(carry, _):
            return tuple(optimizer.step(jax.grad(loss)(carry[0]), carry[1], carry[0])), None

        return jax.lax.scan(step, (params, optimizer.init(params)), length=500)[0]

    found, state = train(params)
    assert float(loss(found)) < 1e-3 * float(loss(params))
    assert jax.tree.map(jnp.shape, state) == jax.tree.map(jnp.shape, optimizer.init(params))
