"""Measure Keras 3's own promotion on its JAX backend; `extract_oracles.py keras` calls this module."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

CODES = {
    "b1": "bool", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "bf": "bfloat16", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
    "e4m3fn": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip
BINARY = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "floor_divide": "floor_divide",
    "remainder": "mod", "pow": "power", "maximum": "maximum", "minimum": "minimum", "atan2": "arctan2",
    "logaddexp": "logaddexp", "equal": "equal", "not_equal": "not_equal", "less_than": "less",
    "less_equal": "less_equal",
    "greater_than": "greater", "greater_equal": "greater_equal",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
    "hypot": "hypot", "nextafter": "nextafter", "fmax": "fmax", "fmin": "fmin",
}  # fmt: skip
UNARY = (
    "abs negative square round sign conj ceil floor trunc real imag isfinite isinf isnan signbit"
    " bitwise_not:bitwise_invert logical_not"
    " exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan asin:arcsin acos:arccos atan:arctan"
    " sinh cosh tanh asinh:arcsinh acosh:arccosh atanh:arctanh"
)
NARROWED = ("u8", "i8", "f8", "c16")
"""Dtypes that JAX narrows to 32 bits while x64 is off, so that there are no arrays of them."""
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


def keras() -> dict[str, Any]:
    """Measure `keras.backend.result_type`, and the dtypes that Keras' operations return.

    The forms are "function" for `result_type`, "symbolic" for operations on symbolic tensors, and "eager" for some
    operations on arrays and Python numbers. Symbolic tensors can have 64 bits, JAX's arrays with x64 off cannot. The
    backend matters: only TensorFlow's keeps int64 and float64.
    """
    os.environ["KERAS_BACKEND"] = "jax"
    import jax.numpy as jnp
    import keras as k

    from extract_oracles import SCALARS, tables

    kinds = {"bool()": bool, "int*": int, "float*": float, "complex*": complex}
    keys = [*CODES, *kinds]

    def attempt(call: Callable[..., Any], *arguments: Any) -> str:
        try:
            result = call(*arguments)
        except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
            found = [sign for sign, (_, pattern) in REFUSALS.items() if re.search(pattern, str(error))]
            if not found:
                raise
            return found[0]
        name = result if isinstance(result, str) else result.dtype
        return next(code for code, each in CODES.items() if each == name)

    def kind(key: str) -> Any:
        return CODES.get(key) or kinds[key]

    def tensor(key: str) -> Any:
        return SCALARS[key] if key in SCALARS else k.KerasTensor((1,), dtype=CODES[key])

    def array(key: str) -> Any:
        return SCALARS[key] if key in SCALARS else jnp.ones((1,), CODES[key])

    result_type = k.backend.result_type
    calls: dict[str, Callable[..., Any]] = {name: getattr(k.ops, theirs) for name, theirs in BINARY.items()}
    calls["where"] = lambda left, right: k.ops.where(k.KerasTensor((1,), dtype="bool"), left, right)
    measured = {"result_type function": {a: {b: attempt(result_type, kind(a), kind(b)) for b in keys} for a in keys}}
    for name, call in calls.items():
        measured[f"{name} symbolic"] = {
            a: {b: attempt(call, tensor(a), tensor(b)) for b in keys if {a, b} - SCALARS.keys()} for a in keys
        }
    of_arrays = [key for key in keys if key not in NARROWED]
    for name in EAGER.split():
        measured[f"{name} eager"] = {
            a: {b: attempt(calls[name], array(a), array(b)) for b in of_arrays if {a, b} - SCALARS.keys()}
            for a in of_arrays
        }
    names = (name.partition(":") for name in UNARY.split())
    unary = {name: getattr(k.ops, theirs or name) for name, _, theirs in names}
    for form, operand, asked in (("symbolic", tensor, [*CODES]), ("eager", array, of_arrays)):
        measured[f"unary {form}"] = {
            name: {key: attempt(call, operand(key)) for key in asked} for name, call in unary.items()
        }
    return {
        "framework": "keras",
        "version": k.__version__,
        "backend": k.backend.backend(),
        "floatx": k.config.floatx(),
        "codes": CODES,
        "refusals": {sign: reason for sign, (reason, _) in REFUSALS.items()},
        "columns": " ".join(keys),
        "tables": tables(measured, keys),
        "triples": {
            f"{a} {b}": " ".join(attempt(result_type, *map(kind, (a, b, c))) for c in keys) for a in keys for b in keys
        },
    }
