"""Measure NumPy 1.26's promotion, which depends on values; `extract_oracles.py numpy-legacy` calls this module.

An operand is `i8` for an array with a dimension, `i8[300]` for a 0-d array with that value, and `300`, `1.5`, `1j` or
`True` for a Python number. The document has in addition:

    reversed               the cells that change when the operands are exchanged
    scalars_differ         in how many cells a NumPy scalar gives a different result than a 0-d array of its value
    scalar_pairs_differ    how many pairs of 0-d arrays or Python numbers give a different result than another pair of
                           the same dtypes
    foreign_values_differ  in how many cells the result depends on the value of a 0-d array of ml_dtypes
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

CODES = {
    "b1": "bool", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
}  # fmt: skip
FOREIGN = {
    "bf": "bfloat16", "e3m4": "float8_e3m4", "e4m3": "float8_e4m3", "b11": "float8_e4m3b11fnuz",
    "e4m3fn": "float8_e4m3fn", "e4m3fz": "float8_e4m3fnuz", "e5m2": "float8_e5m2", "e5m2fz": "float8_e5m2fnuz",
    "e2m3": "float6_e2m3fn", "e3m2": "float6_e3m2fn", "e2m1": "float4_e2m1fn", "e8m0": "float8_e8m0fnu",
    "int2": "int2", "uint2": "uint2", "int4": "int4", "uint4": "uint4",
}  # fmt: skip
"""The dtypes of ml_dtypes."""
_ENDS = (7, 8, 15, 16, 31, 32, 63, 64)
INTS = sorted(
    {-1, 0, 1, 2**64}
    | {2**bits + d for bits in _ENDS for d in (-1, 0)}
    | {-(2**bits) - d for bits in _ENDS[::2] for d in (0, 1)}
)
FLOATS = (1.0, 64999.0, 65000.0, -65000.0, 3.39e38, 3.4e38, -3.4e38, 1e39, float("inf"), float("nan"))
COMPLEXES = (1j, 65000j, 3.39e38 + 0j, 3.4e38j, 1e39 + 1j, complex("nan"))
FUNCTIONS = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "true_divide",
    "floor_divide": "floor_divide", "remainder": "remainder",
    "pow": "power", "maximum": "maximum", "minimum": "minimum",
    "fmax": "fmax", "fmin": "fmin",
    "atan2": "arctan2", "hypot": "hypot", "copysign": "copysign", "nextafter": "nextafter", "logaddexp": "logaddexp",
    "equal": "equal", "not_equal": "not_equal", "less_than": "less", "less_equal": "less_equal",
    "greater_than": "greater", "greater_equal": "greater_equal",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}  # fmt: skip
UNARY = (
    "positive negative square round sign conj:conjugate ceil floor trunc abs:absolute real imag isfinite isinf isnan"
    " signbit bitwise_not:invert logical_not exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan asin:arcsin"
    " acos:arccos atan:arctan sinh cosh tanh asinh:arcsinh acosh:arccosh atanh:arctanh"
)
REFUSALS = {"-": "no-loop", "o": "object", "v": "value"}
_IN_TRIPLES = "u1[1] u1[200] i1[-1] i8[300] f4[1.0] f8[1e+39] 1 300 -1 1.0 1e+39 1j True bf[1] e5m2[1] int4[1]"


def numpy_legacy() -> dict[str, Any]:
    """Measure `np.result_type` and NumPy's functions before NEP 50, on 64-bit Linux."""
    import ml_dtypes
    import numpy as np

    from extract_oracles import differing, tables

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")  # warnings take longer than the calls
    codes = CODES | FOREIGN
    code_of = {name: code for code, name in codes.items()}
    arrays = {code: np.ones((1,), name) for code, name in codes.items()}
    zero_d: dict[str, Any] = {}
    values = {"b": (True, False), "u": (*INTS, 200, 300), "i": (*INTS, 200, 300), "f": FLOATS, "c": COMPLEXES}
    for code, name in CODES.items():
        for value in values[np.dtype(name).kind]:
            if np.dtype(name).kind in "ui" and not np.iinfo(name).min <= value <= np.iinfo(name).max:
                continue
            zero_d[f"{code}[{value!r}]"] = np.array(value, name)
    numbers = {repr(value): value for value in (True, False, *INTS, 300, *FLOATS, *COMPLEXES)}
    ones = [f"{code}[{values[np.dtype(name).kind][0] if code == 'b1' else 1}]" for code, name in CODES.items()]
    ones = [
        one.replace("[1]", "[1.0]") if one[0] == "f" else one.replace("[1]", "[1j]") if one[0] == "c" else one
        for one in ones
    ]
    foreign = {f"{code}[1]": np.array(1, name) for code, name in FOREIGN.items()}
    largest = {
        f"{code}[1]": np.array((ml_dtypes.iinfo if "int" in name else ml_dtypes.finfo)(name).max, name)
        for code, name in FOREIGN.items()
    }
    everything = arrays | zero_d | foreign | numbers
    rows = [*arrays, *ones, *foreign, "True", "1", "300", str(2**63), "1.0", "1j"]

    def attempt(call: Callable[..., Any], *arguments: Any) -> str:
        if any(np.asarray(argument).dtype.hasobject for argument in arguments):
            return "o"  # Python computes with ints beyond 64 bits, and a power of them takes forever
        try:
            result = call(*arguments)
        except ValueError as error:
            if "negative integer powers" not in str(error):  # this error depends on values, not on types
                raise
            return "v"
        except (TypeError, OverflowError, AttributeError):
            return "-"
        dtype = result if isinstance(result, np.dtype) else np.asarray(result).dtype
        return "o" if dtype.hasobject else code_of[dtype.name]

    functions: dict[str, Callable[..., Any]] = {name: getattr(np, theirs) for name, theirs in FUNCTIONS.items()}
    functions |= {"result_type": np.result_type, "where": lambda left, right: np.where(np.array([True]), left, right)}
    measured = {
        f"{name} function": {a: {b: attempt(call, everything[a], everything[b]) for b in everything} for a in rows}
        for name, call in functions.items()
    }
    reverse: dict[str, Any] = {}
    for name, call in functions.items():
        for a in rows:
            for b in everything:
                cell = attempt(call, everything[b], everything[a])
                if cell != measured[f"{name} function"][a][b] and "v" not in (cell, measured[f"{name} function"][a][b]):
                    reverse.setdefault(name, {}).setdefault(a, {})[b] = cell
    unary = dict(name.split(":") if ":" in name else (name, name) for name in UNARY.split())
    measured["unary function"] = {
        name: {key: attempt(getattr(np, theirs), np.asarray(value)) for key, value in everything.items()}
        for name, theirs in unary.items()
    }
    scalars, values_differ = (
        sum(
            attempt(call, everything[a], value) != measured[f"{name} function"][a][b]
            for name, call in functions.items()
            for a in arrays
            for b, value in asked.items()
        )
        for asked in ({name: value[()] for name, value in (zero_d | foreign).items()}, largest)
    )
    alone = {np.asarray(value).dtype.name: value for value in (*zero_d.values(), *numbers.values())}
    pairs = sum(
        attempt(np.result_type, a, b)
        != attempt(np.result_type, alone[np.asarray(a).dtype.name], alone[np.asarray(b).dtype.name])
        for a in (*zero_d.values(), *numbers.values())
        for b in (*zero_d.values(), *numbers.values())
    )
    third = [*arrays, *_IN_TRIPLES.split()]
    extra = everything | {"300": 300}
    return {
        "framework": "numpy-legacy",
        "version": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "codes": codes,
        "refusals": REFUSALS,
        "columns": " ".join(everything),
        "reversed": differing({"function": reverse})["function"],
        "scalars_differ": scalars,
        "foreign_values_differ": values_differ,
        "scalar_pairs_differ": pairs,
        "tables": tables(measured, list(everything)),
        "triple_columns": " ".join(third),
        "triples": {
            f"{a} {b}": " ".join(attempt(np.result_type, extra[a], extra[b], extra[c]) for c in third)
            for a in third
            for b in third
        },
    }
