"""Measure tinygrad: `pip install tinygrad==0.14.0 numpy`.

tinygrad decides dtypes while it builds a graph, so that most cells need no computation. Values need a C compiler:
`clang`, or what the environment variable CC names. In addition to what the shared modules describe, the documents have:

    codes    `wi` and `wf` stand for weak tensors such as `Tensor(1)` and `Tensor(1.0)`
    cells    `(code)` if the graph has this dtype, but tinygrad refuses to compute it on any device
    triples  {"LEFT MIDDLE": cells}: `least_upper_dtype` of three dtypes, with a column for each code
    accumulators  {REDUCTION: cells}: the dtype of the last reduction in the graph, with a column for each code
"""

from __future__ import annotations

import importlib.metadata
import itertools
import operator
import os
from typing import Any

os.environ.setdefault("DEV", "CPU")
os.environ["CACHELEVEL"] = "0"  # no cache on disk
import numpy as np
from tinygrad import Tensor, dtypes
from tinygrad.dtype import least_upper_dtype, strong_dtype
from tinygrad.uop import Ops
from tinygrad.uop.spec import spec_tensor, type_verify

from oracles import tables
from oracles.arrays import PROBED_AS, arrays_document
from oracles.assignments import IN_PLACE, MORE_IN_PLACE, Store, assign_in, in_place, set_at
from oracles.casts import casts_document

VERSION = importlib.metadata.version("tinygrad")
_FNUZ = {"e4m3fnuz": "float8_e4m3fnuz", "e5m2fnuz": "float8_e5m2fnuz"}
FORMATS = tables.codes(f"{tables.INTEGERS} e4m3fn e5m2") | _FNUZ | tables.codes("bf f2 f4 f8")
CODES = FORMATS | {"wi": "int32*", "wf": "float32*"}
# tinygrad's own names, where they differ.
_NAMES = tables.names(
    "float8_e4m3fn:fp8e4m3 float8_e5m2:fp8e5m2 float8_e4m3fnuz:fp8e4m3fnuz float8_e5m2fnuz:fp8e5m2fnuz"
    " int32*:weakint float32*:weakfloat"
)
DTYPES = {name: getattr(dtypes, _NAMES.get(name, name)) for name in CODES.values()}
BINARY = (
    "add subtract:sub multiply:mul divide:div remainder:mod pow bitwise_and bitwise_or bitwise_xor"
    " bitwise_left_shift:lshift bitwise_right_shift:rshift"
)
"""Methods that take their operands in either order."""
LEFT = "equal:eq not_equal:ne maximum minimum copysign logaddexp"
"""Methods whose left operand must be a tensor."""
UNARY = (
    "exp log log2 log10 sqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
    " abs negative:neg square logical_not bitwise_not ceil floor round trunc sign isfinite isinf isnan"
)
REFUSALS = {
    "c": ("complex", r"complex|Could not infer dtype"),
    "i": ("shift-of-float", "shift operands must be int"),
    "p": ("power-of-integer", "base needs to be float"),
    "s": ("needs-tensor", "has no attribute|must be a tensor|instances? of"),
    "o": ("no-operator", "bad operand type|unsupported operand type"),
    "t": ("type-check", "object is not callable|ConstType"),
}
NUMBERS: list[tuple[str, Any]] = [
    *[("bool", 2), ("bool", 2**32 + 1), ("uint8", 256), ("uint8", -1), ("int8", -1), ("int8", 1000)],
    *[("int16", 40000), ("uint16", -1), ("int32", 2**40 + 5), ("uint32", -1), ("int64", 2**63), ("uint64", -1)],
    *[("float16", 70000), ("float16", 70000.0), ("bfloat16", 1e39), ("float32", 1e39)],
    *[("float8_e4m3fn", 1000), ("float8_e5m2", 1e6), ("float8_e4m3fnuz", 1000), ("float8_e5m2fnuz", 1e6)],
]
"""Dtypes and Python numbers that these cannot hold."""


def make(value: Any, name: str) -> Any:
    """Make a tensor of a number or of lists of numbers; a weak tensor holds one number in all places."""
    if name.endswith("*"):
        array = np.array(value)
        return Tensor(int(array.flat[0])).cast(DTYPES[name]).expand(array.shape)
    # NumPy lacks the narrow floats; each of their values is a float32, so that this cast is exact.
    wide = "float32" if name.startswith(("float8", "bfloat")) else name
    return Tensor(np.array(value, wide)).cast(DTYPES[name]).realize()


def two(code: str) -> Any:
    """Make a tensor of two ones."""
    return make([1, 1], CODES[code])


def name_of(result: Any) -> str:
    """Return the name of the dtype of a result, with `*` if it is weak."""
    return next(name for name, dtype in DTYPES.items() if dtype is result.dtype)


def code_of_dtype(dtype: Any) -> str:
    """Return the code of a dtype."""
    return next(code for code, name in CODES.items() if DTYPES[name] is dtype)


def defined(result: Any) -> Any:
    """Return a result that tinygrad computes, and raise for others; the check does not depend on the device."""
    type_verify(result.cast(strong_dtype(result.dtype)).uop.sink(), spec_tensor)
    return result


def code_of(result: Any) -> str:
    """Return the cell of a result."""
    code = code_of_dtype(result.dtype)
    try:
        defined(result)
    except RuntimeError as error:
        if "verification failed" not in str(error):
            raise
        return f"({code})"
    return code


def numbers_in(result: Any) -> Any:
    """Return the numbers in a result; if tinygrad read and computed them at once, it would leave out a rounding."""
    return result.contiguous().realize().tolist()


TINYGRAD = tables.Framework(
    "tinygrad",
    VERSION,
    CODES,
    make,
    name_of=lambda result: name_of(defined(result)),
    numbers=numbers_in,
    reductions=tables.named(Tensor, "sum prod mean var std any all min max cumulative_sum:cumsum")
    | {"cumulative_prod": lambda a: a.cumprod(0)},
    several=tables.named(Tensor, "matmul concat:cat stack") | {"clip": lambda a, b: a.clip(b, b)},
)


def tinygrad() -> dict[str, Any]:
    """Measure tensors with tensors, weak tensors and Python numbers, and numbers out of range on the CPU."""
    cell = tables.outcome(REFUSALS, code_of)

    def reversible(method: str) -> tables.Call:
        def call(left: Any, right: Any) -> Any:
            if isinstance(left, Tensor):
                return getattr(left, method)(right)
            return getattr(right, method)(left, reverse=True)

        return call

    in_either_order = {name: reversible(method) for name, method in tables.names(BINARY).items()}
    from_tensor = tables.named(Tensor, LEFT) | {
        "floor_divide": lambda left, right: left.div(right, rounding_mode="floor")
    }
    where = {"where": lambda left, right: Tensor([True, True]).where(left, right)}
    alone = {code: two(code) for code in CODES}
    tensors = alone | tables.SCALARS
    cells = tables.grids(cell, "function", in_either_order, tensors)
    cells |= tables.grids(cell, "function", from_tensor, tensors, itertools.product(CODES, tensors))
    cells |= tables.grids(cell, "function", where, tensors)
    cells |= tables.grids(cell, "operator", tables.OPERATORS, tensors)
    cells["unary function"] = tables.unary_cells(cell, tables.named(Tensor, UNARY), alone)
    cells["unary operator"] = tables.unary_cells(cell, tables.UNARY_OPERATORS, alone)
    values = TINYGRAD.out_of_range(cell, ("add", "multiply", "less_than", "equal"), NUMBERS)
    powers = TINYGRAD.out_of_range(cell, ("pow",), [each for each in NUMBERS if each[1] == -1])
    return TINYGRAD.document(REFUSALS, tensors, cells) | {
        "triples": tables.triples(
            lambda *asked: code_of_dtype(least_upper_dtype(*(DTYPES[CODES[code]] for code in asked))), CODES
        ),
        "values": {key: found | powers.get(key, {}) for key, found in values.items()},
    }


def accumulator(result: Any) -> str:
    """Return the code of the dtype in which the last reduction of a graph accumulates."""
    last = [node for node in result.uop.toposort() if node.op is Ops.REDUCE][-1]
    return code_of_dtype(last.dtype)


def tinygrad_arrays() -> dict[str, Any]:
    """Measure functions of whole tensors, which accept no Python numbers except as bounds."""
    accumulators = {
        name: {code: accumulator(call(two(code))) for code in CODES}
        for name, call in TINYGRAD.reductions.items()
        if name in PROBED_AS or name in ("var", "std")
    }
    return arrays_document(TINYGRAD) | {
        # Values would tell what the C compiler does with 16-bit floats. The graph tells what tinygrad decides.
        "accumulates": {
            name: {code: "own" if row[code] == code else "wide" for code in ("bf", "f2")}
            for name, row in accumulators.items()
        },
        "accumulators": {name: " ".join(row.values()) for name, row in accumulators.items()},
    }


def tinygrad_casts() -> dict[str, Any]:
    """Measure casts of values on the CPU, whose C code converts as the processor does."""
    return casts_document(TINYGRAD, lambda tensor, to: tensor.cast(DTYPES[to]), FORMATS.values(), ())


def assignment_tinygrad() -> dict[str, Any]:
    """Measure writes. A row is a tensor in memory, since a weak tensor has no memory to write into."""
    set_all = set_at(slice(0, 2))
    store = Store(
        TINYGRAD,
        target=lambda code: two(code).contiguous().realize(),
        value=two,
        element=lambda tensor: numbers_in(tensor)[0],
    )
    # `%=` makes a new tensor: there is no method for it.
    writes = in_place(IN_PLACE | MORE_IN_PLACE | {"bitwise_right_shift": operator.irshift}, "remainder")
    writes |= {"assign item": set_all, "assign variable": assign_in("assign")}
    numbers = store.numbers({"assign item": lambda tensor, value: set_all(tensor, value).realize()})
    return store.document(store.cells(writes, FORMATS), numbers)


DOCUMENTS = tables.by_name(tinygrad, tinygrad_arrays, tinygrad_casts, assignment_tinygrad)
