"""The dtypes that autocast casts from and to: real floats of 16 and 32 bits."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np

from supremum.formats import FORMATS, DType, Format, Kind, as_format
from supremum.promotion import result_type

CASTABLE_FORMATS: Final[tuple[Format, ...]] = tuple(
    row for row in FORMATS if row.kind is Kind.FLOAT and 16 <= row.bits <= as_format("float32").bits
)
"""The formats that autocast casts from and to.

Programs use floats of 64 and 8 bits on purpose; autocast leaves them alone.
"""

CASTABLE: Final = frozenset(row.dtype for row in CASTABLE_FORMATS)
"""The dtypes of `CASTABLE_FORMATS`."""

_FOREIGN: Final = frozenset(row.dtype for row in FORMATS if row.is_inexact) - CASTABLE


def castable(aval: Any) -> DType | None:
    """Return the dtype of an abstract value that autocast casts; None for all others, such as PRNG keys."""
    return _among(CASTABLE, aval)


def foreign(aval: Any) -> DType | None:
    """Return the dtype of a floating or complex abstract value that autocast never casts; None for all others."""
    return _among(_FOREIGN, aval)


def _among(dtypes: frozenset[DType], aval: Any) -> DType | None:
    # Tokens have no dtype, and the dtypes of PRNG keys are not NumPy dtypes.
    dtype = getattr(aval, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype in dtypes else None


@lru_cache(maxsize=4096)
def fitting(number: float) -> frozenset[DType]:
    """Return the castable dtypes that hold a number without overflow, and without losing bits by underflow."""
    if number == 0 or not math.isfinite(number):
        return CASTABLE
    return frozenset(row.dtype for row in CASTABLE_FORMATS if row.smallest_normal <= abs(number) <= row.max)


@lru_cache(maxsize=256)
def join(dtypes: frozenset[DType]) -> DType:
    """Return the smallest dtype that holds all of these dtypes."""
    return result_type(*dtypes, rules="jax-x32")
