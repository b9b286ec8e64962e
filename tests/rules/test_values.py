"""Ranges of formats against the casts of NumPy and ml_dtypes, and the intervals that stand for values in caches."""

import itertools
import math
import random

import numpy as np
import pytest

from supremum.formats import FORMATS, Kind, Nan, as_format
from supremum.rules.values import fits, interval

INTEGERS = [row for row in FORMATS if not row.is_inexact]
# float8_e8m0fnu has no zero to round to; the formats without NaN saturate, so their casts tell nothing.
CASTING_FLOATS = [row for row in FORMATS if row.kind is Kind.FLOAT and row.nan is not Nan.NONE and row.zero]
# The least integer that rounds to infinity, halfway between the largest number and the one that would follow.
LEAST_TOO_LARGE = {
    "float16": 65520,
    "bfloat16": 2**128 - 2**119,
    "float32": 2**128 - 2**103,
    "float64": 2**1024 - 2**970,
}


@pytest.mark.parametrize("row", INTEGERS, ids=str)
def test_integers_fit_from_min_to_max(row):
    low, high = (0, 1) if row.kind is Kind.BOOL else _limits(row)
    for value in (low, high, 0):
        assert fits(value, row)
    for value in (low - 1, high + 1, 10**400, -(10**400), high + 0.5, math.inf, -math.inf, math.nan):
        assert not fits(value, row)


def _limits(row):
    info = np.iinfo(row.dtype) if row.bits >= 8 else None
    bits = row.bits - (row.kind is Kind.SIGNED)
    return (info.min, info.max) if info else (-(2**bits) * row.signed, 2**bits - 1)


@pytest.mark.parametrize("row", CASTING_FLOATS, ids=str)
def test_floats_fit_exactly_where_a_cast_stays_finite(row):
    # ml_dtypes rounds by way of float32, a second rounding that is no business of ours: steps it can see.
    step = np.float64 if row.name in LEAST_TOO_LARGE and row.name != "bfloat16" else np.float32
    top, gap = float(row.max), float(2.0 ** (row.max_exponent - row.mantissa))
    numbers = [x for x in (top, top + gap / 4, top + gap / 2, top + gap, top / 3, 1.0, 0.0) if math.isfinite(x)]
    with np.errstate(over="ignore"):
        near = [float(np.nextafter(step(x), step(toward))) for x in numbers for toward in (0, math.inf)]
        for value in [x * sign for x in numbers + near if math.isfinite(x) for sign in (1, -1)]:
            cast = np.asarray(value, np.float64).astype(row.dtype).astype(np.float64)
            assert fits(value, row) == bool(np.isfinite(cast)), value
    assert fits(math.inf, row) == row.inf == bool(np.isinf(np.asarray(math.inf).astype(row.dtype).astype(float)))
    assert fits(math.nan, row)


@pytest.mark.parametrize("name", LEAST_TOO_LARGE)
def test_integers_fit_a_float_until_they_round_to_infinity(name):
    least = LEAST_TOO_LARGE[name]
    for sign in (1, -1):
        assert fits(sign * (least - 1), as_format(name))
        assert not fits(sign * least, as_format(name))
        assert not fits(sign * 10**400, as_format(name))


def test_both_components_of_a_complex_number_have_to_fit():
    row = as_format("complex64")
    assert fits(3e38 + 3e38j, row)
    assert not fits(1e39 + 0j, row)
    assert not fits(1e39j, row)
    assert fits(complex(math.inf, math.nan), row)
    assert fits(2**127, row)
    assert not fits(2**128, row)


def test_numbers_with_one_key_fit_the_same_formats():
    random.seed(0)
    ends = [end for row in FORMATS for end in (row.min, row.max)] + list(LEAST_TOO_LARGE.values())
    integers = {int(end) + step for end in ends for step in (-1, 0, 1)} | {10**400, -(10**400), 0}
    integers |= {random.choice((1, -1)) * random.getrandbits(random.randint(1, 1100)) for _ in range(5000)}
    small = [float(i) for i in integers if abs(i) < 2**1023]
    floats = {x for f in small for x in (f, math.nextafter(f, 0), math.nextafter(f, math.inf), f / 2**20)}
    for numbers in (integers, floats | {math.inf, -math.inf, math.nan}):
        found = {}
        for number in numbers:
            answer = tuple(fits(number, row) for row in FORMATS)
            assert found.setdefault(interval(number), answer) == answer, number
        assert 40 < len(found) < 150  # few enough for a cache


def test_keys_of_complex_numbers_are_those_of_their_components():
    assert interval(300 + 20j) == interval(301 + 21j)
    for a, b in itertools.combinations([1 + 1j, 300 + 1j, 1 + 300j, complex(math.inf, 1), complex(1, math.nan)], 2):
        assert interval(a) != interval(b)
