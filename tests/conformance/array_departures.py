"""Where rule sets depart from their source on purpose in functions of whole arrays; as the rows of `departures`."""

import jax

from conformance.departures import Departure
from supremum.rules.names import FOLLOWING

_FLOAT8 = "float8_e4m3fn float8_e5m2"
_WHOLE = "concat stack matmul tensordot outer cross clip"
_ORDER = "decisions do not depend on the order of the operands: what Paddle takes in one order is taken in both"

ARRAY_DEPARTURES: list[Departure] = [
    *(
        Departure(
            rules, "array", "mean", "uint1 uint2 int1 int2", "", "refused", "tensor", 4,
            "JAX averages integers of one and two bits in themselves, where no average is; sums and variances of them "
            "it refuses, and so do these rules",
        )
        for rules in FOLLOWING["jax"]
    ),
    *(
        Departure(
            rules, "array", "min max", "int64 uint64", "", "tensor", "refused", 3,
            "JAX 0.10 reduces them from a number of 32 bits, which its own reduction refuses; JAX 0.11 does not",
        )
        for rules in FOLLOWING["jax"]
        if "explicit" in rules and jax.__version_info__ < (0, 11)
    ),
    Departure(
        "jax-explicit-x64", "array", "matmul tensordot vecdot", "uint64", "int8 int16 int32 int64", "float32*",
        "refused", 24, "JAX asks for a product that is narrower than uint64, and its own product refuses that",
        either_order=True,
    ),
    *(
        Departure(
            rules, "array", "matmul tensordot vecdot", "bool", "int1", "int1", "refused", 6,
            "these rules say where operands meet; JAX's product, and none of its other functions, lacks this pair",
            either_order=True,
        )
        for rules in FOLLOWING["jax"]
        if "strict" not in rules
    ),
    Departure(
        "keras", "array", _WHOLE, _FLOAT8, f"bool integer bool() int* float* {_FLOAT8}", "refused", _FLOAT8, 246,
        "on JAX Keras leaves a float8 beside another one like it, and beside integers, to JAX; its own result_type, "
        "which these rules follow, gives no dtype for a float8 with anything",
        either_order=True,
    ),
    Departure(
        "paddle", "array", "var std", "int32 int64", "", "refused", "int32 int64 float32", 4,
        "Paddle subtracts a mean that has lost its fraction: the variance of 1 and 2 is 1 there, and not 0.5",
    ),
    Departure(
        "paddle", "array", "matmul tensordot", "int32 int64", "float32", "float32", "refused", 4, _ORDER,
    ),
    Departure(
        "paddle", "array", "stack", "complex", "tensor", "refused", "complex64 complex128", 12,
        "Paddle takes them only with the complex tensor first, and narrows a float64 beside complex64",
    ),
    Departure(
        "paddle", "array", "clip", "tensor", "complex complex*", "refused", "any", 20,
        "Paddle reads the real part of a complex bound, and says nothing of the imaginary one",
    ),
    Departure(
        "tf-off", "array", "matmul tensordot", "bfloat16", "float32", "refused", "float32", 4,
        "TensorFlow finds a product of sparse matrices for this pair alone; its other operators refuse it",
        either_order=True,
    ),
    Departure(
        "array-api", "array", "matmul vecdot tensordot cross outer", "integer", "float complex", "refused", "any", 320,
        "array-api-strict leaves it to NumPy where integers meet floats in a product, which the standard leaves "
        "undefined",
        either_order=True,
    ),
    Departure(
        "array-api", "array", "matmul vecdot tensordot cross outer", "uint64", "int8 int16 int32 int64", "refused",
        "float64", 40, "the same of uint64 with signed integers", either_order=True,
    ),
    Departure(
        "array-api", "array", "diff", "tensor", "tensor", "refused", "any", 144,
        "the standard wants the ends in the dtype of the array, and leaves others to the library; array-api-strict "
        "asks nothing of them",
    ),
    Departure(
        "array-api", "array", "clip", "tensor", "tensor scalar", "refused", "any", 116,
        "the standard leaves bounds of another dtype to the library; array-api-strict gives the dtype of the array",
    ),
]  # fmt: skip

# By rule set: the sums of a tensor and NumPy's array of another dtype in which it differs from that of two tensors.
FOREIGN = {
    "tf-off": 392,
    "tf-all": 0,
    "tf-safe": 72,
    "paddle": 0,
}
"""TensorFlow's own operators cast NumPy's array to the tensor's dtype, complex numbers to uint8 too, without a word.

In mode "safe" it forgets to refuse what mode "all" would promote where NumPy's array stands on the right.
Here NumPy's arrays are tensors like those of any other library, of the dtype that they have, and are refused beside
others: what would be lost is not guessed.
"""
