"""The dtypes in which reductions accumulate and the dtypes of their results, as one row of data per reduction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from supremum.decisions import ResultType, Verdict
from supremum.formats import CATEGORIES, FORMATS, as_format
from supremum.rules.verdicts import ALREADY

T = TypeVar("T")
INTEGERS: tuple[str, ...] = tuple(row.name for row in FORMATS if row.category == "integer")
BITS: tuple[str, ...] = ("bool", *INTEGERS)
UNCONVERTED: Mapping[str, str] = {name: name for name in BITS}
"""The `quotients` of rules whose divisions compute integers as they are."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction in one framework.

    Args:
        accepts: the categories that it accepts.
        gives: the dtype of the result for each dtype whose result differs from it.
        accumulates: the dtype of the accumulator for each dtype for which it differs from the result.
        lacks: formats of the accepted categories that it refuses.
        numbers: whether it accepts Python numbers.
        keeps_weak: whether the result of a weak array is weak.
        source: the source for the accumulator, in half a sentence; empty if the result shows it.

    >>> from supremum import explain, rules
    >>> row = rules.JAX_X64.reductions["sum"]
    >>> row.gives["int8"], row.accumulates["bfloat16"]
    ('int64', 'float32')
    >>> explain("bfloat16", operation="sum", rules="jax-x64").reason[-1]
    'it is accumulated in float32 and rounded once: `_upcast_f16` in jax/_src/numpy/reductions.py'
    """

    accepts: tuple[str, ...] = CATEGORIES
    gives: Mapping[str, str] = field(default_factory=dict[str, str])
    accumulates: Mapping[str, str] = field(default_factory=dict[str, str])
    lacks: tuple[str, ...] = ()
    numbers: bool = True
    keeps_weak: bool = False
    source: str = ""

    def verdict(self, name: str, framework: str, met: Verdict) -> Verdict:
        """The verdict on a reduction of an array.

        Args:
            name: the name of the reduction.
            framework: the name of the framework.
            met: the verdict on the operand without the reduction.
        """
        assert met.result is not None
        own = as_format(met.result.dtype)
        promoted = tuple(sentence for sentence in met.reason if sentence != ALREADY)  # a single operand always has it
        if own.category not in self.accepts or own.name in self.lacks:
            return Verdict.refuse(*promoted, f"{framework} has no {name} of {own}")
        gives = as_format(self.gives.get(own.name, own))
        falls = CATEGORIES.index(gives.category) < CATEGORIES.index(own.category)
        computes = as_format(self.accumulates.get(own.name, own if falls else gives))
        reason = f"{name} of {own} is {gives}" if gives is not own else f"{name} keeps {own}"
        rest = ""
        if computes is not gives and not falls:
            is_rounded = computes.is_inexact and gives.is_inexact
            once = f" and rounded once{self.source and f': {self.source}'}"
            rest = once if is_rounded else f", and the result is converted to {gives}"
        elif gives.category == "integer" and name != "mean":
            rest = f", and wraps around beyond {computes.max}"
        how = (f"it is accumulated in {computes}{rest}",) if name in _ACCUMULATING else ()
        weak = self.keeps_weak and met.result.weak
        return Verdict(ResultType(gives.dtype, weak), (computes.dtype,), (*promoted, reason, *how))


NARROW_FLOATS: tuple[str, ...] = tuple(row.name for row in FORMATS if row.category == "float" and row.bits < 32)
"""Floats that solvers of linear equations do not accept."""
_ACCUMULATING = ("sum", "prod", "cumulative_sum", "cumulative_prod", "mean", "var", "std")


def to(target: T, names: Iterable[str] | str) -> dict[str, T]:
    """Map all of the names to one target.

    Args:
        target: the target.
        names: the names, or one string with the names separated by spaces.

    >>> to("int64", "bool int8")
    {'bool': 'int64', 'int8': 'int64'}
    """
    return dict.fromkeys(names.split() if isinstance(names, str) else names, target)


def to_default(signed: str, unsigned: str, *, least_bits: int = 1) -> dict[str, str]:
    """Map bool and the integers narrower than the default integer to the default integer of their sign.

    Args:
        signed: the default signed integer.
        unsigned: the default unsigned integer.
        least_bits: integers with fewer bits are left out.

    >>> to_default("int32", "uint32")["uint8"], "int64" in to_default("int32", "uint32")
    ('uint32', False)
    """
    limit = as_format(signed).bits
    rows = [row for row in map(as_format, INTEGERS) if least_bits <= row.bits < limit]
    return {"bool": signed} | {row.name: signed if row.signed else unsigned for row in rows}


IN_FLOAT32: Mapping[str, str] = to("float32", "float16 bfloat16")
"""float32 for the 16-bit floats: frameworks add them up in it, and convert wider numbers to them through it."""
REAL_PARTS: Mapping[str, str] = {row.name: row.component.name for row in FORMATS if row.category == "complex"}
"""The complex formats and the formats of their components, which variances have."""


@lru_cache(maxsize=128)
def standard(signed: str, unsigned: str, known: tuple[str, ...] | None = None) -> Mapping[str, Reduction]:
    """The reductions of the Python array API standard.

    Args:
        signed: the default signed integer.
        unsigned: the unsigned integer of that width.
        known: the dtypes that the rules know; None for all.

    Source: https://data-apis.org/array-api/2024.12/API_specification/statistical_functions.html
    """
    targets = to_default(signed, unsigned)
    if known is not None:
        targets = {name: target for name, target in targets.items() if target in known}
    summed = Reduction(CATEGORIES[1:], gives=targets)
    inexact, real = Reduction(CATEGORIES[2:]), Reduction(("integer", "float"))
    return (
        to(summed, "sum prod cumulative_sum cumulative_prod")
        | {"mean": inexact}
        | to(Reduction(("float",)), "var std")
        | to(Reduction(gives=TRUTH), "any all")
        | to(real, "min max")
    )


TRUTH: Mapping[str, str] = to("bool", (row.name for row in FORMATS))
"""The results of `any` and `all` for every format."""
