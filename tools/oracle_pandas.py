"""Measure pandas; `extract_oracles.py pandas`, `pandas-arrays` and `pandas-casts` call this module.

`pandas` has columns of NumPy's dtypes. `pandas-nullable`, `pandas-nullable-arrays` and `pandas-nullable-casts` have the
extension dtypes with a mask, such as Int8, which have the names of NumPy's dtypes in the document. `pandas-mixed` has
columns with a mask next to columns of NumPy's dtypes, each with pandas' name. The forms are
`operator`, `function` for NumPy's functions of Series and for `pd.concat`, `method` for methods of Series, and `mask`
for `Series.mask` as `where`. In addition to what the other modules describe, the document has:

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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from oracle_arrays import REFUSED, Framework, measured
from oracle_casts import measured as measured_casts
from oracle_numpy_legacy import CODES, FUNCTIONS, UNARY

NULLABLE_CODES = {code: name for code, name in CODES.items() if name not in ("float16", "complex64", "complex128")}
REFUSALS = {"-": "refused", "o": "object-column", "p": "column-of-numpy-dtype", "!": "out-of-range"}
"""The signs of refusals. pandas does return the columns of `o` and `p`, whose dtype is none of the document's."""
NUMBERS: tuple[Any, ...] = (
    *(-1, 256, 1000, 40000, 2**31, 2**40, 2**53 + 1, 2**63, -(2**63) - 1, 2**64),
    *(0.5, 0.1, 70000.0, 1e39, 1e300, 1.5j),
)

REDUCTIONS = ("sum", "prod", "mean", "var", "std", "any", "all", "min", "max")
Found = dict[str, dict[str, dict[str, str]]]
"""{"OPERATION FORM": {LEFT: {RIGHT: CELL}}}."""


def name_in_pandas(name: str, *, nullable: bool) -> str:
    """The name of a dtype in pandas.

    >>> name_in_pandas("uint8", nullable=True), name_in_pandas("bool", nullable=True)
    ('UInt8', 'boolean')
    """
    if not nullable:
        return name
    return {"bool": "boolean"}.get(name, f"UInt{name[4:]}" if name.startswith("u") else name.capitalize())


def name_of(result: Any) -> str:
    """The name of a result's dtype; a nullable dtype has the name of NumPy's."""
    return getattr(result.dtype, "numpy_dtype", result.dtype).name


@contextmanager
def _quiet() -> Iterator[None]:
    import numpy as np

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
        """A column with some numbers."""
        import pandas as pd

        return pd.Series([*numbers], dtype=self.names[code])

    def cell(self, call: Callable[..., Any], *operands: Any) -> str:
        """The outcome of a call."""
        import pandas as pd

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

    def binary(self, operands: Mapping[str, Any], pairs: Iterable[tuple[str, str]]) -> Found:
        """The cells of operators and of NumPy's functions of two operands."""
        import numpy as np

        from extract_oracles import OPERATORS

        found: Found = {}
        functions = {name: getattr(np, theirs) for name, theirs in FUNCTIONS.items()}
        for form, calls in {"operator": OPERATORS, "function": functions}.items():
            for name, call in calls.items():
                table = found[f"{name} {form}"] = {key: {} for key in operands}
                for left, right in pairs:
                    table[left][right] = self.cell(call, operands[left], operands[right])
        return found

    def unary(self, operands: Mapping[str, Any]) -> Found:
        """The cells of operators, functions and methods of one column."""
        import numpy as np
        import pandas as pd

        from extract_oracles import UNARY_OPERATORS

        names = dict(name.split(":") if ":" in name else (name, name) for name in UNARY.split())
        alone = {"operator": UNARY_OPERATORS, "function": {name: getattr(np, theirs) for name, theirs in names.items()}}
        alone["method"] = {"abs": pd.Series.abs, "round": pd.Series.round, "diff": pd.Series.diff}
        return {
            f"unary {form}": {
                name: {code: self.cell(call, operands[code]) for code in self.names} for name, call in calls.items()
            }
            for form, calls in alone.items()
        }

    def replacing(self, pairs: Iterable[tuple[str, str]]) -> Found:
        """The cells of methods that replace values of a column."""
        import pandas as pd

        mask = pd.Series([True, False, True])
        methods: dict[str, list[Callable[..., Any]]] = {
            "where method": [lambda left, right: left.where(mask, right)],
            "where mask": [lambda left, right: left.mask(~mask, right)],
            "clip method": [lambda left, right: left.clip(lower=right), lambda left, right: left.clip(upper=right)],
        }
        found: Found = {name: {code: {} for code in self.names} for name in methods}
        for (name, calls), (left, right) in itertools.product(methods.items(), pairs):
            # A bound takes effect only on numbers beyond it, so the column has such numbers, too.
            asked = itertools.product(calls, self._fills(left), self._fills(right))
            found[name][left][right] = "|".join(sorted({self.cell(call, *operands) for call, *operands in asked}))
        return found

    def _fills(self, key: str) -> list[Any]:
        import numpy as np

        from extract_oracles import SCALARS

        if key in SCALARS:
            return {"float*": [1.0, 1.5], "complex*": [1.5j]}.get(key, [SCALARS[key]])
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

    def concat(self, *codes: str) -> str:
        """The cell of `pd.concat`."""
        import pandas as pd

        return self.cell(lambda *each: pd.concat(each), *map(self.column, codes))


def _document(*, nullable: bool) -> dict[str, Any]:
    """Measure operators, functions and methods of Series."""
    import numpy as np
    import pandas as pd

    from extract_oracles import OPERATORS, SCALARS, differing, pairs, tables

    codes = NULLABLE_CODES if nullable else CODES
    keys = [*codes, *SCALARS]
    named = {code: name_in_pandas(name, nullable=nullable) for code, name in codes.items()}
    columns = _Columns(named, are_nullable=nullable)
    column, cell = columns.column, columns.cell

    def tabled(operands: Mapping[str, Any]) -> Found:
        return columns.binary(operands, [*pairs(operands)]) | columns.unary(operands)

    with _quiet():
        found = tabled({key: SCALARS[key] if key in SCALARS else column(key) for key in keys})
        found |= columns.replacing([*itertools.product(codes, keys)])
        found["concat function"] = {left: {right: columns.concat(left, right) for right in codes} for left in codes}
        document = {
            "framework": "pandas-nullable" if nullable else "pandas",
            "version": pd.__version__,
            "numpy": np.__version__,
            "codes": codes,
            "refusals": REFUSALS,
            "columns": " ".join(keys),
            "tables": tables(found, keys),
            "triples": {
                f"{a} {b}": " ".join(columns.concat(a, b, c) for c in codes)
                for a, b in itertools.product(codes, repeat=2)
            },
            "by_zero": {
                name: {
                    left: " ".join(cell(OPERATORS[name], column(left), column(right, (0, 0, 0))) for right in codes)
                    for left in codes
                }
                for name in ("divide", "floor_divide", "remainder")
            },
        }
        if nullable:
            missing = tabled({key: SCALARS[key] if key in SCALARS else column(key, (1, None, 1)) for key in keys})
            changed: dict[str, dict[str, Any]] = {}
            for measured_as, table in missing.items():
                name, form = measured_as.split()
                for left, row in table.items():
                    for right, outcome in row.items():
                        if outcome != found[measured_as][left][right]:
                            changed.setdefault(form, {}).setdefault(name, {}).setdefault(left, {})[right] = outcome
            document["masked"] = differing(changed)
        calls = {name: OPERATORS[name] for name in ("add", "subtract", "multiply", "greater_than")}
        calls["where"] = lambda left, right: left.where(pd.Series([True, False, True]), right)

        def outcome(call: Callable[..., Any], code: str, number: Any) -> str:
            left = column(code)
            sign = cell(call, left, number)
            return sign if sign in REFUSALS else f"{sign}:{call(left, number).tolist()[1]}"

        document["numbers"] = " ".join(map(str, NUMBERS))
        document["values"] = {
            code: {
                name: " ".join(outcome(call, code, number).replace(" ", "") for number in NUMBERS)
                for name, call in calls.items()
            }
            for code in codes
        }
    return document


def pandas() -> dict[str, Any]:
    """Measure columns of NumPy's dtypes."""
    return _document(nullable=False)


def pandas_nullable() -> dict[str, Any]:
    """Measure columns with a mask, whose dtypes are pandas' own."""
    return _document(nullable=True)


def pandas_mixed() -> dict[str, Any]:
    """Measure nullable columns with columns of NumPy's dtypes."""
    import numpy as np
    import pandas as pd

    from extract_oracles import tables

    nullable = {code.upper(): name_in_pandas(name, nullable=True) for code, name in NULLABLE_CODES.items()}
    columns = _Columns(CODES | nullable, with_missing=nullable)

    def is_mixed(*asked: str) -> bool:
        return 0 < sum(code in nullable for code in asked) < len(asked)

    pairs = [pair for pair in itertools.product(columns.names, repeat=2) if is_mixed(*pair)]
    with _quiet():
        made = {code: columns.column(code) for code in columns.names}
        found = columns.binary(made, pairs) | columns.replacing(pairs)
        found["concat function"] = {code: {} for code in columns.names}
        for left, right in pairs:
            found["concat function"][left][right] = columns.concat(left, right)
        return {
            "framework": "pandas-mixed",
            "version": pd.__version__,
            "numpy": np.__version__,
            "codes": columns.names,
            "formats": {code: name_of(made[code]) for code in nullable},
            "refusals": REFUSALS,
            "columns": " ".join(columns.names),
            "tables": tables(found, [*columns.names]),
            "triples": {
                f"{a} {b}": " ".join(columns.concat(a, b, c) if is_mixed(a, b, c) else "." for c in columns.names)
                for a, b in itertools.product(columns.names, repeat=2)
            },
        }


def _arrays(*, nullable: bool) -> dict[str, Any]:
    """Measure reductions, and functions of several Series."""
    import numpy as np
    import pandas as pd

    from extract_oracles import tables

    def make(value: Any, name: str) -> Any:
        if isinstance(value, list) and isinstance(value[0], list):
            return pd.DataFrame(value).astype(name_in_pandas(name, nullable=nullable))
        return pd.Series(value if isinstance(value, list) else [value], dtype=name_in_pandas(name, nullable=nullable))

    def arrays(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *columns: call(*(column.to_numpy() for column in columns))

    def dtype_of(result: Any) -> str:
        if isinstance(result, pd.DataFrame):
            result = result[0]
        return name_of(result if hasattr(result, "dtype") else np.asarray(result))

    codes = NULLABLE_CODES if nullable else CODES
    framework = Framework(
        codes=codes,
        reductions={name: getattr(pd.Series, name) for name in REDUCTIONS}
        | {"cumulative_sum": pd.Series.cumsum, "cumulative_prod": pd.Series.cumprod},
        several={
            "concat": lambda a, b: pd.concat([a, b]),
            "stack": lambda a, b: np.stack([a, b]),
            "diff": lambda a, b: np.diff(a, prepend=b),
            "vecdot": lambda a, b: a @ b,
            "matmul": lambda a, b: a.dot(b),
            "outer": np.outer,
            "cross": lambda a, b: np.cross(a, b),
            "tensordot": lambda a, b: np.tensordot(a, b, 1),
            "solve": np.linalg.solve,
        },
        make=make,
        dtype_of=dtype_of,
        floats=lambda result: np.asarray(result, "float64").tolist(),
    )
    with _quiet():
        found = measured(framework, {})
    return {
        "framework": "pandas-nullable" if nullable else "pandas",
        "version": pd.__version__,
        "codes": codes,
        "refusals": REFUSED,
        **found,
        "tables": tables(found["tables"], found["columns"].split()),
    }


def pandas_arrays() -> dict[str, Any]:
    """Measure whole columns of NumPy's dtypes."""
    return _arrays(nullable=False)


def pandas_nullable_arrays() -> dict[str, Any]:
    """Measure whole columns with a mask."""
    return _arrays(nullable=True)


def _casts(*, nullable: bool) -> dict[str, Any]:
    """Measure `astype`; a cast that raises has `.` as its cell, and `raising` has the numbers for which it raises."""
    import numpy as np
    import pandas as pd

    from oracle_casts import category, text

    raising: dict[str, set[str]] = {}

    def source(numbers: list[Any], name: str) -> Any:
        return pd.Series(np.array(numbers, name)).astype(name_in_pandas(name, nullable=nullable))

    def cast(column: Any, to: str) -> Any:
        try:
            return column.astype(name_in_pandas(to, nullable=nullable))
        except ValueError:  # raised for some values only
            raising.setdefault(f"{category(name_of(column))} {to}", set()).add(text(column.tolist()[0]))
            return None

    def values(column: Any) -> list[Any]:
        return ["."] if column is None else column.tolist()

    names = " ".join((NULLABLE_CODES if nullable else CODES).values())
    name = "pandas-nullable" if nullable else "pandas"
    with _quiet():
        document = measured_casts(name, pd.__version__, names, source, cast, values)
    return document | {"raising": {pair: " ".join(sorted(found)) for pair, found in sorted(raising.items())}}


def pandas_casts() -> dict[str, Any]:
    """Measure casts of columns of NumPy's dtypes."""
    return _casts(nullable=False)


def pandas_nullable_casts() -> dict[str, Any]:
    """Measure casts of columns with a mask."""
    return _casts(nullable=True)
