"""Number formats: a table with one row for each, from which everything else about dtypes is derived.

NumPy's own `dtype.kind` and type tree are wrong about the formats of ml_dtypes (bfloat16 has kind "V", float8_e5m2
kind "f"), so this library uses this table instead. To add a format, add a row.

The bit layouts are those of IEEE 754, of the OCP Microscaling and 8-bit floating point specifications, and, for the
`fnuz` and `b11` variants, of the ml_dtypes documentation; the tests compare every derived number with `ml_dtypes`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np

from supremum.column_dtype import ColumnDtype
from supremum.errors import ArgumentError, UnknownDtypeError, shown
from supremum.framework_dtypes import framework_dtype_name
from supremum.number_kinds import CATEGORIES, Kind, Nan
from supremum.public_names import public_names
from supremum.typing import DTypeLike

__all__ = [
    "CATEGORIES",
    "COLUMN_FORMATS",
    "FORMATS",
    "ColumnDtype",
    "DType",
    "Format",
    "Kind",
    "Nan",
    "as_format",
    "at_least_float32",
    "format_names",
]

DType: TypeAlias = np.dtype[Any]
"""A NumPy dtype, of any format.

>>> dtype: DType = as_format("bfloat16").dtype
>>> dtype
dtype(bfloat16)
"""


# A row is equal only to itself, also after pickling and copying. Rows are never freed, so methods may be cached.
@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """A number format.

    Args:
        name: the name NumPy prints for its dtype.
        kind: the kind of number that it holds.
        bits: width of one value in bits, counting both components of a complex number.
        exponent: exponent bits of a float (of one component of a complex number).
        mantissa: stored mantissa bits (of one component of a complex number).
        nan: which patterns are NaN.
        inf: whether it has infinities.
        signed: whether it has negative numbers.
        zero: whether it has a zero (and, for floats, subnormals).
        bias: exponent bias if it is not `2**(exponent - 1) - 1`.

    >>> row = as_format("bfloat16")
    >>> row.bits, row.mantissa, row.eps, row.smallest_normal
    (16, 7, 0.0078125, 1.1754943508222875e-38)
    >>> [
    ...     each.name
    ...     for each in FORMATS
    ...     if each.is_inexact and not each.inf and each.nan is Nan.NONE
    ... ]
    ['float4_e2m1fn', 'float6_e2m3fn', 'float6_e3m2fn']
    """

    name: str
    kind: Kind
    bits: int
    exponent: int = 0
    mantissa: int = 0
    nan: Nan = Nan.NONE
    inf: bool = False
    signed: bool = True
    zero: bool = True
    bias: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return as_format, (self.name if self.is_of_arrays else self.dtype,)

    @property
    def short_name(self) -> str:
        """The name in tables, with a letter instead of the word, as JAX prints dtypes in jaxprs.

        >>> [
        ...     as_format(name).short_name
        ...     for name in ("uint8", "bfloat16", "complex64", "float8_e4m3fn", "bool")
        ... ]
        ['u8', 'bf16', 'c64', 'f8_e4m3fn', 'bool']
        """
        return next((self.name.replace(word, word[0]) for word in _WORDS if word in self.name), self.name)

    @property
    def dtype(self) -> DType:
        """The NumPy dtype of this format (from ml_dtypes if NumPy has none), or the `ColumnDtype` of a column."""
        return _DTYPE_BY_NAME[self.name]

    @property
    @cache  # noqa: B019
    def category(self) -> str:
        """`"bool"`, `"integer"`, `"float"` or `"complex"`."""
        return self.kind.category

    @property
    def is_inexact(self) -> bool:
        """True for floating and complex formats."""
        return self.kind in (Kind.FLOAT, Kind.COMPLEX)

    @property
    def is_builtin(self) -> bool:
        """Whether the dtype comes from NumPy itself rather than from ml_dtypes."""
        return self.is_of_arrays and self.dtype.isbuiltin == 1

    @property
    def is_of_arrays(self) -> bool:
        """Whether arrays have this format; otherwise only columns of data frames do.

        >>> as_format("int128", columns=True).is_of_arrays, as_format("int64").is_of_arrays
        (False, True)
        """
        return self.name in _BY_NAME

    @property
    @cache  # noqa: B019
    def component(self) -> Format:
        """The real format of one component of a complex format; a real format is its own component."""
        if self.kind is not Kind.COMPLEX:
            return self
        layout = (self.exponent, self.mantissa, self.nan, self.inf)
        floats = (row for row in FORMATS if row.kind is Kind.FLOAT)
        return next(row for row in floats if (row.exponent, row.mantissa, row.nan, row.inf) == layout)

    @property
    def _bias(self) -> int:
        return 2 ** (self.exponent - 1) - 1 if self.bias is None else self.bias

    @property
    def min_exponent(self) -> int:
        """Power of two of the smallest normal number."""
        # Without zero and subnormals the lowest exponent code stands for normal numbers.
        return (1 if self.zero else 0) - self._bias

    @property
    def max_exponent(self) -> int:
        """Power of two of the largest finite number."""
        top_code = 2**self.exponent - 1
        top_is_reserved = self.nan is Nan.IEEE or (self.nan is Nan.ALL_ONES and self.mantissa == 0)
        return top_code - top_is_reserved - self._bias

    @property
    @cache  # noqa: B019
    def max(self) -> int | float:
        """Largest finite number (of one component of a complex number)."""
        if self.kind is Kind.BOOL:
            return 1
        if not self.is_inexact:
            return 2 ** (self.bits - (self.kind is Kind.SIGNED)) - 1
        # In units of the last place; the all-ones pattern is not available if it means NaN.
        top_is_nan = self.nan is Nan.ALL_ONES and self.mantissa > 0
        significand = 2 ** (self.mantissa + 1) - 1 - top_is_nan
        return _number(significand, self.max_exponent - self.mantissa)

    @property
    @cache  # noqa: B019
    def min(self) -> int | float:
        """Smallest (most negative) finite number (of one component of a complex number)."""
        if self.is_inexact:
            return -self.max if self.signed else self.smallest_subnormal
        return -(2 ** (self.bits - 1)) if self.kind is Kind.SIGNED else 0

    @property
    def eps(self) -> float:
        """Gap between 1 and the next larger number of a floating format."""
        return _number(1, -self.mantissa)

    @property
    def smallest_normal(self) -> float:
        """Smallest positive number with full precision."""
        return _number(1, self.min_exponent)

    @property
    def smallest_subnormal(self) -> float:
        """Smallest positive number; below half of it everything flushes to zero."""
        return _number(1, self.min_exponent - (self.mantissa if self.zero else 0))

    @cache  # noqa: B019
    def holds(self, other: Format) -> bool:
        """Whether every finite value of `other` is a value of this format, exactly.

        >>> (
        ...     as_format("float32").holds(as_format("bfloat16")),
        ...     as_format("float16").holds(as_format("bfloat16")),
        ... )
        (True, False)
        """
        if CATEGORIES.index(other.category) > CATEGORIES.index(self.category) or (other.signed and not self.signed):
            return False
        if not self.is_inexact:
            return self.min <= other.min and other.max <= self.max
        if not self.zero and other.zero:
            return False
        if other.is_inexact:
            is_wide = self.max >= other.max and self.smallest_subnormal <= other.smallest_subnormal
            return is_wide and self.mantissa >= other.mantissa
        value_bits = other.bits - (other.kind is Kind.SIGNED)
        return self.mantissa + 1 >= value_bits and self.max >= max(other.max, -other.min)

    @cache  # noqa: B019
    def covers(self, other: Format) -> bool:
        """Whether every finite value of `other` is in the range of this format, where conversion rounds it at most.

        >>> (
        ...     as_format("float32").covers(as_format("int64")),
        ...     as_format("float16").covers(as_format("bfloat16")),
        ... )
        (True, False)
        """
        if self.holds(other):
            return True
        if CATEGORIES.index(other.category) > CATEGORIES.index(self.category):
            return False
        is_signed_alike = self.signed or not other.signed
        return is_signed_alike and (self.zero or not other.zero) and self.max >= max(other.max, -other.min)

    def __str__(self) -> str:
        return self.name


def _number(significand: int, exponent: int) -> float:
    """Return `significand * 2**exponent`: a float, or an exact int or fraction where float64 does not hold it."""
    try:
        number = math.ldexp(significand, exponent)
    except OverflowError:
        return significand * 2**exponent
    if math.ldexp(number, -exponent) == significand:
        return number
    from fractions import Fraction  # only for formats that are wider than float64

    # Fractions compute and compare like floats.
    return cast("float", significand * Fraction(2) ** exponent)


def _integers(kind: Kind, *widths: int) -> list[Format]:
    is_signed = kind is Kind.SIGNED
    return [Format(f"{'int' if is_signed else 'uint'}{bits}", kind, bits, signed=is_signed) for bits in widths]


def _ieee(name: str, bits: int, exponent: int, mantissa: int, kind: Kind = Kind.FLOAT) -> Format:
    return Format(name, kind, bits, exponent, mantissa, Nan.IEEE, inf=True)


def _finite(name: str, bits: int, exponent: int, mantissa: int, nan: Nan, bias: int | None = None) -> Format:
    return Format(name, Kind.FLOAT, bits, exponent, mantissa, nan, bias=bias)


_ROWS = (
    Format("bool", Kind.BOOL, 1, signed=False),
    *_integers(Kind.UNSIGNED, 1, 2, 4, 8, 16, 32, 64),
    *_integers(Kind.SIGNED, 1, 2, 4, 8, 16, 32, 64),
    _finite("float4_e2m1fn", 4, 2, 1, Nan.NONE),
    _finite("float6_e2m3fn", 6, 2, 3, Nan.NONE),
    _finite("float6_e3m2fn", 6, 3, 2, Nan.NONE),
    _ieee("float8_e3m4", 8, 3, 4),
    _ieee("float8_e4m3", 8, 4, 3),
    _finite("float8_e4m3b11fnuz", 8, 4, 3, Nan.NEGATIVE_ZERO, bias=11),
    _finite("float8_e4m3fn", 8, 4, 3, Nan.ALL_ONES),
    _finite("float8_e4m3fnuz", 8, 4, 3, Nan.NEGATIVE_ZERO, bias=8),
    _ieee("float8_e5m2", 8, 5, 2),
    _finite("float8_e5m2fnuz", 8, 5, 2, Nan.NEGATIVE_ZERO, bias=16),
    Format("float8_e8m0fnu", Kind.FLOAT, 8, 8, 0, Nan.ALL_ONES, signed=False, zero=False),
    _ieee("bfloat16", 16, 8, 7),
    _ieee("float16", 16, 5, 10),
    _ieee("float32", 32, 8, 23),
    _ieee("float64", 64, 11, 52),
    _ieee("bcomplex32", 32, 8, 7, Kind.COMPLEX),
    _ieee("complex32", 32, 5, 10, Kind.COMPLEX),
    _ieee("complex64", 64, 8, 23, Kind.COMPLEX),
    _ieee("complex128", 128, 11, 52, Kind.COMPLEX),
)
_COLUMN_ROWS = (*_integers(Kind.UNSIGNED, 128), *_integers(Kind.SIGNED, 128))
# Older versions of ml_dtypes do not have every format.
_DTYPE_BY_NAME: dict[str, DType] = {
    row.name: np.dtype(getattr(ml_dtypes, row.name, row.name))
    for row in _ROWS
    if hasattr(ml_dtypes, row.name) or row.name in np.sctypeDict
} | {row.name: cast("DType", ColumnDtype(row.name)) for row in _COLUMN_ROWS}
FORMATS: tuple[Format, ...] = tuple(row for row in _ROWS if row.name in _DTYPE_BY_NAME)
"""Every format that the installed NumPy and ml_dtypes have, ordered by kind and then by width.

>>> [row.name for row in FORMATS if row.kind is Kind.FLOAT and row.bits == 16]
['bfloat16', 'float16']
"""
COLUMN_FORMATS: tuple[Format, ...] = _COLUMN_ROWS
"""Every format that only columns of data frames have.

Source: Polars, crates/polars-core/src/datatypes/dtype.rs.

>>> [row.name for row in COLUMN_FORMATS if row.max == 2**127 - 1]
['int128']
"""
IN_32_BITS: dict[str, str] = {
    row.name: row.name.replace(str(row.bits), str(row.bits // 2)) for row in FORMATS if row.component.bits == 64
}
"""The formats of 64 bits, and those of half as many bits that JAX with x64 off and TF-NumPy take for them.

>>> IN_32_BITS["int64"], IN_32_BITS["complex128"]
('int32', 'complex64')
"""
_BY_NAME: dict[str, Format] = {row.name: row for row in FORMATS}
_BY_DTYPE: dict[DType, Format] = {row.dtype: row for row in (*FORMATS, *COLUMN_FORMATS)}
# NumPy has several types for some dtypes, such as np.longlong and np.int64.
_BY_SCALAR_TYPE: dict[type[object], Format] = {
    scalar: _BY_DTYPE[dtype]
    for scalar in (*np.sctypeDict.values(), *(row.dtype.type for row in FORMATS))
    if (dtype := np.dtype(scalar)) in _BY_DTYPE
}
_KIND_NAMES = {"int", "float", "complex"}
_WORDS = ("uint", "int", "float", "complex")
_BY_ANY_NAME: dict[str, Format] = {row.short_name: row for row in FORMATS} | _BY_NAME
_OF_COLUMNS: dict[str, Format] = {name: row for row in COLUMN_FORMATS for name in (row.name, row.short_name)}
_BYTES_IN_NUMPY = "[ui][1248]|f(2|4|8|16)|c(8|16|32)"
# NumPy's codes: a letter, or after a byte order a letter and the size in bytes.
_NUMPY_CODE = r"[<>=|]?[?bBhHiIlLqQefdFD]|[<>=|](b1|[iu][1248]|f[248]|c8|c16)"


def format_names() -> tuple[str, ...]:
    """The names of all formats, in the order of the table.

    >>> format_names()[0], format_names()[-2:]
    ('bool', ('complex64', 'complex128'))
    """
    return tuple(_BY_NAME)


def is_available(name: str) -> bool:
    """Whether the installed NumPy or ml_dtypes has the format of this name.

    >>> is_available("bfloat16"), is_available("float80")
    (True, False)
    """
    return name in _BY_NAME


@lru_cache(maxsize=4096)
def _format_of_name(name: str) -> Format | None:
    if name in _BY_ANY_NAME:
        return _BY_ANY_NAME[name]
    if name in _KIND_NAMES:
        return None  # NumPy would silently choose 64 bits
    scalar = np.sctypeDict.get(name)
    if scalar is not None:
        return _BY_DTYPE.get(np.dtype(scalar))
    # NumPy reads control characters as type numbers, warns about some letters, and crashes on "0T".
    return _BY_DTYPE.get(np.dtype(name.lstrip("<>=|"))) if re.fullmatch(_NUMPY_CODE, name) else None


def as_format(dtype: object, *, columns: bool = False) -> Format:
    """Look up the format of a dtype, however it is named.

    Args:
        dtype: a `Format`, a name such as `"bfloat16"`, a short name such as `"bf16"`, an `np.dtype`, a scalar type
            (`np.float32`, `ml_dtypes.bfloat16`, `jnp.float32`), or a dtype of PyTorch, TensorFlow, Paddle, MLX or
            tinygrad. The number in a short name counts bits: `"i8"` is int8. NumPy's codes, which count bytes, need a
            byte order: `"<i8"` is int64.
        columns: whether to know the names of formats that only columns of data frames have, such as int128.

    Returns:
        The row of the table.

    Raises:
        UnknownDtypeError: if `dtype` names no format; both a `TypeError` and a `ValueError`.

    >>> (
    ...     as_format("bfloat16").max_exponent,
    ...     as_format(np.float16).max,
    ...     as_format("i8").max,
    ... )
    (127, 65504.0, 127)
    >>> as_format("flaot32")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownDtypeError: unknown dtype 'flaot32': did you mean 'float32'?
    """
    if isinstance(dtype, Format):
        return dtype
    array_format = _format_of_name(dtype) if isinstance(dtype, str) else _format_of_object(dtype)
    of_columns = _OF_COLUMNS.get(dtype) if isinstance(dtype, str) else None
    if of_columns is not None:
        if columns:
            return of_columns
        widest = max((row for row in FORMATS if row.kind is of_columns.kind), key=lambda row: row.bits)
        raise UnknownDtypeError("dtype", dtype, (), f"no array has {of_columns}", near=(widest.name,))
    if array_format is None:
        named = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None)
        name = named if isinstance(named, str) else shown(dtype)
        is_absent = name.removeprefix("torch.") in {row.name for row in _ROWS}
        where = f"the installed ml_dtypes {ml_dtypes.__version__} is too old" if is_absent else ""
        in_numpy = _format_of_name(f"={name}")
        raise UnknownDtypeError("dtype", name, _BY_ANY_NAME, where, near=(in_numpy.short_name,) if in_numpy else ())
    return array_format


def argument_dtype(dtype: object) -> DType:
    """The dtype that an argument of an array or a layer names, which NumPy and JAX must read in the same way.

    Args:
        dtype: as in `as_format`.

    Raises:
        UnknownDtypeError: if `dtype` names no format.
        ArgumentError: for a short name whose number NumPy reads as bytes; a `ValueError`.

    >>> argument_dtype("bf16")
    dtype(bfloat16)
    >>> argument_dtype("i8")
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: dtype must not be 'i8', which is int8 here and int64 in NumPy; use 'int8' or 'int64'
    """
    row = as_format(dtype)
    if isinstance(dtype, str) and re.fullmatch(_BYTES_IN_NUMPY, dtype):
        there = f"{next(word for word in _WORDS if word.startswith(dtype[0]))}{8 * int(dtype[1:])}"
        if _format_of_name(there) is not row:
            names = " or ".join(f"'{name}'" for name in (row.name, there) if is_available(name))
            raise ArgumentError(f"dtype must not be {dtype!r}, which is {row} here and {there} in NumPy; use {names}")
    return row.dtype


def at_least_float32(dtype: DTypeLike) -> DType:
    """The dtype in which sums and statistics of a dtype are computed: at least float32, and complex if it is complex.

    Source: Flax FLIP, default dtypes, "Half-precision dtypes" and "Batch statistics".

    >>> (
    ...     at_least_float32("bfloat16"),
    ...     at_least_float32("float64"),
    ...     at_least_float32("complex64"),
    ... )
    (dtype('float32'), dtype('float64'), dtype('complex64'))
    """
    row, float32 = as_format(dtype), _BY_NAME["float32"]
    return row.dtype if row.holds(float32) else float32.dtype


def _format_of_object(thing: Any) -> Format | None:
    kind = cast("type[object]", type(thing))
    if kind is ColumnDtype:
        return _BY_DTYPE.get(thing)
    if issubclass(kind, np.dtype):
        return _BY_DTYPE.get(thing) or _BY_DTYPE.get(thing.newbyteorder("="))
    if thing is bool:
        return _BY_NAME["bool"]
    if issubclass(kind, type) and issubclass(scalar := cast("type[object]", thing), np.generic):
        # An abstract type, such as np.floating, has no format; np.dtype makes it float64 before NumPy 2.3.
        return next((_BY_SCALAR_TYPE[base] for base in scalar.__mro__ if base in _BY_SCALAR_TYPE), None)
    if name := framework_dtype_name(cast("object", thing)):
        return _BY_NAME.get(name)
    if not issubclass(kind, type):
        return None
    inner: Any = getattr(thing, "dtype", None)  # JAX's scalar types are classes with a dtype
    return _BY_DTYPE.get(cast("DType", inner)) if isinstance(inner, np.dtype) else None


def __dir__() -> list[str]:
    return public_names(globals())
