"""What `profile` measures: a tally of each floating-point result of an operation.

The program runs in two lanes. The first makes the outputs, and nothing reads its values in between, so XLA compiles it
as it compiles the function alone: a counter that read a sum, for example, would keep XLA from fusing that sum into the
operation that uses it, and the sum would be added up in a different order. The second lane is counted. Products outside
of loops, which XLA does not fuse, are computed once for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from jax import lax
from jax.extend.core import JaxprEqn

from supremum.formats import Format
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Site, aval_of
from supremum.numerics.instrumented import Instrument, Lanes, is_floating
from supremum.numerics.tallies import Questions, Tally, added, counted_format, empty, measure, questions_of


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A result whose values are counted.

    Args:
        site: the operation that makes it.
        result: its index among the results of the operation.
        source: the format that its values are counted in.
        questions: what is counted.
    """

    site: Site
    result: int
    source: Format
    questions: Questions


# `jax.extend` does not export all of these primitives.
_SHARED = frozenset({
    "cholesky", "conv_general_dilated", "dot_general", "eigh", "fft", "lu", "pure_callback", "ragged_dot_general",
    "sort", "svd", "triangular_solve",
})  # fmt: skip
"""Primitives that take long, and that XLA on CPUs does not fuse; both lanes share their results."""
MADE, COUNTED = 0, -1
"""The lane that makes the outputs, and the one that is counted."""


def two_lanes(value: Any) -> Lanes:
    """A value in both lanes, in a way that keeps XLA from merging what follows."""
    return value, lax.optimization_barrier(value)


Measure: TypeAlias = Callable[[Any, Slot], Tally]
"""Makes the tally of a result of one run."""


def measured(value: Any, slot: Slot) -> Tally:
    """The tally of a result of one run."""
    if slot.site.equation.primitive is p.broadcast_in_dim_p:
        # It has a slot only if it repeats a constant. XLA would fold the count of all copies, slowly.
        return measure(value.ravel()[:1], slot.source, slot.questions, value.size)
    return measure(value, slot.source, slot.questions)


def counting(
    formats: tuple[Format, ...], histogram: bool = False, measure: Measure = measured
) -> Instrument[Slot, Tally]:
    """The instrument of `profile`.

    Args:
        formats: the formats that values may be converted to.
        histogram: whether to count exponents, too.
        measure: makes the tally of a result.
    """

    def slots(site: Site) -> Iterator[Slot]:
        for index, result in enumerate(map(aval_of, site.equation.outvars)):
            if is_floating(result):
                source = counted_format(result.dtype)
                yield Slot(site, index, source, questions_of(source, formats, histogram))

    def tallies(
        slots: tuple[Slot, ...], equation: JaxprEqn, _: Sequence[Lanes], results: Sequence[Lanes], __: tuple[Any, ...]
    ) -> tuple[Sequence[Lanes], list[Tally]]:
        if equation.primitive.name in _SHARED and len(results[0]) > 1:  # one lane is left inside of loops
            results = [two_lanes(lanes[MADE]) for lanes in results]
        return results, [measure(results[slot.result][COUNTED], slot) for slot in slots]

    def nothing(slots: Sequence[Slot]) -> list[Tally]:
        return [empty(slot.source, slot.questions) for slot in slots]

    return Instrument(
        "profile", slots, tallies, nothing, added, width=2, lanes=lambda _, value: two_lanes(value), is_apart=True
    )
