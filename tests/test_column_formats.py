"""Formats that columns of data frames have and arrays do not: 128-bit integers."""

import copy
import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from supremum import asarray, explain, explain_cast, namespace, result_type, use_rules
from supremum.arrays import RuntimeDtypeError
from supremum.errors import SupremumError, UnknownDtypeError
from supremum.formats import COLUMN_FORMATS, FORMATS, as_format
from supremum.operands import parse_operand

NAMES = [row.name for row in COLUMN_FORMATS]
every_format = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize(("name", "short_name"), [("uint128", "u128"), ("int128", "i128")])
def test_the_row_has_the_facts_of_an_integer_of_128_bits(name, short_name):
    row = as_format(name, columns=True)
    bits = row.bits - row.signed
    assert (row.max, row.min) == (2**bits - 1, -(2**127) if row.signed else 0)
    assert row.short_name == short_name


@every_format
def test_the_row_is_one_of_columns(name):
    row = as_format(name, columns=True)
    assert as_format(row.dtype) is as_format(row) is as_format(row.short_name, columns=True) is row
    assert pickle.loads(pickle.dumps(row)) is row
    assert copy.deepcopy(row) is row
    assert str(row.dtype) == name
    assert not row.is_of_arrays
    assert not row.is_builtin
    assert row not in FORMATS
    assert all(each.is_of_arrays for each in FORMATS)


@every_format
def test_a_dtype_of_arrays_is_not_one_of_columns(name):
    with pytest.raises(UnknownDtypeError, match=f"no array has {name}: unknown dtype '{name}': did you mean"):
        as_format(name)
    dtype = as_format(name, columns=True).dtype
    for make in (np.dtype, jnp.dtype):
        with pytest.raises(TypeError):
            make(dtype)
    for library in ("numpy", "jax", "torch"):
        if library == "torch":
            import_or_skip("torch")
        for asked in (name, dtype):
            for make in _makers(namespace(library), asked):
                with pytest.raises(SupremumError, match="128"):
                    make()


def _makers(xp, dtype):
    return (
        lambda: xp.zeros(3, dtype=dtype),
        lambda: xp.asarray([1, 2], dtype=dtype),
        lambda: xp.arange(3, dtype=dtype),
        lambda: xp.astype(xp.ones(2), dtype),
        lambda: xp.sum(xp.ones(2), dtype=dtype),
    )


def test_every_view_names_the_format():
    for call in (
        explain("uint64", "int8", operation="add", rules="polars"),
        explain("int128", 300, operation="less", rules="polars"),
        explain("int128", "uint128", rules="numpy"),
    ):
        assert "int128" in str(call)
        assert "int128" in call._repr_html_()
        assert "int128" in json.dumps(call.to_dict())
        assert pickle.loads(pickle.dumps(call)) == call
    assert parse_operand("int128[]") == parse_operand("i128[]")
    assert explain_cast("int128", "int8", 300, rules="polars").becomes == ()
    assert str(result_type("int128", "float32", rules="polars")) == "float64"


@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
def test_arrays_are_not_computed_in_it(library):
    if library == "torch":
        import_or_skip("torch")
    xp = namespace(library)
    with jax.enable_x64(True), use_rules("polars"):
        signed, unsigned = xp.ones(2, dtype="int8"), asarray(np.ones(2, "uint64"), library=library)
        for call in (
            lambda: unsigned + signed,
            lambda: signed < unsigned,
            lambda: xp.maximum(signed, unsigned),
            lambda: xp.where(signed > 0, signed, unsigned),
            lambda: xp.concat([signed, unsigned]),
            lambda: xp.vecdot(signed, unsigned),
        ):
            with pytest.raises(RuntimeDtypeError, match=r"the rules compute in int128, .* cast first, with"):
                call()
            if library == "jax":
                with pytest.raises(RuntimeDtypeError, match="int128"):
                    jax.jit(lambda a, b: (a + b).unwrap())(signed, unsigned)
        quotient = signed / unsigned
        assert "float64" in str(quotient.dtype)
        assert [float(each) for each in quotient] == [1.0, 1.0]
