"""What layers compute, as functions of arrays, in the dtype that inputs and parameters meet in."""

from supremum.nn.functional.normalisation import moments, normalise
from supremum.nn.functional.products import conv, dense, max_pool
from supremum.nn.functional.promotion import at_least_float32, common_dtype, promote_dtype

__all__ = [
    "at_least_float32",
    "common_dtype",
    "conv",
    "dense",
    "max_pool",
    "moments",
    "normalise",
    "promote_dtype",
]
