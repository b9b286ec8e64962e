"""The thresholds of a format agree with the casts of NumPy and ml_dtypes for all values and around every threshold."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from numerics.reference import FLOATS, outcomes_of_casts
from supremum.formats import as_format
from supremum.numerics.thresholds import first_nan_rank, last_rank, overflow_to, rank, thresholds, value_of_rank

SMALL = [row for row in FLOATS if row.bits <= 16]
WIDE = [row for row in FLOATS if row.bits > 16]
UNSIGNED = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}


def every_value(source):
    """Every value of a format of up to 16 bits."""
    width = max(8, source.bits)
    return np.arange(2**source.bits, dtype=np.uint64).astype(UNSIGNED[width]).view(source.dtype)


def ranks_of(values, source):
    bits = values.view(UNSIGNED[values.dtype.itemsize * 8])
    return rank(bits.astype("uint64"), source, np.where).astype(object)


def outcomes(values, source, target):
    """What becomes of finite values other than zero, by the thresholds."""
    found = thresholds(source, target)
    ranks = ranks_of(values, source)
    return np.select(
        [ranks >= found.overflow, ranks >= found.normal, ranks >= found.kept],
        ["overflow", "normal", "subnormal"],
        "zero",
    )


def finite(values):
    """The values that are finite and not zero."""
    with np.errstate(all="ignore"):  # ml_dtypes warns of NaNs
        wide = values.astype("float64")
    return values[np.isfinite(wide) & (wide != 0)]


@pytest.mark.parametrize("source", SMALL, ids=str)
def test_every_value_of_8_and_16_bits_becomes_what_its_cast_gives(source):
    every, wrong = finite(every_value(source)), []
    for target in FLOATS:
        values = every if target.signed else every[every > 0]
        differing = values[outcomes(values, source, target) != outcomes_of_casts(values, target)]
        if differing.size:
            wrong.append(f"{target}: {differing.size} values, {differing[:3]}")
    assert wrong == []


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", WIDE, ids=str)
def test_values_around_each_threshold_become_what_their_casts_give(source, target):
    found = thresholds(source, target)
    near = {at + step for at in (found.kept, found.normal, found.overflow) for step in range(-40, 41)}
    near |= {at ^ (1 << bit) for at in (found.kept, found.normal, found.overflow) for bit in range(source.mantissa)}
    ranks = sorted(at for at in near if 0 < at <= last_rank(source))
    values = np.array(ranks, UNSIGNED[source.bits]).view(source.dtype)
    if source.bits == 64 and not target.is_builtin:
        # These casts round twice, first to float32; values that float32 holds are rounded once.
        with np.errstate(all="ignore"):
            values = values[values.astype("float32") == values]
    for signed in (values, -values) if target.signed else (values,):
        assert (outcomes(signed, source, target) == outcomes_of_casts(signed, target)).all()


@pytest.mark.parametrize("source", SMALL, ids=str)
def test_ranks_number_the_magnitudes_and_tell_infinity_and_nan(source):
    values = every_value(source)
    ranks = ranks_of(values, source)
    with np.errstate(all="ignore"):
        wide = values.astype("float64")
    assert (ranks <= last_rank(source)).tolist() == np.isfinite(wide).tolist()
    assert (ranks >= first_nan_rank(source)).tolist() == np.isnan(wide).tolist()
    assert (ranks == 0).tolist() == (wide == 0).tolist()
    held = np.isfinite(wide)
    assert [float(value_of_rank(source, at)) for at in ranks[held]] == np.abs(wide[held]).tolist()


def test_the_last_rank_is_the_largest_value():
    for source in FLOATS:
        assert value_of_rank(source, last_rank(source)) == source.max, source
        assert value_of_rank(source, 1) == source.smallest_subnormal, source


def test_jax_computes_the_same_ranks():
    for source in (as_format("float32"), as_format("float16"), as_format("float8_e4m3fnuz")):
        values = np.array([0.0, -0.0, 1e-7, -3.5, 100.0, np.nan], source.dtype)
        unsigned = UNSIGNED[source.bits]
        bits = lax.bitcast_convert_type(jnp.asarray(values), unsigned).astype("uint32")
        assert rank(bits, source, jnp.where).tolist() == ranks_of(values, source).tolist()


def test_a_value_that_overflows_becomes_what_its_format_says():
    for target in FLOATS:
        with np.errstate(all="ignore"):
            (cast,) = np.array([target.max * 4.0], "float64").astype(target.dtype).astype("float64")
        expected = {"inf": np.inf, "nan": np.nan, "max": target.max}[overflow_to(target)]
        assert np.array_equal(cast, expected, equal_nan=True), target
