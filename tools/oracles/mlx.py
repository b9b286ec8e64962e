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
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from oracles import tables
from oracles.arrays import REDUCTIONS, arrays_document, functions_of_two
from oracles.assignments import IN_PLACE, Store, in_place, set_at
from oracles.casts import casts_document

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
    "-": ("refused", r": \[\w+(::\w+)?\]"),
}
OUT_OF_RANGE = {"!": ("out of range", "overflow"), "-": ("refused", "")}
NUMBERS: tuple[Any, ...] = (
    *(-1, 256, 1000, 40000, 2**24 + 1, 2**31, 2**40, 2**53 + 1, 2**60 + 2**49 + 1, 2**62, 2**63, -(2**63) - 1, 2**64),
    *(0.1, 65519.9999, 70000.0, 1e39, 1e300, 1e-8, 1e-50, 1e300j),
)

mx.set_default_device(mx.cpu)


def dtype(name: str) -> Any:
    """Return MLX's dtype with a name."""
    return getattr(mx, {"bool": "bool_"}.get(name, name))


def make(value: Any, name: str) -> Any:
    """Make an array of a number or lists of numbers."""
    # NumPy has no bfloat16; each of its values is a float32, so that this cast is exact.
    wide = "float32" if name == "bfloat16" else name
    return mx.array(np.array(value, wide), dtype=dtype(wide)).astype(dtype(name))


def name_of(array: Any) -> str:
    """Return the name of the dtype of an array, which is evaluated."""
    mx.eval(array)
    return str(array.dtype).removeprefix("mlx.core.")


MLX = tables.Framework(
    "mlx",
    mx.__version__,
    CODES,
    make,
    name_of,
    numbers=mx.array.tolist,
    reductions=tables.named(mx, REDUCTIONS),
    several=functions_of_two(
        mx, "matmul vecdot outer cross:linalg.cross solve:linalg.solve concat:concatenate stack tensordot clip"
    ),
)


def choose(*, left: bool) -> tables.Call:
    """Return a `where` that chooses the left or the right operand."""
    return lambda one, other: mx.where(mx.array([left]), one, other)


def mlx() -> dict[str, Any]:
    """Measure the functions and operators of MLX."""
    cell = tables.outcome(REFUSALS, MLX.code_of)

    def result_type(*arguments: Any) -> Any:
        return mx.zeros((1,), dtype=mx.result_type(*arguments))

    ones, zero_d = MLX.ones(), {code: MLX.one(f"{code}[]") for code in CODES}
    every = ones | tables.SCALARS
    losses = {name: partial(getattr(nn.losses, name), reduction="none") for name in LOSSES}
    broadcasting = {"result_type": result_type, **tables.named(mx, BINARY), "where": choose(left=True)}
    functions = {"result_type": result_type, **tables.named(mx, BINARY), **losses, "where": choose(left=True)}
    cells = tables.grids(cell, "function", functions, every, itertools.product(every, repeat=2))
    cells |= tables.grids(cell, "operator", tables.OPERATORS, every)
    same, mixed = [(zero_d, zero_d)], [(zero_d, ones), (ones, zero_d)]

    twos = {code: make([1, 1], name) for code, name in CODES.items()}
    cells["unary function"] = tables.unary_cells(cell, tables.named(mx, UNARY), twos | tables.SCALARS)
    cells["unary operator"] = tables.unary_cells(cell, tables.UNARY_OPERATORS, twos)

    joins = {
        "result_type": result_type,
        "concat": lambda *arrays: mx.concatenate(arrays),
        "stack": lambda *arrays: mx.stack(arrays),
    }
    triples = tables.triple_tables(cell, joins, ones, ones, ones)
    triples |= tables.triple_tables(cell, {"clip": mx.clip}, ones, every, every)
    return MLX.document(REFUSALS, every, cells) | {
        "triples": tables.as_text(triples, every),
        "zero_d": {
            # The losses refuse different shapes.
            "function": tables.count_differing(cell, "function", broadcasting, cells, mixed)
            + tables.count_differing(cell, "function", functions, cells, same),
            "operator": tables.count_differing(cell, "operator", tables.OPERATORS, cells, same + mixed),
        },
        **number_values(),
    }


def number_values() -> dict[str, Any]:
    """Return what Python numbers become next to ones."""
    named = "multiply divide greater logical_and logical_or logical_xor"
    calls = tables.named(mx, named) | {"where": choose(left=False)}
    shown = tables.outcome(OUT_OF_RANGE, lambda result: f"{MLX.code_of(result)}:{result.reshape((1,)).tolist()[0]}")

    def value(call: tables.Call, one: Any, number: Any) -> str:
        if isinstance(number, complex) and call is not calls["where"]:  # the product with an infinity is not a number
            return "."
        return shown(call, one, number)

    return tables.with_numbers(value, calls, MLX.ones() | {"int*": 1}, NUMBERS)


def mlx_arrays() -> dict[str, Any]:
    """Measure functions of whole arrays."""
    return arrays_document(MLX)


def mlx_casts() -> dict[str, Any]:
    """Measure casts of values."""
    return casts_document(MLX, lambda array, to: array.astype(dtype(to)))


def assignment_mlx() -> dict[str, Any]:
    """Measure writes: `a += b` and `a[...] = b` change the dtype of `a` to that of the result."""
    store = Store(MLX, MLX.one, MLX.one, element=lambda array: array.tolist()[0])
    assignments = {
        "assign item": set_at(0),
        "assign slice": set_at(slice(None)),
        "assign indices": set_at(mx.array([0])),
        "assign mask": set_at(mx.array([True])),
        "assign ellipsis": set_at(Ellipsis),
    }
    numbers = store.numbers({name: assignments[name] for name in ("assign item", "assign ellipsis")})
    return store.document(store.cells(in_place(IN_PLACE) | assignments), numbers)


DOCUMENTS = tables.by_name(mlx, mlx_arrays, mlx_casts, assignment_mlx)
