"""Measure tinygrad; `extract_oracles.py tinygrad`, `tinygrad-arrays` and `tinygrad-casts` call this module.

tinygrad decides dtypes while it builds a graph, so that most cells need no computation. In addition to what the other
modules describe, the document has:

    codes    `wi` and `wf` stand for weak tensors such as `Tensor(1)` and `Tensor(1.0)`
    cells    `(code)` if the graph has this dtype, but tinygrad refuses to compute it on any device
    triples  {"LEFT MIDDLE": cells}: `least_upper_dtype` of three dtypes, with a column for each code
    accumulators  {REDUCTION: cells}: the dtype of the last reduction in the graph, with a column for each code

The values of casts need a C compiler: `clang`, or what the environment variable CC names.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from oracle_arrays import PROBED_AS, REFUSED, Framework, measured
from oracle_casts import measured as measured_casts

FORMATS = {
    "b1": "bool", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "e4m3fn": "float8_e4m3fn", "e5m2": "float8_e5m2", "e4m3fnuz": "float8_e4m3fnuz", "e5m2fnuz": "float8_e5m2fnuz",
    "bf": "bfloat16", "f2": "float16", "f4": "float32", "f8": "float64",
}  # fmt: skip
CODES = FORMATS | {"wi": "int32*", "wf": "float32*"}
# tinygrad's own names, where they differ.
_NAMES = {
    "float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2", "float8_e4m3fnuz": "fp8e4m3fnuz",
    "float8_e5m2fnuz": "fp8e5m2fnuz", "int32*": "weakint", "float32*": "weakfloat",
}  # fmt: skip
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
NUMBERS: Sequence[tuple[str, Any]] = [
    *[
        ("bool", 2),
        ("bool", 2**32 + 1),
        ("uint8", 256),
        ("uint8", -1),
        ("int8", -1),
        ("int8", 1000),
        ("int16", 40000),
        ("uint16", -1),
    ],
    *[("int32", 2**40 + 5), ("uint32", -1), ("int64", 2**63), ("uint64", -1), ("float16", 70000), ("float16", 70000.0)],
    *[("bfloat16", 1e39), ("float32", 1e39), ("float8_e4m3fn", 1000), ("float8_e5m2", 1e6)],
    *[("float8_e4m3fnuz", 1000), ("float8_e5m2fnuz", 1e6)],
]
"""Dtypes and Python numbers that these cannot hold."""


def _pairs(names: str) -> dict[str, str]:
    pairs = (name.partition(":") for name in names.split())
    return {ours: theirs or ours for ours, _, theirs in pairs}


def use_device(name: str) -> None:
    """Let tinygrad compute on a device, without its cache on disk; call this before tinygrad is imported."""
    os.environ |= {"DEV": name, "CACHELEVEL": "0"}


def _dtype(name: str) -> Any:
    from tinygrad import dtypes

    return getattr(dtypes, _NAMES.get(name, name))


def name_of(result: Any) -> str:
    """The name of a result's dtype, with `*` if it is weak."""
    return next(name for name in CODES.values() if _dtype(name) is result.dtype)


def make(value: Any, name: str) -> Any:
    """Make a tensor of a number or of lists of numbers; a weak tensor holds one number in all places."""
    from tinygrad import Tensor

    if not name.endswith("*"):
        return Tensor(value, dtype="float32").cast(_dtype(name))
    shape: list[int] = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0]
    return Tensor(int(value)).cast(_dtype(name)).expand(*shape) if shape else Tensor(int(value)).cast(_dtype(name))


def is_defined(result: Any) -> bool:
    """Whether tinygrad computes a graph; its check of the graph does not depend on the device."""
    from tinygrad.dtype import strong_dtype
    from tinygrad.uop.spec import spec_tensor, type_verify

    try:
        type_verify(result.cast(strong_dtype(result.dtype)).uop.sink(), spec_tensor)
    except RuntimeError as error:
        if "verification failed" not in str(error):
            raise
        return False
    return True


def numbers_in(result: Any) -> Any:
    """The numbers in a result; tinygrad would leave out the last rounding if it read and computed them at once."""
    return result.contiguous().realize().tolist()


def tinygrad() -> dict[str, Any]:
    """Measure tensors with tensors, weak tensors and Python numbers, and numbers out of range on the CPU."""
    use_device("PYTHON")
    from extract_oracles import OPERATORS, SCALARS, UNARY_OPERATORS, pairs, tables
    from tinygrad import Tensor
    from tinygrad.dtype import least_upper_dtype

    code_of = {name: code for code, name in CODES.items()}
    keys = [*CODES, *SCALARS]
    operands = {key: SCALARS[key] if key in SCALARS else make([1, 1], CODES[key]) for key in keys}

    def attempt(call: Callable[..., Any], *arguments: Any) -> str:
        try:
            result = call(*arguments)
        except Exception as error:  # tinygrad refuses with many kinds of exceptions
            message = str(error)
            found = [sign for sign, (_, pattern) in REFUSALS.items() if re.search(pattern, message)]
            if not found:
                raise ValueError(f"no pattern in REFUSALS matches: {message!r}") from error
            return found[0]
        code = code_of[name_of(result)]
        return code if is_defined(result) else f"({code})"

    def reversible(method: str) -> Callable[[Any, Any], Any]:
        def call(left: Any, right: Any) -> Any:
            if isinstance(left, Tensor):
                return getattr(left, method)(right)
            return getattr(right, method)(left, reverse=True)

        return call

    def plain(method: str) -> Callable[[Any, Any], Any]:
        return lambda left, right: getattr(left, method)(right)

    functions = {name: reversible(method) for name, method in _pairs(BINARY).items()}
    functions |= {name: plain(method) for name, method in _pairs(LEFT).items()}
    functions["floor_divide"] = lambda left, right: left.div(right, rounding_mode="floor")
    functions["where"] = lambda left, right: Tensor([True, True]).where(left, right)
    both_orders = {*_pairs(BINARY), "where"}
    measured: dict[str, dict[str, dict[str, str]]] = {}
    for form, calls in {"function": functions, "operator": OPERATORS}.items():
        for name, call in calls.items():
            table = measured[f"{name} {form}"] = {}
            for left, right in pairs(operands):
                if form == "operator" or name in both_orders or left not in SCALARS:
                    table.setdefault(left, {})[right] = attempt(call, operands[left], operands[right])
    measured["unary function"] = {
        name: {key: attempt(getattr(Tensor, method), operands[key]) for key in CODES}
        for name, method in _pairs(UNARY).items()
    }
    measured["unary operator"] = {
        name: {key: attempt(call, operands[key]) for key in CODES} for name, call in UNARY_OPERATORS.items()
    }
    values: dict[str, dict[str, Any]] = {}
    for name, number in NUMBERS:
        row = values[f"{name},{number}"] = {}
        tensor = make([1], name).realize()
        for operation in ("add", "multiply", "less_than", "equal", *(("pow",) if number == -1 else ())):
            cell = attempt(OPERATORS[operation], tensor, number)
            if cell not in CODES:
                row[operation] = {"refused": cell}
                continue
            row[operation] = {"type": cell, "value": str(numbers_in(OPERATORS[operation](tensor, number))[0])}
    code_of_dtype = {_dtype(name): code for code, name in CODES.items()}

    def least_upper(*codes: str) -> str:
        return code_of_dtype[least_upper_dtype(*(_dtype(CODES[code]) for code in codes))]

    return {
        "framework": "tinygrad",
        "version": importlib.metadata.version("tinygrad"),
        "codes": CODES,
        "refusals": {sign: reason for sign, (reason, _) in REFUSALS.items()},
        "columns": " ".join(keys),
        "tables": tables(measured, keys),
        "triples": {f"{a} {b}": " ".join(least_upper(a, b, c) for c in CODES) for a in CODES for b in CODES},
        "values": values,
    }


def accumulator(result: Any) -> str:
    """The code of the dtype in which the last reduction of a graph accumulates."""
    from tinygrad.uop import Ops

    last = [node for node in result.uop.toposort() if node.op is Ops.REDUCE][-1]
    return next(code for code, name in CODES.items() if _dtype(name) is last.dtype)


def tinygrad_arrays() -> dict[str, Any]:
    """Measure functions of whole tensors, which accept no Python numbers except as bounds."""
    use_device("PYTHON")
    from extract_oracles import SCALARS, tables
    from tinygrad import Tensor

    def name_if_defined(result: Any) -> str:
        if not is_defined(result):
            raise TypeError("tinygrad does not compute this graph")
        return name_of(result)

    framework = Framework(
        codes=CODES,
        reductions={
            **{
                name: getattr(Tensor, name)
                for name in ("sum", "prod", "mean", "var", "std", "any", "all", "min", "max")
            },
            "cumulative_sum": lambda a: a.cumsum(0),
            "cumulative_prod": lambda a: a.cumprod(0),
        },
        several={
            "matmul": Tensor.matmul,
            "concat": lambda a, b: Tensor.cat(a, b),
            "stack": lambda a, b: Tensor.stack(a, b),
            "clip": lambda a, b: a.clip(b, b),
        },
        make=make,
        dtype_of=name_if_defined,
        floats=numbers_in,
    )
    found = measured(framework, SCALARS)
    accumulators = {
        name: {code: accumulator(call(make([1, 1], dtype))) for code, dtype in CODES.items()}
        for name, call in framework.reductions.items()
        if name in PROBED_AS or name in ("var", "std")
    }
    return {
        "framework": "tinygrad",
        "version": importlib.metadata.version("tinygrad"),
        "codes": CODES,
        "refusals": REFUSED,
        **found,
        "tables": tables(found["tables"], found["columns"].split()),
        # Values would tell what the C compiler does with 16-bit floats. The graph tells what tinygrad decides.
        "accumulates": {
            name: {code: "own" if row[code] == code else "wide" for code in ("bf", "f2")}
            for name, row in accumulators.items()
        },
        "accumulators": {name: " ".join(row.values()) for name, row in accumulators.items()},
    }


def tinygrad_casts() -> dict[str, Any]:
    """Measure casts of values on the CPU, whose C code converts as the processor does."""
    use_device("CPU")
    import numpy as np
    from tinygrad import Tensor

    def source(numbers: list[Any], dtype: str) -> Any:
        if dtype.startswith(("float8", "bfloat")):
            return Tensor(np.array(numbers, "float32")).cast(_dtype(dtype)).realize()
        return Tensor(np.array(numbers, dtype)).realize()

    return measured_casts(
        "tinygrad", importlib.metadata.version("tinygrad"), " ".join(FORMATS.values()), source,
        lambda array, to: array.cast(_dtype(to)), lambda array: numbers_in(array), (),
    )  # fmt: skip
