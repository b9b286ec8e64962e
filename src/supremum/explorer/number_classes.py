"""Classes of Python numbers that rule sets treat alike, with their exact boundaries.

The decision about a number depends on `RuleSet.key_of`, which changes at few numbers. Bisection finds them exactly.
The page then only compares a number with the boundaries.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

from supremum.formats import FORMATS
from supremum.operands import as_operand
from supremum.rules import get_rules
from supremum.typing import Scalar

Number = TypeVar("Number", int, float)
SPECIAL: tuple[float, ...] = (math.nan, -math.inf, math.inf)
"""The floats outside the axes, in the order of their classes."""
# Floats of this size and above are whole.
_WHOLE_FROM = 2**52
_FIRST_BEYOND_FLOAT = 2**1024 - 2**970  # it rounds to infinity


@dataclass(frozen=True, slots=True)
class Axis:
    """Ordered numbers, divided into classes.

    Args:
        cuts: the first number of each class except the lowest.
        examples: one number of each class, the lowest first.
    """

    cuts: tuple[int | float, ...]
    examples: tuple[int | float, ...]


@dataclass(frozen=True, slots=True)
class NumberClasses:
    """The classes of real Python numbers; a complex number has two floats.

    Args:
        integers: Python ints.
        whole: floats without a fraction.
        fractional: floats with a fraction.
    """

    integers: Axis
    whole: Axis
    fractional: Axis

    @property
    def floats(self) -> tuple[float, ...]:
        """One float of each class: whole ones, those with a fraction, and `SPECIAL`."""
        return (*map(float, self.whole.examples), *map(float, self.fractional.examples), *SPECIAL)


def number_classes(rules: Sequence[str]) -> NumberClasses:
    """Find the classes of numbers for some rule sets. Different classes may still get the same decisions.

    Args:
        rules: the names of the rule sets.

    >>> classes = number_classes(["numpy"])
    >>> 255 in classes.integers.cuts, 256 in classes.integers.cuts
    (False, True)
    """
    sets = [get_rules(name) for name in rules]

    @lru_cache(maxsize=None, typed=True)  # 1 and 1.0 differ
    def seen(value: Scalar) -> Hashable:
        operand = as_operand(value)
        return tuple(each.key_of(operand) for each in sets)

    def of_float(value: float) -> Hashable:
        return (seen(value), seen(complex(value, 0.0)), seen(complex(0.0, value)))

    ends, beyond = _landmarks(), 2 * _FIRST_BEYOND_FLOAT
    integers = _axis(seen, (*ends, -beyond, beyond), _middle)
    whole = _axis(lambda n: of_float(float(n)), [n for n in ends if abs(n) < _FIRST_BEYOND_FLOAT], _middle)
    small = [float(n) for n in ends if abs(n) < _WHOLE_FROM]
    fractional = _axis(lambda x: of_float(_with_fraction(x)), small, _middle_float)
    return NumberClasses(
        integers,
        Axis(tuple(map(float, whole.cuts)), tuple(map(float, whole.examples))),
        Axis(fractional.cuts, tuple(_with_fraction(float(x)) for x in fractional.examples)),
    )


def _with_fraction(value: float) -> float:
    """The number itself, or the next float if it is whole."""
    return math.nextafter(value, math.inf) if value.is_integer() else value


def _landmarks() -> list[int]:
    """Whole numbers between which at most one thing changes: those near the limits of formats, and powers of two."""
    near = {int(end) for row in FORMATS for end in (row.min, row.max)}
    powers = {sign * 2**power for sign in (-1, 1) for power in range(1024)}
    numbers = {n + step for n in near | powers | {0} for step in (-1, 0, 1)}
    return [*sorted(n for n in numbers if abs(n) < _FIRST_BEYOND_FLOAT), _FIRST_BEYOND_FLOAT - 1]


def _axis(
    seen: Callable[[Number], Hashable], ends: Iterable[Number], middle: Callable[[Number, Number], Number]
) -> Axis:
    """The classes between the smallest and the largest of some numbers, found by bisection."""
    ordered = sorted(set(ends))
    cuts: list[Number] = []
    todo = list(pairwise(ordered))[::-1]
    while todo:
        low, high = todo.pop()
        if seen(low) == seen(high):
            continue
        between = middle(low, high)
        if between == low:
            cuts.append(high)
        else:
            todo += [(between, high), (low, between)]  # the lower half first
    return Axis(tuple(cuts), (ordered[0], *cuts))


def _middle(low: int, high: int) -> int:
    return (low + high) // 2


def _middle_float(low: float, high: float) -> float:
    """The median of all floats between two floats."""
    place = (_place(low) + _place(high)) // 2
    (value,) = struct.unpack("<d", struct.pack("<q", abs(place)))
    return math.copysign(value, place)


def _place(value: float) -> int:
    """The rank of a float among all floats."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)
