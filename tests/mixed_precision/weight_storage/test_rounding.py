"""Rounding on integer bits, compared with ml_dtypes and with the exact mean."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.formats import FORMATS, as_format
from supremum.mixed_precision.weight_storage.counter_hash import random_bits, step_key
from supremum.mixed_precision.weight_storage.rounding import is_roundable, round_to_format, split, to_float32, with_rest

ROWS = [row for row in FORMATS if is_roundable(row)]
every_format = pytest.mark.parametrize("row", ROWS, ids=str)
DRAWS = 2**16
LARGEST_NOISE = np.uint32(2**32 - 1)


def as_float64(values):
    with np.errstate(invalid="ignore"):  # NumPy warns about some NaNs
        return values.astype(np.float32).astype(np.float64)


def numbers_of(row):
    """All finite numbers of a format, ascending, in float64."""
    found = as_float64(np.arange(2**row.bits).astype(f"u{row.bits // 8}").view(row.dtype))
    return np.unique(found[np.isfinite(found)])


def values_around(row):
    """Random float32 bits, and values in and around the range of a format, with ties and its own numbers."""
    random = np.random.default_rng(0)
    exponents = random.integers(max(row.min_exponent - row.mantissa - 4, -148), min(row.max_exponent + 2, 127), 50_000)
    numbers = numbers_of(row)
    special = [0, -0.0, np.inf, -np.inf, np.nan, row.max, row.smallest_subnormal / 2, row.smallest_subnormal * 0.75]
    with np.errstate(over="ignore"):
        scaled = np.ldexp(random.choice([-1, 1], 50_000) * random.uniform(1, 2, 50_000), exponents)
    ties = (numbers[1:] + numbers[:-1]) / 2
    return np.concatenate(
        [
            random.integers(0, 2**32, 50_000, np.uint32).view(np.float32),
            *map(np.float32, (scaled, ties, numbers, special)),
        ]
    )


def test_the_formats_are_those_with_zero_sign_and_nan():
    names = {row.name for row in ROWS}
    assert {"bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"} <= names
    assert not names & {"float32", "float8_e8m0fnu", "float4_e2m1fn", "float6_e2m3fn", "complex32"}


@pytest.mark.compiled
@pytest.mark.one_in(3)
@every_format
def test_rounding_to_nearest_agrees_with_ml_dtypes(row):
    values = values_around(row)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(row.dtype).astype(np.float32)
    found = jax.jit(lambda x: round_to_format(x, row))(values)
    assert found.dtype == row.dtype
    got = np.asarray(found).astype(np.float32)
    np.testing.assert_array_equal(got, expected)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[is_number]), np.signbit(expected[is_number]))
    if row.name == "float8_e4m3fn":  # eager calls compile each operation
        np.testing.assert_array_equal(np.asarray(round_to_format(jnp.asarray(values), row)).astype(np.float32), got)


@pytest.mark.compiled
@every_format
def test_stochastic_rounding_keeps_exact_values_infinities_and_nan(row):
    values = np.concatenate([numbers_of(row), [np.nan, *([np.inf, -np.inf] if row.inf else [])]]).astype(np.float32)
    values = np.append(values, np.uint32(0x7F800001).view(np.float32))  # a signalling NaN
    round_all = jax.jit(lambda noise: round_to_format(jnp.asarray(values), row, noise))
    for noise in (np.zeros_like(values, np.uint32), np.full_like(values, LARGEST_NOISE, np.uint32)):
        np.testing.assert_array_equal(np.asarray(round_all(noise)).astype(np.float32), values)


@pytest.mark.compiled
@pytest.mark.one_in(3)
@every_format
def test_the_mean_is_exact_within_4_standard_errors(row):
    """For every exponent of the format, its subnormals, and below; both signs."""
    random = np.random.default_rng(1)
    exponents = np.arange(max(row.min_exponent - row.mantissa - 6, -148), row.max_exponent + 1)
    magnitudes = np.ldexp(random.uniform(1, 2, len(exponents)), exponents)
    values = np.float32(np.concatenate([magnitudes, -magnitudes]))
    numbers = numbers_of(row)
    values = values[(np.abs(values) < row.max) & (values != 0)]
    exact = values.astype(np.float64)
    above = np.searchsorted(numbers, exact, side="right")
    lower, upper = numbers[above - 1], numbers[np.minimum(above, len(numbers) - 1)]
    place = jnp.arange(len(values), dtype=jnp.int32)

    @jax.jit
    def counts(value, place, low, high):
        drawn = to_float32(round_to_format(jnp.full(DRAWS, value), row, random_bits(step_key(3, "w", place), (DRAWS,))))
        # As bits: XLA treats float32 subnormals as zero in comparisons.
        bits = jax.lax.bitcast_convert_type(drawn, jnp.uint32) & np.uint32(0x7FFFFFFF)
        return (bits == low).sum(), (bits == high).sum()

    def magnitude_bits(x):
        return np.abs(np.float32(x)).view(np.uint32)

    found = jax.lax.map(lambda each: counts(*each), (values, place, magnitude_bits(lower), magnitude_bits(upper)))
    ups = np.asarray(found[1])
    # Nothing outside of the two neighbors.
    assert (np.asarray(found[0]) + ups * (lower != upper) == DRAWS).all()
    share = (exact - lower) / (upper - lower)
    error = np.sqrt(share * (1 - share) / DRAWS)
    assert (np.abs(ups / DRAWS - share) <= 4 * error + 2.0**-31).all()
    assert len(values) > 2 * (row.max_exponent - row.min_exponent)


@pytest.mark.one_in(3)
@every_format
def test_values_past_the_largest_round_to_nearest(row):
    step = row.eps * 2.0**row.max_exponent
    values = np.float32([row.max + step / 4, -row.max - step / 4, row.max + step * 0.75, np.float32(3.4e38)])
    with np.errstate(over="ignore"):
        expected = values.astype(row.dtype).astype(np.float32)
    round_all = jax.jit(lambda noise: round_to_format(jnp.asarray(values), row, noise))
    for noise in (np.zeros(4, np.uint32), np.full(4, LARGEST_NOISE)):
        np.testing.assert_array_equal(np.asarray(round_all(noise)).astype(np.float32), expected)


@every_format
def test_widening_is_exact(row):
    codes = np.arange(2**row.bits).astype(f"u{row.bits // 8}").view(row.dtype)
    np.testing.assert_array_equal(np.asarray(jax.jit(to_float32)(codes)), codes.astype(np.float32))


@pytest.mark.compiled
def test_bfloat16_and_its_rest_are_float32():
    row = as_format("bfloat16")
    values = values_around(row)
    made = jax.jit(lambda x: with_rest(*split(x, row)))(values)
    np.testing.assert_array_equal(
        np.asarray(made).view(np.uint32)[~np.isnan(values)], values.view(np.uint32)[~np.isnan(values)]
    )
    assert np.isnan(np.asarray(made)[np.isnan(values)]).all()


def test_a_rest_of_another_number_keeps_zero_infinity_and_nan():
    narrow = jnp.asarray([0.0, -0.0, np.inf, -np.inf, np.nan], "bfloat16")
    for rest in (-32768, -1, 0, 1, 32767):
        made = np.asarray(jax.jit(with_rest)(narrow, np.full(5, rest, np.int16)))
        assert (np.abs(made[:2]) < 1e-38).all()
        assert made[2] > 3e38 > -3e38 > made[3]
        assert np.isnan(made[4])


def test_halves_round_up_for_the_upper_half_of_the_noise():
    tie = jnp.float32(1 + 2.0**-8)
    noise = np.uint32([2**31 - 1, 2**31])
    made = jax.jit(jax.vmap(lambda each: round_to_format(tie, as_format("bfloat16"), each)))(noise)
    assert np.float32(made).tolist() == [1, 1 + 2.0**-7]
