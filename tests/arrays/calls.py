"""Calls of operations, the rules' decisions about them, and their results; this module contains no promotion rules."""

import collections
import functools
import operator
from dataclasses import replace

import numpy as np

from rule_sets import FRAMEWORK_RULES
from supremum import PromotionError
from supremum.arrays import ELEMENTWISE_OPERATIONS, RuntimeDtypeError, ops
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.wrapped import wrap
from supremum.errors import SupremumError
from supremum.formats import FORMATS, as_format
from supremum.operands import as_operand

RULE_SETS = FRAMEWORK_RULES
FORMAT_OF = {row.name: row for row in FORMATS}
CLASSIC = [row.name for row in FORMATS if row.is_builtin or row.name == "bfloat16"]
BINARY = [name for name, applied in ELEMENTWISE_OPERATIONS.items() if applied.operation.arity == 2]
UNARY = [name for name, applied in ELEMENTWISE_OPERATIONS.items() if applied.operation.arity == 1]
NUMBERS = {"True": True, "1": 1, "1.0": 1.0, "1j": 1j}
# Numbers that value-based rules distinguish, and numbers that no dtype can hold.
MORE_NUMBERS = {"-1": -1, "300": 300, "2**40": 2**40, "2**70": 2**70, "1e300": 1e300}
# All accepted calls are made for every operation. Refused calls take most of the time and are made for these only.
REFUSING = ("add", "divide", "pow", "equal", "bitwise_and", "where", "l1_loss", "exp")
REFUSED, LACKING = "PromotionError", "RuntimeDtypeError"

OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift, "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge, "positive": operator.pos,
    "negative": operator.neg, "abs": operator.abs, "bitwise_invert": operator.invert,
}  # fmt: skip
MIRRORED = {"less": "greater", "less_equal": "greater_equal"} | {"greater": "less", "greater_equal": "less_equal"}


def function_of(name):
    """The elementwise function of an operation, with as many operands as its row has."""
    if name == "where":
        return functools.partial(ops.where, True)
    return functools.partial(ops.FUNCTIONS[name], reduction="none") if name in LOSSES else ops.FUNCTIONS[name]


def decided(rules, name, call):
    """The rules' decision about a call, `(dtype, weak, 0-d)` or `REFUSED`, and the dtypes of its computation."""
    decision = rules.decide(name, [_seen(rules, each) for each in call])
    if not decision:
        return REFUSED, ()
    zero_d = all(getattr(each, "ndim", 0) == 0 for each in call)
    return (decision.dtype, decision.weak, zero_d), decision.verdict.compute


def _seen(rules, each):
    if not hasattr(each, "key"):
        return as_operand(rules.read(each))  # a scalar of NumPy may count as a number
    if rules.reads_values and each.shape == () and isinstance(each.unwrap(), np.ndarray):
        return replace(as_operand(each.unwrap()), weak=each.key.weak)
    return each.key.operand


def called(function, call):
    """The outcome of a call in the form of `decided`; the text of an unexpected error."""
    try:
        result = function(*call)
    except PromotionError:
        return REFUSED
    except RuntimeDtypeError:
        return LACKING
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raw = result.unwrap()
    # The key, which the next operation uses, is set in advance and must equal the key of the raw array.
    if isinstance(raw, np.generic) or result.key is not wrap(raw, result.weak_type).key:
        return f"{type(raw).__name__} of {raw.dtype} under {result.key}"
    return result.dtype, result.weak_type, result.shape == ()


class Cells:
    """Collects calls, and the calls with an unexpected outcome.

    Args:
        lacks: a function of an operation's name, the dtypes of its computation, its result's dtype, and whether it is a
            power to a Python int. Returns whether the library lacks it.
    """

    def __init__(self, lacks):
        self.lacks = functools.cache(lacks)
        self.number = collections.Counter()
        self.different = {}

    def ask(self, rules, name, function, call):
        """Compare one call with the decision."""
        said, compute = decided(rules, name, call)
        if said == REFUSED and name not in REFUSING:
            self.number["refused, not called"] += 1
            return
        found = called(function, call)
        of_columns = said != REFUSED and not all(as_format(dtype).is_of_arrays for dtype in (*compute, said[0]))
        if of_columns or (
            said != REFUSED and self.lacks(name, compute, said[0], name == "pow" and type(call[1]) is int)
        ):
            said = LACKING
        self.number["refused" if said == REFUSED else "lacking" if said == LACKING else "given"] += 1
        if said != found:
            shown = tuple(
                f"{each.dtype}{'' if each.shape else '[]'}" if hasattr(each, "shape") else each for each in call
            )
            self.different[rules.name, name, *shown] = (said, found)

    def check(self):
        """Fail if an outcome differs, and show the first ones."""
        shown = "\n".join(f"{cell}: {answers}" for cell, answers in list(self.different.items())[:40])
        assert not self.different, f"{len(self.different)} cells differ, as (decided, found):\n{shown}"


def numpy_arrays(shape=(1,), names=tuple(FORMAT_OF)):
    """Arrays of every format, by name, filled with ones; zeros for formats without a one, such as int1."""
    return {name: wrap(np.full(shape, min(1, as_format(name).max), as_format(name).dtype)) for name in names}


DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
]
VALUES = [[0, 1, 2], [3, 1, 1]]


def made(dtype, values=VALUES):
    """An array of NumPy in any format."""
    return np.array(values).astype(as_format(dtype).dtype)


def result_of(function, *args, **options):
    """The result of a call; None if NumPy, JAX or Supremum refuse."""
    with np.errstate(all="ignore"):
        try:
            return function(*args, **options)
        except (TypeError, ValueError, NotImplementedError, SupremumError):
            return None
