"""What autocast casts, and to what: the real floats of 16 and 32 bits."""

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
"""The formats that autocast casts, and casts to.

Floats of 64 bits were asked for, and those of 8 bits were put where they are by hand.
"""

CASTABLE: Final = frozenset(row.dtype for row in CASTABLE_FORMATS)
"""Their dtypes."""

_FOREIGN: Final = frozenset(row.dtype for row in FORMATS if row.is_inexact) - CASTABLE


def castable(aval: Any) -> DType | None:
    """The dtype of an abstract value that may be cast; None for all others, PRNG keys among them."""
    return _among(CASTABLE, aval)


def foreign(aval: Any) -> DType | None:
    """The dtype of an abstract value that is floating or complex and never cast; None for all others."""
    return _among(_FOREIGN, aval)


def _among(dtypes: frozenset[DType], aval: Any) -> DType | None:
    # Tokens have no dtype, and those of PRNG keys are no NumPy dtypes.
    dtype = getattr(aval, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype in dtypes else None


@lru_cache(maxsize=4096)
def fitting(number: float) -> frozenset[DType]:
    """The castable dtypes that hold a number without overflow, and without losing bits by underflow."""

    def fits(row: Format) -> bool:
        return number == 0 or not math.isfinite(number) or row.smallest_normal <= abs(number) <= row.max

    return frozenset(row.dtype for row in CASTABLE_FORMATS if fits(row))


def join(dtypes: frozenset[DType]) -> DType:
    """The least dtype that holds all of these."""
    if len(dtypes) == 1:
        (dtype,) = dtypes
        return dtype
    return _join_of_several(dtypes)


@lru_cache(maxsize=256)
def _join_of_several(dtypes: frozenset[DType]) -> DType:
    return result_type(*dtypes, rules="jax-x32")
