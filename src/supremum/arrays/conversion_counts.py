"""Counts of the implicit conversions in a block of code: which, how many, how large, and where."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

from supremum.arrays.backends import CallPlan, Raw
from supremum.formats import DType, as_format
from supremum.rules import SCOPE, watching
from supremum.user_frame import users_line

Group = TypeVar("Group")


@dataclass(frozen=True, slots=True)
class Conversion:
    """Implicit conversions of one kind at one place.

    Args:
        source: the dtype of the arrays.
        target: the dtype of the computation.
        operation: the name of the operation.
        rules: the name of the rule set that decided.
        line: the line of the program, as `file:line`.

    >>> import numpy as np
    >>> found = Conversion(
    ...     np.dtype("int32"), np.dtype("float16"), "add", "torch", "train.py:12"
    ... )
    >>> found.widening, found.lossy
    (False, True)
    """

    source: DType
    target: DType
    operation: str
    rules: str
    line: str

    @property
    def widening(self) -> bool:
        """Whether the target has more bits."""
        return as_format(self.target).bits > as_format(self.source).bits

    @property
    def lossy(self) -> bool:
        """Whether the target does not hold every value of the source."""
        return not as_format(self.target).holds(as_format(self.source))


@dataclass(frozen=True, slots=True)
class ConversionTotal:
    """The number of conversions, and the bytes that they wrote.

    >>> ConversionTotal(count=1, bytes=8000) + ConversionTotal(count=2, bytes=64)
    ConversionTotal(count=3, bytes=8064)
    """

    count: int
    bytes: int

    def __add__(self, other: ConversionTotal) -> ConversionTotal:
        return ConversionTotal(self.count + other.count, self.bytes + other.bytes)


_NOTHING = ConversionTotal(0, 0)


class ConversionCounts:
    """The implicit conversions counted so far, as `count_conversions` returns them.

    An array counts each time an operation computes in a dtype that differs from the array's. Python numbers and
    explicit casts do not count. A function that JAX traces counts once, when JAX traces it.

    Iterating yields pairs of `Conversion` and `ConversionTotal`, the most bytes first; `str` returns a table.

    >>> import numpy as np, supremum
    >>> with supremum.use_rules("torch"), count_conversions() as counts:
    ...     x = supremum.asarray(np.ones(1000, "int32"))
    ...     product = x * np.ones(1000, "float16")
    >>> counts.lossy, counts.widening
    (ConversionTotal(count=1, bytes=2000), ConversionTotal(count=0, bytes=0))
    >>> for conversion, total in counts:
    ...     print(conversion.source, "->", conversion.target, total.bytes)
    int32 -> float16 2000
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[Conversion, ConversionTotal] = {}
        # A nested count also counts for the outer one.
        self._outer = SCOPE.get().watcher

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {"_found": dict(self._found)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        self._found = state["_found"]
        self._outer = None

    def note(self, plan: CallPlan, raws: Sequence[Raw]) -> None:
        """Count the conversions of an operation, which calls this before it computes."""
        if self._outer is not None:
            self._outer.note(plan, raws)
        line = ""
        for key, raw, target in zip(plan.keys, raws, plan.compute, strict=True):
            if key.backend is not None and key.dtype is not None and key.dtype != target:
                line = line or users_line()
                conversion = Conversion(key.dtype, target, plan.operation.name, plan.rules, line)
                with self._lock:
                    known = self._found.get(conversion, _NOTHING)
                    self._found[conversion] = known + ConversionTotal(1, prod(raw.shape) * target.itemsize)

    def __iter__(self) -> Iterator[tuple[Conversion, ConversionTotal]]:
        return iter(sorted(self._found.items(), key=lambda item: (-item[1].bytes, item[0].line, item[0].operation)))

    def __len__(self) -> int:
        return len(self._found)

    @property
    def total(self) -> ConversionTotal:
        """The total of all conversions."""
        return self._sum(lambda _: True)

    @property
    def widening(self) -> ConversionTotal:
        """The total of conversions to more bits."""
        return self._sum(lambda conversion: conversion.widening)

    @property
    def lossy(self) -> ConversionTotal:
        """The total of conversions to a dtype that does not hold every value of the source."""
        return self._sum(lambda conversion: conversion.lossy)

    def by_dtype(self) -> dict[tuple[str, str], ConversionTotal]:
        """Totals by the names of both dtypes, the most bytes first."""
        return self._grouped(lambda conversion: (str(conversion.source), str(conversion.target)))

    def by_line(self) -> dict[str, ConversionTotal]:
        """Totals by `file:line`, the most bytes first."""
        return self._grouped(lambda conversion: conversion.line)

    def _sum(self, counts: Callable[[Conversion], bool]) -> ConversionTotal:
        return sum((total for conversion, total in self if counts(conversion)), _NOTHING)

    def _grouped(self, key: Callable[[Conversion], Group]) -> dict[Group, ConversionTotal]:
        totals: dict[Group, ConversionTotal] = {}
        for conversion, total in self:
            group = key(conversion)
            totals[group] = totals.get(group, _NOTHING) + total
        return dict(sorted(totals.items(), key=lambda item: -item[1].bytes))

    def __str__(self) -> str:
        if not self._found:
            return "no implicit conversions"
        from supremum.render import aligned  # only here, as it takes time to import

        rows = [("bytes", "times", "from", "to", "", "operation", "line")]
        for conversion, total in self:
            kinds = ", ".join(kind for kind in ("widening", "lossy") if getattr(conversion, kind))
            dtypes = str(conversion.source), str(conversion.target)
            rows.append((f"{total.bytes:,}", f"{total.count:,}", *dtypes, kinds, conversion.operation, conversion.line))
        named = {"conversions": self.total, "widening": self.widening, "lossy": self.lossy}
        summary = ", ".join(f"{total.count:,} {name} ({total.bytes:,} bytes)" for name, total in named.items())
        return f"{aligned(rows, right=frozenset({0, 1}))}\n{summary}"

    __repr__ = __str__


@contextmanager
def count_conversions() -> Generator[ConversionCounts]:
    """Count the implicit conversions of arrays in a block.

    It costs nothing outside of the block. Inside, every operation is prepared again, and JAX traces compiled
    functions again, so do not measure time there.

    Returns:
        The counts, to be read in the block or after it.

    Source: the optional instrument of TensorFlow RFC 431, promotion modes, "Performance Implications".

    >>> import numpy as np, supremum
    >>> a = supremum.asarray(np.ones(1000, "float32"))
    >>> with supremum.use_rules("numpy"), count_conversions() as counts:
    ...     b = a + np.ones(1000)
    >>> counts.total, counts.by_dtype()
    (ConversionTotal(count=1, bytes=8000), {('float32', 'float64'): ConversionTotal(count=1, bytes=8000)})
    """
    counts = ConversionCounts()
    with watching(counts):
        yield counts
