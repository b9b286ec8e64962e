"""What the measurements of all frameworks share: operands, calls, cells, and the document that holds them.

A document of calls with one or two operands has:

    framework, version
    codes      {CODE: DTYPE}: a short name for each dtype
    refusals   {SIGN: REASON}: what the sign of a refusal stands for
    columns    the operands, in the order of the cells of a row
    tables     a list of tables. `measured` lists the operations and forms ("add function") with these results. `rows`
               has a row for each left operand, with a cell for each column. Operations with one operand share a table,
               which has a row for each operation
    differing  {FORM: {OPERATIONS: {LEFT: "RIGHT=CELL ..."}}}: forms that mostly agree with the form in their name
               ("static function" with "function"); only the cells that differ are listed
    values     {"TYPE,VALUE": {OPERATION: outcome}}: Python scalars that the type cannot hold

An operand is a code for a tensor with a dimension, `code[]` for a zero-dimensional tensor, or `bool()`, `int*`,
`float*` or `complex*` for a Python scalar. Every value is one. A cell is the code of the result, the sign of a refusal,
`(code)` if only the kernel for the promoted type is missing, `()` if the promoted type is unknown, too, or `.` if the
cell was not measured. A table without rows for Python scalars belongs to a function that accepts no Python scalars.
"""

from __future__ import annotations

import itertools
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Call = Callable[..., Any]
Table = dict[str, dict[str, str]]
"""{LEFT: {RIGHT: CELL}}, or {OPERATION: {OPERAND: CELL}} for operations with one operand."""


def names(text: str) -> dict[str, str]:
    """Return {OUR NAME: THEIR NAME} of a list of `name` or `our_name:their_name`."""
    return {ours: theirs or ours for ours, _, theirs in (name.partition(":") for name in text.split())}


def named(module: Any, text: str) -> dict[str, Call]:
    """Return the functions of a module by our names, from such a list; their names may have dots."""
    return {ours: operator.attrgetter(theirs)(module) for ours, theirs in names(text).items()}


_FORMATS = names(
    "b1:bool u1:uint8 u2:uint16 u4:uint32 u8:uint64 i1:int8 i2:int16 i4:int32 i8:int64"
    " f2:float16 f4:float32 f8:float64 bf:bfloat16 c8:complex64 c16:complex128 e4m3fn:float8_e4m3fn e5m2:float8_e5m2"
)
INTEGERS = "b1 u1 u2 u4 u8 i1 i2 i4 i8"


def codes(text: str) -> dict[str, str]:
    """Return {CODE: DTYPE} of a list of codes."""
    return {code: _FORMATS[code] for code in text.split()}


SCALARS: dict[str, Any] = {"bool()": True, "int*": 1, "float*": 1.0, "complex*": 1 + 0j}
OPERATORS = named(
    operator,
    "add subtract:sub multiply:mul divide:truediv floor_divide:floordiv remainder:mod pow"
    " equal:eq not_equal:ne less_than:lt less_equal:le greater_than:gt greater_equal:ge"
    " bitwise_and:and_ bitwise_or:or_ bitwise_xor:xor bitwise_left_shift:lshift bitwise_right_shift:rshift",
)
WITHOUT_SHIFTS = {name: call for name, call in OPERATORS.items() if "shift" not in name}
UNARY_OPERATORS = named(operator, "abs negative:neg positive:pos bitwise_not:invert")
# NumPy's functions, which pandas' columns take, too.
NUMPY_FUNCTIONS = (
    "add subtract multiply divide:true_divide floor_divide remainder pow:power maximum minimum fmax fmin"
    " atan2:arctan2 hypot copysign nextafter logaddexp"
    " equal not_equal less_than:less less_equal greater_than:greater greater_equal logical_and logical_or logical_xor"
    " bitwise_and bitwise_or bitwise_xor bitwise_left_shift:left_shift bitwise_right_shift:right_shift"
)
NUMPY_UNARY = (
    "positive negative square round sign conj:conjugate ceil floor trunc abs:absolute real imag isfinite isinf isnan"
    " signbit bitwise_not:invert logical_not exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan asin:arcsin"
    " acos:arccos atan:arctan sinh cosh tanh asinh:arcsinh acosh:arccosh atanh:arctanh"
)


def code_of(codes: Mapping[str, str], name: str) -> str:
    """Return the code of the name of a dtype."""
    return next(code for code, each in codes.items() if each == name)


def operands_of(keys: Iterable[str], make: Callable[[str], Any]) -> dict[str, Any]:
    """Return the operands of some keys: Python scalars, and what `make` makes of the other keys."""
    return {key: SCALARS[key] if key in SCALARS else make(key) for key in keys}


def pairs(keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield all ordered pairs, except for two Python scalars, which Python itself would combine."""
    return ((left, right) for left, right in itertools.product([*keys], repeat=2) if {left, right} - SCALARS.keys())


def sign_of(error: BaseException, refusals: Mapping[str, tuple[str, str]]) -> str:
    """Return the sign of a refusal.

    Args:
        error: what the framework raised.
        refusals: for each sign the reason, and a pattern for the message; the first pattern that matches counts.
    """
    for sign, (_, pattern) in refusals.items():
        if re.search(pattern, str(error)):
            return sign
    raise ValueError(f"no pattern of a refusal matches {str(error)!r}") from error


def outcome(refusals: Mapping[str, tuple[str, str]], code_of: Callable[[Any], str]) -> Callable[..., str]:
    """Return a function that calls a function, and returns the cell of the result.

    Args:
        refusals: as in `sign_of`.
        code_of: returns the cell of a result.
    """

    def cell(call: Call, *arguments: Any) -> str:
        try:
            result = call(*arguments)
        except Exception as error:  # frameworks refuse with many kinds of exceptions
            return sign_of(error, refusals)
        return code_of(result)

    return cell


def grid(
    cell: Callable[..., str], call: Call, values: Mapping[str, Any], asked: Iterable[tuple[str, str]] | None = None
) -> Table:
    """Return the cells of a call with two operands; None stands for all pairs."""
    table: Table = {}
    for left, right in pairs(values) if asked is None else asked:
        table.setdefault(left, {})[right] = cell(call, values[left], values[right])
    return table


def grids(
    cell: Callable[..., str],
    form: str,
    calls: Mapping[str, Call],
    values: Mapping[str, Any],
    asked: Iterable[tuple[str, str]] | None = None,
) -> dict[str, Table]:
    """Return the cells of all calls of a form, as {OPERATION AND FORM: cells}."""
    every = None if asked is None else [*asked]
    return {f"{name} {form}": grid(cell, call, values, every) for name, call in calls.items()}


def unary_cells(cell: Callable[..., str], calls: Mapping[str, Call], values: Mapping[str, Any]) -> Table:
    """Return the cells of calls with one operand."""
    return {name: {key: cell(call, value) for key, value in values.items()} for name, call in calls.items()}


def triples(cell: Callable[[str, str, str], str], keys: Iterable[str]) -> dict[str, str]:
    """Return {"LEFT MIDDLE": cells} with a cell for each third key; `cell` returns the cell of three keys."""
    every = [*keys]
    return {f"{a} {b}": " ".join(cell(a, b, c) for c in every) for a, b in itertools.product(every, repeat=2)}


def triple_tables(
    cell: Callable[..., str],
    calls: Mapping[str, Call],
    lefts: Mapping[str, Any],
    middles: Mapping[str, Any],
    rights: Mapping[str, Any],
) -> dict[str, Table]:
    """Return the cells of functions of three operands, with a row "LEFT MIDDLE" for each pair."""
    rows = [*itertools.product(lefts, middles)]
    return {
        f"{name} function": {
            f"{a} {b}": {c: cell(call, lefts[a], middles[b], right) for c, right in rights.items()} for a, b in rows
        }
        for name, call in calls.items()
    }


def count_differing(
    cell: Callable[..., str],
    form: str,
    calls: Mapping[str, Call],
    measured: Mapping[str, Table],
    variants: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> int:
    """Return how many measured cells of a form differ for other operands.

    Args:
        cell: returns the cell of a call.
        form: the form.
        calls: the calls with two operands.
        measured: the cells, by operation and form.
        variants: the other left and right operands, by the keys of the measured ones.
    """
    return sum(
        cell(call, lefts[left], rights[right]) != measured[f"{name} {form}"][left][right]
        for (name, call), (lefts, rights) in itertools.product(calls.items(), variants)
        for left, right in itertools.product(lefts, rights)
    )


def number_cells(
    cell: Callable[[Call, Any, Any], str], calls: Mapping[str, Call], lefts: Mapping[str, Any], numbers: Iterable[Any]
) -> dict[str, dict[str, str]]:
    """Return {LEFT: {OPERATION: cells}}, with a cell for each number as the right operand."""
    return {
        key: {name: " ".join(cell(call, left, number) for number in numbers) for name, call in calls.items()}
        for key, left in lefts.items()
    }


def together(rows_of: Mapping[str, Mapping[str, str]]) -> list[tuple[list[str], dict[str, str]]]:
    """Return each set of rows once, with the names that have it."""
    found: dict[str, list[str]] = {}
    for name, rows in rows_of.items():
        found.setdefault(json.dumps(rows), []).append(name)
    return [(named, json.loads(rows)) for rows, named in found.items()]


def as_text(measured: Mapping[str, Table], columns: Iterable[str]) -> list[dict[str, Any]]:
    """Return the measured tables as text, operations with the same table together."""
    keys = [*columns]
    rows = {
        name: {left: " ".join(row.get(right, ".") for right in keys) for left, row in table.items()}
        for name, table in measured.items()
    }
    return [{"measured": measured, "rows": rows} for measured, rows in together(rows)]


def differing(measured: Mapping[str, Mapping[str, Table]]) -> dict[str, dict[str, dict[str, str]]]:
    """Return {FORM: {OPERATION: cells}} as text, operations with the same cells together."""
    document: dict[str, dict[str, dict[str, str]]] = {}
    for form, operations in measured.items():
        rows = {
            name: {left: " ".join(f"{right}={cell}" for right, cell in row.items()) for left, row in table.items()}
            for name, table in operations.items()
        }
        document[form] = {" ".join(named): rows for named, rows in together(rows)}
    return document


def reasons(refusals: Mapping[str, str | tuple[str, str]]) -> dict[str, str]:
    """Return {SIGN: REASON}, without the patterns."""
    return {sign: each if isinstance(each, str) else each[0] for sign, each in refusals.items()}


def document(
    framework: str,
    version: str,
    codes: Mapping[str, str],
    refusals: Mapping[str, str | tuple[str, str]],
    columns: Iterable[str],
    measured: Mapping[str, Table],
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the document that the docstring of this module describes.

    Args:
        framework: its name.
        version: its version.
        codes: the name of each dtype, by its code.
        refusals: for each sign the reason, alone or with a pattern.
        columns: the operands, in the order of the cells.
        measured: the cells, by operation and form.
        about: what else was installed.
    """
    keys = [*columns]
    return {
        "framework": framework,
        "version": version,
        **(about or {}),
        "codes": codes,
        "refusals": reasons(refusals),
        "columns": " ".join(keys),
        "tables": as_text(measured, keys),
    }


def by_name(*measures: Callable[[], dict[str, Any]]) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return functions that measure documents by the names of the documents, which are their own with hyphens."""
    return {measure.__name__.replace("_", "-"): measure for measure in measures}


_ONE_LINE = {"type", "refused", "largest"}
"""Keys of small tables that stay in one line of the JSON."""


def dump(tree: Any, indent: str = "") -> str:
    """Return JSON with one line for each row of a table."""
    deeper = indent + " "
    if isinstance(tree, list) and any(isinstance(leaf, dict) for leaf in tree):
        return "[\n" + ",\n".join(f"{deeper}{dump(leaf, deeper)}" for leaf in tree) + f"\n{indent}]"
    if not isinstance(tree, dict) or not tree or _ONE_LINE & tree.keys():
        return json.dumps(tree)
    rows = [f"{deeper}{json.dumps(key)}: {dump(leaf, deeper)}" for key, leaf in tree.items()]
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
