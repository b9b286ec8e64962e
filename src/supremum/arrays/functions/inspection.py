"""Functions of the standard about dtypes and about what a library can do.

The first parameter of each function is the namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

from supremum import promotion
from supremum.arrays.backends import Backend
from supremum.arrays.conversion import default_dtype
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.wrapped import library_of
from supremum.errors import ArgumentError, UnknownNameError
from supremum.formats import FORMATS, DType, Format, Kind, argument_dtype, as_format
from supremum.operands import OperandLike
from supremum.rules import get_rules
from supremum.typing import DTypeLike

DTypeKind: TypeAlias = "DTypeLike | tuple[DTypeLike, ...]"
"""A name of `_KINDS`, a dtype, or a tuple of them."""
_KINDS: dict[str, tuple[Kind, ...]] = {kind.value: (kind,) for kind in Kind} | {
    "integral": (Kind.UNSIGNED, Kind.SIGNED),
    "numeric": (Kind.UNSIGNED, Kind.SIGNED, Kind.FLOAT, Kind.COMPLEX),
}


def _row(value: Any) -> Format:
    """The format of a dtype or of an array's."""
    return as_format(value.dtype if library_of(value) is not None else argument_dtype(value))


def isdtype(xp: ModuleType, dtype: DTypeLike, kind: DTypeKind) -> bool:  # noqa: ARG001 (a function of a namespace)
    """Whether a dtype has a kind.

    Args:
        xp: the namespace.
        dtype: the dtype.
        kind: `"bool"`, `"signed integer"`, `"unsigned integer"`, `"integral"`, `"real floating"`,
            `"complex floating"`, `"numeric"`, a dtype, or a tuple of them.

    Raises:
        UnknownNameError: for a string that is neither a kind nor a dtype.

    >>> import supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> (
    ...     xp.isdtype(xp.bfloat16, "real floating"),
    ...     xp.isdtype(xp.int4, ("bool", "unsigned integer")),
    ... )
    (True, False)
    """
    row, kinds = _row(dtype), kind if isinstance(kind, tuple) else (kind,)
    return True in {_is_of(row, each) for each in kinds}  # a set looks at all kinds, and so finds misspelled ones


def _is_of(row: Format, kind: DTypeLike) -> bool:
    if isinstance(kind, str) and kind not in _KINDS:
        raise UnknownNameError("kind of dtype", kind, _KINDS)
    return row.kind in _KINDS[kind] if isinstance(kind, str) else row == as_format(kind)


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """The limits of a floating-point format, or of the components of a complex format.

    Args:
        bits: the width.
        eps: the gap between 1 and the next larger number.
        max: the largest finite number.
        min: the smallest finite number.
        smallest_normal: the smallest positive number with full precision.
        dtype: the real dtype.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True, slots=True)
class IntegerInfo:
    """The limits of an integer format.

    Args:
        bits: the width.
        max: the largest number.
        min: the smallest number.
        dtype: the dtype.
    """

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(xp: ModuleType, type: DTypeLike, /) -> FloatInfo:  # noqa: A002, ARG001 (the standard's name)
    """The limits of a floating-point or complex format.

    Args:
        xp: the namespace.
        type: a dtype or an array.

    Raises:
        ArgumentError: for any other dtype.

    >>> import supremum
    >>> supremum.arrays.namespace("numpy").finfo("bfloat16").eps
    0.0078125
    """
    row = _row(type)
    if not row.is_inexact:
        raise ArgumentError(f"finfo() needs a floating-point dtype, got {row}; use iinfo")
    real = row.component
    return FloatInfo(real.bits, real.eps, float(real.max), float(real.min), real.smallest_normal, real.dtype)


def iinfo(xp: ModuleType, type: DTypeLike, /) -> IntegerInfo:  # noqa: A002, ARG001 (the standard's name)
    """The limits of an integer format.

    Args:
        xp: the namespace.
        type: a dtype or an array.

    Raises:
        ArgumentError: for any other dtype.
    """
    row = _row(type)
    if row.category != "integer":
        raise ArgumentError(f"iinfo() needs an integer dtype, got {row}{'; use finfo' if row.is_inexact else ''}")
    return IntegerInfo(row.bits, int(row.max), int(row.min), row.dtype)


def result_type(xp: ModuleType, /, *arrays_and_dtypes: OperandLike) -> DType:
    """The same as `supremum.result_type`, under the rules that arrays of the library follow.

    Args:
        xp: the namespace.
        arrays_and_dtypes: arrays, dtypes and Python numbers.

    Raises:
        PromotionError: if the rules refuse.
    """
    return promotion.result_type(*arrays_and_dtypes, rules=get_rules(in_jax=xp.backend.in_jax))


def can_cast(xp: ModuleType, from_: DTypeLike, to: DTypeLike, /) -> bool:
    """Whether the rules promote one dtype to another.

    Args:
        xp: the namespace.
        from_: a dtype or an array.
        to: the other dtype.

    >>> import supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.can_cast("int8", "int16"), xp.can_cast("int16", "int8")
    (True, False)
    """
    target = argument_dtype(to)
    decision = promotion.explain(_row(from_).dtype, target, rules=get_rules(in_jax=xp.backend.in_jax))
    return bool(decision) and decision.dtype == target


class NamespaceInfo:
    """The inspection functions of the standard for one library.

    Args:
        xp: the namespace.
    """

    __slots__ = ("_xp",)

    def __init__(self, xp: ModuleType) -> None:
        self._xp = xp

    @property
    def _info(self) -> Any:
        return self._xp.backend.xp.__array_namespace_info__()

    def capabilities(self) -> dict[str, Any]:
        """The capabilities that the library declares."""
        return dict(self._info.capabilities())

    def default_device(self) -> Any:
        """The device of new arrays; None if the library has none."""
        return self._info.default_device()

    def devices(self) -> list[Any]:
        """All devices of the library."""
        return list(self._info.devices())

    def default_dtypes(self, *, device: object = None) -> dict[str, DType]:  # noqa: ARG002 (the standard's signature)
        """The default dtypes of new arrays under the rules in force.

        Args:
            device: ignored, as all devices have the same.
        """
        categories = {"real floating": "float", "complex floating": "complex", "integral": "integer"}
        defaults = {kind: default_dtype(self._xp.backend, category) for kind, category in categories.items()}
        return {**defaults, "indexing": as_format(self._info.default_dtypes()["indexing"]).dtype}

    def dtypes(self, *, device: object = None, kind: DTypeKind | None = None) -> dict[str, DType]:  # noqa: ARG002 (likewise)
        """The dtypes of the standard that arrays can have now, by name.

        Args:
            device: ignored, as all devices have the same.
            kind: as for `isdtype`; None for all.
        """
        rows = [row for row in FORMATS if row.is_builtin and row.name != "float16"]
        wanted = [row for row in rows if kind is None or isdtype(self._xp, row.dtype, kind)]
        return {row.name: row.dtype for row in wanted if _has_dtype(self._xp.backend, row.dtype)}


def _has_dtype(backend: Backend, dtype: DType) -> bool:
    """Whether the library has a dtype, with its flags as they are now."""
    try:
        backend.native_dtype(dtype)
    except RuntimeDtypeError:
        return False
    return True


INSPECTION_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (can_cast, finfo, iinfo, isdtype, result_type)
} | {"__array_namespace_info__": NamespaceInfo}
"""The functions of the namespace by name."""
