"""What layers compute, as functions of arrays, in the dtype that inputs and parameters meet in."""

from supremum.nn.functional.convolution import conv
from supremum.nn.functional.pooling import max_pool
from supremum.nn.functional.products import dense, moments, normalise, statistics_dtype
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
    "statistics_dtype",
]
