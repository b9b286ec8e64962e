"""Measure Polars; `extract_oracles.py polars` calls this module, and `polars-1` does so with Polars 1.

In addition to what `extract_oracles` describes, the document has:

    columns   `bool()`, `int*`, `float*` and `complex*` are Python numbers: bare next to a column, and in `pl.lit` next
              to another number
    values    {DTYPE: {OPERATION: cells}}: a column of ones with each Python int in `numbers`. A cell is the code of the
              result and its value, such as `u1=2` or `u1=null`, or the sign of a refusal. `reversed add` has the number
              on the left, and `series add` a Series instead of a column
    triples   {FUNCTION: {"A B": cells}}: three operands in one call, or in a chain of `when` and `then`
    accumulates  as in oracle_arrays

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

from oracle_arrays import PROBED_AS, Framework, accumulations

TYPES = {
    "b1": "Boolean",
    **{
        f"{sign}{bits // 8}": f"{name}{bits}"
        for sign, name in (("u", "UInt"), ("i", "Int"))
        for bits in (8, 16, 32, 64, 128)
    },
    **{f"f{bits // 8}": f"Float{bits}" for bits in (16, 32, 64)},
}
"""Polars' names of its types; Polars 1 lacks some of them."""
Table = dict[str, dict[str, str]]
"""{LEFT: {RIGHT: CELL}}, as in extract_oracles."""
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


def types_of(pl: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The types of the installed Polars and our names of them, by their codes."""
    theirs = {code: getattr(pl, name) for code, name in TYPES.items() if hasattr(pl, name)}
    return theirs, {code: TYPES[code].lower().removesuffix("ean") for code in theirs}


def polars() -> dict[str, Any]:
    """Measure the installed Polars."""
    import polars as pl

    from extract_oracles import OPERATORS, SCALARS, differing, pairs, tables

    operators = {name: call for name, call in OPERATORS.items() if "shift" not in name}  # columns have none

    theirs, codes = types_of(pl)
    series = {code: pl.Series(code, [1]).cast(dtype) for code, dtype in theirs.items()}
    frame = pl.DataFrame(list(series.values())).lazy()
    columns = {code: pl.col(code) for code in codes}
    bare = columns | SCALARS
    # Polars makes no literal of a complex number.
    literals = bare | {key: pl.lit(value) for key, value in SCALARS.items() if not isinstance(value, complex)}

    def cell(call: Callable[..., Any], *arguments: Any) -> str:
        """Return the cell of a call: the code of the dtype that it returns, or the sign of the exception."""
        try:
            found = call(*arguments)
        except BaseException as error:  # Polars panics with exceptions that are not of class Exception
            names = {base.__name__ for base in type(error).__mro__}
            return next(sign for sign, (_, name) in REFUSALS.items() if name in names)
        return next((code for code, dtype in theirs.items() if dtype == found), "?")

    def ran(call: Callable[..., Any], *operands: Any) -> Any:
        return frame.select(r=call(*operands)).collect()["r"]

    def dtype_ran(call: Callable[..., Any], *operands: Any) -> Any:
        return ran(call, *operands).dtype

    def dtype_promised(call: Callable[..., Any], *operands: Any) -> Any:
        return frame.select(r=call(*operands)).collect_schema()["r"]

    def dtype_of_series(call: Callable[..., Any], *operands: Any) -> Any:
        return call(*operands).dtype

    def concatenated(*operands: Any) -> Any:
        frames = [frame.select(r=each).collect() for each in operands]
        return pl.concat(frames, how="vertical_relaxed")["r"].dtype

    functions = {
        **operators,
        "maximum": pl.max_horizontal,
        "minimum": pl.min_horizontal,
        "atan2": pl.arctan2,
        "where": lambda left, right: pl.when(pl.lit(True)).then(left).otherwise(right),
    }
    of_columns = {
        "clip": lambda left, right: left.clip(right, right),
        "vecdot": lambda left, right: left.dot(right),
        "stack": lambda left, right: pl.concat_list(left, right).list.first(),
    }
    names = (name.partition(":") for name in UNARY.split())
    methods = {ours: method or ours for ours, _, method in names if hasattr(pl.Expr, method or ours)}
    unary = {name: operator.methodcaller(method) for name, method in methods.items()} | UNARY_OPERATORS

    measured: dict[str, Table] = {}
    promised: dict[str, Table] = {}
    of_literals: dict[str, Table] = {}
    for name, call in (functions | of_columns).items():
        for left, right in itertools.product(bare, repeat=2):
            numbers = {left, right} & SCALARS.keys()
            only_numbers = numbers == {left, right}
            if name in of_columns and (left in SCALARS or (name == "stack" and numbers)):
                continue
            if only_numbers and "complex*" in numbers:
                continue
            chosen = literals if only_numbers else bare
            operands = (call, chosen[left], chosen[right])
            answer = cell(dtype_ran, *operands)
            measured.setdefault(f"{name} expression", {}).setdefault(left, {})[right] = answer
            for other, found in (
                (promised, cell(dtype_promised, *operands)),
                (of_literals, cell(dtype_ran, call, literals[left], literals[right])),
            ):
                if found != answer:
                    other.setdefault(name, {}).setdefault(left, {})[right] = found
    measured["concat expression"] = {
        left: {right: cell(concatenated, columns[left], columns[right]) for right in codes} for left in codes
    }
    measured["unary expression"] = {
        name: {key: cell(dtype_ran, call, literals[key]) for key in bare} for name, call in unary.items()
    }
    for (name, call), key in itertools.product(unary.items(), codes):
        promise = cell(dtype_promised, call, columns[key])
        if promise != measured["unary expression"][name][key]:
            promised.setdefault(name, {}).setdefault("unary", {})[key] = promise
    of_series = series | SCALARS
    for name, call in operators.items():
        for left, right in pairs(of_series):
            answer = cell(dtype_of_series, call, of_series[left], of_series[right])
            measured.setdefault(f"{name} series", {}).setdefault(left, {})[right] = answer
    measured["unary series"] = {
        name: {key: cell(dtype_of_series, call, series[key]) for key in codes}
        for name, call in unary.items()
        if name not in TO_PYTHON
    }

    def valued(call: Callable[..., Any], *operands: Any) -> str:
        answer = cell(dtype_of_series, call, *operands)
        if answer not in codes:
            return answer
        value = call(*operands)[0]
        return f"{answer}={'null' if value is None else value}"

    numbered: dict[str, Callable[..., Any]] = {
        **{name: functions[name] for name in ("add", "pow", "less_than", "bitwise_and", "maximum")},
        "where": lambda column, number: pl.when(pl.lit(False)).then(column).otherwise(number),
        "reversed add": lambda column, number: number + column,
        "reversed pow": lambda column, number: pl.lit(number) ** column,
        "clip": of_columns["clip"],
    }
    chained: dict[str, Callable[..., Any]] = {
        "maximum": partial(dtype_ran, pl.max_horizontal),
        "where": partial(
            dtype_ran, lambda a, b, c: pl.when(pl.lit(True)).then(a).when(pl.lit(True)).then(b).otherwise(c)
        ),
        "concat": concatenated,
    }
    with_numbers = [key for key in bare if key != "complex*"]
    asked = {name: [*codes] if name == "concat" else with_numbers for name in chained}
    framework = Framework(
        codes=codes,
        reductions={name: partial(_alone, pl.col("c"), call) for name, call in unary.items()},
        several={},
        make=lambda value, name: pl.Series("c", value).cast(next(theirs[c] for c in codes if codes[c] == name)),
        dtype_of=lambda result: next(codes[code] for code, dtype in theirs.items() if dtype == result.dtype),
        floats=lambda result: result.to_list(),
    )
    return {
        "framework": "polars",
        "version": pl.__version__,
        "codes": codes,
        "refusals": {sign: reason for sign, (reason, _) in REFUSALS.items()},
        "columns": " ".join(bare),
        "tables": tables(measured, [*bare]),
        "differing": differing({"schema": promised, "literal": of_literals}),
        "triples": {
            name: {
                f"{a} {b}": " ".join(cell(call, literals[a], literals[b], literals[c]) for c in asked[name])
                for a, b in itertools.product(asked[name], repeat=2)
            }
            for name, call in chained.items()
        },
        "accumulates": {name: found for name in PROBED_AS if (found := accumulations(framework, name))},
        "numbers": " ".join(map(str, VALUES)),
        "values": {
            dtype: {
                **{
                    name: " ".join(valued(ran, call, columns[code], number) for number in VALUES)
                    for name, call in numbered.items()
                },
                "series add": " ".join(valued(operator.add, series[code], number) for number in VALUES),
            }
            for code, dtype in codes.items()
        },
    }


def _alone(column: Any, call: Callable[[Any], Any], series: Any) -> Any:
    """Return the Series that an expression makes of another one."""
    return series.to_frame().select(r=call(column))["r"]
