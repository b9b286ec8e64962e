"""Measure Keras 3's own promotion on its JAX backend: `pip install 'keras==3.15.1' jax`.

The backend matters: only TensorFlow's keeps int64 and float64. `keras-layers` has activations, constraints and
initializers by name; the numbers of initializers are random. `keras` has in addition:

    numbers    Python numbers
    values     {LEFT: {OPERATIONS: cells}}: the result of each number as right operand, as "CODE:VALUE", `!` if an int
               is out of range, or `n` for other refusals. The left operand is an array of one 1, but not of a float8,
               which `result_type` refuses; or for `int*` a Python 1
"""

from __future__ import annotations

import itertools
import os
import warnings
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"
import jax.numpy as jnp
import keras as k
import numpy as np

from oracles import tables
from oracles.arrays import REDUCTIONS, arrays_document, functions_of_two
from oracles.assignments import IN_VARIABLE, Store

CODES = tables.codes(f"{tables.INTEGERS} bf f2 f4 f8 c8 c16 e4m3fn e5m2")
NARROWED = ("u8", "i8", "f8", "c16")
"""Dtypes that JAX narrows to 32 bits while x64 is off, so that there are no arrays of them."""
OF_ARRAYS = {code: name for code, name in CODES.items() if code not in NARROWED}
BINARY = (
    "add subtract multiply divide floor_divide remainder:mod pow:power maximum minimum atan2:arctan2 logaddexp"
    " equal not_equal less_than:less less_equal greater_than:greater greater_equal"
    " logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor"
    " bitwise_left_shift:left_shift bitwise_right_shift:right_shift hypot nextafter fmax fmin"
)
UNARY = (
    "abs negative square round sign conj ceil floor trunc real imag isfinite isinf isnan signbit"
    " bitwise_not:bitwise_invert logical_not"
    " exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan asin:arcsin acos:arccos atan:arctan"
    " sinh cosh tanh asinh:arcsinh acosh:arccosh atanh:arctanh"
)
EAGER = (
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift hypot nextafter fmax fmin"
    " floor_divide pow atan2 logaddexp"
)
"""The operations with two operands that are measured on arrays, too."""
REFUSALS = {
    "n": ("no-kernel", r"not accept dtype|not well defined|not support complex|not inexact|only supports"),
    "8": ("float8", "float8"),
    "s": ("python", "object has no attribute 'dtype'"),
}
OUT_OF_RANGE = {"!": ("out of range", "OverflowError: "), "n": ("refused", "TypeError: |ValueError: ")}

NUMBERS: tuple[Any, ...] = (
    *(-1, 256, 1000, 40000, 2**24 + 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**40, 2**63, 2**64),
    *(0.1, 65519.9999, 70000.0, 1e39, 1e300, 1e-8, 1e-50),
)


KERAS = tables.Framework(
    "keras",
    k.__version__,
    OF_ARRAYS,
    make=lambda value, name: jnp.asarray(value).astype(name),
    name_of=lambda result: str(result.dtype),
    numbers=lambda result: jnp.asarray(result, "float32").tolist(),
    reductions=tables.named(k.ops, REDUCTIONS),
    several=functions_of_two(k.ops, "matmul outer cross solve concat:concatenate stack tensordot clip"),
    kernel="lu does not accept dtype|sub does not accept dtype|Unsupported dtype|Complex values have no ordering",
)


def keras() -> dict[str, Any]:
    """Measure `keras.backend.result_type`, and the dtypes that Keras' operations return.

    The forms are "function" for `result_type`, "symbolic" for operations on symbolic tensors, and "eager" for some
    operations on arrays and Python numbers. Symbolic tensors can have 64 bits, JAX's arrays with x64 off cannot.
    """
    with_64_bits = KERAS._replace(codes=CODES, name_of=lambda result: str(getattr(result, "dtype", result)))
    cell = tables.outcome(REFUSALS, with_64_bits.code_of)
    kinds = CODES | {"bool()": bool, "int*": int, "float*": float, "complex*": complex}
    symbolic = {code: k.KerasTensor((1,), dtype=name) for code, name in CODES.items()}
    arrays = KERAS.ones() | tables.SCALARS
    result_type = k.backend.result_type
    calls = tables.named(k.ops, BINARY)
    calls["where"] = lambda left, right: k.ops.where(k.KerasTensor((1,), dtype="bool"), left, right)
    cells = {"result_type function": tables.grid(cell, result_type, kinds, itertools.product(kinds, repeat=2))}
    cells |= tables.grids(cell, "symbolic", calls, symbolic | tables.SCALARS)
    cells |= tables.grids(cell, "eager", {name: calls[name] for name in EAGER.split()}, arrays)
    unary = tables.named(k.ops, UNARY)
    cells["unary symbolic"] = tables.unary_cells(cell, unary, symbolic)
    cells["unary eager"] = tables.unary_cells(cell, unary, arrays)
    about = {"backend": k.backend.backend(), "floatx": k.config.floatx()}
    triples = tables.triples(lambda *keys: cell(result_type, *map(kinds.__getitem__, keys)), kinds)
    return with_64_bits.document(REFUSALS, kinds, cells, about) | {"triples": triples} | number_values()


def number_values() -> dict[str, Any]:
    """Return what Python numbers become next to ones."""
    calls = tables.named(k.ops, "add multiply divide less_equal logical_and bitwise_or pow:power maximum")
    calls["where"] = lambda one, number: k.ops.where(jnp.zeros(1, bool), one, number)
    value = tables.outcome(OUT_OF_RANGE, lambda result: f"{KERAS.code_of(result)}:{result.reshape((1,)).tolist()[0]}")
    ones = {code: one for code, one in KERAS.ones().items() if "8_" not in OF_ARRAYS[code]}
    return tables.with_numbers(value, calls, ones | {"int*": 1}, NUMBERS)


def keras_arrays() -> dict[str, Any]:
    """Measure functions of whole arrays with x64 off, where there are no arrays of 64 bits."""
    return arrays_document(KERAS)


def assignment_keras() -> dict[str, Any]:
    """Measure Keras' variable, which narrows 64 bits to 32; tensors cannot be written into."""
    store = Store(
        KERAS._replace(name_of=lambda variable: variable.value.dtype.name),
        target=lambda key: k.Variable(KERAS.one(f"{key}[]"), dtype=OF_ARRAYS[key]),
        value=lambda key: KERAS.one(f"{key}[]"),
        element=lambda variable: variable.value.item(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return store.document(store.cells(IN_VARIABLE), store.numbers(IN_VARIABLE))


X = [-30, -3.5, -2, -1, -0.75, -0.25, 0, 0.25, 0.5, 1, 2.5, 4, 7, 30]
WEIGHT = [[3, -1, 0.2], [4, -1, 0.1], [-0.5, 2, 0]]
ACTIVATIONS = (
    "celu elu exponential gelu glu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear log_sigmoid "
    "log_softmax mish relu relu6 selu sigmoid silu softmax softplus softsign sparse_plus sparse_sigmoid squareplus "
    "swish tanh"
)
CONSTRAINTS = "max_norm min_max_norm non_neg unit_norm"
INITIALIZERS = (
    "glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform random_normal random_uniform "
    "truncated_normal orthogonal identity zeros ones"
)


def statistics(name: str) -> dict[str, float]:
    """Describe the numbers that an initializer draws."""
    drawn = np.asarray(k.initializers.get(name)((400, 400), "float32"))
    return {"std": float(drawn.std()), "largest": float(np.abs(drawn).max()), "mean": float(drawn.mean())}


def keras_layers() -> dict[str, Any]:
    """Measure activations, constraints and initializers by name."""
    x, weight = np.asarray(X, "float32"), np.asarray(WEIGHT, "float32")
    return {
        "framework": "keras",
        "version": k.__version__,
        "x": X,
        "weight": WEIGHT,
        "activations": {name: np.asarray(k.activations.get(name)(x)).tolist() for name in ACTIVATIONS.split()},
        "constraints": {name: np.asarray(k.constraints.get(name)(weight)).tolist() for name in CONSTRAINTS.split()},
        "initializers of float32[400,400]": {name: statistics(name) for name in INITIALIZERS.split()},
    }


DOCUMENTS = tables.by_name(keras, keras_arrays, keras_layers, assignment_keras)
