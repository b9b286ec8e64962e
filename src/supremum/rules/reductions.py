"""What a reduction of one array computes in and gives, as each framework has it: a row per reduction, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from supremum.decisions import ResultType, Verdict
from supremum.formats import CATEGORIES, FORMATS, as_format

T = TypeVar("T")
INTEGERS: tuple[str, ...] = tuple(row.name for row in FORMATS if row.category == "integer")
BITS: tuple[str, ...] = ("bool", *INTEGERS)
_COMPONENTS: dict[str, str] = {row.name: row.component.name for row in FORMATS if row.category == "complex"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction in one framework.

    Args:
        accepts: the categories it takes.
        gives: for dtypes that are not those of their results, the dtype of the result.
        accumulates: for dtypes that are accumulated in another one than their result's, that one.
        lacks: formats of those categories that it refuses.
        numbers: whether it takes Python numbers.
        keeps_weak: whether the result of a weak array is weak.
        source: who says in what it accumulates, in half a sentence; empty where the result shows it.
    """

    accepts: tuple[str, ...] = CATEGORIES
    gives: Mapping[str, str] = field(default_factory=dict[str, str])
    accumulates: Mapping[str, str] = field(default_factory=dict[str, str])
    lacks: tuple[str, ...] = ()
    numbers: bool = True
    keeps_weak: bool = False
    source: str = ""

    def verdict(self, name: str, framework: str, met: Verdict) -> Verdict:
        """What becomes of an array.

        Args:
            name: of the reduction.
            framework: whose it is.
            met: what the operand is by itself.
        """
        assert met.result is not None
        own = as_format(met.result.dtype)
        if own.category not in self.accepts or own.name in self.lacks:
            return Verdict.refuse(*met.reason, f"{framework} has no {name} of {own}")
        gives = as_format(self.gives.get(own.name, own.name))
        falls = CATEGORIES.index(gives.category) < CATEGORIES.index(own.category)
        computes = as_format(self.accumulates.get(own.name, (own if falls else gives).name))
        reason = f"{name} of {own} is {gives}" if gives is not own else f"{name} keeps {own}"
        if name not in _ACCUMULATING:
            how: tuple[str, ...] = ()
        elif computes is not gives and not falls:
            how = (f"it is accumulated in {computes} and rounded once{self.source and f': {self.source}'}",)
            if not computes.is_inexact or not gives.is_inexact:
                how = (f"it is accumulated in {computes}, and the result is converted to {gives}",)
        elif gives.category == "integer" and name != "mean":
            how = (f"it is accumulated in {computes}, and wraps around beyond {computes.max}",)
        else:
            how = (f"it is accumulated in {computes}",)
        weak = self.keeps_weak and met.result.weak
        return Verdict(ResultType(gives.dtype, weak), (computes.dtype,), (*met.reason, reason, *how))


NARROW_FLOATS: tuple[str, ...] = tuple(row.name for row in FORMATS if row.category == "float" and row.bits < 32)
"""Those that no solver of linear equations takes."""
_ACCUMULATING = ("sum", "prod", "cumulative_sum", "cumulative_prod", "mean", "var", "std")


def to(target: T, names: Iterable[str] | str) -> dict[str, T]:
    """Map every one of some names to the same target.

    Args:
        target: the target.
        names: the names, or one text with spaces between them.

    >>> to("int64", "bool int8")
    {'bool': 'int64', 'int8': 'int64'}
    """
    return dict.fromkeys(names.split() if isinstance(names, str) else names, target)


def to_default(signed: str, unsigned: str, *, least_bits: int = 1) -> dict[str, str]:
    """Bools and integers with the default integer of their sign, those that are wider with themselves.

    Args:
        signed: the default integer.
        unsigned: the unsigned one.
        least_bits: integers with fewer bits are left out.

    >>> to_default("int32", "uint32")["uint8"], "int64" in to_default("int32", "uint32")
    ('uint32', False)
    """
    limit = as_format(signed).bits
    rows = [row for row in map(as_format, INTEGERS) if least_bits <= row.bits < limit]
    return {"bool": signed} | {row.name: signed if row.signed else unsigned for row in rows}


REAL_PARTS: Mapping[str, str] = _COMPONENTS
"""The complex formats with those of their components, which variances are in."""


@lru_cache(maxsize=128)
def standard(signed: str, unsigned: str, known: tuple[str, ...] | None = None) -> Mapping[str, Reduction]:
    """The reductions of the Python array API standard.

    Args:
        signed: the default integer.
        unsigned: the unsigned one of that width.
        known: the dtypes that there are; None for all.

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
"""What `any` and `all` give of everything."""
