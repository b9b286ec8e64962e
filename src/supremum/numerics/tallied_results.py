"""What `profile` measures: a tally of each floating-point result of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
        slots: tuple[Slot, ...], _: JaxprEqn, __: Sequence[Lanes], results: Sequence[Lanes], ___: tuple[Any, ...]
    ) -> tuple[Sequence[Lanes], list[Tally]]:
        return results, [measure(results[slot.result][0], slot) for slot in slots]

    def nothing(slots: Sequence[Slot]) -> list[Tally]:
        return [empty(slot.source, slot.questions) for slot in slots]

    return Instrument("profile", slots, tallies, nothing, added)
