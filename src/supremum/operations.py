"""The operations that rule sets know, as a table with one row for each.

Names come from the Python array API standard if it has the function, else from NumPy, else from PyTorch; the names of
other frameworks are aliases. `accepts` is what the standard accepts; the rule set of a framework that accepts more or
less says so.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import partial

from supremum.errors import UnknownNameError
from supremum.formats import CATEGORIES
from supremum.public_names import public_names

__all__ = [
    "ASSIGN", "ELEMENTWISE", "OPERATIONS", "REDUCTIONS", "TABLED", "Family", "Operation", "Result", "as_operation",
]  # fmt: skip


class Result(enum.Enum):
    """How the dtype of a result follows from the common dtype of the operands.

    >>> (
    ...     OPERATIONS["add"].result,
    ...     OPERATIONS["divide"].result.name,
    ...     OPERATIONS["less"].result.name,
    ... )
    (<Result.COMMON: 'the dtype the operands meet in'>, 'FLOAT', 'BOOL')
    """

    COMMON = "the dtype the operands meet in"
    FLOAT = "the dtype the operands meet in, or a float where that is an integer or bool"
    BOOL = "bool; the operation runs in the dtype the operands meet in"
    REAL = "the dtype the operands meet in, or that of its components where it is complex"
    ACCUMULATED = "the dtype of the operand, or a wider one that it is accumulated in"


class Family(enum.Enum):
    """What kind of function an operation is.

    >>> [row.name for row in OPERATIONS.values() if row.family is Family.QUESTION]
    ['result_type', 'promote_types']
    """

    QUESTION = "asks for a dtype and computes nothing"
    ELEMENTWISE = "element by element"
    REDUCTION = "along the dimensions of one array"
    WHOLE = "of several arrays as a whole"


_ANY, _NUMERIC, _INEXACT = CATEGORIES, CATEGORIES[1:], CATEGORIES[2:]
_BITS, _REAL = CATEGORIES[:2], CATEGORIES[1:3]
_BOOL, _INTEGER, _FLOAT, _COMPLEX = ((category,) for category in CATEGORIES)


@dataclass(frozen=True, slots=True, eq=False)  # a row is equal only to itself
class Operation:
    """An operation as promotion sees it.

    Args:
        name: its name.
        arity: the number of operands; None for any number.
        result: how the dtype of the result follows.
        accepts: the categories the array API standard defines it for.
        aliases: its names in other frameworks.
        types_only: whether it is a question about types alone, not about values that a runtime would hold; JAX, for
            one, answers `promote_types("int64", "int8")` with int64 although it cannot hold one with x64 off.
        family: what kind of function it is.

    >>> row = as_operation("truediv")
    >>> row.name, row.arity, row.result.name, row.accepts
    ('divide', 2, 'FLOAT', ('float', 'complex'))
    """

    name: str
    arity: int | None
    result: Result
    accepts: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    types_only: bool = False
    family: Family = Family.ELEMENTWISE

    @property
    def gives_negative(self) -> bool:
        """Whether nonnegative operands may have a negative result, which wraps around in unsigned integers."""
        return self.name in _GIVING_NEGATIVE


_GIVING_NEGATIVE = ("subtract", "negative", "bitwise_invert")


def _rows(
    family: Family, names: str, arity: int | None, result: Result, accepts: tuple[str, ...], **aliases: tuple[str, ...]
) -> list[Operation]:
    return [Operation(name, arity, result, accepts, aliases.get(name, ()), family=family) for name in names.split()]


_elementwise = partial(_rows, Family.ELEMENTWISE)
_reductions = partial(_rows, Family.REDUCTION)
_whole = partial(_rows, Family.WHOLE)
_ROWS: tuple[Operation, ...] = (
    Operation("result_type", None, Result.COMMON, _ANY, family=Family.QUESTION),
    Operation("promote_types", 2, Result.COMMON, _ANY, types_only=True, family=Family.QUESTION),
    *_elementwise("add subtract multiply", 2, Result.COMMON, _NUMERIC, subtract=("sub",), multiply=("mul",)),
    *_elementwise("divide", 2, Result.FLOAT, _INEXACT, divide=("div", "truediv", "true_divide")),
    *_elementwise("floor_divide", 2, Result.COMMON, _REAL, floor_divide=("floordiv",)),
    *_elementwise("remainder", 2, Result.COMMON, _REAL, remainder=("mod",)),
    *_elementwise("pow", 2, Result.COMMON, _NUMERIC, pow=("power",)),
    *_elementwise("maximum minimum", 2, Result.COMMON, _REAL),
    *_elementwise("fmax fmin", 2, Result.COMMON, _REAL),
    *_elementwise("where", 2, Result.COMMON, _ANY),
    *_elementwise("atan2 hypot copysign nextafter logaddexp", 2, Result.FLOAT, _FLOAT, atan2=("arctan2",)),
    *_elementwise("huber_loss poisson_nll_loss l1_loss mse_loss", 2, Result.FLOAT, _FLOAT),
    *_elementwise("equal not_equal", 2, Result.BOOL, _ANY, equal=("eq",), not_equal=("ne",)),
    *_elementwise(
        "less less_equal greater greater_equal", 2, Result.BOOL, _REAL,
        less=("less_than", "lt"), less_equal=("le",), greater=("greater_than", "gt"), greater_equal=("ge",),
    ),
    *_elementwise("logical_and logical_or logical_xor", 2, Result.BOOL, _BOOL),
    *_elementwise("bitwise_and bitwise_or bitwise_xor", 2, Result.COMMON, _BITS),
    *_elementwise(
        "bitwise_left_shift bitwise_right_shift", 2, Result.COMMON, _INTEGER,
        bitwise_left_shift=("left_shift",), bitwise_right_shift=("right_shift",),
    ),
    *_elementwise("positive negative square", 1, Result.COMMON, _NUMERIC),
    *_elementwise("round sign conj", 1, Result.COMMON, _NUMERIC, round=("around",), conj=("conjugate",)),
    *_elementwise("ceil floor trunc", 1, Result.COMMON, _REAL, trunc=("fix",)),
    *_elementwise("abs real", 1, Result.REAL, _NUMERIC, abs=("absolute",)),
    *_elementwise("imag", 1, Result.REAL, _COMPLEX),
    *_elementwise("isfinite isinf isnan", 1, Result.BOOL, _NUMERIC),
    *_elementwise("signbit", 1, Result.BOOL, _FLOAT),
    *_elementwise("bitwise_invert", 1, Result.COMMON, _BITS, bitwise_invert=("bitwise_not", "invert")),
    *_elementwise("logical_not", 1, Result.BOOL, _BOOL),
    *_elementwise(
        "exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh",
        1, Result.FLOAT, _INEXACT,
        asin=("arcsin",), acos=("arccos",), atan=("arctan",), asinh=("arcsinh",), acosh=("arccosh",),
        atanh=("arctanh",),
    ),
    *_reductions("sum prod", 1, Result.ACCUMULATED, _NUMERIC),
    *_reductions(
        "cumulative_sum cumulative_prod", 1, Result.ACCUMULATED, _NUMERIC,
        cumulative_sum=("cumsum",), cumulative_prod=("cumprod",),
    ),
    *_reductions("mean", 1, Result.FLOAT, _INEXACT),
    *_reductions("var std", 1, Result.REAL, _FLOAT),
    *_reductions("any all", 1, Result.BOOL, _ANY),
    *_reductions("min max", 1, Result.COMMON, _REAL, min=("amin",), max=("amax",)),
    *_whole("concat stack", None, Result.COMMON, _ANY, concat=("concatenate", "cat")),
    *_whole("clip", None, Result.COMMON, _REAL, clip=("clamp",)),
    *_whole("diff", None, Result.COMMON, _NUMERIC),
    *_whole("matmul tensordot vecdot outer cross", 2, Result.COMMON, _NUMERIC),
    *_whole("solve", 2, Result.FLOAT, _INEXACT),
)  # fmt: skip
OPERATIONS: dict[str, Operation] = {row.name: row for row in _ROWS}
"""Every operation but `ASSIGN`, by its name.

>>> OPERATIONS["remainder"].aliases, OPERATIONS["concat"].arity
(('mod',), None)
"""
ASSIGN = Operation("assign", 1, Result.COMMON, _ANY)
"""Assignment to elements, `array[index] = value`: its operand is the value, and it computes nothing.

>>> from supremum import explain
>>> str(explain("float32", operation=ASSIGN.name, into="int8", rules="torch").fix)
'a.to(torch.int8)'
"""
ELEMENTWISE: dict[str, Operation] = {row.name: row for row in _ROWS if row.family is Family.ELEMENTWISE}
"""The operations that compute element by element.

>>> "add" in ELEMENTWISE, "sum" in ELEMENTWISE, "result_type" in ELEMENTWISE
(True, False, False)
"""
REDUCTIONS: dict[str, Operation] = {row.name: row for row in _ROWS if row.family is Family.REDUCTION}
"""The operations along the dimensions of one array.

>>> from supremum import explain
>>> found = {name: explain("int8", operation=name, rules="numpy") for name in REDUCTIONS}
>>> {name: str(found[name].result) for name in list(REDUCTIONS)[:5]}
{'sum': 'int64', 'prod': 'int64', 'cumulative_sum': 'int64', 'cumulative_prod': 'int64', 'mean': 'float64'}
"""
TABLED: dict[str, Operation] = {row.name: row for row in _ROWS if row.arity != 1 and row.family is not Family.QUESTION}
"""The computing operations that can take a pair of types.

>>> "add" in TABLED, "matmul" in TABLED, "sqrt" in TABLED
(True, True, False)
"""
_BY_ANY_NAME = OPERATIONS | {ASSIGN.name: ASSIGN} | {alias: row for row in _ROWS for alias in row.aliases}


def as_operation(operation: object) -> Operation:
    """Look up the row of an operation; None stands for `"result_type"`.

    Args:
        operation: a name or alias, a row, or None.

    Raises:
        UnknownNameError: if no row has this name.

    >>> as_operation("truediv").name, as_operation(None).name
    ('divide', 'result_type')
    """
    if isinstance(operation, Operation):
        return operation
    name = "result_type" if operation is None else operation
    if not isinstance(name, str) or name not in _BY_ANY_NAME:
        raise UnknownNameError("operation", name, _BY_ANY_NAME)
    return _BY_ANY_NAME[name]


def __dir__() -> list[str]:
    return public_names(globals())
