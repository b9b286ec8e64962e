"""Properties derived from the rows of the format table match ml_dtypes."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import jax
import ml_dtypes
import numpy as np
import pytest

from supremum.errors import ArgumentError, UnknownDtypeError
from supremum.formats import FORMATS, Format, Kind, Nan, argument_dtype, as_format, format_names, is_available
from supremum.number_conversion import converted

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


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda row: pickle.loads(pickle.dumps(row))])
def test_a_copy_of_a_row_is_the_row(copied):
    assert [row for row in FORMATS if copied(row) is not row] == []


@every_format
def test_names_sizes_and_lookup_agree(row):
    assert row.dtype.name == row.name
    assert row.dtype.itemsize == max(1, -(-row.bits // 8))
    assert as_format(row.name) is as_format(row.dtype) is as_format(row.dtype.type) is as_format(row) is row
    assert as_format(row.dtype.newbyteorder(">")) is row


@every_format
def test_short_names_are_those_that_jax_prints(row):
    printed = jax.core.ShapedArray((), row.dtype).str_short(short_dtypes=True)
    assert row.short_name == printed.removesuffix("[]")
    assert as_format(row.short_name) is row


def test_short_names_differ_from_each_other_and_count_bits():
    names = {row.short_name: row.name for row in FORMATS}
    assert len(names) == len(FORMATS)
    known = {
        "f32": "float32", "bf16": "bfloat16", "i8": "int8", "u8": "uint8", "c64": "complex64", "i4": "int4",
        "bc32": "bcomplex32",
    }  # fmt: skip
    found = {short: name for short, name in names.items() if short in known}
    assert found == {short: name for short, name in known.items() if is_available(name)}


def test_codes_of_numpy_need_a_byte_order():
    codes = [
        np.dtype(code).str[1:] for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] if code not in "gG"
    ]
    for code in codes:
        for order in "<>=|":
            assert as_format(order + code).dtype == np.dtype(code)
    refused = {code: "" for code in codes if code[0] in "fc"}
    for code in refused:
        with pytest.raises(UnknownDtypeError) as caught:
            as_format(code)
        (refused[code],) = caught.value.near
    assert refused == {"f2": "f16", "f4": "f32", "f8": "f64", "c8": "c64", "c16": "c128"}


def test_names_that_numpy_reads_otherwise_are_refused_as_arguments():
    def differs(name):
        try:
            return np.dtype(name) != as_format(name).dtype
        except TypeError:
            return False

    differing = [name for row in FORMATS for name in (row.name, row.short_name) if differs(name)]
    every = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f16", "c32"]
    assert set(differing) == {*every} & {row.short_name for row in FORMATS}  # older versions of ml_dtypes have fewer
    for name in differing:
        here, other = as_format(name), np.dtype(name)
        fix = f"'{here}' or '{other}'" if name[0] in "ui" else f"'{here}'"  # long doubles are no formats here
        with pytest.raises(ArgumentError, match=f"which is {here} here and {other} in NumPy; use {fix}$"):
            argument_dtype(name)
    for name in ("float16", "bf16", "f32", "c64", "i16", "int8", "<i8", np.int8, np.dtype("i8")):
        assert argument_dtype(name) == as_format(name).dtype


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
def test_holds_matches_casting_every_value(other):
    values, wrong = _all_values(other), []
    for row in FORMATS:
        # 0 and 1 fit into bool, but a bool format does not hold integers: holds() rejects a higher category.
        if row.kind is Kind.COMPLEX or (row.kind is Kind.BOOL and other.name == "uint1"):
            continue
        if row.is_inexact:
            with np.errstate(over="ignore"):
                round_tripped = values.astype(row.dtype).astype(np.float64)
            survives = bool(np.all(round_tripped == values))
        elif row.kind is Kind.BOOL:
            survives = set(values) <= {0.0, 1.0}
        else:
            survives = other.category != "float" and bool(np.all((values >= row.min) & (values <= row.max)))
        if row.holds(other) != survives:
            wrong.append(f"{row} holds {other}: {row.holds(other)}, not {survives}")
    assert wrong == []


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


@pytest.mark.parametrize(
    "name", ["int", "float", "complex", "flaot32", "", "datetime64[s]", "i4,f4", "S3", "O", "g", "f8"]
)
def test_unknown_format_names_raise(name):
    with pytest.raises(UnknownDtypeError, match="unknown dtype") as caught:
        as_format(name)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("thing", [None, 3, [], np.dtype("M8[s]"), np.dtype([("a", "f4")]), np.longdouble, object()])
def test_values_that_are_not_formats_raise(thing):
    with pytest.raises(UnknownDtypeError):
        as_format(thing)


def test_limits_of_a_format_wider_than_float64_are_exact():
    quad = Format("float128", Kind.FLOAT, 128, exponent=15, mantissa=112, nan=Nan.IEEE, inf=True)
    assert quad.max == -quad.min == 2**16384 - 2 ** (16383 - 112)
    assert quad.eps == 2.0**-112
    assert quad.smallest_normal == Fraction(1, 2**16382)
    assert quad.smallest_subnormal == Fraction(1, 2 ** (16382 + 112))
    double = as_format("float64")
    assert quad.holds(double)
    assert not double.covers(quad)
    limits = (double.max, double.min, double.eps, double.smallest_normal, double.smallest_subnormal)
    assert {type(each) for each in limits} == {float}
    integers = {2**60 + 1: 2**60 + 1, 2**113 + 1: 2**113, -(2**16383): -(2**16383), 2**16384: math.inf}
    assert {number: converted(number, [quad]) for number in integers} == integers
    unit = 2 ** ((10**400).bit_length() - 1 - quad.mantissa)
    found = [converted(number, [quad]) for number in (0.1, -(2.0**-1074), 10**400)]
    assert found == [0.1, -(2.0**-1074), round(Fraction(10**400, unit)) * unit]
