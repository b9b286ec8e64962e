"""Measure PyArrow; `extract_oracles.py pyarrow`, `pyarrow-arrays` and `pyarrow-casts` call this module.

In addition to what the other modules describe, the documents have:

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
import re
from collections.abc import Callable, Mapping
from typing import Any

from oracle_arrays import REFUSED, Framework, measured
from oracle_casts import VALUES, category, text
from oracle_casts import measured as measured_casts

CODES = {
    "b1": "bool", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "f2": "float16", "f4": "float32", "f8": "float64",
}  # fmt: skip
_TYPES = {"bool": "bool_"}
"""PyArrow's own names, where they differ."""
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
    " sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh diff:pairwise_diff"
)
_REDUCTIONS = "sum prod:product cumulative_sum cumulative_prod mean var:variance std:stddev any all min max"
_OPERATORS = (
    "add subtract multiply divide pow bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
)
"""The operators of arrays: `==` compares whole arrays, and the others are missing."""
_JOINS = "result_type:coalesce maximum:max_element_wise"
REFUSALS = {
    "k": ("no-kernel", "has no kernel matching input types"),
    "t": ("no-type", "Got unexpected argument type <class 'complex'>"),
    "o": ("no-operator", "unsupported operand type|bad operand type"),
    "m": ("no-merge", "Unable to merge"),
}
"""Each sign with its reason and a pattern for the message; the first pattern that matches counts."""
OUT_OF_RANGE = "Got unexpected argument type <class 'int'>|not in range"
QUOTIENTS = ((7, 2), (-7, 2), (7, -2), (-7, -2), (-6, 3), (2**60 + 1, 1), (-(2**60) - 1, 2))
NUMBERS: tuple[Any, ...] = (
    *(
        -1,
        256,
        1000,
        40000,
        2**24,
        2**24 + 1,
        2**31,
        2**40,
        2**53,
        2**53 + 1,
        2**60,
        2**63 - 1,
        2**63,
        -(2**63),
        -(2**63) - 1,
    ),
    *(0.1, 70000.0, 1e39, 1e300),
)


def _named(names: str) -> dict[str, Any]:
    import pyarrow.compute as pc

    pairs = (name.partition(":") for name in names.split())
    return {ours: getattr(pc, theirs or ours) for ours, _, theirs in pairs}


def type_of(name: str) -> Any:
    """The type of a name in `CODES`."""
    import pyarrow as pa

    return getattr(pa, _TYPES.get(name, name))()


def make(value: Any, name: str) -> Any:
    """Make an array of lists of numbers, which always has one dimension, or a scalar of a number."""
    import numpy as np
    import pyarrow as pa

    array = pa.array(np.array(value).astype(name).reshape(-1), type_of(name))
    return array if isinstance(value, list) else array[0]


def name_of(result: Any) -> str:
    """Return the name of the type of a result."""
    return next(name for name in CODES.values() if type_of(name) == result.type)


def where(left: Any, right: Any) -> Any:
    """Choose the left operand."""
    import pyarrow.compute as pc

    return pc.if_else(make([True], "bool"), left, right)


def concat(left: Any, *others: Any) -> Any:
    """Concatenate the columns of tables."""
    import pyarrow as pa

    tables = [pa.table({"x": each}) for each in (left, *others)]
    return pa.concat_tables(tables, promote_options="permissive")["x"]


def _attempt(call: Callable[..., Any], *operands: Any) -> str:
    """Return the code of the type of a result, or the sign of a refusal."""
    try:
        name = name_of(call(*operands))
    except Exception as error:  # PyArrow refuses with many kinds of exceptions
        message = str(error)
        found = [sign for sign, (_, pattern) in REFUSALS.items() if re.search(pattern, message)]
        if not found:
            raise ValueError(f"no pattern in REFUSALS matches: {message!r}") from error
        return found[0]
    return next(code for code, dtype in CODES.items() if dtype == name)


def _differing(calls: Mapping[str, Callable[..., Any]], tables: Mapping[str, Any], *forms: Mapping[str, Any]) -> int:
    """Return how many cells of two arrays differ if they have other forms."""
    different, first = 0, forms[0]
    for name, call in calls.items():
        for left, right in itertools.product(CODES, repeat=2):
            for one, other in itertools.product(forms, repeat=2):
                if not (one is other is first):
                    different += _attempt(call, one[left], other[right]) != tables[name][left][right]
    return different


def pyarrow() -> dict[str, Any]:
    """Measure the compute functions and the operators of arrays."""
    import pyarrow as pa

    from extract_oracles import OPERATORS, SCALARS, UNARY_OPERATORS, pairs, tables

    keys = [*CODES, *SCALARS]
    arrays = {code: make([1], name) for code, name in CODES.items()}
    scalars = {code: array[0] for code, array in arrays.items()}
    nulls = {code: pa.nulls(1, array.type) for code, array in arrays.items()}
    operands = arrays | SCALARS
    functions = _named(_BINARY) | {"where": where}
    operators = {name: OPERATORS[name] for name in _OPERATORS.split()}
    found: dict[str, dict[str, dict[str, str]]] = {}
    differing: dict[str, dict[str, int]] = {"scalars": {}, "nulls": {}}
    for form, calls in {"function": functions, "operator": operators}.items():
        plain: dict[str, dict[str, dict[str, str]]] = {}
        for name, call in calls.items():
            table = plain[name] = {key: {} for key in keys}
            both = itertools.product(SCALARS, repeat=2) if form == "function" else ()
            for left, right in [*pairs(operands), *both]:
                table[left][right] = _attempt(call, operands[left], operands[right])
        found |= {f"{name} {form}": table for name, table in plain.items()}
        differing["nulls"][form] = _differing(calls, plain, arrays, nulls)
        differing["scalars"][form] = _differing(calls, plain, arrays, scalars)
    found["unary function"] = {
        # `pairwise_diff` needs an array.
        name: {key: _attempt(call, operands[key]) for key in (CODES if name == "diff" else keys)}
        for name, call in _named(_UNARY).items()
    }
    found["unary operator"] = {
        name: {code: _attempt(UNARY_OPERATORS[name], array) for code, array in arrays.items()}
        for name in ("abs", "negative")
    }
    joins = _named(_JOINS) | {"concat": concat}
    triples = {
        f"{name} function": {
            f"{a} {b}": {c: _attempt(call, arrays[a], arrays[b], arrays[c]) for c in CODES}
            for a, b in itertools.product(CODES, repeat=2)
        }
        for name, call in joins.items()
    }
    return {
        "framework": "pyarrow",
        "version": pa.__version__,
        "codes": CODES,
        "refusals": {sign: reason for sign, (reason, _) in REFUSALS.items()},
        "columns": " ".join(keys),
        "tables": tables(found, keys),
        "triples": tables(triples, [*CODES]),
        **differing,
        "quotients": {
            f"{a} {b}": functions["divide"](make([a], "int64"), make([b], "int64"))[0].as_py() for a, b in QUOTIENTS
        },
        "numbers": " ".join(map(str, NUMBERS)),
        "values": _values({code: array for code, array in arrays.items() if code not in ("b1", "f2")} | {"int*": 1}),
    }


def _values(left: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return what Python numbers become next to ones."""
    import pyarrow as pa

    calls = _named("multiply greater atan2") | {"where": lambda one, other: where(other, one)}

    def outcome(call: Callable[..., Any], one: Any, number: Any) -> str:
        try:
            result = call(one, number)
        except Exception as error:  # PyArrow refuses with many kinds of exceptions
            return "!" if re.search(OUT_OF_RANGE, str(error)) else "-"
        code = next(code for code, name in CODES.items() if name == name_of(result))
        return f"{code}:{(result if isinstance(result, pa.Scalar) else result[0]).as_py()}"

    return {
        key: {name: " ".join(outcome(call, one, number) for number in NUMBERS) for name, call in calls.items()}
        for key, one in left.items()
    }


def pyarrow_arrays() -> dict[str, Any]:
    """Measure functions of whole arrays, which have one dimension, so that there are no products of matrices."""
    import pyarrow as pa

    from extract_oracles import SCALARS, tables

    framework = Framework(
        codes=CODES,
        reductions=_named(_REDUCTIONS),
        several={"concat": concat},
        make=make,
        dtype_of=name_of,
        floats=lambda result: result.to_pylist() if isinstance(result, pa.Array) else result.as_py(),
    )
    found = measured(framework, SCALARS)
    return {
        "framework": "pyarrow",
        "version": pa.__version__,
        "codes": CODES,
        "refusals": REFUSED,
        **found,
        "tables": tables(found["tables"], found["columns"].split()),
    }


def pyarrow_casts() -> dict[str, Any]:
    """Measure unsafe casts, and which values safe casts accept."""
    import numpy as np
    import pyarrow as pa

    def source(numbers: list[Any], name: str) -> Any:
        return pa.array(np.array(numbers, name), type_of(name))

    def cast(array: Any, name: str) -> Any:
        return array.cast(type_of(name), safe=False)

    document = measured_casts(
        "pyarrow", pa.__version__, " ".join(CODES.values()), source, cast, lambda array: array.to_pylist()
    )

    def outcome(number: Any, name: str, target: str, cell: str) -> str:
        if cell == ".":
            return "."
        try:
            found = source([number], name).cast(type_of(target))
        except pa.ArrowInvalid:
            return "!"
        return "=" if text(found[0].as_py()) in cell.split("|") else "?"

    document["safe"] = {
        name: {
            target: cells
            if cells == "refused"
            else "".join(
                outcome(number, name, target, cell)
                for number, cell in zip(VALUES[category(name)], cells.split(), strict=True)
            )
            for target, cells in row.items()
        }
        for name, row in document["casts"].items()
    }
    return document
