"""Properties derived from the rows of the format table match ml_dtypes."""

import itertools
import re

import jax
import ml_dtypes
import numpy as np
import pytest

from supremum.errors import UnknownDtypeError
from supremum.formats import FORMATS, Kind, Nan, as_format, format_names

FLOATS = [row for row in FORMATS if row.kind is Kind.FLOAT]
INTEGERS = [row for row in FORMATS if row.category == "integer"]
every_format = pytest.mark.parametrize("row", FORMATS, ids=str)
every_float = pytest.mark.parametrize("row", FLOATS, ids=str)


def test_every_ml_dtypes_format_and_numpy_number_dtype_has_a_row():
    scalars = [getattr(ml_dtypes, name) for name in dir(ml_dtypes)]
    custom = {np.dtype(t).name for t in scalars if isinstance(t, type) and issubclass(t, np.generic)}
    numpy_codes = np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"
    native = {np.dtype(code).name for code in numpy_codes if code not in "gG"}  # long double is not portable
    assert set(format_names()) == custom | native


@every_format
def test_names_sizes_and_lookup_agree(row):
    assert row.dtype.name == row.name
    assert row.dtype.itemsize == max(1, -(-row.bits // 8))
    assert as_format(row.name) is as_format(row.dtype) is as_format(row.dtype.type) is as_format(row) is row
    assert as_format(row.dtype.newbyteorder(">")) is row


def test_short_names_are_unique_and_those_that_jax_prints():
    assert len({row.short_name for row in FORMATS}) == len(FORMATS)
    printed = {}
    for row in FORMATS:
        if row.name not in ("complex32", "bcomplex32"):  # JAX has no such arrays
            with jax.enable_x64(True):
                traced = jax.make_jaxpr(lambda x: x)(jax.ShapeDtypeStruct((2,), row.dtype))
            printed[row] = re.search(r"a:(\w+)\[2\]", str(traced))[1]
    assert len(printed) == len(FORMATS) - 2
    assert {row: row.short_name for row in printed} == printed
    assert [as_format(name).short_name for name in ("complex32", "bcomplex32")] == ["c32", "bc32"]


def test_sign_exponent_and_mantissa_bits_add_up():
    for row in FORMATS:
        if row.is_inexact:
            components = 2 if row.kind is Kind.COMPLEX else 1
            assert row.bits == components * (row.signed + row.exponent + row.mantissa), row


@every_float
def test_floats_match_finfo(row):
    info = ml_dtypes.finfo(row.dtype)
    assert (row.bits, row.mantissa, row.exponent) == (info.bits, info.nmant, info.nexp)
    assert row.max == float(info.max)
    assert row.min == float(info.min)
    assert row.smallest_normal == float(info.smallest_normal)
    assert row.smallest_subnormal == float(info.smallest_subnormal)
    if row.mantissa:  # for a format without mantissa ml_dtypes gives 1.0
        assert row.eps == float(info.eps)


@pytest.mark.parametrize("row", INTEGERS, ids=str)
def test_integers_match_iinfo(row):
    info = ml_dtypes.iinfo(row.dtype)
    assert (row.bits, row.min, row.max) == (info.bits, info.min, info.max)


@every_float
def test_the_maximum_is_representable_and_twice_the_maximum_overflows(row):
    assert float(np.array(row.max).astype(row.dtype)) == row.max
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = float(np.multiply(np.array(row.max, row.dtype), np.array(2, row.dtype)))
    np.testing.assert_equal(beyond, np.inf if row.inf else np.nan if row.nan is not Nan.NONE else row.max)


@every_float
def test_special_values_in_the_table_match_the_bit_patterns(row):
    width = np.dtype(f"uint{8 * row.dtype.itemsize}")
    if row.bits <= 16:
        with np.errstate(invalid="ignore"):  # casting a signalling NaN
            patterns = np.arange(2**row.bits, dtype=np.uint32).astype(width).view(row.dtype).astype(np.float64)
        assert np.isinf(patterns).any() == row.inf
        assert np.isnan(patterns).any() == (row.nan is not Nan.NONE)
        assert (patterns < 0).any() == row.signed
        assert (patterns == 0).any() == row.zero


@pytest.mark.parametrize("other", [row for row in FORMATS if row.bits <= 8], ids=str)
@pytest.mark.parametrize("row", [row for row in FORMATS if row.kind is not Kind.COMPLEX], ids=str)
def test_holds_matches_casting_every_value(row, other):
    values = _all_values(other)
    if row.is_inexact:
        with np.errstate(over="ignore"):
            round_tripped = values.astype(row.dtype).astype(np.float64)
        survives = bool(np.all(round_tripped == values))
    elif row.kind is Kind.BOOL:
        survives = set(values) <= {0.0, 1.0}
    else:
        survives = other.category != "float" and bool(np.all((values >= row.min) & (values <= row.max)))
    if row.kind is Kind.BOOL and other.name == "uint1":
        return  # 0 and 1 fit, but a bool format does not hold integers: holds() rejects a higher category
    assert row.holds(other) == survives


def _all_values(row):
    if row.kind is Kind.BOOL:
        return np.array([0.0, 1.0])
    if row.is_inexact:
        patterns = np.arange(2**row.bits, dtype=np.uint8).view(row.dtype).astype(np.float64)
        return patterns[np.isfinite(patterns)]
    return np.arange(row.min, row.max + 1, dtype=np.float64)


def test_holds_is_reflexive_and_transitive():
    for a, b, c in itertools.product(FORMATS, repeat=3):
        assert a.holds(a)
        if a.holds(b) and b.holds(c):
            assert a.holds(c), (a, b, c)


@pytest.mark.parametrize("name", ["int", "float", "complex", "flaot32", "", "datetime64[s]", "i4,f4", "S3", "O", "g"])
def test_unknown_format_names_raise(name):
    with pytest.raises(UnknownDtypeError, match="unknown dtype") as caught:
        as_format(name)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("thing", [None, 3, [], np.dtype("M8[s]"), np.dtype([("a", "f4")]), np.longdouble, object()])
def test_values_that_are_not_formats_raise(thing):
    with pytest.raises(UnknownDtypeError):
        as_format(thing)
