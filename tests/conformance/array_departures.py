"""Deliberate differences between rule sets and their sources in functions of whole arrays: rows like `departures`."""

from dataclasses import replace

import jax

from conformance.departures import Departure, applies_to, departures_of_table, rows_by_reason
from supremum.rules.names import JAX_ALIASES

_JAX = " ".join(JAX_ALIASES["jax"])
_STANDARD_JAX = " ".join(name for name in JAX_ALIASES["jax"] if "strict" not in name)
_FLOAT8 = "float8_e4m3fn float8_e5m2"
_PRODUCTS = "matmul vecdot tensordot cross outer"
_TABLE = f"""\
JAX computes the mean of 1-bit and 2-bit integers in their own dtype, which cannot hold it; JAX refuses their sums and
variances, and these rules refuse all three
  {_JAX} | array | mean | uint1 uint2 int1 int2 | - | refused | tensor | 4
JAX 0.10 starts the reduction from a 32-bit number, which its own reduction refuses; JAX 0.11 does not
  jax-explicit-x64 jax-strict-explicit-x64 | array before 0.11 | min max | int64 uint64 | - | tensor | refused | 3
JAX requests a result that is narrower than uint64, and its own product refuses the request
  jax-explicit-x64 | array | matmul tensordot vecdot | uint64 | int8 int16 int32 int64 | float32* | refused | 24
    | either order
these rules give the promoted dtype; only JAX's product lacks this pair, its other functions accept it
  {_STANDARD_JAX} | array | matmul tensordot vecdot | bool | int1 | int1 | refused | 6 | either order
with the JAX backend, Keras passes a float8 next to another float8, an integer or a number to JAX; its own result_type,
which these rules follow, refuses a float8 next to any operand
  keras | array | concat stack matmul tensordot outer cross clip | {_FLOAT8}
    | bool integer bool() int* float* {_FLOAT8} | refused | {_FLOAT8} | 246 | either order
Paddle subtracts a mean that has lost its fraction, so the variance of 1 and 2 is 1 instead of 0.5
  paddle | array | var std | int32 int64 | - | refused | int32 int64 float32 | 4
decisions do not depend on the order of the operands; what Paddle accepts in one order, these rules accept in both
  paddle | array | matmul tensordot | int32 int64 | float32 | float32 | refused | 4
Paddle accepts them only with the complex tensor first, and narrows a float64 next to complex64
  paddle | array | stack | complex | tensor | refused | complex64 complex128 | 12
Paddle uses the real part of a complex bound and silently drops the imaginary part
  paddle | array | clip | tensor | complex complex* | refused | any | 20
tinygrad adds up the squares as integers and loses their fractions, so the variance of 1 and 2 is 0, not 0.5
  tinygrad | array | var std | bool integer | - | refused | float32 | 20
NumPy converts a frame of nullable columns to objects, and does not solve with them; these rules decide as for arrays of
the dtypes of the columns
  pandas-nullable | array | solve | tensor | tensor | float32 float64 | refused | 121
TensorFlow has a sparse matrix product for this pair only; its other operators refuse the pair
  tf-off | array | matmul tensordot | bfloat16 | float32 | refused | float32 | 4 | either order
array-api-strict passes products of integers and floats to NumPy; the standard leaves them undefined
  array-api | array | {_PRODUCTS} | integer | float complex | refused | any | 320 | either order
array-api-strict passes products of uint64 and signed integers to NumPy; the standard leaves them undefined
  array-api | array | {_PRODUCTS} | uint64 | int8 int16 int32 int64 | refused | float64 | 40 | either order
the standard asks for `prepend` and `append` in the dtype of the array and leaves other dtypes undefined;
array-api-strict does not check them
  array-api | array | diff | tensor | tensor | refused | any | 144
the standard leaves bounds of a different dtype undefined; array-api-strict gives the dtype of the array
  array-api | array | clip | tensor | tensor scalar | refused | any | 116
"""
ARRAY_DEPARTURES: list[Departure] = [
    replace(row, form="array")
    for row in departures_of_table(_TABLE)
    if applies_to(row.form, "array", jax.__version_info__)
]

_SUMMED = "the weights are added, in the dtype that the rules decide for sums"
_NARROW, _UNSIGNED, _COMPLEX = "int8 int16 int32", "uint8 uint16 uint32", "complex64 complex128"
_OF_NUMPY = f"""\
the rules convert bools to floats first; NumPy subtracts them, which it refuses
  quantile | accepted | bool
  quantile of an array | accepted | bool
  quantile by a midpoint | accepted | bool
  percentile | accepted | bool
  gradient | accepted | bool
the rules do not store the int 1 in bools; NumPy casts whatever it is given
  pad | refused | bool
complex numbers have no order; NumPy warns and drops parts
  histogram | refused | {_COMPLEX}
  histogram(density=) | refused | {_COMPLEX}
{_SUMMED}; NumPy keeps narrow integers, which wrap around
  histogram(weights=) | int64 | bool {_NARROW}
  histogram(weights=) | uint64 | {_UNSIGNED}
{_SUMMED}; NumPy converts weights to float64
  bincount(weights=) | int64 | bool {_NARROW} int64
  bincount(weights=) | uint64 | {_UNSIGNED} uint64
  bincount(weights=) | float16 | float16
  bincount(weights=) | float32 | float32
{_SUMMED}; NumPy has no complex weights
  bincount(weights=) | accepted | {_COMPLEX}
the rules decide the dtype of every step; NumPy computes in float64, whatever the dtypes
  interp | float16 | float16
  interp | float32 | float32
"""
_ALL = "int8 float16 float64"
_OF_JAX = f"""\
q may have any number of dimensions, as in NumPy; in JAX at most one
  quantile of an array | accepted | {_ALL}
an element keeps its dtype, as in NumPy; JAX converts it to float
  quantile by an element | int8 | int8
lists are converted to arrays, as in NumPy; JAX refuses them
  percentile | accepted | {_ALL}
  histogram | accepted | {_ALL}
counts are integers, as in NumPy; JAX counts in floats
  histogram | int64 | {_ALL}
{_SUMMED}; JAX keeps int8, which wraps around
  histogram(weights=) | int64 | int8
  bincount(weights=) | int64 | int8
the rules decide the sum of the weights; JAX promotes the values
  histogram(weights=) | float16 | float16
JAX has no `edge_order`
  gradient | accepted | {_ALL}
sums of products of integers are integers, as in NumPy; JAX converts them to float
  convolve | int8 | int8
"""


def _of_functions(table: str) -> dict[tuple[str, str], tuple[str, str]]:
    return {(name, ours): (dtypes, reason) for reason, (name, ours, dtypes) in rows_by_reason(table)}


NUMPY_FUNCTION_DEPARTURES = _of_functions(_OF_NUMPY)
"""Differences between NumPy's functions beyond the standard and ours under its rules, with the dtypes and the reason.

The keys are names of `numpy_function_judge.TABLES`, and what ours do: they refuse, accept, or give a dtype.
"""
JAX_FUNCTION_DEPARTURES = _of_functions(_OF_JAX)
"""The same for JAX's functions, under its rules."""

# By rule set: how many sums of a tensor and a NumPy array have a dtype that our rule for two tensors does not give.
FOREIGN = {
    "tf-off": 392,
    "tf-all": 0,
    "tf-safe": 72,
    "paddle": 0,
}
"""With promotion off, TensorFlow's operators silently cast a NumPy array to the tensor's dtype, even complex to uint8.

In mode "safe", TensorFlow promotes as mode "all" does where the NumPy array is on the right, instead of refusing.
These rules treat a NumPy array like a tensor of the same dtype: two dtypes that do not promote are refused.
"""
