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

from oracles import casts, tables
from oracles.arrays import Framework, arrays_document, functions_of_two
from oracles.assignments import IN_PLACE, Store, in_place
from oracles.casts import category, text
from oracles.missing import missing_document

CODES = tables.codes(f"{tables.INTEGERS} f2 f4 f8 c8 c16")
NULLABLE_CODES = tables.codes(f"{tables.INTEGERS} f4 f8")
REFUSALS = {"-": "refused", "o": "object-column", "p": "column-of-numpy-dtype", "!": "out-of-range"}
"""The signs of refusals. pandas does return the columns of `o` and `p`, whose dtype is none of the document's."""
NUMBERS: tuple[Any, ...] = (
    *(-1, 256, 1000, 40000, 2**31, 2**40, 2**53 + 1, 2**63, -(2**63) - 1, 2**64),
    *(0.5, 0.1, 70000.0, 1e39, 1e300, 1.5j),
)
MASK = pd.Series([True, False, True])


def name_in_pandas(name: str, *, nullable: bool) -> str:
    """Return pandas' name of a dtype: `boolean` and `UInt8` are the nullable bool and uint8."""
    if not nullable:
        return name
    return {"bool": "boolean"}.get(name, f"UInt{name[4:]}" if name.startswith("u") else name.capitalize())


def name_of(result: Any) -> str:
    """Return the name of the dtype of a result; a nullable dtype has the name of NumPy's."""
    return getattr(result.dtype, "numpy_dtype", result.dtype).name


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
        names: pandas' names of the dtypes, by code.
        are_nullable: whether all of them have a mask.
        with_missing: the codes of columns that have a missing value, too, where the dtype depends on values.
    """

    def __init__(
        self, names: Mapping[str, str], *, are_nullable: bool = False, with_missing: Collection[str] = ()
    ) -> None:
        self.names = names
        self.with_missing = with_missing
        self.are_nullable = are_nullable
        self.code_of = {name: code for code, name in names.items()}

    def column(self, code: str, numbers: Any = (1, 1, 1)) -> Any:
        """Return a column with some numbers."""
        return pd.Series([*numbers], dtype=self.names[code])

    def cell(self, call: tables.Call, *operands: Any) -> str:
        """Return the cell of a call."""
        try:
            result = call(*operands)
        except OverflowError:
            return "!"
        except Exception:  # pandas refuses with many kinds of exceptions
            return "-"
        if result.dtype == object:
            return "o"
        # NumPy's `real` and a few other functions return arrays instead of columns.
        is_array = self.are_nullable and not isinstance(result, pd.Series)
        name = name_in_pandas(result.dtype.name, nullable=True) if is_array else str(result.dtype)
        return self.code_of.get(name, "p")

    def binary(self, values: Mapping[str, Any], asked: Iterable[tuple[str, str]]) -> dict[str, tables.Table]:
        """Return the cells of operators and of NumPy's functions of two operands."""
        every = [*asked]
        functions = tables.named(np, tables.NUMPY_FUNCTIONS)
        return tables.grids(self.cell, "operator", tables.OPERATORS, values, every) | tables.grids(
            self.cell, "function", functions, values, every
        )

    def unary(self, values: Mapping[str, Any]) -> dict[str, tables.Table]:
        """Return the cells of operators, functions and methods of one column."""
        forms = {"operator": tables.UNARY_OPERATORS, "function": tables.named(np, tables.NUMPY_UNARY)}
        forms["method"] = tables.named(pd.Series, "abs round diff")
        columns = {code: values[code] for code in self.names}
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

        every, keys = [*asked], {key: key for key in (*self.names, *tables.SCALARS)}
        return {name: tables.grid(cells, calls, keys, every) for name, calls in methods.items()}

    def _fills(self, key: str) -> list[Any]:
        if key in tables.SCALARS:
            return {"float*": [1.0, 1.5], "complex*": [1.5j]}.get(key, [tables.SCALARS[key]])
        dtype = np.dtype(name_of(self.column(key)))
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
        return [self.column(key, each) for each in (*([number] * 3 for number in numbers), *missing)]

    def concat(self, *keys: str) -> str:
        """Return the cell of `pd.concat`."""
        return self.cell(concat, *map(self.column, keys))


def pandas(*, nullable: bool = False) -> dict[str, Any]:
    """Measure operators, functions and methods of Series."""
    own_codes = NULLABLE_CODES if nullable else CODES
    keys = [*own_codes, *tables.SCALARS]
    columns = _Columns(
        {code: name_in_pandas(name, nullable=nullable) for code, name in own_codes.items()}, are_nullable=nullable
    )

    def cells_of(values: Mapping[str, Any]) -> dict[str, tables.Table]:
        return columns.binary(values, tables.pairs(keys)) | columns.unary(values)

    def by_zero(name: str) -> dict[str, str]:
        zeros = [columns.column(code, (0, 0, 0)) for code in own_codes]
        return {
            code: " ".join(columns.cell(tables.OPERATORS[name], columns.column(code), zero) for zero in zeros)
            for code in own_codes
        }

    def value(call: tables.Call, left: Any, number: Any) -> str:
        sign = columns.cell(call, left, number)
        return sign if sign in REFUSALS else f"{sign}:{call(left, number).tolist()[1]}".replace(" ", "")

    with _quiet():
        cells = cells_of(tables.operands_of(keys, columns.column))
        cells |= columns.replacing(itertools.product(own_codes, keys))
        ones = {code: columns.column(code) for code in own_codes}
        cells["concat function"] = tables.grid(columns.cell, concat, ones)
        framework = "pandas-nullable" if nullable else "pandas"
        about = {"numpy": np.__version__}
        found = tables.document(framework, pd.__version__, own_codes, REFUSALS, keys, cells, about)
        found["triples"] = tables.triples(columns.concat, own_codes)
        found["by_zero"] = {name: by_zero(name) for name in ("divide", "floor_divide", "remainder")}
        if nullable:
            missing = cells_of(tables.operands_of(keys, lambda code: columns.column(code, (1, None, 1))))
            found["masked"] = tables.differing(changed(cells, missing))
        calls = {name: tables.OPERATORS[name] for name in ("add", "subtract", "multiply", "greater_than")}
        calls["where"] = lambda left, right: left.where(MASK, right)
        found["numbers"] = " ".join(map(str, NUMBERS))
        found["values"] = tables.number_cells(value, calls, ones, NUMBERS)
    return found


def changed(
    before: Mapping[str, tables.Table], after: Mapping[str, tables.Table]
) -> dict[str, dict[str, tables.Table]]:
    """Return the cells that differ from those before, by form and operation."""
    found: dict[str, dict[str, tables.Table]] = {}
    for measured, table in after.items():
        name, form = measured.split()
        for left, row in table.items():
            for right, cell in row.items():
                if cell != before[measured][left][right]:
                    found.setdefault(form, {}).setdefault(name, {}).setdefault(left, {})[right] = cell
    return found


def pandas_mixed() -> dict[str, Any]:
    """Measure nullable columns with columns of NumPy's dtypes."""
    nullable = {code.upper(): name_in_pandas(name, nullable=True) for code, name in NULLABLE_CODES.items()}
    columns = _Columns(CODES | nullable, with_missing=nullable)

    def is_mixed(*asked: str) -> bool:
        return 0 < sum(code in nullable for code in asked) < len(asked)

    mixed = [pair for pair in itertools.product(columns.names, repeat=2) if is_mixed(*pair)]
    with _quiet():
        made = {code: columns.column(code) for code in columns.names}
        cells = columns.binary(made, mixed) | columns.replacing(mixed)
        cells["concat function"] = tables.grid(columns.cell, concat, made, mixed)
        about = {"numpy": np.__version__}
        found = tables.document("pandas-mixed", pd.__version__, columns.names, REFUSALS, made, cells, about)
        rest = {key: found.pop(key) for key in ("refusals", "columns", "tables")}
        return (
            found
            | {"formats": {code: name_of(made[code]) for code in nullable}}
            | rest
            | {"triples": tables.triples(lambda *keys: columns.concat(*keys) if is_mixed(*keys) else ".", made)}
        )


def pandas_arrays(*, nullable: bool = False) -> dict[str, Any]:
    """Measure reductions, and functions of several Series."""

    def make(value: Any, name: str) -> Any:
        dtype = name_in_pandas(name, nullable=nullable)
        if isinstance(value, list) and isinstance(value[0], list):
            return pd.DataFrame(value).astype(dtype)
        return pd.Series(value if isinstance(value, list) else [value], dtype=dtype)

    def dtype_of(result: Any) -> str:
        if isinstance(result, pd.DataFrame):
            result = result[0]
        return name_of(result if hasattr(result, "dtype") else np.asarray(result))

    framework = Framework(
        codes=NULLABLE_CODES if nullable else CODES,
        reductions=tables.named(
            pd.Series, "sum prod mean var std any all min max cumulative_sum:cumsum cumulative_prod:cumprod"
        ),
        several={
            **functions_of_two(pd, "concat"),
            **functions_of_two(np, "stack diff"),
            "vecdot": lambda a, b: a @ b,
            "matmul": lambda a, b: a.dot(b),
            **functions_of_two(np, "outer cross tensordot solve:linalg.solve"),
        },
        make=make,
        dtype_of=dtype_of,
        floats=lambda result: np.asarray(result, "float64").tolist(),
    )
    with _quiet():
        return arrays_document("pandas-nullable" if nullable else "pandas", pd.__version__, framework, {})


def pandas_casts(*, nullable: bool = False) -> dict[str, Any]:
    """Measure `astype`; a cast that raises has `.` as its cell, and `raising` has the numbers for which it raises."""
    raising: dict[str, set[str]] = {}

    def source(numbers: list[Any], name: str) -> Any:
        return pd.Series(np.array(numbers, name)).astype(name_in_pandas(name, nullable=nullable))

    def cast(series: Any, to: str) -> Any:
        try:
            return series.astype(name_in_pandas(to, nullable=nullable))
        except ValueError:  # raised for some values only
            raising.setdefault(f"{category(name_of(series))} {to}", set()).add(text(series.tolist()[0]))
            return None

    def values(series: Any) -> list[Any]:
        return ["."] if series is None else series.tolist()

    framework = "pandas-nullable" if nullable else "pandas"
    names = (NULLABLE_CODES if nullable else CODES).values()
    with _quiet():
        found = casts.measured(framework, pd.__version__, names, source, cast, values)
    return found | {"raising": {pair: " ".join(sorted(each)) for pair, each in sorted(raising.items())}}


def pandas_missing() -> dict[str, Any]:
    """Measure missing values of nullable columns."""

    def is_missing(method: str, series: Any) -> bool:
        return pd.Series(getattr(series, method)()).isna().any()

    names = {name: name_in_pandas(name, nullable=True) for name in NULLABLE_CODES.values()}
    dtypes = {name: pd.array([None], theirs).dtype for name, theirs in names.items()}
    own = "cumulative_sum:cumsum cumulative_prod:cumprod"
    return missing_document(
        "pandas", pd.__version__, is_missing, own, dtypes, lambda dtype: pd.Series([None], dtype=dtype)
    )


def assignment_pandas(*, nullable: bool = False) -> dict[str, Any]:
    """Measure writes; `a += b` gives the name `a` to a new column if the dtype changes."""
    own_codes = NULLABLE_CODES if nullable else CODES

    def make(code: str) -> Any:
        return pd.Series([1, 1], dtype=name_in_pandas(own_codes[code], nullable=nullable))

    def set_all(target: Any, value: Any) -> Any:
        target.iloc[:] = value
        return target

    store = Store(own_codes, make, make, name_of, lambda series: series.iloc[0])
    # pandas has no operator for shifts.
    with _quiet():
        cells = store.cells(in_place(IN_PLACE, "bitwise_left_shift") | {"assign item": set_all})
        numbers = store.numbers({"assign item": set_all})
    return store.document("pandas-nullable" if nullable else "pandas", pd.__version__, cells, numbers)


DOCUMENTS = {
    "pandas-mixed": pandas_mixed,
    "pandas-missing": pandas_missing,
    **{
        f"{prefix}pandas{kind}{suffix}": partial(measure, nullable=bool(kind))
        for kind in ("", "-nullable")
        for prefix, measure, suffix in (
            ("", pandas, ""),
            ("", pandas_arrays, "-arrays"),
            ("", pandas_casts, "-casts"),
            ("assignment-", assignment_pandas, ""),
        )
    },
}
