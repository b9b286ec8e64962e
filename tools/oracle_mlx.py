"""Measure MLX's CPU build; `extract_oracles.py mlx` calls this module.

MLX computes when a result is evaluated, so every result is. The document has this in addition to what
`extract_oracles` describes:

    triples    tables of three arrays, with a row "LEFT MIDDLE" for each pair; `clip` takes Python numbers too
    zero_d     {FORM: cells}: how many cells differ if one of the two arrays, or each, has no dimensions
    numbers    Python numbers
    values     {LEFT: {OPERATIONS: cells}}: the result of each number as right operand, as "CODE:VALUE", `!` if MLX says
               that the number is out of range of the dtype, `-` for other refusals, or `.` if it was not measured. The
               left operand is an array of one 1, or for `int*` a Python 1
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

CODES = {
    "b1": "bool", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "bf": "bfloat16", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64",
}  # fmt: skip
BINARY = (
    "add subtract multiply divide floor_divide remainder power maximum minimum logaddexp arctan2"
    " equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
    " bitwise_and bitwise_or bitwise_xor left_shift right_shift"
)
UNARY = (
    "abs negative positive square round sign conj ceil floor trunc real imag isfinite isinf isnan bitwise_invert"
    " logical_not exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh"
    " arcsinh arccosh arctanh diff"
)
LOSSES = "huber_loss l1_loss mse_loss"
REFUSALS = {
    "a": ("needs-array", r"incompatible function arguments|Inputs must be arrays|has no attribute 'shape'"),
    "o": ("no-operator", "unsupported operand type|bad operand type"),
    "f": ("no-floats", "Floating point types not allowed"),
    "-": ("refused", r"^\[\w+(::\w+)?\]"),
}
"""Each sign with its reason and a pattern for the message; the first pattern that matches counts."""
NUMBERS: tuple[Any, ...] = (
    *(-1, 256, 1000, 40000, 2**24 + 1, 2**31, 2**40, 2**53 + 1, 2**60 + 2**49 + 1, 2**62, 2**63, -(2**63) - 1, 2**64),
    *(0.1, 65519.9999, 70000.0, 1e39, 1e300, 1e300j),
)


def cpu() -> Any:
    """Import MLX, and make it compute on the CPU."""
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    return mx


def ones(mx: Any, name: str, shape: tuple[int, ...] = (1,)) -> Any:
    """Make an array of ones with a dtype, by its name."""
    return mx.ones(shape, dtype=dtype(mx, name))


def dtype(mx: Any, name: str) -> Any:
    """Return MLX's dtype with a name."""
    return getattr(mx, {"bool": "bool_"}.get(name, name))


def name_of(array: Any) -> str:
    """Return the name of the dtype of an array."""
    return str(array.dtype).removeprefix("mlx.core.")


def mlx() -> dict[str, Any]:
    """Measure the functions and operators of MLX."""
    mx = cpu()
    import mlx.nn as nn

    from extract_oracles import OPERATORS, SCALARS, UNARY_OPERATORS, pairs, tables

    code_of = {name: code for code, name in CODES.items()}

    def attempt(call: Callable[..., Any], *arguments: Any) -> str:
        """Return the code of the result, in parentheses if it cannot be evaluated, or the sign of a refusal."""
        try:
            result = call(*arguments)
        except (ValueError, TypeError, RuntimeError, AttributeError) as error:
            return next(sign for sign, (_, pattern) in REFUSALS.items() if re.search(pattern, str(error)))
        try:
            mx.eval(result)
        except (ValueError, RuntimeError):
            return f"({code_of[name_of(result)]})"
        return code_of[name_of(result)]

    def operand(key: str, shape: tuple[int, ...] = (1,)) -> Any:
        return SCALARS[key] if key in SCALARS else ones(mx, CODES[key], shape)

    def loss(name: str) -> Callable[..., Any]:
        function = getattr(nn.losses, name)
        return lambda left, right: function(left, right, reduction="none")

    def result_type(*operands: Any) -> Any:
        return mx.zeros((1,), dtype=mx.result_type(*operands))

    keys = [*CODES, *SCALARS]
    operands = {key: operand(key) for key in keys}
    functions: dict[str, Callable[..., Any]] = {"result_type": result_type}
    functions |= {name: getattr(mx, name) for name in BINARY.split()}
    functions |= {name: loss(name) for name in LOSSES.split()}
    functions["where"] = lambda left, right: mx.where(mx.array([True]), left, right)
    unary = {"function": {name: getattr(mx, name) for name in UNARY.split()}, "operator": UNARY_OPERATORS}
    measured: dict[str, dict[str, dict[str, str]]] = {}
    zero_d: dict[str, int] = {}
    for form, calls in {"function": functions, "operator": OPERATORS}.items():
        different = 0
        for name, call in calls.items():
            asked = [*pairs(operands), *(itertools.product(SCALARS, repeat=2) if form == "function" else ())]
            table = measured[f"{name} {form}"] = {key: {} for key in keys}
            for left, right in asked:
                table[left][right] = attempt(call, operands[left], operands[right])
            for left, right in itertools.product(CODES, repeat=2):
                # Losses need arrays of one shape.
                shapes = [((), ())] if name in LOSSES.split() else [((), ()), ((), (1,)), ((1,), ())]
                cells = (attempt(call, operand(left, one), operand(right, other)) for one, other in shapes)
                different += sum(cell != table[left][right] for cell in cells)
        zero_d[form] = different
    for form, calls in unary.items():
        asked = keys if form == "function" else [*CODES]
        measured[f"unary {form}"] = {
            name: {key: attempt(call, operand(key, (2,))) for key in asked} for name, call in calls.items()
        }
    joins = {
        "result_type": result_type,
        "concat": lambda *arrays: mx.concatenate(arrays),
        "stack": lambda *arrays: mx.stack(arrays),
    }
    triples = {
        f"{name} function": {
            f"{a} {b}": {c: attempt(call, operands[a], operands[b], operands[c]) for c in CODES}
            for a, b in itertools.product(CODES, repeat=2)
        }
        for name, call in joins.items()
    }
    triples["clip function"] = {
        f"{a} {b}": {c: attempt(mx.clip, operands[a], operands[b], operands[c]) for c in keys}
        for a, b in itertools.product(CODES, keys)
    }
    return {
        "framework": "mlx",
        "version": mx.__version__,
        "codes": CODES,
        "refusals": {sign: reason for sign, (reason, _) in REFUSALS.items()},
        "columns": " ".join(keys),
        "tables": tables(measured, keys),
        "triples": tables(triples, keys),
        "zero_d": zero_d,
        "numbers": " ".join(map(str, NUMBERS)),
        "values": _values(mx, {code: operand(code) for code in CODES} | {"int*": 1}),
    }


def _values(mx: Any, left: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return what Python numbers become next to ones."""
    calls: dict[str, Callable[..., Any]] = {
        "multiply": mx.multiply,
        "divide": mx.divide,
        "greater": mx.greater,
        "where": lambda one, other: mx.where(mx.array([False]), one, other),
    }

    def outcome(name: str, one: Any, number: Any) -> str:
        if isinstance(number, complex) and name != "where":  # the product with a complex infinity is not a number
            return "."
        try:
            result = calls[name](one, number)
        except (ValueError, RuntimeError) as error:
            return "!" if "overflow" in str(error) else "-"
        code = next(code for code, name in CODES.items() if name == name_of(result))
        return f"{code}:{result.reshape((1,)).tolist()[0]}"

    return {
        key: {name: " ".join(outcome(name, one, number) for number in NUMBERS) for name in calls}
        for key, one in left.items()
    }
