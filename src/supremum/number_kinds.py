"""The kinds of numbers in the order of promotion, and which bit patterns are NaN."""

from __future__ import annotations

import enum


class Kind(enum.Enum):
    """The kind of number that a format holds, in the order of promotion.

    >>> import numpy as np
    >>> from supremum.formats import as_format
    >>> as_format("uint8").kind, as_format("uint8").kind.category
    (<Kind.UNSIGNED: 'unsigned integer'>, 'integer')
    >>> as_format("bfloat16").kind is Kind.FLOAT, np.dtype("bfloat16").kind
    (True, 'V')
    """

    BOOL = "bool"
    UNSIGNED = "unsigned integer"
    SIGNED = "signed integer"
    FLOAT = "real floating"
    COMPLEX = "complex floating"

    @property
    def category(self) -> str:
        """The kind without its signedness, one of `"bool"`, `"integer"`, `"float"` and `"complex"`."""
        return _CATEGORY[self]


_CATEGORY = dict(zip(Kind, ("bool", "integer", "integer", "float", "complex"), strict=True))
CATEGORIES: tuple[str, ...] = ("bool", "integer", "float", "complex")
"""Categories from the lowest to the highest; this is all that the type of a Python scalar determines.

>>> from supremum.formats import as_format
>>> [CATEGORIES.index(as_format(name).category) for name in ("int64", "bfloat16")]
[1, 2]
"""


class Nan(enum.Enum):
    """Which bit patterns of a floating format are NaN.

    >>> from supremum.formats import as_format
    >>> as_format("float8_e5m2").nan, as_format("float8_e4m3fn").nan
    (<Nan.IEEE: 'top exponent with a nonzero mantissa'>, <Nan.ALL_ONES: 'all exponent and mantissa bits one'>)
    >>> as_format("float8_e4m3fn").dtype.type(1000)
    nan
    """

    NONE = "no pattern"
    IEEE = "top exponent with a nonzero mantissa"
    ALL_ONES = "all exponent and mantissa bits one"
    NEGATIVE_ZERO = "the pattern that would be -0"
