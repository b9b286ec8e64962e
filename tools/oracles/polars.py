"""Measure Polars: `pip install polars==2.1.0`; with `polars==1.30.0` the documents are `polars-1` and so on.

In addition to what the shared modules describe, the document has:

    columns   `bool()`, `int*`, `float*` and `complex*` are Python numbers: bare next to a column, and in `pl.lit` next
              to another number
    values    {DTYPE: {OPERATION: cells}}: a column of ones with each Python int in `numbers`. A cell is the code of the
              result and its value, such as `u1=2` or `u1=null`, or the sign of a refusal. `reversed add` has the number
              on the left, and `series add` a Series instead of a column
    triples   {FUNCTION: {"A B": cells}}: three operands in one call, or in a chain of `when` and `then`
    accumulates  as in `arrays`

The forms are "expression", which runs; "schema", in `differing`, with the cells in which `collect_schema` promises
something else; "literal", in `differing`, with the cells in which a number in `pl.lit` gives something else than a bare
one; and "series", for a Series and its operators and methods.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl

from oracles import casts, tables
from oracles.arrays import PROBED_AS, Framework, accumulations
from oracles.assignments import IN_PLACE, MORE_IN_PLACE, NUMBERS, TARGETS, Store, in_place, set_at
from oracles.casts import OWN, category
from oracles.missing import missing_document

_BITS = (8, 16, 32, 64, 128)
_TYPES = tables.names(
    " ".join(
        ("bool:Boolean", *(f"uint{bits}:UInt{bits}" for bits in _BITS), *(f"int{bits}:Int{bits}" for bits in _BITS))
    )
    + " float16:Float16 float32:Float32 float64:Float64"
)
"""Polars' names of its types by ours; Polars 1 lacks some of them."""
DTYPES = {name: getattr(pl, theirs) for name, theirs in _TYPES.items() if hasattr(pl, theirs)}
CODES = {"b1" if name == "bool" else f"{name[0]}{int(name.lstrip('uintfloa')) // 8}": name for name in DTYPES}
REFUSALS = {
    "i": ("invalid-operation", "InvalidOperationError"),
    "c": ("compute", "ComputeError"),
    "s": ("schema", "SchemaError"),
    "h": ("shape", "ShapeError"),
    "t": ("python-type", "TypeError"),
    "o": ("overflow", "OverflowError"),
    "v": ("python-value", "ValueError"),
    "a": ("python-attribute", "AttributeError"),
    "n": ("not-implemented", "NotImplementedError"),
    "p": ("panic", "PanicException"),
    "?": ("unknown-dtype", ""),
}
"""Each sign with its reason and the name of the exception."""
UNARY = (
    "abs round sign ceil floor trunc:truncate isfinite:is_finite isinf:is_infinite isnan:is_nan"
    " logical_not:not_ exp log log1p log10 sqrt sin cos tan asin:arcsin acos:arccos atan:arctan sinh cosh tanh"
    " asinh:arcsinh acosh:arccosh atanh:arctanh"
    " sum prod:product cumulative_sum:cum_sum cumulative_prod:cum_prod mean var std any all min max diff"
)
UNARY_OPERATORS: dict[str, Callable[[Any], Any]] = {
    "positive": operator.pos,
    "negative": operator.neg,
    "bitwise_not": operator.invert,
    "log2": lambda column: column.log(2),
}
TO_PYTHON = ("sum", "prod", "mean", "var", "std", "any", "all", "min", "max")
"""Methods of a Series that return a Python number."""
VALUES = sorted(
    {1, 100, 200, 1000, 40000, 2**24 + 1, 2**40, 2**53 + 1, 2**60 + 2**36 + 1}
    | {sign * 2**bits + more for bits in (7, 8, 15, 16, 31, 32, 63, 64, 127, 128) for sign, more in ((1, -1), (1, 0))}
    | {-(2**bits) - more for bits in (7, 15, 31, 63, 127) for more in (0, 1)}
    | {-1, -(2**64)}
)


def one(code: str) -> Any:
    """Make a Series of one 1, whose name is its code."""
    return pl.Series(code, [1]).cast(DTYPES[CODES[code]])


def name_of(series: Any) -> str:
    """Return our name of the dtype of a Series."""
    return next(name for name, dtype in DTYPES.items() if dtype == series.dtype)


def shown(series: Any) -> Any:
    """Return the first element of a Series as a document has it."""
    return "null" if series[0] is None else series[0]


def cell(call: tables.Call, *arguments: Any) -> str:
    """Return the cell of a call: the code of the dtype that it returns, or the sign of the exception."""
    try:
        found = call(*arguments)
    except BaseException as error:  # Polars panics with exceptions that are not of class Exception
        classes = {base.__name__ for base in type(error).__mro__}
        return next(sign for sign, (_, name) in REFUSALS.items() if name in classes)
    return next((code for code, name in CODES.items() if DTYPES[name] == found), "?")


FRAME = pl.DataFrame([one(code) for code in CODES]).lazy()


def ran(call: tables.Call, *operands: Any) -> Any:
    """Return the Series that an expression makes."""
    return FRAME.select(r=call(*operands)).collect()["r"]


def dtype_ran(call: tables.Call, *operands: Any) -> Any:
    """Return the dtype of that Series."""
    return ran(call, *operands).dtype


def dtype_promised(call: tables.Call, *operands: Any) -> Any:
    """Return the dtype that the schema promises."""
    return FRAME.select(r=call(*operands)).collect_schema()["r"]


def dtype_of_series(call: tables.Call, *operands: Any) -> Any:
    """Return the dtype of what a function of Series returns."""
    return call(*operands).dtype


def concatenated(*operands: Any) -> Any:
    """Return the dtype of concatenated columns."""
    frames = [FRAME.select(r=each).collect() for each in operands]
    return pl.concat(frames, how="vertical_relaxed")["r"].dtype


def polars() -> dict[str, Any]:
    """Measure expressions and Series."""
    series = {code: one(code) for code in CODES}
    columns = {code: pl.col(code) for code in CODES}
    bare = columns | tables.SCALARS
    # Polars makes no literal of a complex number.
    literals = bare | {key: pl.lit(value) for key, value in tables.SCALARS.items() if not isinstance(value, complex)}
    functions: dict[str, tables.Call] = {
        **tables.WITHOUT_SHIFTS,  # columns have none
        "maximum": pl.max_horizontal,
        "minimum": pl.min_horizontal,
        "atan2": pl.arctan2,
        "where": lambda left, right: pl.when(pl.lit(True)).then(left).otherwise(right),
    }
    of_columns: dict[str, tables.Call] = {
        "clip": lambda left, right: left.clip(right, right),
        "vecdot": lambda left, right: left.dot(right),
        "stack": lambda left, right: pl.concat_list(left, right).list.first(),
    }
    methods = {ours: method for ours, method in tables.names(UNARY).items() if hasattr(pl.Expr, method)}
    unary = {name: operator.methodcaller(method) for name, method in methods.items()} | UNARY_OPERATORS

    cells: dict[str, tables.Table] = {}
    promised: dict[str, tables.Table] = {}
    of_literals: dict[str, tables.Table] = {}

    def compare(other: dict[str, tables.Table], name: str, row: str, key: str, found: str, expected: str) -> None:
        if found != expected:
            other.setdefault(name, {}).setdefault(row, {})[key] = found

    for (name, call), left, right in itertools.product((functions | of_columns).items(), bare, bare):
        numbers = {left, right} & tables.SCALARS.keys()
        only_numbers = numbers == {left, right}
        if name in of_columns and (left in tables.SCALARS or (name == "stack" and numbers)):
            continue
        if only_numbers and "complex*" in numbers:
            continue
        chosen = literals if only_numbers else bare
        answer = cell(dtype_ran, call, chosen[left], chosen[right])
        cells.setdefault(f"{name} expression", {}).setdefault(left, {})[right] = answer
        promise = cell(dtype_promised, call, chosen[left], chosen[right])
        compare(promised, name, left, right, promise, answer)
        compare(of_literals, name, left, right, cell(dtype_ran, call, literals[left], literals[right]), answer)
    cells["concat expression"] = tables.grid(cell, concatenated, columns)
    cells["unary expression"] = tables.unary_cells(partial(cell, dtype_ran), unary, literals)
    for (name, call), key in itertools.product(unary.items(), CODES):
        promise = cell(dtype_promised, call, columns[key])
        compare(promised, name, "unary", key, promise, cells["unary expression"][name][key])
    of_series = partial(cell, dtype_of_series)
    cells |= tables.grids(of_series, "series", tables.WITHOUT_SHIFTS, series | tables.SCALARS)
    returning_series = {name: call for name, call in unary.items() if name not in TO_PYTHON}
    cells["unary series"] = tables.unary_cells(of_series, returning_series, series)

    chained: dict[str, tables.Call] = {
        "maximum": partial(dtype_ran, pl.max_horizontal),
        "where": partial(
            dtype_ran, lambda a, b, c: pl.when(pl.lit(True)).then(a).when(pl.lit(True)).then(b).otherwise(c)
        ),
        "concat": concatenated,
    }
    with_numbers = [key for key in bare if key != "complex*"]
    framework = Framework(
        codes=CODES,
        reductions={name: partial(_alone, call) for name, call in unary.items()},
        several={},
        make=lambda value, name: pl.Series("c", value).cast(DTYPES[name]),
        dtype_of=name_of,
        floats=lambda result: result.to_list(),
    )
    return tables.document("polars", pl.__version__, CODES, REFUSALS, bare, cells) | {
        "differing": tables.differing({"schema": promised, "literal": of_literals}),
        "triples": {
            name: tables.triples(
                lambda *keys, call=call: cell(call, *map(literals.get, keys)),
                CODES if name == "concat" else with_numbers,
            )
            for name, call in chained.items()
        },
        "accumulates": {name: found for name in PROBED_AS if (found := accumulations(framework, name))},
        "numbers": " ".join(map(str, VALUES)),
        "values": number_values(functions, of_columns["clip"]),
    }


def _alone(call: Callable[[Any], Any], series: Any) -> Any:
    """Return the Series that an expression makes of another one."""
    return series.to_frame().select(r=call(pl.col(series.name)))["r"]


def number_values(functions: dict[str, tables.Call], clip: tables.Call) -> dict[str, dict[str, str]]:
    """Return what columns and Series of ones give with Python ints."""
    numbered: dict[str, tables.Call] = {
        **{name: functions[name] for name in ("add", "pow", "less_than", "bitwise_and", "maximum")},
        "where": lambda column, number: pl.when(pl.lit(False)).then(column).otherwise(number),
        "reversed add": lambda column, number: number + column,
        "reversed pow": lambda column, number: pl.lit(number) ** column,
        "clip": clip,
    }
    calls: dict[str, tables.Call] = {name: partial(_ran_on, call) for name, call in numbered.items()}
    calls["series add"] = lambda code, number: one(code) + number

    def value(call: tables.Call, code: str, number: int) -> str:
        answer = cell(dtype_of_series, call, code, number)
        return f"{answer}={shown(call(code, number))}" if answer in CODES else answer

    return tables.number_cells(value, calls, {name: code for code, name in CODES.items()}, VALUES)


def _ran_on(call: tables.Call, code: str, number: int) -> Any:
    return ran(call, pl.col(code), number)


def polars_casts() -> dict[str, Any]:
    """Measure casts: one that is not strict makes null of a value, and a strict one raises an error, or neither."""
    dtypes = {name: DTYPES[name] for name in (*OWN, "int128", "uint128") if name in DTYPES}
    wide = {"bool": pl.Boolean, "integer": pl.Int128, "float": pl.Float64}

    def source(numbers: list[Any], name: str) -> Any:
        try:
            return pl.Series(numbers, dtype=wide[category(name)]).cast(dtypes[name])
        except pl.exceptions.PolarsError as error:
            raise ValueError(str(error)) from error

    def cast(series: Any, to: str) -> Any:
        found = series.cast(dtypes[to], strict=False)
        try:
            series.cast(dtypes[to])
        except pl.exceptions.InvalidOperationError:
            assert found.null_count() == len(found)
        else:
            assert found.null_count() == 0
        return found

    return casts.measured("polars", pl.__version__, dtypes, source, cast, pl.Series.to_list)


def polars_missing() -> dict[str, Any]:
    """Measure missing values of columns of numbers; `any` and `all` take Boolean columns."""

    def is_missing(method: str, series: Any) -> bool:
        frame = pl.DataFrame({"a": series.cast(pl.Boolean) if method in ("any", "all") else series})
        return frame.select(getattr(pl.col("a"), method)())["a"].null_count() > 0

    dtypes = {name: pl.Series([None], dtype=dtype).dtype for name, dtype in DTYPES.items()}
    own = "prod:product cumulative_sum:cum_sum cumulative_prod:cum_prod"
    return missing_document(
        "polars", pl.__version__, is_missing, own, dtypes, lambda dtype: pl.Series([None], dtype=dtype)
    )


def assignment_polars() -> dict[str, Any]:
    """Measure Series, for which `a += b` makes a new one, and cells of a DataFrame."""

    def set_in_frame(series: Any, value: Any) -> Any:
        frame = series.to_frame()
        frame[0, series.name] = value
        return frame[series.name]

    assignments = {
        "assign item": set_at(0),
        "assign indices": set_at([0]),
        "assign mask": set_at(pl.Series([True])),
        "assign frame": set_in_frame,
    }
    store = Store(CODES, one, one, name_of, shown)
    # A Series has no operators for shifts.
    cells = store.cells(in_place(IN_PLACE | MORE_IN_PLACE, "bitwise_left_shift") | assignments)
    numbers = store.numbers(
        {name: assignments[name] for name in ("assign item", "assign mask")},
        (*TARGETS, "float64"),
        (*NUMBERS, 2**100, 2**127, 2**128),  # Polars has integers of 128 bits
    )
    return store.document("polars", pl.__version__, cells, numbers)


DOCUMENTS = tables.by_name(polars, polars_casts, polars_missing, assignment_polars)
if pl.__version__.startswith("1."):
    del DOCUMENTS["polars-missing"]
    DOCUMENTS = {name.replace("polars", "polars-1"): measure for name, measure in DOCUMENTS.items()}
