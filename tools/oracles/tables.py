"""What the measurements of all frameworks share: operands, calls, cells, and the document that holds them.

A document of calls with one or two operands has:

    framework, version
    codes      {CODE: DTYPE}: a short name for each dtype
    refusals   {SIGN: REASON}: what the sign of a refusal stands for
    columns    the operands, in the order of the cells of a row
    tables     a list of tables. `measured` lists the operations and forms ("add function") with these results. `rows`
               has a row for left operands with the same cells, with a cell for each column. Operations with one operand
               share a table, which has a row for operations
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

Call = Callable[..., Any]
Table = dict[str, dict[str, str]]
T = TypeVar("T")
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


class Framework(NamedTuple):
    """A framework that is measured: how to make and read its arrays, and its functions by our names.

    Args:
        name: its name.
        version: its version.
        codes: the names of its dtypes by code.
        make: makes an array from a number or nested lists of numbers, and the name of a dtype.
        name_of: returns the name of the dtype of a result, with `*` if it is weak.
        numbers: returns the numbers of a result as Python numbers.
        reductions: functions of one array.
        several: functions of two arrays; `clip` takes the second array for both bounds.
        kernel: a pattern that matches the messages of missing kernels.
    """

    name: str
    version: str
    codes: Mapping[str, str]
    make: Callable[[Any, str], Any]
    name_of: Callable[[Any], str]
    numbers: Callable[[Any], Any]
    reductions: Mapping[str, Call] = {}
    several: Mapping[str, Call] = {}
    kernel: str = "$^"

    def one(self, key: str) -> Any:
        """Make an array of one 1 from the code of its dtype, or a zero-dimensional 1 from `code[]`."""
        return self.make(1 if key.endswith("[]") else [1], self.codes[key.removesuffix("[]")])

    def ones(self) -> dict[str, Any]:
        """Make an array of one 1 of each dtype, by code."""
        return {code: self.one(code) for code in self.codes}

    def code_of(self, result: Any) -> str:
        """Return the code of the dtype of a result, with `*` if it is weak."""
        return self.code_of_name(self.name_of(result))

    def code_of_name(self, name: str) -> str:
        """Return the code of the name of a dtype, which may have a `*`."""
        strong = name.removesuffix("*")
        return next(code for code, dtype in self.codes.items() if dtype == strong) + "*" * name.endswith("*")

    def out_of_range(
        self,
        cell: Callable[..., str],
        operations: Iterable[str],
        numbers: Iterable[tuple[str, Any]],
        *,
        with_values: bool = True,
    ) -> dict[str, dict[str, dict[str, str]]]:
        """Return `values` of a document: what operators make of arrays and Python numbers that these cannot hold.

        Args:
            cell: returns the cell of a call.
            operations: the names of the operators.
            numbers: the names of dtypes, each with a number.
            with_values: whether the outcome has the value of the result.
        """

        def described(name: str, dtype: str, number: Any) -> dict[str, str]:
            operands = self.make([1], dtype), number
            found = cell(OPERATORS[name], *operands)
            if found.rstrip("*") not in self.codes:
                return {"refused": found}
            value = {"value": str(self.numbers(OPERATORS[name](*operands))[0])} if with_values else {}
            return {"type": found} | value

        return {
            f"{dtype},{number}": {name: described(name, dtype, number) for name in operations}
            for dtype, number in numbers
        }

    def document(
        self,
        refusals: Mapping[str, tuple[str, str]],
        columns: Iterable[str],
        measured: Mapping[str, Table],
        about: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the document that the docstring of this module describes.

        Args:
            refusals: for each sign the reason and a pattern, as in `outcome`.
            columns: the operands, in the order of the cells.
            measured: the cells, by operation and form.
            about: what else was installed.
        """
        keys = [*columns]
        return {
            "framework": self.name,
            "version": self.version,
            **(about or {}),
            "codes": self.codes,
            "refusals": {sign: reason for sign, (reason, _) in refusals.items()},
            "columns": " ".join(keys),
            "tables": as_text(measured, keys),
        }


def pairs(keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield all ordered pairs, except for two Python scalars, which Python itself would combine."""
    return ((left, right) for left, right in itertools.product([*keys], repeat=2) if {left, right} - SCALARS.keys())


def outcome(refusals: Mapping[str, tuple[str, str]], code_of: Callable[[Any], str]) -> Callable[..., str]:
    """Return a function that calls a function, and returns the cell of the result.

    Args:
        refusals: for each sign of a refusal the reason, and a pattern for the class and the message of the exception;
            the first pattern that matches counts.
        code_of: returns the cell of a result; it may raise, too.
    """

    def cell(call: Call, *arguments: Any) -> str:
        try:
            return code_of(call(*arguments))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # frameworks refuse with many kinds of exceptions, and Polars panics
            return sign_of(error, refusals)

    return cell


def sign_of(error: BaseException, refusals: Mapping[str, tuple[str, str]]) -> str:
    """Return the sign of a refusal; the arguments are the exception, and those of `outcome`."""
    for sign, (_, pattern) in refusals.items():
        if re.search(pattern, f"{type(error).__name__}: {error}"):
            return sign
    raise ValueError(f"no pattern of a refusal matches {str(error)!r}") from error


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


def with_numbers(
    cell: Callable[[Call, Any, Any], str], calls: Mapping[str, Call], lefts: Mapping[str, Any], numbers: Sequence[Any]
) -> dict[str, Any]:
    """Return `numbers`, and as `values` {LEFT: {OPERATION: cells}}, with a cell for each number as right operand."""
    values = {
        key: {name: " ".join(cell(call, left, number) for number in numbers) for name, call in calls.items()}
        for key, left in lefts.items()
    }
    return {"numbers": " ".join(map(str, numbers)), "values": values}


def together(rows_of: Mapping[str, T]) -> list[tuple[list[str], T]]:
    """Return each row or set of rows once, with the names that have it."""
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
    return [
        {"measured": measured, "rows": {" ".join(lefts): row for lefts, row in together(rows)}}
        for measured, rows in together(rows)
    ]


def differing(before: Mapping[str, Table], after: Mapping[str, Table], form: str) -> dict[str, dict[str, str]]:
    """Return the cells of a form that differ, as text: {OPERATIONS: {LEFT: "RIGHT=CELL ..."}}.

    Args:
        before: the cells, by operation and form.
        after: other cells of some of these operations and operands.
        form: the form.
    """
    rows_of: dict[str, dict[str, str]] = {}
    for name, table in after.items():
        if name.endswith(f" {form}"):
            for left, row in table.items():
                changed = [f"{right}={cell}" for right, cell in row.items() if cell != before[name][left][right]]
                if changed:
                    rows_of.setdefault(name.removesuffix(f" {form}"), {})[left] = " ".join(changed)
    return {" ".join(operations): rows for operations, rows in together(rows_of)}


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
