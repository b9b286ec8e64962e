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

from oracles import tables
from oracles.arrays import accumulations
from oracles.assignments import IN_PLACE, MORE_IN_PLACE, NUMBERS, TARGETS, Store, in_place, set_at
from oracles.casts import OWN, casts_document, category
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
    "i": ("invalid-operation", "^InvalidOperationError"),
    "c": ("compute", "^ComputeError"),
    "s": ("schema", "^SchemaError"),
    "h": ("shape", "^ShapeError"),
    "t": ("python-type", "^TypeError"),
    "o": ("overflow", "^OverflowError"),
    "v": ("python-value", "^ValueError"),
    "a": ("python-attribute", "^AttributeError"),
    "n": ("not-implemented", "^NotImplementedError"),
    "p": ("panic", "^PanicException"),
    "?": ("unknown-dtype", "^KeyError"),
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


def make(value: Any, name: str) -> Any:
    """Make a Series of a list of numbers."""
    wide = {"integer": pl.Int128, "float": pl.Float64}.get(category(name))
    try:
        return pl.Series("c", value, wide).cast(DTYPES[name])
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error


def shown(series: Any) -> Any:
    """Return the first element of a Series as a document has it."""
    return "null" if series[0] is None else series[0]


def _alone(call: Callable[[Any], Any], series: Any) -> Any:
    """Return the Series that an expression makes of another one."""
    return series.to_frame().select(r=call(pl.col(series.name)))["r"]


_METHODS = {ours: method for ours, method in tables.names(UNARY).items() if hasattr(pl.Expr, method)}
UNARY_CALLS = {name: operator.methodcaller(method) for name, method in _METHODS.items()} | UNARY_OPERATORS
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
POLARS = tables.Framework(
    "polars",
    pl.__version__,
    CODES,
    make,
    name_of=lambda series: _NAMES[series.dtype],
    numbers=pl.Series.to_list,
    reductions={name: partial(_alone, call) for name, call in UNARY_CALLS.items()},
)
FRAME = pl.DataFrame(POLARS.ones()).lazy()


def ran(call: tables.Call, *operands: Any) -> Any:
    """Return the Series that an expression makes."""
    return FRAME.select(r=call(*operands)).collect()["r"]


def promised(call: tables.Call, *operands: Any) -> Any:
    """Return an empty Series of the dtype that the schema promises."""
    return pl.Series([], dtype=FRAME.select(r=call(*operands)).collect_schema()["r"])


def concat(*operands: Any) -> Any:
    """Return concatenated columns."""
    frames = [FRAME.select(r=each).collect() for each in operands]
    return pl.concat(frames, how="vertical_relaxed")["r"]


def polars() -> dict[str, Any]:
    """Measure expressions and Series."""
    cell = tables.outcome(REFUSALS, POLARS.code_of)
    series = POLARS.ones()
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
    of_column: dict[str, tables.Call] = {
        "clip": lambda left, right: left.clip(right, right),
        "vecdot": lambda left, right: left.dot(right),
    }
    of_columns = {"stack": lambda left, right: pl.concat_list(left, right).list.first()}

    def operands(left: str, right: str) -> tuple[Any, Any]:
        chosen = bare if {left, right} - tables.SCALARS.keys() else literals
        return chosen[left], chosen[right]

    readings: dict[str, Callable[..., str]] = {
        "expression": lambda call, *keys: cell(ran, call, *operands(*keys)),
        "schema": lambda call, *keys: cell(promised, call, *operands(*keys)),
        "literal": lambda call, *keys: cell(ran, call, *map(literals.get, keys)),
    }
    every = {key: key for key in bare}
    every_pair = itertools.product(bare, repeat=2)
    asked = [pair for pair in every_pair if {*pair} - tables.SCALARS.keys() or "complex*" not in pair]
    measured = {
        reading: tables.grids(read, "expression", functions, every, asked)
        | tables.grids(read, "expression", of_column, every, itertools.product(CODES, bare))
        | tables.grids(read, "expression", of_columns, every, itertools.product(CODES, repeat=2))
        for reading, read in readings.items()
    }
    alone = tables.unary_cells(partial(cell, ran), UNARY_CALLS, literals)
    alone_promised = tables.unary_cells(partial(cell, promised), UNARY_CALLS, columns)
    cells = measured["expression"] | {
        "concat expression": tables.grid(cell, concat, columns),
        "unary expression": alone,
        **tables.grids(cell, "series", tables.WITHOUT_SHIFTS, series | tables.SCALARS),
    }
    returning_series = {name: call for name, call in UNARY_CALLS.items() if name not in TO_PYTHON}
    cells["unary series"] = tables.unary_cells(cell, returning_series, series)
    before = measured["expression"] | {f"{name} expression": {"unary": row} for name, row in alone.items()}
    schema = measured["schema"] | {f"{name} expression": {"unary": row} for name, row in alone_promised.items()}

    chained: dict[str, tables.Call] = {
        "maximum": partial(ran, pl.max_horizontal),
        "where": partial(ran, lambda a, b, c: pl.when(pl.lit(True)).then(a).when(pl.lit(True)).then(b).otherwise(c)),
        "concat": concat,
    }
    with_numbers = [key for key in bare if key != "complex*"]
    return POLARS.document(REFUSALS, bare, cells) | {
        "differing": {
            "schema": tables.differing(before, schema, "expression"),
            "literal": tables.differing(before, measured["literal"], "expression"),
        },
        "triples": {
            name: tables.triples(
                lambda *keys, call=call: cell(call, *map(literals.get, keys)),
                CODES if name == "concat" else with_numbers,
            )
            for name, call in chained.items()
        },
        "accumulates": accumulations(POLARS),
        **number_values(functions | of_column),
    }


def number_values(functions: dict[str, tables.Call]) -> dict[str, Any]:
    """Return what columns and Series of ones give with Python ints."""
    numbered: dict[str, tables.Call] = {
        **{name: functions[name] for name in ("add", "pow", "less_than", "bitwise_and", "maximum")},
        "where": lambda column, number: pl.when(pl.lit(False)).then(column).otherwise(number),
        "reversed add": lambda column, number: number + column,
        "reversed pow": lambda column, number: pl.lit(number) ** column,
        "clip": functions["clip"],
    }
    calls: dict[str, tables.Call] = {name: partial(ran, call) for name, call in numbered.items()}
    calls["series add"] = lambda column, number: POLARS.one(column.meta.output_name()) + number
    value = tables.outcome(REFUSALS, lambda series: f"{POLARS.code_of(series)}={shown(series)}")
    return tables.with_numbers(value, calls, {name: pl.col(code) for code, name in CODES.items()}, VALUES)


def polars_casts() -> dict[str, Any]:
    """Measure casts: one that is not strict makes null of a value, and a strict one raises an error, or neither."""

    def cast(series: Any, to: str) -> Any:
        found = series.cast(DTYPES[to], strict=False)
        try:
            series.cast(DTYPES[to])
        except pl.exceptions.InvalidOperationError:
            assert found.null_count() == len(found)
        else:
            assert found.null_count() == 0
        return found

    return casts_document(POLARS, cast, [name for name in (*OWN, "int128", "uint128") if name in DTYPES])


def polars_missing() -> dict[str, Any]:
    """Measure missing values of columns of numbers; `any` and `all` take Boolean columns."""

    def is_missing(call: tables.Call, series: Any) -> bool:
        is_logical = call in (POLARS.reductions["any"], POLARS.reductions["all"])
        return call(series.cast(pl.Boolean) if is_logical else series).null_count() > 0

    dtypes = {name: pl.Series([None], dtype=dtype).dtype for name, dtype in DTYPES.items()}
    return missing_document(POLARS, is_missing, dtypes, lambda dtype: pl.Series("c", [None], dtype=dtype))


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
    store = Store(POLARS, POLARS.one, POLARS.one, shown)
    # A Series has no operators for shifts.
    cells = store.cells(in_place(IN_PLACE | MORE_IN_PLACE, "bitwise_left_shift") | assignments)
    numbers = store.numbers(
        {name: assignments[name] for name in ("assign item", "assign mask")},
        (*TARGETS, "float64"),
        (*NUMBERS, 2**100, 2**127, 2**128),  # Polars has integers of 128 bits
    )
    return store.document(cells, numbers)


DOCUMENTS = tables.by_name(polars, polars_casts, polars_missing, assignment_polars)
if pl.__version__.startswith("1."):
    del DOCUMENTS["polars-missing"]
    DOCUMENTS = {name.replace("polars", "polars-1"): measure for name, measure in DOCUMENTS.items()}
