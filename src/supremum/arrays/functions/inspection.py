"""Functions of the standard about dtypes, derived from the table of formats, and about what a library can do.

The first parameter of each function is the library of the namespace that it is a function of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from supremum import promotion
from supremum.arrays.backends import Backend
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.functions.creation import default_dtype
from supremum.arrays.wrapped_functions import library_of
from supremum.errors import ArgumentError, UnknownNameError
from supremum.formats import FORMATS, DType, Format, Kind, as_format
from supremum.rules import get_rules

_KINDS: dict[str, tuple[Kind, ...]] = {kind.value: (kind,) for kind in Kind} | {
    "integral": (Kind.UNSIGNED, Kind.SIGNED),
    "numeric": (Kind.UNSIGNED, Kind.SIGNED, Kind.FLOAT, Kind.COMPLEX),
}


def _row(value: Any) -> Format:
    """The format of a dtype or of an array's."""
    return as_format(value.dtype if library_of(value) is not None else value)


def isdtype(backend: Backend, dtype: Any, kind: Any) -> bool:  # noqa: ARG001 (a function of a namespace)
    """Whether a dtype is of a kind.

    Args:
        backend: the library.
        dtype: the dtype.
        kind: `"bool"`, `"signed integer"`, `"unsigned integer"`, `"integral"`, `"real floating"`,
            `"complex floating"`, `"numeric"`, a dtype, or a tuple of them.

    Raises:
        UnknownNameError: for a text that is neither a kind nor a dtype.

    >>> import supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.isdtype(xp.bfloat16, "real floating"), xp.isdtype(xp.int4, ("bool", "unsigned integer"))
    (True, False)
    """
    row, kinds = _row(dtype), kind if isinstance(kind, tuple) else (kind,)
    # All of them are looked at, so that a mistyped one is found.
    return any(found for found in tuple(_is_of(row, each) for each in kinds))


def _is_of(row: Format, kind: Any) -> bool:
    if isinstance(kind, str) and kind not in _KINDS:
        raise UnknownNameError("kind of dtype", kind, _KINDS)
    return row.kind in _KINDS[kind] if isinstance(kind, str) else row == as_format(kind)


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """The limits of a floating format; of a complex one those of its components.

    Args:
        bits: its width.
        eps: the gap between 1 and the next larger number.
        max: the largest finite number.
        min: the smallest one.
        smallest_normal: the smallest positive number of full precision.
        dtype: its dtype, a real one.
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
        bits: its width.
        max: the largest number.
        min: the smallest.
        dtype: its dtype.
    """

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(backend: Backend, type: Any, /) -> FloatInfo:  # noqa: A002, ARG001 (the standard's name)
    """The limits of a floating or complex format.

    Args:
        backend: the library.
        type: a dtype, or an array of it.

    Raises:
        ArgumentError: for another dtype.

    >>> import supremum
    >>> supremum.arrays.namespace("numpy").finfo("bfloat16").eps
    0.0078125
    """
    row = _row(type)
    if not row.is_inexact:
        raise ArgumentError(f"finfo() needs a floating-point dtype, got {row}; use iinfo")
    real = row.component
    return FloatInfo(real.bits, real.eps, float(real.max), float(real.min), real.smallest_normal, real.dtype)


def iinfo(backend: Backend, type: Any, /) -> IntegerInfo:  # noqa: A002, ARG001 (the standard's name)
    """The limits of an integer format.

    Args:
        backend: the library.
        type: a dtype, or an array of it.

    Raises:
        ArgumentError: for another dtype.
    """
    row = _row(type)
    if row.category != "integer":
        raise ArgumentError(f"iinfo() needs an integer dtype, got {row}; use {'finfo' if row.is_inexact else 'bool'}")
    return IntegerInfo(row.bits, int(row.max), int(row.min), row.dtype)


def result_type(backend: Backend, /, *arrays_and_dtypes: Any) -> DType:
    """As `supremum.result_type`, under the rules that arrays of the library follow.

    Args:
        backend: the library.
        arrays_and_dtypes: arrays, dtypes and Python numbers.

    Raises:
        PromotionError: if the rules refuse.
    """
    return promotion.result_type(*arrays_and_dtypes, rules=get_rules(in_jax=backend.in_jax))


def can_cast(backend: Backend, from_: Any, to: Any, /) -> bool:
    """Whether the rules bring one dtype to another.

    Args:
        backend: the library.
        from_: a dtype, or an array of it.
        to: the other dtype.

    >>> import supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.can_cast("int8", "int16"), xp.can_cast("int16", "int8")
    (True, False)
    """
    target = as_format(to).dtype
    decision = promotion.explain(_row(from_).dtype, target, rules=get_rules(in_jax=backend.in_jax))
    return bool(decision) and decision.dtype == target


class NamespaceInfo:
    """What a library can do, by the standard's inspection functions.

    Args:
        backend: the library.
    """

    __slots__ = ("_backend",)

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def capabilities(self) -> dict[str, Any]:
        """What the library says it can do."""
        return dict(self._backend.xp.__array_namespace_info__().capabilities())

    def default_device(self) -> Any:
        """Where arrays are put; None where the library has no such place."""
        return self._backend.xp.__array_namespace_info__().default_device()

    def devices(self) -> list[Any]:
        """All places they can be put in."""
        return list(self._backend.xp.__array_namespace_info__().devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:  # noqa: ARG002 (the standard's signature)
        """The dtypes that arrays have where none is given, by the rules in force.

        Args:
            device: where; it makes no difference.
        """
        return {
            "real floating": default_dtype(self._backend, "float"),
            "complex floating": default_dtype(self._backend, "complex"),
            "integral": default_dtype(self._backend, "integer"),
            "indexing": as_format(self._backend.xp.__array_namespace_info__().default_dtypes()["indexing"]).dtype,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:  # noqa: ARG002 (likewise)
        """The dtypes of the standard that arrays can have now, by name.

        Args:
            device: where; it makes no difference.
            kind: as for `isdtype`; None for all.
        """
        rows = [row for row in FORMATS if row.is_builtin and row.name != "float16"]
        wanted = [row for row in rows if kind is None or isdtype(self._backend, row.dtype, kind)]
        return {row.name: row.dtype for row in wanted if has_dtype(self._backend, row.dtype)}


def namespace_info(backend: Backend) -> NamespaceInfo:
    """What the library can do.

    Args:
        backend: the library.
    """
    return NamespaceInfo(backend)


def has_dtype(backend: Backend, dtype: DType) -> bool:
    """Whether the library has a dtype, as it is set now."""
    try:
        backend.native_dtype(dtype)
    except RuntimeDtypeError:
        return False
    return True


INSPECTION_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (can_cast, finfo, iinfo, isdtype, result_type)
} | {"__array_namespace_info__": namespace_info}
"""By name, in the namespace."""
