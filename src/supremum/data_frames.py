"""The dtypes of data frames, recognised without importing pandas, Polars or PyArrow."""

from __future__ import annotations

from typing import Any

from supremum.formats import COLUMN_FORMATS, Format, as_format, format_names

_NUMBERS = (
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64"),
)
NULLABLE_NAMES: dict[str, str] = {"boolean": "bool"} | {name: name.lower() for name in _NUMBERS}
"""pandas' names of its nullable dtypes, and the formats of their values.

>>> NULLABLE_NAMES["UInt8"], NULLABLE_NAMES["boolean"]
('uint8', 'bool')
"""
NULLABLE_NAME_OF: dict[str, str] = {name: nullable for nullable, name in NULLABLE_NAMES.items()}
"""pandas' name of the nullable dtype of each format that has one.

>>> NULLABLE_NAME_OF["bool"], "float16" in NULLABLE_NAME_OF
('boolean', False)
"""
POLARS_NAME_OF: dict[str, str] = (
    NULLABLE_NAME_OF
    | {name: name.capitalize().replace("Ui", "UI") for name in ("float16", *map(str, COLUMN_FORMATS))}
    | {"bool": "Boolean"}
)
"""Polars' name of the dtype of each format that it has.

>>> POLARS_NAME_OF["bool"], POLARS_NAME_OF["uint128"]
('Boolean', 'UInt128')
"""
# Other names of types than those of formats: of classes in pandas, without "Dtype", and in Polars; and in PyArrow.
_OTHER_NAMES = {"boolean": "bool", "halffloat": "float16", "float": "float32", "double": "float64"}
_ATTRIBUTES = {"pandas": "dtype", "polars": "dtype", "pyarrow": "type"}
"""The attribute of a column that is its dtype, for each library."""


def nullable_format(value: object) -> Format | None:
    """The format of a column with missing values, or of a dtype of such columns; None for anything else.

    Args:
        value: a column of pandas with a nullable dtype, a column of Polars or PyArrow, or such a dtype.

    >>> nullable_format("Int8") is None, nullable_format([1, None]) is None
    (True, True)
    """
    library = _library(value)
    if not library:
        return None
    dtype = getattr(value, _ATTRIBUTES[library], value)
    if _library(dtype) != library:
        return None  # a column of pandas with a dtype of NumPy
    stored = getattr(dtype, "pyarrow_dtype", None)  # pandas' dtype of columns that PyArrow stores has it
    if stored is not None:
        return nullable_format(stored)
    # All dtypes of PyArrow have one class; in the other libraries, each has its own.
    name = str(dtype) if library == "pyarrow" else _class_of(dtype).__name__.removesuffix("Dtype").lower()
    format_name = _OTHER_NAMES.get(name, name)
    return as_format(format_name, columns=True) if format_name in (*format_names(), *map(str, COLUMN_FORMATS)) else None


def is_missing_value(value: object) -> bool:
    """Whether a value is `pd.NA`.

    >>> is_missing_value(None), is_missing_value(float("nan"))
    (False, False)
    """
    return _class_of(value).__name__ == "NAType" and _library(value) == "pandas"


def fix_of_missing_values(data: object, target: Format | None, name: str = "a") -> str:
    """The code that fills or drops missing values which would not be NaN in an array; empty if there are none.

    Args:
        data: a column, a table, or anything else.
        target: the format of the array; None for that of each column.
        name: the name of the data in the code.

    >>> fix_of_missing_values([1.0, float("nan")], None)
    ''
    """
    library = _library(data)
    if not library:
        return ""
    for column in _columns_of(data):
        own = nullable_format(column)
        row = target or own
        if (row is None or not row.is_inexact) and _has_missing_values(column):
            fills = hasattr(data, "fillna") or hasattr(data, "fill_null")  # PyArrow's tables have no such method
            fill, drop = _FIXES[library]
            value = False if own is _BOOL else 0
            return f"{name}.{fill}({value}) or {name}.{drop}()" if fills else f"{name}.{drop}()"
    return ""


_BOOL = as_format("bool")
_FIXES = {
    "pandas": ("fillna", "dropna"),
    "polars": ("fill_null", "drop_nulls"),
    "pyarrow": ("fill_null", "drop_null"),
}
"""The methods of each library that fill and that drop missing values."""


def _columns_of(data: object) -> list[object]:
    """The columns of a table; a column itself."""
    if not hasattr(data, "columns"):
        return [data]
    table: Any = data
    if _library(data) == "pyarrow":
        return table.columns
    return [column for _, column in table.items()] if _library(data) == "pandas" else table.get_columns()


def _dtype_of(column: object) -> object:
    return getattr(column, "dtype", None)


def _has_missing_values(column: Any) -> bool:
    if _library(column) != "pandas":
        count = getattr(column, "null_count", 0)
        return bool(count() if callable(count) else count)
    # The missing values of columns with NumPy's dtypes are NaN already, and those of objects are refused as such.
    return _library(_dtype_of(column)) == "pandas" and bool(column.isna().any())


def _class_of(value: object) -> type[object]:
    return value if isinstance(value, type) else type(value)


def _library(value: object) -> str:
    # Users derive classes from those of the libraries, and a class may have anything as its `__module__`.
    packages = (str(getattr(each, "__module__", "")).partition(".")[0] for each in _class_of(value).__mro__)
    return next((package for package in packages if package in _ATTRIBUTES), "")
