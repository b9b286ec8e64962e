"""Measure PyArrow: `pip install pyarrow==26.0.1 numpy`.

In addition to what the shared modules describe, the documents have:

    triples    tables of three arrays, with a row "LEFT MIDDLE" for each pair
    scalars    {FORM: cells}: how many cells differ if one of the two arrays is a scalar of PyArrow
    nulls      {FORM: cells}: how many cells differ if arrays hold a null, or nothing else
    numbers    Python numbers
    values     {LEFT: {OPERATION: cells}}: the result of each number as right operand, as "CODE:VALUE", `!` if it is out
               of range, or `-` for other refusals. The left operand is an array of one 1, or for `int*` a Python 1
    quotients  {"LEFT RIGHT": the quotient}, of int64
    safe       {SOURCE: {TARGET: TEXT}}: for each value `=` if a safe cast gives what `casts` has, `!` if it raises, `.`
               if the source does not hold the value; one word for all values, as in `casts`. An operation casts its
               operands safely
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oracles import tables
from oracles.arrays import arrays_document
from oracles.assignments import IN_PLACE, Store, in_place
from oracles.casts import VALUES, casts_document, category, text
from oracles.missing import missing_document

CODES = tables.codes(f"{tables.INTEGERS} f2 f4 f8")
_BINARY = (
    "add subtract multiply divide remainder:modulo pow:power atan2 hypot"
    " maximum:max_element_wise minimum:min_element_wise fmax:max_element_wise fmin:min_element_wise"
    " equal not_equal less less_equal greater greater_equal logical_and:and_ logical_or:or_ logical_xor:xor"
    " bitwise_and:bit_wise_and bitwise_or:bit_wise_or bitwise_xor:bit_wise_xor"
    " bitwise_left_shift:shift_left bitwise_right_shift:shift_right result_type:coalesce"
)
_UNARY = (
    "negative:negate abs sign round ceil floor trunc isfinite:is_finite isinf:is_inf isnan:is_nan"
    " bitwise_invert:bit_wise_not logical_not:invert exp expm1 log:ln log1p log2 log10 sqrt"
    " sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
)
_REDUCTIONS = "sum prod:product cumulative_sum cumulative_prod mean var:variance std:stddev any all min max"
_OPERATORS = (
    "add subtract multiply divide pow bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
)
"""The operators of arrays: `==` compares whole arrays, and the others are missing."""
REFUSALS = {
    "k": ("no-kernel", "has no kernel matching input types"),
    "t": ("no-type", "Got unexpected argument type <class 'complex'>"),
    "o": ("no-operator", "unsupported operand type|bad operand type"),
    "m": ("no-merge", "Unable to merge"),
}
OUT_OF_RANGE = {
    "!": ("out of range", "Got unexpected argument type <class 'int'>|not in range"),
    "-": ("refused", ""),
}
QUOTIENTS = ((7, 2), (-7, 2), (7, -2), (-7, -2), (-6, 3), (2**60 + 1, 1), (-(2**60) - 1, 2))
NUMBERS: tuple[Any, ...] = (
    *(-1, 256, 1000, 40000, 2**24, 2**24 + 1, 2**31, 2**40, 2**53, 2**53 + 1, 2**60, 2**63 - 1, 2**63),
    *(-(2**63), -(2**63) - 1, 0.1, 70000.0, 1e39, 1e300),
)


def type_of(name: str) -> Any:
    """Return the type of a name in `CODES`."""
    return getattr(pa, {"bool": "bool_"}.get(name, name))()


def make(value: Any, name: str) -> Any:
    """Make an array of lists of numbers, which always has one dimension, or a scalar of a number."""
    array = pa.array(np.array(value, name).reshape(-1), type_of(name))
    return array if isinstance(value, list) else array[0]


def name_of(result: Any) -> str:
    """Return the name of the type of a result."""
    return next(name for name in CODES.values() if type_of(name) == result.type)


def first(result: Any) -> Any:
    """Return the first element of an array, or a scalar, as a Python number."""
    return (result if isinstance(result, pa.Scalar) else result[0]).as_py()


def where(left: Any, right: Any) -> Any:
    """Choose the left operand."""
    return pc.if_else(make([True], "bool"), left, right)


def concat(*columns: Any) -> Any:
    """Concatenate the columns of tables."""
    return pa.concat_tables([pa.table({"x": each}) for each in columns], promote_options="permissive")["x"]


PYARROW = tables.Framework(
    "pyarrow",
    pa.__version__,
    CODES,
    make,
    name_of,
    numbers=lambda result: result.as_py() if isinstance(result, pa.Scalar) else result.to_pylist(),
    reductions=tables.named(pc, _REDUCTIONS),
    several={"concat": concat},
)


def pyarrow() -> dict[str, Any]:
    """Measure the compute functions and the operators of arrays."""
    cell = tables.outcome(REFUSALS, PYARROW.code_of)
    arrays = PYARROW.ones()
    other_forms = {
        "scalars": {code: array[0] for code, array in arrays.items()},
        "nulls": {code: pa.nulls(1, array.type) for code, array in arrays.items()},
    }
    operands = arrays | tables.SCALARS
    functions = tables.named(pc, _BINARY) | {"where": where}
    operators = {name: tables.OPERATORS[name] for name in _OPERATORS.split()}
    cells = tables.grids(cell, "function", functions, operands, itertools.product(operands, repeat=2))
    cells |= tables.grids(cell, "operator", operators, operands)
    differing = {
        what: {
            form: tables.count_differing(
                cell, form, calls, cells, [(arrays, others), (others, arrays), (others, others)]
            )
            for form, calls in {"function": functions, "operator": operators}.items()
        }
        for what, others in other_forms.items()
    }
    # `pairwise_diff` needs an array.
    unary = tables.unary_cells(cell, tables.named(pc, _UNARY), operands)
    cells["unary function"] = unary | tables.unary_cells(cell, {"diff": pc.pairwise_diff}, arrays)
    cells["unary operator"] = tables.unary_cells(cell, tables.named(operator, "abs negative:neg"), arrays)
    joins = tables.named(pc, "result_type:coalesce maximum:max_element_wise") | {"concat": concat}
    triples = tables.triple_tables(cell, joins, arrays, arrays, arrays)
    return PYARROW.document(REFUSALS, operands, cells) | {
        "triples": tables.as_text(triples, CODES),
        **differing,
        "quotients": {f"{a} {b}": first(pc.divide(make([a], "int64"), make([b], "int64"))) for a, b in QUOTIENTS},
        **number_values({code: array for code, array in arrays.items() if code not in ("b1", "f2")}),
    }


def number_values(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Python numbers become next to ones."""
    calls = tables.named(pc, "multiply greater atan2") | {"where": lambda left, right: where(right, left)}
    value = tables.outcome(OUT_OF_RANGE, lambda result: f"{PYARROW.code_of(result)}:{first(result)}")
    return tables.with_numbers(value, calls, {**arrays, "int*": 1}, NUMBERS)


def pyarrow_arrays() -> dict[str, Any]:
    """Measure functions of whole arrays, which have one dimension, so that there are no products of matrices."""
    return arrays_document(PYARROW)


def pyarrow_casts() -> dict[str, Any]:
    """Measure unsafe casts, and which values safe casts accept."""
    found = casts_document(PYARROW, lambda array, name: array.cast(type_of(name), safe=False))

    def safe_cell(number: Any, name: str, target: str, unsafe: str) -> str:
        if unsafe == ".":
            return "."
        try:
            result = make([number], name).cast(type_of(target))
        except pa.ArrowInvalid:
            return "!"
        return "=" if text(first(result)) in unsafe.split("|") else "?"

    def safe_cells(name: str, target: str, cells: str) -> str:
        if cells == "refused":
            return cells
        numbers = zip(VALUES[category(name)], cells.split(), strict=True)
        return "".join(safe_cell(number, name, target, unsafe) for number, unsafe in numbers)

    safe = {
        name: {target: safe_cells(name, target, cells) for target, cells in row.items()}
        for name, row in found["casts"].items()
    }
    return found | {"safe": safe}


def pyarrow_missing() -> dict[str, Any]:
    """Measure missing values of numbers; `any` and `all` take bool arrays."""

    def is_missing(function: tables.Call, array: Any) -> bool:
        result = function(array.cast(pa.bool_()) if function in (pc.any, pc.all) else array)
        return pa.array([result.as_py()] if isinstance(result, pa.Scalar) else result).null_count > 0

    dtypes = {name: type_of(name) for name in CODES.values()}
    return missing_document(PYARROW, is_missing, dtypes, lambda dtype: pa.array([None], dtype))


def assignment_pyarrow() -> dict[str, Any]:
    """Measure writes: arrays are immutable, `a += b` makes an array, and `fill_null` replaces nulls."""
    assignment = {"assign item": lambda array, value: pc.fill_null(pa.nulls(1, array.type), value)}
    store = Store(PYARROW, PYARROW.one, PYARROW.one, first)
    # There are no operators `//` and `%`.
    cells = store.cells(in_place(IN_PLACE, "floor_divide", "remainder") | assignment)
    return store.document(cells, store.numbers(assignment))


DOCUMENTS = tables.by_name(pyarrow, pyarrow_arrays, pyarrow_casts, pyarrow_missing, assignment_pyarrow)
