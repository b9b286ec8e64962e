"""Measure pandas: `pip install pandas==3.1.1 numpy==2.4.6`.

`pandas` has columns of NumPy's dtypes. `pandas-nullable`, `pandas-nullable-arrays` and `pandas-nullable-casts` have the
extension dtypes with a mask, such as Int8, which have the names of NumPy's dtypes in the document. `pandas-mixed` has
columns with a mask next to columns of NumPy's dtypes, each with pandas' name. The forms are
`operator`, `function` for NumPy's functions of Series and for `pd.concat`, `method` for methods of Series, and `mask`
for `Series.mask` as `where`. In addition to what the shared modules describe, the document has:

    cells      those of `where` and `clip` have every dtype that was measured, with `|` between them, since the dtype
               depends on values: both operands are filled with their least and largest number, with 1 and a few others
    triples    {"LEFT MIDDLE": cells}: `pd.concat` of three columns, with a column for each code
    by_zero    {OPERATION: {LEFT: cells}}: operators whose right operand is zero, with a column for each code
    masked     for nullable dtypes, the cells that differ if the columns have a missing value, as `differing`
    numbers    Python numbers
    values     {LEFT: {OPERATION: cells}}: the result of each number as right operand, as "CODE:VALUE", `!` if pandas
               says that the number is out of range, or another sign of a refusal. The left operand is a column of 1
    formats    for nullable dtypes beside NumPy's, whose codes have capitals: the NumPy dtype of the values
    raising    {"CATEGORY TARGET": VALUES}: the values for which `astype` raises; their cells are `.`
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from oracles import tables
from oracles.arrays import arrays_document, functions_of_two
from oracles.assignments import IN_PLACE, Store, in_place
from oracles.casts import casts_document, category, text
from oracles.missing import missing_document

CODES = tables.codes(f"{tables.INTEGERS} f2 f4 f8 c8 c16")
NULLABLE_CODES = tables.codes(f"{tables.INTEGERS} f4 f8")
NULLABLE_NAMES = {"bool": "boolean"} | {
    name: name.replace("uint", "UInt") if name.startswith("u") else name.capitalize()
    for name in NULLABLE_CODES.values()
    if name != "bool"
}
"""pandas' names of the nullable dtypes, by NumPy's."""
REFUSALS = {
    "-": ("refused", ""),
    "o": ("object-column", "$^"),
    "p": ("column-of-numpy-dtype", "$^"),
    "!": ("out-of-range", "^OverflowError"),
}
"""The signs of refusals. pandas does return the columns of `o` and `p`, whose dtype is none of the document's."""
_IN_ORDER = {sign: REFUSALS[sign] for sign in "!-"}
NUMBERS: tuple[Any, ...] = (
    *(-1, 256, 1000, 40000, 2**31, 2**40, 2**53 + 1, 2**63, -(2**63) - 1, 2**64),
    *(0.5, 0.1, 70000.0, 1e39, 1e300, 1.5j),
)
MASK = pd.Series([True, False, True])


def name_of(result: Any) -> str:
    """Return the name of the dtype of a result; a nullable dtype has the name of NumPy's."""
    column = result[0] if isinstance(result, pd.DataFrame) else result
    dtype = column.dtype if hasattr(column, "dtype") else np.asarray(column).dtype
    return getattr(dtype, "numpy_dtype", dtype).name


def concat(*columns: Any) -> Any:
    """Concatenate columns."""
    return pd.concat(columns)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


class _Columns:
    """Columns of the dtypes of a document, and the cells of calls with them.

    Args:
        name: the name of the document.
        codes: the names of the dtypes in the document, by code.
        names: pandas' names of dtypes, where they differ.
        with_missing: the codes of columns that have a missing value, too, where the dtype depends on values.
    """

    def __init__(
        self, name: str, codes: Mapping[str, str], names: Mapping[str, str], with_missing: Collection[str] = ()
    ) -> None:
        self.names = names
        self.with_missing = with_missing
        self.codes = {self.name_in_pandas(each): code for code, each in codes.items()}
        self.cell = tables.outcome(_IN_ORDER, self.code_of)
        self.framework = tables.Framework(
            name,
            pd.__version__,
            codes,
            self.make,
            name_of,
            numbers=lambda result: ["."] if result is None else result.tolist(),
            reductions=tables.named(
                pd.Series, "sum prod mean var std any all min max cumulative_sum:cumsum cumulative_prod:cumprod"
            ),
            several={
                "concat": concat,
                **functions_of_two(np, "stack diff"),
                "vecdot": lambda a, b: a @ b,
                "matmul": lambda a, b: a.dot(b),
                **functions_of_two(np, "outer cross tensordot solve:linalg.solve"),
            },
        )

    def name_in_pandas(self, name: str) -> str:
        """Return pandas' name of a dtype."""
        return self.names.get(name, name)

    def make(self, value: Any, name: str) -> Any:
        """Make a column of a number or a list of numbers, or a table of lists of numbers."""
        dtype = self.name_in_pandas(name)
        if isinstance(value, list) and isinstance(value[0], list):
            return pd.DataFrame(value).astype(dtype)
        return pd.Series(value if isinstance(value, list) else [value], dtype=dtype)

    def columns(self, numbers: Iterable[Any] = (1, 1, 1)) -> dict[str, Any]:
        """Return a column of some numbers of each dtype, by code."""
        return {code: self.make([*numbers], name) for code, name in self.framework.codes.items()}

    def code_of(self, result: Any) -> str:
        """Return the cell of a result."""
        if result.dtype == object:
            return "o"
        # NumPy's `real` and a few other functions return arrays instead of columns.
        is_column = isinstance(result, pd.Series)
        return self.codes.get(str(result.dtype) if is_column else self.name_in_pandas(result.dtype.name), "p")

    def binary(self, values: Mapping[str, Any], asked: Iterable[tuple[str, str]]) -> dict[str, tables.Table]:
        """Return the cells of operators and of NumPy's functions of two operands."""
        every = [*asked]
        functions = tables.named(np, tables.NUMPY_FUNCTIONS)
        return tables.grids(self.cell, "operator", tables.OPERATORS, values, every) | tables.grids(
            self.cell, "function", functions, values, every
        )

    def unary(self, columns: Mapping[str, Any]) -> dict[str, tables.Table]:
        """Return the cells of operators, functions and methods of one column."""
        forms = {"operator": tables.UNARY_OPERATORS, "function": tables.named(np, tables.NUMPY_UNARY)}
        forms["method"] = tables.named(pd.Series, "abs round diff")
        return {f"unary {form}": tables.unary_cells(self.cell, calls, columns) for form, calls in forms.items()}

    def replacing(self, asked: Iterable[tuple[str, str]]) -> dict[str, tables.Table]:
        """Return the cells of methods that replace values of a column."""
        methods: dict[str, list[tables.Call]] = {
            "where method": [lambda left, right: left.where(MASK, right)],
            "where mask": [lambda left, right: left.mask(~MASK, right)],
            "clip method": [lambda left, right: left.clip(lower=right), lambda left, right: left.clip(upper=right)],
        }

        def cells(calls: list[tables.Call], left: str, right: str) -> str:
            # A bound takes effect only on numbers beyond it, so the column has such numbers, too.
            each = itertools.product(calls, self._fills(left), self._fills(right))
            return "|".join(sorted({self.cell(call, *values) for call, *values in each}))

        every, keys = [*asked], {key: key for key in (*self.framework.codes, *tables.SCALARS)}
        return {name: tables.grid(cells, calls, keys, every) for name, calls in methods.items()}

    def _fills(self, key: str) -> list[Any]:
        if key in tables.SCALARS:
            return {"float*": [1.0, 1.5], "complex*": [1.5j]}.get(key, [tables.SCALARS[key]])
        dtype = np.dtype(name_of(self.framework.one(key)))
        if dtype.kind in "ui":
            numbers = [1, np.iinfo(dtype).min, np.iinfo(dtype).max]
            numbers += [2**24 + 1] if dtype.itemsize > 2 else []
        elif dtype.kind == "b":
            numbers = [True, False]
        else:
            numbers = [-1.0, 1.0, 1.5, 0.1, np.finfo(dtype).max]
        if dtype.kind == "c":
            numbers = [1.5j, *numbers[:1]]
        missing = [[1, None, 1]] if key in self.with_missing else []
        columns = [*([number] * 3 for number in numbers), *missing]
        return [self.make(each, self.framework.codes[key]) for each in columns]


PANDAS = _Columns("pandas", CODES, {})
NULLABLE = _Columns("pandas-nullable", NULLABLE_CODES, NULLABLE_NAMES)


def pandas(kind: _Columns) -> dict[str, Any]:
    """Measure operators, functions and methods of Series."""
    codes, cell = kind.framework.codes, kind.cell
    keys = [*codes, *tables.SCALARS]

    def cells_of(columns: Mapping[str, Any]) -> dict[str, tables.Table]:
        return kind.binary(columns | tables.SCALARS, tables.pairs(keys)) | kind.unary(columns)

    def by_zero(name: str) -> dict[str, str]:
        zeros = kind.columns((0, 0, 0)).values()
        return {
            code: " ".join(cell(tables.OPERATORS[name], column, zero) for zero in zeros)
            for code, column in ones.items()
        }

    def value_of(result: Any) -> str:
        code = kind.code_of(result)
        return code if code in REFUSALS else f"{code}:{result.tolist()[1]}".replace(" ", "")

    with _quiet():
        ones = kind.columns()
        cells = cells_of(ones) | kind.replacing(itertools.product(codes, keys))
        cells["concat function"] = tables.grid(cell, concat, ones)
        found = kind.framework.document(REFUSALS, keys, cells, {"numpy": np.__version__})
        found["triples"] = tables.triples(lambda *asked: cell(concat, *map(ones.get, asked)), codes)
        found["by_zero"] = {name: by_zero(name) for name in ("divide", "floor_divide", "remainder")}
        if kind is NULLABLE:
            missing = cells_of(kind.columns((1, None, 1)))
            masked = {form: tables.differing(cells, missing, form) for form in ("operator", "function", "method")}
            found["masked"] = {form: rows for form, rows in masked.items() if rows}
        calls = {name: tables.OPERATORS[name] for name in ("add", "subtract", "multiply", "greater_than")}
        calls["where"] = lambda left, right: left.where(MASK, right)
        return found | tables.with_numbers(tables.outcome(_IN_ORDER, value_of), calls, ones, NUMBERS)


def pandas_mixed() -> dict[str, Any]:
    """Measure nullable columns with columns of NumPy's dtypes."""
    nullable = {code.upper(): NULLABLE_NAMES[name] for code, name in NULLABLE_CODES.items()}
    kind = _Columns("pandas-mixed", CODES | nullable, {}, with_missing=nullable)

    def is_mixed(*asked: str) -> bool:
        return 0 < sum(code in nullable for code in asked) < len(asked)

    with _quiet():
        made = kind.columns()
        mixed = [pair for pair in itertools.product(made, repeat=2) if is_mixed(*pair)]
        cells = kind.binary(made, mixed) | kind.replacing(mixed)
        cells["concat function"] = tables.grid(kind.cell, concat, made, mixed)
        found = kind.framework.document(REFUSALS, made, cells, {"numpy": np.__version__})

        def joined(*asked: str) -> str:
            return kind.cell(concat, *map(made.get, asked)) if is_mixed(*asked) else "."

        rest = {key: found.pop(key) for key in ("refusals", "columns", "tables")}
        formats = {code: name_of(made[code]) for code in nullable}
        return found | {"formats": formats} | rest | {"triples": tables.triples(joined, made)}


def pandas_arrays(kind: _Columns) -> dict[str, Any]:
    """Measure reductions, and functions of several Series."""
    with _quiet():
        return arrays_document(kind.framework, {})


def pandas_casts(kind: _Columns) -> dict[str, Any]:
    """Measure `astype`; a cast that raises has `.` as its cell, and `raising` has the numbers for which it raises."""
    raising: dict[str, set[str]] = {}

    def cast(series: Any, to: str) -> Any:
        try:
            return series.astype(kind.name_in_pandas(to))
        except ValueError:  # raised for some values only
            raising.setdefault(f"{category(name_of(series))} {to}", set()).add(text(series.tolist()[0]))
            return None

    def make(numbers: list[Any], name: str) -> Any:
        # A list with NaN would become a column with a missing value.
        return pd.Series(np.array(numbers, name)).astype(kind.name_in_pandas(name))

    with _quiet():
        found = casts_document(kind.framework._replace(make=make), cast)
    return found | {"raising": {pair: " ".join(sorted(each)) for pair, each in sorted(raising.items())}}


def pandas_missing() -> dict[str, Any]:
    """Measure missing values of nullable columns."""
    dtypes = {name: pd.array([None], theirs).dtype for name, theirs in NULLABLE_NAMES.items()}
    return missing_document(
        NULLABLE.framework._replace(name="pandas"),
        lambda method, series: pd.Series(method(series)).isna().any(),
        dtypes,
        lambda dtype: pd.Series([None], dtype=dtype),
    )


def assignment_pandas(kind: _Columns) -> dict[str, Any]:
    """Measure writes; `a += b` gives the name `a` to a new column if the dtype changes."""

    def make(code: str) -> Any:
        return kind.make([1, 1], kind.framework.codes[code])

    def set_all(target: Any, value: Any) -> Any:
        target.iloc[:] = value
        return target

    store = Store(kind.framework, make, make, lambda series: series.iloc[0])
    # pandas has no operator for shifts.
    with _quiet():
        cells = store.cells(in_place(IN_PLACE, "bitwise_left_shift") | {"assign item": set_all})
        return store.document(cells, store.numbers({"assign item": set_all}))


DOCUMENTS = tables.by_name(pandas_mixed, pandas_missing)
for _kind in (PANDAS, NULLABLE):
    DOCUMENTS |= {
        _kind.framework.name: partial(pandas, _kind),
        f"{_kind.framework.name}-arrays": partial(pandas_arrays, _kind),
        f"{_kind.framework.name}-casts": partial(pandas_casts, _kind),
        f"assignment-{_kind.framework.name}": partial(assignment_pandas, _kind),
    }
