"""Which Python numbers fit a format, compared with the conversions of NumPy and ml_dtypes."""

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from supremum.formats import FORMATS, Nan, as_format
from supremum.number_conversion import converts, fits, interval, stores

FLOATS = [row for row in FORMATS if row.category == "float"]
INTEGERS = [row for row in FORMATS if row.category == "integer"]


@pytest.mark.parametrize("row", INTEGERS, ids=str)
def test_integers_fit_exactly_their_range(row):
    assert [fits(v, row) for v in (row.min - 1, row.min, row.max, row.max + 1)] == [False, True, True, False]
    assert [fits(v, row) for v in (0.0, 0.5, 2.0**70, math.inf, math.nan, 0j)] == [True, *[False] * 5]


@pytest.mark.parametrize("row", [row for row in FLOATS if row.zero], ids=str)
def test_floats_fit_unless_they_round_out_of_range(row):
    """The first number that does not fit is the first that ml_dtypes saturates, or turns into infinity or NaN."""
    half = 2.0 ** (row.max_exponent - row.mantissa - 1)
    edge = row.max + half if math.isfinite(row.max + half) else math.inf
    # ml_dtypes converts through float32, so numbers that float32 cannot tell from the edge round like the edge.
    step = np.float32 if row.bits < 32 else np.float64
    around = [
        row.max,
        row.max + half / 2,
        np.nextafter(step(edge), step(0)),
        edge,
        np.nextafter(step(edge), step(np.inf)),
        2 * edge,
    ]
    finite = [value for value in map(float, around) if math.isfinite(value)]
    assert len(finite) >= 3
    for value in finite:
        with np.errstate(all="ignore"):
            (rounded,) = np.asarray([value]).astype(row.dtype).astype(np.float64)
        # A format without NaN saturates, so even the midpoint to the first missing number is out of range.
        limit = half if row.nan is not Nan.NONE else np.nextafter(half, 0)
        survives = bool(np.isfinite(rounded) and abs(rounded - value) <= limit)
        for signed in (value, -value):
            assert fits(signed, row) is survives, signed


def test_ints_beyond_the_largest_float_do_not_fit():
    float64 = as_format("float64")
    assert fits(2**1024 - 2**970 - 1, float64)
    assert not fits(2**1024 - 2**970, float64)
    assert not fits(-(10**400), float64)
    for value in (2**1024 - 2**970 - 1, 2**1024 - 2**970, 10**400):
        try:
            float(value)
        except OverflowError:
            assert not converts(value, float64)
        else:
            assert converts(value, float64)


def test_infinities_and_nans_fit_and_complex_needs_a_complex_format():
    for value in (math.inf, -math.inf, math.nan, complex(math.nan, math.inf)):
        assert fits(value, as_format("complex64"))
    assert fits(math.inf, as_format("float16"))
    assert not fits(1j, as_format("float32"))
    assert not fits(1e39j, as_format("complex64"))
    assert fits(1e39j, as_format("complex128"))


def test_bools_fit_like_the_ints_0_and_1():
    assert fits(True, as_format("bool"))
    assert fits(1, as_format("bool"))
    assert not fits(2, as_format("bool"))


def test_stores_and_converts_match_numpy():
    stored_count = raised = 0
    values = [0, 1, -1, 7, 200, 256, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 2**120, 10**40, 10**400]
    for value, row in itertools.product(values, FORMATS):
        if stores(value, row) and row.category != "bool" and row.zero:
            stored = np.asarray(value, row.dtype).astype(np.complex128)
            assert abs(complex(stored) - value) <= abs(value) / 4, (value, row)
            stored_count += row.is_builtin
        if not converts(value, row) and row.category != "bool":
            with pytest.raises((OverflowError, TypeError)):
                np.asarray(value, row.dtype)
            raised += row.is_builtin
    assert (stored_count, raised) == (103, 70)


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-300, 300),
    st.integers(-(2**66), 2**66),
    st.floats(),
    st.floats(-70_000, 70_000),
    st.complex_numbers(),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(NUMBERS, min_size=100, max_size=100))
def test_numbers_of_one_interval_fit_the_same_formats(numbers):
    groups = {}
    for number in numbers:
        groups.setdefault(interval(number), set()).add(tuple(fits(number, row) for row in FORMATS))
    assert len(groups) < len(numbers)  # some numbers share an interval
    assert all(len(fitting) == 1 for fitting in groups.values())


def test_integers_share_few_intervals():
    assert len({interval(value) for value in range(-70_000, 70_000)}) < 80


def test_a_format_covers_those_whose_finite_values_are_in_its_range():
    # All values are in range if the least, the greatest and zero are.
    reals = [row for row in FORMATS if row.category in ("integer", "float")]
    checked = 0
    for row, other in itertools.product(reals, reals):
        if row.category == "integer":
            assert row.covers(other) == row.holds(other)
            continue
        least, most = sorted((other.min, other.max))
        has_zero = other.category == "integer" or other.zero
        values = [least, most, *([0] if has_zero else [])]
        in_range = all((row.zero if value == 0 else row.min <= value <= row.max) for value in values)
        assert row.covers(other) == (row.holds(other) or in_range), (row, other)
        checked += 1
    assert checked > 300
    assert not as_format("float32").covers(as_format("complex64"))
    assert as_format("complex64").covers(as_format("int64"))
