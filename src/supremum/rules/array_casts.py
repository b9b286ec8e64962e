"""How a framework casts the values of arrays, beyond the range of the new dtype in particular.

C leaves the conversion of a float that an integer type does not hold undefined, so what a framework written in C or C++
returns is up to the processor, and to the code that the compiler made of a loop: its vector part and its rest may
give different results in one array. The results here are those measured on x86-64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from supremum.formats import FORMATS, Format, as_format
from supremum.number_conversion import Steps, converted
from supremum.typing import Scalar

_FLOAT32, _FLOAT64 = as_format("float32"), as_format("float64")
Route: TypeAlias = Callable[[float, Format], int]
"""A way in which a processor converts a float to an integer format.

>>> route: Route = saturated
>>> route(300.0, as_format("int8"))
127
"""


def saturated(value: float, target: Format) -> int:
    """The nearest integer of a format toward zero, and 0 for NaN.

    >>> [saturated(value, as_format("uint8")) for value in (1.9, -3.0, 300.0, math.nan)]
    [1, 0, 255, 0]
    """
    if math.isnan(value):
        return 0
    low, high = int(target.min), int(target.max)
    return (high if value > 0 else low) if math.isinf(value) else min(high, max(low, int(value)))


def _in_register(value: float, bits: int) -> int:
    """What x86-64 makes of a float in a signed register (`cvttsd2si`): the least integer, if it is out of range."""
    least = -(2 ** (bits - 1))
    return int(value) if math.isfinite(value) and least <= int(value) < -least else least


def through_int32(value: float, target: Format) -> int:
    """Convert a float in a signed register of 32 bits, then keep the bits of a format.

    >>> through_int32(300.0, as_format("int8")), through_int32(3e9, as_format("int8"))
    (44, 0)
    """
    return _kept(_in_register(value, 32), target)


def through_int64(value: float, target: Format) -> int:
    """Convert a float in a signed register of 64 bits, then keep the bits of a format.

    >>> through_int64(5e9, as_format("uint32"))
    705032704
    """
    return _kept(_in_register(value, 64), target)


def through_uint32(value: float, target: Format) -> int:
    """Convert a float as compilers do for uint32 in vectors: from 2**31 on, less 2**31.

    >>> (
    ...     through_uint32(3e9, as_format("uint32")),
    ...     through_uint32(5e9, as_format("uint32")),
    ... )
    (3000000000, 0)
    """
    return _kept(_halved(value, 32), target)


def through_uint64(value: float, target: Format) -> int:
    """Convert a float as compilers do for uint64: from 2**63 on, less 2**63.

    >>> through_uint64(1e19, as_format("uint64"))
    10000000000000000000
    """
    return _kept(_halved(value, 64), target)


def _halved(value: float, bits: int) -> int:
    half = 2.0 ** (bits - 1)
    return _in_register(value - half, bits) ^ int(half) if value >= half else _in_register(value, bits)


def _kept(value: int, target: Format) -> int:
    return int(converted(value, [target]).real)


def packed_from_register(value: float, target: Format) -> int:
    """Convert a float in a signed register of 32 bits, then take the nearest number of a format (`vpackssdw`).

    >>> (
    ...     packed_from_register(300.0, as_format("int8")),
    ...     packed_from_register(3e9, as_format("int8")),
    ... )
    (127, -128)
    """
    return saturated(_in_register(value, 32), target)


def packed_twice(value: float, target: Format) -> int:
    """Convert a float in a signed register of 32 bits, then narrow it to 16 bits and to 8 (`vpackusdw`, `vpackuswb`).

    >>> [packed_twice(value, as_format("uint8")) for value in (300.0, 40000.0)]
    [255, 0]
    """
    halves = _kept(saturated(_in_register(value, 32), as_format("uint16")), as_format("int16"))
    return saturated(halves, target)


def _from_table(value: float, target: Format) -> int:
    """Cast the nearest int32."""
    return _kept(saturated(value, as_format("int32")), target)


C_ROUTES: dict[str, tuple[Route, ...]] = {
    row.name: (through_int32,) if row.bits <= 32 else (through_int64,) for row in FORMATS if row.category == "integer"
} | {"uint32": (through_int64, through_uint32), "uint64": (through_uint64, through_int64)}
"""The routes to each integer format in code that compilers make of a C cast for x86-64.

>>> sorted({route(5e9, as_format("uint32")) for route in C_ROUTES["uint32"]})
[0, 705032704]
"""


def _never(value: Scalar, target: Format) -> bool:  # noqa: ARG001 (one for all)
    return False


@dataclass(frozen=True, slots=True)
class ArrayCasts:
    """How a framework casts the values of arrays.

    Args:
        library: the name of the framework in explanations.
        measured: what was measured, such as `"PyTorch 2.13 on x86-64"`; empty if nothing was.
        formats: the names of the formats that were measured; nothing is known about the others.
        routes: for each integer format, how floats that it does not hold are converted to it; more than one if that
            depends on the position in the array.
        is_defined: whether the framework defines these results, so that they are the same on every processor.
        through: for each format, the one that wider values are rounded to first.
        clamps: the float formats that make numbers beyond their range, and infinities, their largest number.
        flushes: the formats whose subnormal numbers are False; those of float32 also become zero on their way from
            and to float64.
        drops_imaginary: whether a complex number is True if its real part is.
        raises: whether the framework raises for a value, by the format that it is cast to.

    >>> casts = ArrayCasts(
    ...     "C",
    ...     "C on x86-64",
    ...     frozenset(("float32", "int8")),
    ...     C_ROUTES,
    ...     is_defined=False,
    ... )
    >>> casts.outcomes(300.0, as_format("float32"), as_format("int8"))
    (44,)
    """

    library: str
    measured: str
    formats: frozenset[str]
    routes: Mapping[str, tuple[Route, ...]] = field(default_factory=dict[str, "tuple[Route, ...]"])
    is_defined: bool = True
    through: Mapping[str, str] = field(default_factory=dict[str, str])
    clamps: frozenset[str] = frozenset()
    flushes: frozenset[str] = frozenset()
    drops_imaginary: bool = False
    raises: Callable[[Scalar, Format], bool] = _never

    def refuses(self, value: Scalar, source: Format, target: Format) -> bool:
        """Whether the cast of a value is an error.

        Args:
            value: a value of the source.
            source: the format it has.
            target: the format that it is cast to.
        """
        return self.formats >= {source.name, target.name} and self.raises(value, target)

    def outcomes(self, value: Scalar, source: Format, target: Format) -> tuple[Scalar, ...]:
        """What a value may become, the likeliest first; none if nothing is known, or if the cast is an error.

        Args:
            value: a value of the source.
            source: the format it has.
            target: the format that it is cast to.
        """
        if not self.formats >= {source.name, target.name} or self.raises(value, target):
            return ()
        if target.category == "bool":
            return (self._is_true(value, source),)
        if isinstance(value, complex):
            if target.category == "complex":
                real, imaginary = (self.outcomes(part, source, target)[0] for part in (value.real, value.imag))
                return (complex(real.real, imaginary.real),)
            value = value.real
        if isinstance(value, float) and target.category == "integer":
            if math.isfinite(value) and target.min <= int(value) <= target.max:
                return (int(value),)
            routes = self.routes.get(target.name, ())
            # Compilers replace casts of 8-bit floats, of which only infinities and NaN matter, by tables.
            tables = (saturated, _from_table) if routes and source.bits <= 8 and not self.is_defined else ()
            return tuple(dict.fromkeys(route(value, target) for route in (*routes, *tables)))
        outcome = self._rounded(value, source, target.component)
        return (complex(outcome.real, 0.0) if target.category == "complex" else outcome,)

    def steps(self, source: Format, target: Format) -> Steps:
        """The formats that a value is converted to, one after the other."""
        first = as_format(self.through.get(target.component.name, target.component))
        wider = source.component.bits >= first.bits and first is not target.component
        return (first, target.component) if wider and source.component is not first else (target.component,)

    def _is_true(self, value: Scalar, source: Format) -> bool:
        parts = (value.real, value.imag) if isinstance(value, complex) and not self.drops_imaginary else (value.real,)
        return any(self._flushed(float(part), source.component) != 0 if source.is_inexact else part for part in parts)

    def _rounded(self, value: Scalar, source: Format, target: Format) -> Scalar:
        chain = (source.component, *self.steps(source, target))
        for before, after in pairwise(chain):
            if after.name in self.clamps and isinstance(value, float) and abs(value) > after.max:
                value = math.copysign(float(after.max), value)
            elif after.name in self.clamps and abs(value) > after.max:
                value = float(after.max if value.real > 0 else after.min)
            value = converted(value, [after])
            if {before, after} == {_FLOAT32, _FLOAT64} or (before, after) in _WITHIN_FLOAT64:
                value = self._flushed(float(value.real), _FLOAT32)
        return value

    def _flushed(self, value: float, row: Format) -> float:
        is_flushed = row.name in self.flushes and abs(value) < row.smallest_normal
        return math.copysign(0.0, value) if is_flushed else value


# bfloat16 has the range of float32, and becomes float64 through it.
_WITHIN_FLOAT64 = ((as_format("bfloat16"), _FLOAT64),)


NATIVE: frozenset[str] = frozenset(row.name for row in FORMATS if row.is_builtin)
"""The names of NumPy's own formats.

>>> "bfloat16" in NATIVE
False
"""
HALVES: tuple[str, ...] = ("bfloat16", "float16")
"""The floats of 16 bits.

>>> [as_format(name).bits for name in HALVES]
[16, 16]
"""
BYTES: tuple[str, ...] = tuple(row.name for row in FORMATS if row.category == "float" and row.bits <= 8)
"""The floats of at most 8 bits.

>>> "float8_e4m3fn" in BYTES
True
"""


def named(*without: str) -> frozenset[str]:
    """The names of all formats but some.

    >>> sorted(named() - named("int4"))
    ['int4']
    """
    return frozenset(row.name for row in FORMATS) - {*without}


PACKING_ROUTES: dict[str, tuple[Route, ...]] = C_ROUTES | {
    **dict.fromkeys(("int8", "int16", "uint16"), (through_int32, packed_from_register)),
    "uint8": (through_int32, packed_from_register, packed_twice),
    "uint32": (through_int64, through_uint32, through_int32),
}
"""The routes in code that uses the narrowing instructions of x86-64.

>>> sorted({route(300.0, as_format("uint8")) for route in PACKING_ROUTES["uint8"]})
[44, 255]
"""
SATURATING: dict[str, tuple[Route, ...]] = {row.name: (saturated,) for row in FORMATS if row.category == "integer"}
"""The routes of a framework that makes of every float the nearest integer.

>>> [route(-1.0, as_format("uint8")) for route in SATURATING["uint8"]]
[0]
"""
