"""The explanation of a decision names the rule that decided: examples for each rule set."""

import numpy as np
import pytest

from supremum import explain
from supremum.operations import OPERATIONS, Family
from supremum.rules import rule_names
from supremum.rules.verdicts import ALREADY

REASONS = {
    "mlx": [
        ("add", ("uint64", "int8"), "float* is a weak kind, and MLX gives float32"),
        ("add", ("float64", "complex64"), "complex64 is the least upper bound: float64 -> complex* -> complex64"),
        ("add", ("int8", 1.5), "float* counts as float32 next to int8"),
        ("add", ("int8", 1000), "the Python int b is out of range for int8"),
        ("add", ("float16", 2**64), "b does not fit int64, to which MLX converts a Python int"),
        ("add", ("bool", 2**40), "b is out of range for int32, and MLX wraps it around silently"),
        ("add", (1, 2**40), "int* alone counts as int64"),
        ("clip", ("bool", "uint8", 1), "int* counts as int32 next to bool"),
        ("positive", (1,), "MLX's positive needs an array, got Python int"),
        ("clip", (1.0, "int8", "int8"), "MLX's clip needs an array, got Python float"),
        ("solve", ("float16", "float32"), "MLX's solve needs float32 or float64 as first operand, got float16"),
        ("solve", ("float32", "complex64"), "solve does not accept complex operands, got complex64"),
        ("matmul", ("int8", "int8"), "matmul does not accept integer operands, got int8"),
        ("negative", ("bool",), "negative does not accept bool operands, got bool"),
        ("bitwise_left_shift", ("bool", "bool"), "bitwise_left_shift converts bool to uint8"),
        ("vecdot", ("int8", "int8"), "vecdot converts int8 to int32"),
        ("l1_loss", ("complex64", "float32"), "l1_loss of complex64 is float32"),
        ("sum", (np.ones((), "int8"),), "sum returns an array without dimensions as it is, in int8"),
        ("mean", ("int8",), "it is accumulated in int32, and the result is converted to float32"),
        ("hypot", ("int8", "int8"), "MLX has no hypot, so it is decided like atan2"),
    ],
    "paddle": [
        ("add", ("int32", "float32"), "Paddle promotes tensors only if both are floats or one is complex"),
        ("add", ("int8", np.float64(1)), "Paddle's table promotes int8 and float64 to float64"),
        ("add", (np.ones(2, "int8"), np.int64(1)), "tensors with dimensions outrank 0-d int64 of the same category"),
        ("add", ("float8_e5m2", "float16"), "Paddle's table has no row for float8_e5m2, which works only with itself"),
        ("add", ("float8_e5m2", 1j), "Paddle's table has no row for float8_e5m2, which a Python complex needs"),
        ("add", ("int8", 1000), "a Python int takes the tensors' type, int8"),
        ("add", ("int8", 1.5), "a Python float counts as float32 next to int8, which is of a lower category: float32"),
        ("pow", (np.float64(1), 1j), "a Python complex converts 0-d tensors to complex64 here, even wider ones"),
        ("divide", ("int8", "int8"), "divide converts int8 to float32"),
        ("less", ("float16", "bfloat16"), "less always gives bool"),
        ("where", ("float16", 1.0), "a Python float counts as float32"),
        ("fmax", ("float16", 1.0), "Paddle's fmax does not accept Python float"),
        ("bitwise_and", ("int8", "int16"), "Paddle's bitwise_and does not promote: its tensors must have one type"),
        ("bitwise_and", ("float32", "float32"), "bitwise_and does not accept float operands, got float32"),
        ("abs", ("complex64",), "abs of complex64 is float32"),
        ("sum", ("bool",), "sum of bool is int64"),
        ("mean", ("int32",), "it is accumulated in float32"),
        ("concat", ("float16", "float32"), "concat needs arrays of one dtype"),
        ("matmul", ("float32", "float64"), "Paddle's product needs tensors of one type, got float32 and float64"),
    ],
    "pandas": [
        ("divide", ("bool", "bool"), "pandas has no divide of bools"),
        ("concat", ("bool", "int8"), "concat of bools and numbers gives a column of objects"),
        ("concat", ("uint64", "int8"), "the common type of uint64 and int8 is float64"),
        ("bitwise_and", ("bool", "int8"), "the logical operators give bool if an operand is bool"),
        ("bitwise_or", ("uint64", "int64"), "bitwise_or has no loop with a safe cast from uint64 and int64"),
        ("negative", ("bool",), "negative keeps bool columns"),
        ("where", ("int8", 1000), "the common type of int8 and int16 is int16"),
        ("where", ("int8", 2**64), "no integer dtype of pandas holds the Python int"),
        ("where", ("float32", 1j), "the common type of float32 and complex128 is complex128"),
        ("clip", ("int8", 0, 300), "pandas keeps int8 if it holds every value"),
        ("add", ("int8", 1000), "the Python int b is out of range for int8"),
        ("sum", ("float16",), "sum of float16 is float64"),
        ("sum", (1,), "sum needs an array, got Python int"),
        ("diff", ("int8",), "the first value of Series.diff is NaN, and the result of int8 is float32"),
        ("diff", ("bool",), "Series.diff of bools gives a column of objects"),
    ],
    "pandas-nullable": [
        ("diff", ("int8",), "the first value of Series.diff is missing, and the result of int8"),
        ("sqrt", ("int8",), "nullable pandas holds float16 as float32"),
        ("add", ("int8", "complex64"), "nullable pandas has no complex64 columns"),
        ("bitwise_and", ("bool", 1), "nullable bool columns do not accept a Python int"),
        ("bitwise_xor", ("bool", "int8"), "nullable bool columns convert integers to bool"),
        ("bitwise_xor", ("int8", "bool"), "the logical operators give bool if an operand is bool"),
        ("where", ("int8", "int16"), "pandas keeps int8, and raises for values of int16"),
        ("where", ("int8", True), "pandas does not store a Python bool in a column of int8"),
        ("where", ("int8", 1000), "the Python int 1000 is out of range for int8"),
        ("where", ("float32", "int64"), "pandas keeps the dtype of the column, float32"),
    ],
    "polars": [
        ("add", ("uint8", "int8"), "uint8 and int8 promote to int16"),
        ("add", ("uint8", 1000), "uint8 and a Python int promote to uint16"),
        ("add", ("uint64", -1), "uint64 and a Python int promote to int64"),
        ("add", ("bool", "bool"), "add converts bool to uint32"),
        ("subtract", ("bool", "bool"), "subtract does not accept bool operands"),
        ("add", ("int8", 1j), "Polars has no complex numbers"),
        ("divide", ("uint64", "int8"), "divide converts int128 to float64"),
        ("pow", ("int8", "int64"), "a power has the type of its base, int8"),
        ("pow", ("int64", "float16"), "a power has the type of its exponent, float16"),
        ("pow", ("int64", -1), "the exponent of an integer must be between 0 and 2**32 - 1"),
        ("pow", ("bool", "int8"), "Polars' pow does not accept Boolean"),
        ("atan2", ("float32", "float64"), "arctan2 takes its first operand, float32, as float32"),
        ("bitwise_and", ("bool", "int8"), "Polars' bitwise_and does not accept Boolean next to int8"),
        ("negative", ("uint8",), "Polars has no negative of uint8"),
        ("sum", ("int8",), "sum of int8 is int64"),
        ("diff", ("uint8",), "diff converts uint8 to int16"),
        ("clip", ("int8", 0, 1000), "a Python int does not fit int8, to which Polars casts the bounds"),
        ("matmul", ("int8", "int8"), "Polars has no matmul, so it is decided like vecdot"),
    ],
    "pyarrow": [
        ("add", ("int8", "uint64"), "int64 is the least upper bound: int8 -> int16 -> int32 -> int64, uint64 -> int64"),
        ("add", ("uint64", "int64"), "pyarrow raises for uint64 values beyond 9223372036854775807"),
        ("add", ("int32", "float32"), "pyarrow raises for int32 values beyond 16777216"),
        ("add", ("int8", 1), "int* counts as int64"),
        ("add", ("float32", 2**24 + 1), "b is an int that float32 does not hold, and pyarrow raises"),
        ("add", ("int8", 2**63), "b is an int that int64 does not hold, and pyarrow raises"),
        ("add", ("int8", 1j), "pyarrow has no complex* arrays"),
        ("add", ("bool", "int8"), "pyarrow's functions have no common type of bool and int8"),
        ("add", ("bool", "bool"), "add does not accept bool operands, got bool"),
        ("add", ("float16", "float16"), "pyarrow has no add of float16"),
        ("where", ("float16", "float32"), "pyarrow's functions have no common type of float16 and float32"),
        ("concat", ("int16", "float16"), "columns of int16 and float16 are merged in float32"),
        ("concat", ("bool", "int8"), "pyarrow does not merge columns of bool and int8"),
        ("concat", ("int8", 1), "pyarrow's concat needs arrays, got Python int"),
        ("hypot", ("float32", "int8"), "hypot converts int8 to float64"),
        ("floor", ("int8",), "floor converts int8 to float64"),
        ("sign", ("uint64",), "sign of uint64 is int8"),
        ("sum", ("float32",), "sum of float32 is float64"),
        ("sum", ("float16",), "pyarrow has no sum of float16"),
        ("any", ("int8",), "pyarrow has no any of int8"),
        ("copysign", ("float16", "float16"), "pyarrow has no copysign, so it is decided like atan2"),
    ],
    "tinygrad": [
        (
            "add",
            ("int32", "float16"),
            "float16 is the least upper bound: int32 -> int64 -> float* -> float8_e4m3fn -> float16",
        ),
        ("add", ("float8_e4m3fn", "float8_e5m2"), "float16 and bfloat16 are the smallest upper bounds, and tinygrad"),
        ("add", ("uint64", "int8"), "float* is a weak kind and has dtype float32 unless an operand is strong"),
        ("divide", ("int8", "int8"), "divide converts int8 to float32"),
        ("acos", ("int8",), "acos converts int8 to float*"),
        ("floor_divide", ("bool", "bool"), "floor_divide converts bool to float32"),
        ("less", ("float16", "bfloat16"), "less always gives bool"),
        ("fmax", ("float16", 1.0), "tinygrad has no fmax, so it is decided like maximum"),
        ("bitwise_and", ("int8", "float16"), "bitwise_and does not accept float operands, got float16"),
        ("bitwise_left_shift", ("bool", "bool"), "bitwise_left_shift does not accept bool operands, got bool"),
        ("sum", ("uint8",), "sum of uint8 is uint32"),
        (
            "sum",
            ("float8_e5m2",),
            "it is accumulated in float32 and rounded once: `sum_acc_dtype` in tinygrad/dtype.py",
        ),
        ("var", ("int8",), "tinygrad has no var of int8"),
        ("add", ("int8", 1j), "tinygrad has no complex* tensors"),
        ("sum", ("int8",), "sum of int8 is int32"),
        ("mean", ("int8",), "it is accumulated in int32, and the result is converted to float32"),
    ],
    "tf-rfc-all": [
        ("add", ("int8", "uint8"), "int16 is the lowest width integer dtype that holds int8 and uint8"),
        ("add", ("int64", "float64"), "no dtype holds int64 and float64 exactly, so the width is capped at float64"),
        ("add", ("int8", "int8"), "the operands already have this dtype"),
        ("add", ("int8", 1.5), "float* is above int8 in the order of promotion, so the result is float64"),
        ("add", ("int8", 1), "Python numbers take the dtype of the tensors, int8"),
        ("add", (1, 1.5), "float* without a tensor has TensorFlow's default dtype, float32"),
    ],
    "tf-rfc-safe": [
        ("add", ("uint8", "int8"), "the result int16 would be wider than all tensors: uint8 and int8"),
    ],
    "tf-off": [
        ("sum", ("int8",), "it is accumulated in int8, and wraps around beyond 127"),
        ("mean", ("int8",), "it is accumulated in int64, and the result is converted to int8"),
        ("concat", ("int8", "int16"), "concat needs tensors of one dtype, got int8 and int16"),
        ("vecdot", ("int8", "int8"), "tf.math has no vecdot, so it is decided like matmul"),
    ],
    "torch": [
        ("sum", ("int8",), "sum of int8 is int64"),
        ("mean", ("int32",), "torch has no mean of int32"),
        ("matmul", ("int32", "float32"), "matmul needs arrays of one dtype, got int32 and float32"),
        ("any", ("uint8",), "any keeps uint8"),
        ("sum", (1,), "torch's sum needs tensors, not Python numbers"),
        ("where", ("uint8", 256), "a Python number does not fit uint8, and where checks its range"),
    ],
    "jax-x32": [
        ("mean", ("int32",), "mean of int32 is float32"),
        ("sum", ("float16",), "it is accumulated in float32 and rounded once: `_upcast_f16`"),
    ],
    "numpy": [
        ("sum", ("uint8",), "sum of uint8 is uint64"),
        ("solve", ("float32", "int8"), "solve computes float32 and int8 in float64"),
        ("clip", ("uint8", 0, 256), "NumPy skips b and c, because no element is out of that bound"),
        ("clip", ("uint8", 256, 300), "the Python int b is out of range for uint8"),
        ("add", ("bfloat16", "uint16"), "float32 is the first loop of add with a safe cast from bfloat16 and uint16"),
        ("result_type", ("bfloat16", "uint16"), "needs a common type, and NumPy has none for bfloat16 and uint16"),
    ],
    "array-api": [
        ("mean", ("int8",), "the array API standard has no mean of int8"),
        ("result_type", ("uint8", 256), "the Python int b is out of range for uint8; the standard defines no result"),
    ],
}
"""For each rule set: an operation, its operands, and a part of the reason."""


@pytest.mark.parametrize("rules", REASONS)
def test_reason_names_the_rule_that_decided(rules):
    missing = []
    for operation, operands, part in REASONS[rules]:
        reason = str(explain(*operands, operation=operation, rules=rules))
        if part not in reason:
            missing.append(f"{part!r} is not in:\n{reason}")
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("rules", rule_names())
def test_reasons_of_reductions_do_not_say_that_one_operand_has_its_dtype(rules):
    names = [name for name, row in OPERATIONS.items() if row.family is Family.REDUCTION]
    reasons = [
        (name, dtype, reason)
        for name in names
        for dtype in ("uint8", "float16", "float32")
        if ALREADY in (reason := explain(dtype, operation=name, rules=rules).reason) or not reason
    ]
    assert reasons == []
    assert names
