"""Measure TensorFlow's three dtype conversion modes: `pip install tensorflow-cpu==2.21.0`.

A process cannot leave a mode, so each mode is measured in a separate process, and each document has `modes`. The
operand `code*` is a weak tensor; the modes "all" and "safe" have them, "off" has not. `zero_dimensional` counts the
cells of `+` in which a 0-d tensor changes the result: none, since TensorFlow's rules do not depend on shapes.

`tensorflow-numbers` has what TensorFlow computes from Python numbers at the limits of dtypes: for each mode, dtype,
operation and number the dtype and the elements of the result, or `null` if TensorFlow raises. The tensor is always
[3, 10]. In `assignment-tensorflow`, `np.` before a code stands for a NumPy array.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import ml_dtypes
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import flexible_dtypes
from tensorflow.python.framework.weak_tensor import WeakTensor

from oracles import tables
from oracles.arrays import arrays_document, foreign, functions_of_two
from oracles.assignments import IN_VARIABLE, Store
from oracles.casts import OWN, casts_document

MODES = ("off", "all", "safe")
CODES = tables.codes(f"{tables.INTEGERS} bf f2 f4 f8 c8 c16")
WEAK = ("i4*", "i8*", "f4*", "f8*", "c16*")
FUNCTIONS = (
    "add subtract multiply divide floor_divide:floordiv remainder:floormod pow"
    " equal not_equal less_than:less less_equal greater_than:greater greater_equal"
    " maximum minimum atan2 nextafter logical_and logical_or logical_xor"
)
BITWISE = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift:left_shift bitwise_right_shift:right_shift"
UNARY = (
    "abs negative square sign round ceil floor conj real imag isfinite:is_finite isinf:is_inf isnan:is_nan"
    " exp expm1 log log1p sqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh logical_not"
)
NUMPY_UNARY = "positive trunc:fix signbit log2 log10"
"""Functions that only `tf.experimental.numpy` has."""
REDUCTIONS = (
    "sum:reduce_sum prod:reduce_prod mean:reduce_mean any:reduce_any all:reduce_all min:reduce_min max:reduce_max"
)
MORE_REDUCTIONS = "cumulative_sum:cumsum cumulative_prod:cumprod var:reduce_variance std:reduce_std"
"""Those that `tf.math` has."""
REFUSALS = {
    "d": ("mode", r"implicit dtype promotion between|In promotion mode"),
    "n": ("no-kernel", r"Could not find device for node|No OpKernel|not supported by|could not find valid device"),
    "a": ("attribute", r"Value for attr|not in (the )?list of allowed values|allowed values|DataType .* for attr"),
    "~": (
        "mixed-types",
        r"must have the same dtype, got|conversion requested dtype|but is a .* tensor|was expected to be"
        r"|must have the same type|to have the same dtype|could not be promoted by",
    ),
    "v": ("conversion", r"Cannot convert|Can't convert|can't convert|incompatible|to EagerTensor of dtype|Expected"),
    "o": ("no-operator", r"unsupported operand type|bad operand type|must be|not supported|not allowed|has no attr"),
    "w": ("overflow", r"too large to convert|out of bounds|out of range"),
    "b": ("bool", r"truth value|Non-boolean|dtype bool"),
}
VALUES = [
    *[("uint8", 256), ("uint8", -1), ("int8", 1000), ("int16", 40000), ("int32", 2**31), ("int32", 2**40)],
    *[("int64", 2**31), ("int64", 2**63), ("uint64", 2**31), ("float16", 70000), ("float16", 70000.0)],
    *[("bfloat16", 1e39), ("float32", 1e39), ("complex64", 1e39), ("float32", 2**31)],
    *[("uint8", 2**63), ("uint64", 2**63), ("bfloat16", 2**63), ("float16", 2**63), ("float32", 2**63)],
    *[("complex64", 2**63)],
]


_SHARED = ("framework", "version", "codes", "refusals")
"""What the documents of all modes have in common."""


def by_mode(measure: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Return the document of all modes, from a function that measures a mode in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        modes = dict(zip(MODES, pool.map(measure, MODES), strict=True))
    head = {key: value for key, value in modes["off"].items() if key in _SHARED}
    for document in modes.values():
        for key in head:
            del document[key]
    return head | {"modes": modes}


def enter(mode: str) -> None:
    """Enter a mode, which this process cannot leave."""
    tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)


def make(value: Any, name: str) -> Any:
    """Make a tensor of a number or lists of numbers."""
    return tf.constant(np.array(value, name) if name in OWN else np.array(value).astype(name))


def name_of(result: Any) -> str:
    """Return the name of the dtype of a result, with `*` if it is weak."""
    return tf.as_dtype(result.dtype).name + "*" * isinstance(result, WeakTensor)


def numbers_in(result: Any) -> Any:
    """Return the numbers in a tensor; ml_dtypes gives its own."""
    array = result.numpy()
    if array.dtype.name not in OWN:
        array = array.astype("int64" if "int4" in array.dtype.name else "float64")
    return array.tolist()


TENSORFLOW = tables.Framework(
    "tensorflow",
    tf.__version__,
    CODES,
    make,
    name_of,
    numbers_in,
    reductions=tables.named(tf, REDUCTIONS) | tables.named(tf.math, MORE_REDUCTIONS),
    several=tables.named(tf.linalg, "matmul cross solve")
    | {"concat": lambda a, b: tf.concat([a, b], 0)}
    | functions_of_two(tf, "stack tensordot clip:clip_by_value"),
    kernel="|".join(REFUSALS[sign][1] for sign in "na"),
)


def cell_of(result: Any) -> str:
    """Return the cell of a result; `p` is Python's default `==`, which compares identities."""
    return "p" if isinstance(result, bool) else TENSORFLOW.code_of(result)


def measure_promotion(mode: str) -> dict[str, Any]:
    """Measure operators and functions in a mode.

    The forms "operator", "function" and "numpy" are eager; "numpy" has the functions that only `tf.experimental.numpy`
    has. `result_type` is TensorFlow's own function, on which the modes "all" and "safe" are built; it is also called
    with every triple.
    """
    enter(mode)
    cell = tables.outcome(REFUSALS, cell_of)
    strong = TENSORFLOW.ones()
    weak = {key: WeakTensor(strong[key.removesuffix("*")]) for key in (WEAK if mode != "off" else ())}
    tensors = strong | weak
    ones = tensors | tables.SCALARS
    numpy = tf.experimental.numpy
    where = {"where": lambda left, right: tf.where(tf.constant([True]), left, right)}
    cells = tables.grids(cell, "operator", tables.WITHOUT_SHIFTS, ones)
    functions = tables.named(tf.math, FUNCTIONS) | tables.named(tf.bitwise, BITWISE) | where
    cells |= tables.grids(cell, "function", functions, ones)
    cells |= tables.grids(cell, "numpy", tables.named(numpy, "hypot logaddexp"), ones)
    cells["unary operator"] = tables.unary_cells(cell, tables.UNARY_OPERATORS, tensors)
    unary = tables.named(tf.math, UNARY) | {"bitwise_not": tf.bitwise.invert}
    cells["unary function"] = tables.unary_cells(cell, unary, ones)
    cells["unary numpy"] = tables.unary_cells(cell, tables.named(numpy, NUMPY_UNARY), ones)

    def result_type(*arguments: Any) -> str:
        dtype, is_weak = flexible_dtypes.result_type(*arguments)
        return tf.as_dtype(dtype).name + "*" * is_weak

    of_types = tables.outcome({"d": REFUSALS["d"]}, TENSORFLOW.code_of_name)
    triples: dict[str, str] = {}
    if mode != "off":
        cells["result_type function"] = tables.grid(of_types, result_type, ones, itertools.product(ones, repeat=2))
        triples = tables.triples(lambda *asked: of_types(result_type, *map(ones.get, asked)), ones)
    zero_d = {code: TENSORFLOW.one(f"{code}[]") for code in CODES}
    variants = [(zero_d, strong), (strong, zero_d), (zero_d, zero_d)]
    addition = {"add": tables.OPERATORS["add"]}
    found = TENSORFLOW.document(REFUSALS | {"p": ("python", "$^")}, ones, cells)
    return found | {
        "zero_dimensional": tables.count_differing(cell, "operator", addition, cells, variants),
        "tables": found.pop("tables"),
        "triples": triples,
        "values": TENSORFLOW.out_of_range(cell, ("add", "multiply", "less_than"), VALUES, with_values=False),
    }


def measure_arrays(mode: str) -> dict[str, Any]:
    """Measure functions of whole arrays in a mode."""
    enter(mode)
    arrays = {code: np.ones(3, getattr(ml_dtypes, name, name)) for code, name in CODES.items()}
    return arrays_document(TENSORFLOW) | foreign(TENSORFLOW, arrays)


def tensorflow_casts() -> dict[str, Any]:
    """Measure casts of values, eager."""
    extensions = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")
    return casts_document(TENSORFLOW, tf.cast, (*OWN, *extensions))


def measure_assignments(mode: str) -> dict[str, Any]:
    """Measure writes in a mode. Variables have methods only, since they reject `+=`."""
    enter(mode)
    arrays = [f"np.{code}" for code, name in CODES.items() if name != "bfloat16"]

    def value(key: str) -> Any:
        return np.ones((), CODES[key.removeprefix("np.")]) if key.startswith("np.") else TENSORFLOW.one(f"{key}[]")

    def set_first(target: Any, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            vector = value.reshape(1)
        else:
            vector = tf.reshape(value, [1]) if isinstance(value, tf.Tensor) else [value]
        return tf.tensor_scatter_nd_update(target, [[0]], vector)

    variables = Store(
        TENSORFLOW,
        target=lambda key: tf.Variable(TENSORFLOW.one(f"{key}[]")),
        value=value,
        element=lambda variable: variable.numpy().item(),
        more=arrays,
    )
    tensors = variables._replace(target=TENSORFLOW.one)
    cells = variables.cells(IN_VARIABLE, CODES) | tensors.cells({"assign item": set_first}, CODES)
    return variables.document(cells, variables.numbers(IN_VARIABLE))


DTYPES = ("uint8", "int8", "int16", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
NUMBERS = ("256", "255", "1000", "70000", "16777217", "2147483647", "2147483648", "-1", "1000000.0", "1e+39", "1e-08")
NUMBERS += ("65519.9999", "0.1")


def measure_numbers(mode: str) -> dict[str, Any]:
    """Measure operators with Python numbers in a mode."""
    if mode != "off":
        enter(mode)

    def elements(name: str, operation: str, number: str) -> list[str] | None:
        try:
            result = tables.OPERATORS[operation](tf.constant([3, 10], dtype=name), json.loads(number))
            return [result.dtype.name, *map(str, np.asarray(result).astype(float).tolist())]
        except Exception:  # TensorFlow refuses with many kinds of exceptions
            return None

    head = {"framework": "tensorflow", "version": tf.__version__}
    return head | {
        f"{name} {operation.removesuffix('_than')} {number}": elements(name, operation, number)
        for name, operation, number in itertools.product(DTYPES, ("add", "multiply", "divide", "less_than"), NUMBERS)
    }


DOCUMENTS = {
    "tensorflow": partial(by_mode, measure_promotion),
    "tensorflow-arrays": partial(by_mode, measure_arrays),
    "tensorflow-casts": tensorflow_casts,
    "tensorflow-numbers": partial(by_mode, measure_numbers),
    "assignment-tensorflow": partial(by_mode, measure_assignments),
}
