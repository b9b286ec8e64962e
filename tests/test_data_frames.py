"""Columns of data frames and pandas' names of nullable dtypes as operands; the libraries need not be installed."""

import json

import pytest
from typer.testing import CliRunner

from conformance.measured import document
from optional_packages import import_or_skip
from supremum import OperandError, explain, explain_cast
from supremum.analysis import rule_table
from supremum.cli.app import app
from supremum.data_frames import NULLABLE_NAME_OF, NULLABLE_NAMES, nullable_format
from supremum.errors import UnknownDtypeError
from supremum.formats import COLUMN_FORMATS, as_format, format_names
from supremum.operands import Operand, as_operand, parse_operand

ATTRIBUTES = {"pandas": "dtype", "polars": "dtype", "pyarrow": "type"}


def stand_in(module, name, **attributes):
    """An object of a class as a library defines it."""
    return type(name, (), {"__module__": module, **attributes})()


@pytest.mark.parametrize("library", ATTRIBUTES)
def test_columns_and_dtypes_of_data_frames_are_nullable_operands(library):
    measured = document(f"{library}-missing")["dtypes"]
    names = measured.keys() & {*format_names(), *map(str, COLUMN_FORMATS)}
    assert len(names) > 10
    for name in names:
        module, class_name, text = measured[name].split()
        dtype = stand_in(module, class_name, __str__=lambda _, text=text: text)
        column = stand_in(f"{library}.core", "Column", ndim=1, **{ATTRIBUTES[library]: dtype})
        for given, ndim in ((dtype, None), (column, 1)):
            operand = as_operand(given)
            assert (operand.name, operand.nullable, operand.ndim, operand.weak) == (name, True, ndim, False)
        if library != "pyarrow":  # its dtypes have one class
            assert as_operand(type(dtype)).name == name


def test_columns_of_installed_data_frames_are_nullable_operands():
    pandas, polars, pyarrow = map(import_or_skip, ATTRIBUTES)
    compared = 0
    for name in (*format_names(), *map(str, COLUMN_FORMATS)):
        makers = {
            pandas: lambda dtype: pandas.Series([1, None], dtype=dtype),
            polars: lambda dtype: polars.Series([1, None]).cast(dtype),
            pyarrow: lambda dtype: pyarrow.nulls(2, dtype),
        }
        own = {
            pandas: getattr(pandas, f"{NULLABLE_NAME_OF.get(name, 'No').capitalize().replace('Ui', 'UI')}Dtype", None),
            polars: getattr(polars, _in_polars(name), None),
            pyarrow: getattr(pyarrow, {"bool": "bool_"}.get(name, name), None),
        }
        for library, make in makers.items():
            dtype = own[library] and own[library]()
            if dtype is not None:
                compared += 1
                for given in (dtype, make(dtype)):
                    operand = as_operand(given)
                    assert (operand.name, operand.nullable) == (name, True), given
        if name in NULLABLE_NAME_OF:
            derived = type("Derived", (pandas.Series,), {})
            assert as_operand(derived([1, None], dtype=NULLABLE_NAME_OF[name])).nullable
            assert not as_operand(pandas.Series([1, 0], dtype=name)).nullable
    assert compared == 11 + 14 + 12
    with pytest.raises(OperandError, match="got"):
        as_operand(pandas.DataFrame({"a": [1]}))


def _in_polars(name):
    return {"bool": "Boolean"}.get(name, name.replace("uint", "UInt").replace("int", "Int").replace("float", "Float"))


def test_a_pandas_column_of_a_numpy_dtype_is_not_nullable():
    column = stand_in("pandas", "Series", ndim=1, dtype=as_format("int8").dtype)
    assert nullable_format(column) is None
    assert nullable_format(stand_in("pandas", "Series", dtype=stand_in("numpy.dtypes", "Int8Dtype"))) is None
    assert as_operand(column) == Operand("integer", column.dtype, ndim=1)


@pytest.mark.parametrize(
    "given",
    [
        stand_in("pandas", "CategoricalDtype"),
        stand_in("pandas", "Series", dtype=stand_in("pandas", "StringDtype")),
        stand_in("pandas", "ArrowDtype", type=int),
        stand_in("polars.series.series", "Series", dtype=stand_in("polars.datatypes.classes", "String")),
        stand_in("polars.dataframe.frame", "DataFrame"),
        stand_in("pyarrow.lib", "StringArray", type=stand_in("pyarrow.lib", "DataType", __str__=lambda _: "string")),
        stand_in("pyarrow.lib", "Table", __str__=lambda _: "table"),
        stand_in("pandasql", "Int8Dtype"),
        stand_in(5, "Int8Dtype"),
    ],
)
def test_columns_without_numbers_and_other_objects_are_no_operands(given):
    with pytest.raises(OperandError, match="must be a numeric array"):
        as_operand(given)


@pytest.mark.parametrize("name", NULLABLE_NAMES)
def test_a_nullable_dtype_and_the_format_of_its_values_are_not_confused(name):
    nullable, plain = as_operand(name), as_operand(NULLABLE_NAMES[name])
    assert (nullable.name, nullable.dtype) == (plain.name, plain.dtype)
    assert (nullable.nullable, plain.nullable) == (True, False)
    assert nullable != plain
    assert parse_operand(name) == nullable
    assert str(nullable) == f"{plain} (nullable)"
    assert NULLABLE_NAME_OF[plain.name] == name
    with pytest.raises(UnknownDtypeError):
        as_format(name)  # a format has no flag


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("INT8", ("Int8", "int8", "uint8", "int4")),
        ("iNt8", ("Int8", "int8", "uint8", "int4")),
        ("Int8?", ("Int8", "int8", "uint8")),
        ("int8?", ("int8", "uint8")),
        ("Boolean", ("boolean", "bool")),
        ("boolea", ("bool",)),
        ("Uint16", ("UInt16", "uint16", "uint1", "int16")),
        ("Float16", ("Float64", "float16", "bfloat16", "float64")),
        ("Flaot32", ("Float32", "float32")),
        ("flaot32", ("float32",)),
        ("Int8[]", ("Int8",)),
    ],
)
def test_an_unknown_name_is_an_error_with_names_as_they_are_spelled(name, suggested):
    with pytest.raises(UnknownDtypeError) as caught:
        parse_operand(name)
    assert caught.value.near == suggested
    assert caught.value.name == name


@pytest.mark.parametrize(
    "name", ["Int8 ", "Int 8", "Int", "Int08", "Int8Dtype", "Float", "Bool", "Complex64", "Int8\n"]
)
def test_junk_is_no_name(name):
    for parse in (as_operand, parse_operand):
        with pytest.raises(UnknownDtypeError):
            parse(name)


def test_questions_about_formats_refuse_nullable_dtypes():
    fix = "use 'int8', and rules='pandas-nullable' for nullable columns of pandas"
    for source, target in (("Int8", "int16"), ("int16", "Int8")):
        with pytest.raises(OperandError, match=f"must not be nullable, got int8 .nullable.; {fix}"):
            explain_cast(source, target, rules="pandas")
    with pytest.raises(OperandError, match=f"a type of a table must not be nullable, got 'Int8'; {fix}"):
        rule_table("pandas", types="int8,Int8")


def run(*args):
    return CliRunner().invoke(app, args).output


def test_the_command_line_explains_nullable_operands():
    text = run("explain", "Int8", "float32", "--operation", "add", "--rules", "pandas")
    assert text.splitlines()[0] == "add(int8 (nullable), float32) -> float32 (nullable)   [rules pandas]"
    data = json.loads(run("explain", "Int8", "int8", "--rules", "numpy", "--format", "json"))["decisions"][0]
    assert [each["nullable"] for each in data["operands"]] == [True, False]
    assert data["result"]["nullable"] is False
    assert "fill or drop those of a first" in data["reason"][-1]


def test_an_error_says_which_argument_has_the_unknown_name():
    with pytest.raises(UnknownDtypeError, match="argument 1: unknown dtype 'Int9': did you mean 'Int8'"):
        explain("Int8", "Int9", rules="pandas")
