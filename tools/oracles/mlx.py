"""Measure MLX's CPU build: `pip install 'mlx[cpu]==0.32.4' numpy`.

MLX computes when a result is evaluated, so every result is. The document has in addition:

    triples    tables of three arrays, with a row "LEFT MIDDLE" for each pair; `clip` takes Python numbers too
    zero_d     {FORM: cells}: how many cells differ if one of the two arrays, or each, has no dimensions
    numbers    Python numbers
    values     {LEFT: {OPERATIONS: cells}}: the result of each number as right operand, as "CODE:VALUE", `!` if MLX says
               that the number is out of range of the dtype, `-` for other refusals, or `.` if it was not measured. The
               left operand is an array of one 1, or for `int*` a Python 1
"""

from __future__ import annotations

import itertools
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from oracles import casts, tables
from oracles.arrays import REDUCTIONS, Framework, arrays_document, functions_of_two
from oracles.assignments import IN_PLACE, Store, in_place, set_at

CODES = tables.codes(f"{tables.INTEGERS} bf f2 f4 f8 c8")
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
LOSSES = ("huber_loss", "l1_loss", "mse_loss")
REFUSALS = {
    "a": ("needs-array", r"incompatible function arguments|Inputs must be arrays|has no attribute 'shape'"),
    "o": ("no-operator", "unsupported operand type|bad operand type"),
    "f": ("no-floats", "Floating point types not allowed"),
    "-": ("refused", r"^\[\w+(::\w+)?\]"),
}
NUMBERS: tuple[Any, ...] = (
    *(-1, 256, 1000, 40000, 2**24 + 1, 2**31, 2**40, 2**53 + 1, 2**60 + 2**49 + 1, 2**62, 2**63, -(2**63) - 1, 2**64),
    *(0.1, 65519.9999, 70000.0, 1e39, 1e300, 1e-8, 1e-50, 1e300j),
)

mx.set_default_device(mx.cpu)


def dtype(name: str) -> Any:
    """Return MLX's dtype with a name."""
    return getattr(mx, {"bool": "bool_"}.get(name, name))


def ones(code: str, shape: tuple[int, ...] = (1,)) -> Any:
    """Make an array of ones with a dtype, by its code."""
    return mx.ones(shape, dtype=dtype(CODES[code]))


def name_of(array: Any) -> str:
    """Return the name of the dtype of an array."""
    return str(array.dtype).removeprefix("mlx.core.")


def code_of(array: Any) -> str:
    """Return the code of the dtype of an array, in parentheses if the array cannot be evaluated."""
    code = tables.code_of(CODES, name_of(array))
    try:
        mx.eval(array)
    except (ValueError, RuntimeError):
        return f"({code})"
    return code


def evaluated(call: tables.Call) -> tables.Call:
    """Return a function that evaluates its result."""

    def compute(*arguments: Any) -> Any:
        result = call(*arguments)
        mx.eval(result)
        return result

    return compute


def choose(*, left: bool) -> tables.Call:
    """Return a `where` that chooses the left or the right operand."""
    return lambda one, other: mx.where(mx.array([left]), one, other)


def mlx() -> dict[str, Any]:
    """Measure the functions and operators of MLX."""
    cell = tables.outcome(REFUSALS, code_of)

    def loss(name: str) -> tables.Call:
        function = getattr(nn.losses, name)
        return lambda left, right: function(left, right, reduction="none")

    def result_type(*arguments: Any) -> Any:
        return mx.zeros((1,), dtype=mx.result_type(*arguments))

    keys = [*CODES, *tables.SCALARS]
    ones_of_1d, zero_d = ({code: ones(code, shape) for code in CODES} for shape in ((1,), ()))
    every = ones_of_1d | tables.SCALARS
    twos = tables.operands_of(keys, lambda code: ones(code, (2,)))
    functions = {"result_type": result_type, **tables.named(mx, BINARY), **{name: loss(name) for name in LOSSES}}
    functions["where"] = choose(left=True)
    cells = tables.grids(cell, "function", functions, every, itertools.product(keys, repeat=2))
    cells |= tables.grids(cell, "operator", tables.OPERATORS, every)
    same_shape, mixed_shapes = [(zero_d, zero_d)], [(zero_d, ones_of_1d), (ones_of_1d, zero_d)]
    broadcasting = {name: call for name, call in functions.items() if name not in LOSSES}
    differing = {"function": 0, "operator": 0}
    for form, calls, variants in (
        ("function", functions, same_shape),
        ("function", broadcasting, mixed_shapes),
        ("operator", tables.OPERATORS, same_shape + mixed_shapes),
    ):
        differing[form] += tables.count_differing(cell, form, calls, cells, variants)
    cells["unary function"] = tables.unary_cells(cell, tables.named(mx, UNARY), twos)
    cells["unary operator"] = tables.unary_cells(cell, tables.UNARY_OPERATORS, {code: twos[code] for code in CODES})

    joins = {
        "result_type": result_type,
        "concat": lambda *arrays: mx.concatenate(arrays),
        "stack": lambda *arrays: mx.stack(arrays),
    }
    triples = tables.triple_tables(cell, joins, ones_of_1d, ones_of_1d, ones_of_1d)
    triples |= tables.triple_tables(cell, {"clip": mx.clip}, ones_of_1d, every, every)
    return tables.document("mlx", mx.__version__, CODES, REFUSALS, keys, cells) | {
        "triples": tables.as_text(triples, keys),
        "zero_d": differing,
        "numbers": " ".join(map(str, NUMBERS)),
        "values": number_values(),
    }


def number_values() -> dict[str, dict[str, str]]:
    """Return what Python numbers become next to ones."""
    named = "multiply divide greater logical_and logical_or logical_xor"
    calls = tables.named(mx, named) | {"where": choose(left=False)}

    def value(call: tables.Call, one: Any, number: Any) -> str:
        if isinstance(number, complex) and call is not calls["where"]:  # the product with an infinity is not a number
            return "."
        try:
            result = call(one, number)
        except (ValueError, RuntimeError) as error:
            return "!" if "overflow" in str(error) else "-"
        return f"{code_of(result)}:{result.reshape((1,)).tolist()[0]}"

    return tables.number_cells(value, calls, {code: ones(code) for code in CODES} | {"int*": 1}, NUMBERS)


def mlx_arrays() -> dict[str, Any]:
    """Measure functions of whole arrays."""
    several = functions_of_two(
        mx, "matmul vecdot outer cross:linalg.cross solve:linalg.solve concat:concatenate stack tensordot clip"
    )
    framework = Framework(
        codes=CODES,
        reductions={name: evaluated(call) for name, call in tables.named(mx, REDUCTIONS).items()},
        several={name: evaluated(call) for name, call in several.items()},
        make=lambda value, name: mx.array(value, dtype=dtype(name)),
        dtype_of=name_of,
        floats=lambda result: result.astype(mx.float64).tolist(),
    )
    return arrays_document("mlx", mx.__version__, framework)


def mlx_casts() -> dict[str, Any]:
    """Measure casts of values."""

    def source(numbers: list[Any], name: str) -> Any:
        if name == "bfloat16":  # NumPy has none; each of its values is a float32, so that this cast is exact
            return mx.array(numbers, dtype=mx.float32).astype(mx.bfloat16)
        return mx.array(np.array(numbers, name), dtype=dtype(name))

    return casts.measured(
        "mlx", mx.__version__, CODES.values(), source, lambda array, to: array.astype(dtype(to)), mx.array.tolist
    )


def assignment_mlx() -> dict[str, Any]:
    """Measure writes: `a += b` and `a[...] = b` change the dtype of `a` to that of the result."""
    store = Store(CODES, ones, ones, dtype_of=name_of, element=lambda array: array.tolist()[0])
    assignments = {
        "assign item": set_at(0),
        "assign slice": set_at(slice(None)),
        "assign indices": set_at(mx.array([0])),
        "assign mask": set_at(mx.array([True])),
        "assign ellipsis": set_at(Ellipsis),
    }
    numbers = store.numbers({name: assignments[name] for name in ("assign item", "assign ellipsis")})
    return store.document("mlx", mx.__version__, store.cells(in_place(IN_PLACE) | assignments), numbers)


DOCUMENTS = tables.by_name(mlx, mlx_arrays, mlx_casts, assignment_mlx)
