"""Measure TensorFlow's three dtype conversion modes; `extract_oracles.py tensorflow` calls this module.

A process cannot leave a mode, so each mode is measured in a separate process. The operand `code*`, which
`extract_oracles` does not describe, is a weak tensor; the modes "all" and "safe" have them, "off" has not.
`zero_dimensional` counts the cells of `+` in which a 0-d tensor changes the result: none, since TensorFlow's rules do
not depend on shapes.
"""

from __future__ import annotations

import json
import operator
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

MODES = ("off", "all", "safe")
CODES = {
    "b1": "bool", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "bf": "bfloat16", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
}  # fmt: skip
WEAK = ("i4*", "i8*", "f4*", "f8*", "c16*")
FUNCTIONS = {
    "add": "math.add", "subtract": "math.subtract", "multiply": "math.multiply", "divide": "math.divide",
    "floor_divide": "math.floordiv", "remainder": "math.floormod", "pow": "math.pow",
    "equal": "math.equal", "not_equal": "math.not_equal", "less_than": "math.less", "less_equal": "math.less_equal",
    "greater_than": "math.greater", "greater_equal": "math.greater_equal",
    "maximum": "math.maximum", "minimum": "math.minimum", "atan2": "math.atan2", "nextafter": "math.nextafter",
    "logical_and": "math.logical_and", "logical_or": "math.logical_or", "logical_xor": "math.logical_xor",
    "bitwise_and": "bitwise.bitwise_and", "bitwise_or": "bitwise.bitwise_or", "bitwise_xor": "bitwise.bitwise_xor",
    "bitwise_left_shift": "bitwise.left_shift", "bitwise_right_shift": "bitwise.right_shift",
}  # fmt: skip
UNARY = (
    "abs negative square sign round ceil floor conj real imag isfinite:is_finite isinf:is_inf isnan:is_nan"
    " exp expm1 log log1p sqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh logical_not"
)
NUMPY = {"hypot": "hypot", "logaddexp": "logaddexp"}
NUMPY_UNARY = {"positive": "positive", "trunc": "fix", "signbit": "signbit", "log2": "log2", "log10": "log10"}
"""Functions that only `tf.experimental.numpy` has."""
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


def measure(mode: str) -> dict[str, Any]:
    """Measure one mode, in this process."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    from tensorflow.python.framework import flexible_dtypes
    from tensorflow.python.framework.weak_tensor import WeakTensor

    from extract_oracles import OPERATORS, SCALARS, UNARY_OPERATORS, pairs, tables

    tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)
    code_of = {name: code for code, name in CODES.items()}

    def cell_of(dtype: Any, *, weak: bool) -> str:
        return code_of[tf.as_dtype(dtype).name] + "*" * weak

    def attempt(call: Callable[..., Any], *arguments: Any) -> str:
        try:
            result = call(*arguments)
        except Exception as error:  # TensorFlow refuses with many kinds of exceptions
            message = str(error)
        else:
            if isinstance(result, bool):
                return "p"  # Python's default ==, which compares identities
            return cell_of(result.dtype, weak=isinstance(result, WeakTensor))
        for sign, (_, pattern) in REFUSALS.items():
            if re.search(pattern, message):
                return sign
        raise ValueError(f"no pattern in REFUSALS matches: {message}")

    def operand(key: str, shape: tuple[int, ...] = (1,)) -> Any:
        if key in SCALARS:
            return SCALARS[key]
        tensor = tf.cast(tf.ones(shape, "int32"), CODES[key.removesuffix("*")])
        return WeakTensor(tensor) if key.endswith("*") else tensor

    def function(path: str) -> Callable[..., Any]:
        return operator.attrgetter(path)(tf)

    keys = [*CODES, *(WEAK if mode != "off" else ()), *SCALARS]
    operands = {key: operand(key) for key in keys}
    functions = {name: function(path) for name, path in FUNCTIONS.items()}
    functions["where"] = lambda left, right: tf.where(tf.constant([True]), left, right)
    operators = {name: call for name, call in OPERATORS.items() if "shift" not in name}
    forms: Mapping[str, Mapping[str, Callable[..., Any]]] = {
        "operator": operators,
        "function": functions,
        "numpy": {name: function(f"experimental.numpy.{theirs}") for name, theirs in NUMPY.items()},
    }
    measured: dict[str, dict[str, dict[str, str]]] = {}
    for form, calls in forms.items():
        for name, call in calls.items():
            table = measured[f"{name} {form}"] = {}
            for left, right in pairs(operands):
                table.setdefault(left, {})[right] = attempt(call, operands[left], operands[right])
    pairs_of_names = (name.partition(":") for name in UNARY.split())
    unary = {name: f"math.{theirs or name}" for name, _, theirs in pairs_of_names}
    unary["bitwise_not"] = "bitwise.invert"
    for form, calls in {
        "operator": UNARY_OPERATORS,
        "function": {name: function(path) for name, path in unary.items()},
        "numpy": {name: function(f"experimental.numpy.{theirs}") for name, theirs in NUMPY_UNARY.items()},
    }.items():
        asked = keys[: -len(SCALARS)] if form == "operator" else keys
        measured[f"unary {form}"] = {
            name: {key: attempt(call, operands[key]) for key in asked} for name, call in calls.items()
        }

    def result_type(*things: Any) -> str:
        def ask() -> str:
            dtype, weak = flexible_dtypes.result_type(*things)
            return cell_of(dtype, weak=weak)

        try:
            return ask()
        except TypeError as error:
            if not re.search(REFUSALS["d"][1], str(error)):
                raise
            return "d"

    triples: dict[str, str] = {}
    if mode != "off":
        measured["result_type function"] = {
            left: {right: result_type(operands[left], operands[right]) for right in keys} for left in keys
        }
        triples = {
            f"{a} {b}": " ".join(result_type(*(operands[key] for key in (a, b, c))) for c in keys)
            for a in keys
            for b in keys
        }

    zero_d = {key: operand(key, ()) for key in CODES}
    changed = sum(
        attempt(OPERATORS["add"], *pair) != measured["add operator"][a][b]
        for a in CODES
        for b in CODES
        for pair in ((zero_d[a], operands[b]), (operands[a], zero_d[b]), (zero_d[a], zero_d[b]))
    )
    values: dict[str, dict[str, Any]] = {}
    for name, scalar in VALUES:
        row = values[f"{name},{scalar}"] = {}
        for operation in ("add", "multiply", "less_than"):
            cell = attempt(OPERATORS[operation], operands[code_of[name]], scalar)
            row[operation] = {"refused": cell} if cell in REFUSALS else {"type": cell}
    return {
        "columns": " ".join(keys),
        "zero_dimensional": changed,
        "tables": tables(measured, keys),
        "triples": triples,
        "values": values,
        "version": tf.__version__,
    }


def by_mode(program: str) -> tuple[str, dict[str, Any]]:
    """Run a program once for each mode, and return TensorFlow's version and what the program printed.

    Args:
        program: the path of a Python file that takes the name of a mode and prints JSON with the version.
    """
    modes = {}
    for mode in MODES:
        ran = subprocess.run([sys.executable, program, mode], stdout=subprocess.PIPE, check=True)
        modes[mode] = json.loads(ran.stdout.splitlines()[-1])
    (version,) = {document.pop("version") for document in modes.values()}
    return version, modes


def tensorflow() -> dict[str, Any]:
    """Measure all modes of TensorFlow as shipped.

    The forms "operator", "function" and "numpy" are eager; "numpy" has the functions that only `tf.experimental.numpy`
    has. `result_type` is TensorFlow's own function, on which the modes "all" and "safe" are built; it is also called
    with every triple.
    """
    version, modes = by_mode(__file__)
    return {
        "framework": "tensorflow",
        "version": version,
        "codes": CODES,
        "refusals": {sign: reason for sign, (reason, _) in REFUSALS.items()} | {"p": "python"},
        "modes": modes,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
