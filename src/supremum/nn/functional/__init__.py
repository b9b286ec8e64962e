"""What layers compute, as functions of arrays, in the dtype that inputs and parameters meet in."""

from supremum.nn.functional.promotion import at_least_float32, common_dtype, promote_dtype

__all__ = ["at_least_float32", "common_dtype", "promote_dtype"]
