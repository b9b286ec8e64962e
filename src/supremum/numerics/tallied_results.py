"""What `profile` measures: a tally of each floating-point result of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from jax.extend.core import JaxprEqn

from supremum.formats import Format
from supremum.jaxprs import Site, aval_of
from supremum.numerics.instrumented import Instrument, Lanes, is_floating
from supremum.numerics.tallies import Level, Tally, added, counted_format, empty, levels_of, measure


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A result whose values are counted.

    Args:
        site: the operation that makes it.
        result: its index among the results of the operation.
        source: the format that its values are counted in.
        levels: the levels that are counted.
    """

    site: Site
    result: int
    source: Format
    levels: tuple[Level, ...]


Measure: TypeAlias = Callable[[Any, Slot], Tally]
"""Makes the tally of a result of one run."""


def measured(value: Any, slot: Slot) -> Tally:
    """The tally of a result of one run."""
    return measure(value, slot.source, slot.levels)


def counting(formats: tuple[Format, ...], measure: Measure = measured) -> Instrument[Slot, Tally]:
    """The instrument of `profile`.

    Args:
        formats: the formats that values may be converted to.
        measure: makes the tally of a result.
    """

    def slots(site: Site) -> Iterator[Slot]:
        for index, result in enumerate(map(aval_of, site.equation.outvars)):
            if is_floating(result):
                source = counted_format(result.dtype)
                yield Slot(site, index, source, levels_of(source, formats))

    def tallies(
        slots: tuple[Slot, ...], _: JaxprEqn, __: Sequence[Lanes], results: Sequence[Lanes], ___: tuple[Any, ...]
    ) -> tuple[Sequence[Lanes], list[Tally]]:
        return results, [measure(results[slot.result][0], slot) for slot in slots]

    def nothing(slots: Sequence[Slot]) -> list[Tally]:
        return [empty(slot.source, slot.levels) for slot in slots]

    return Instrument("profile", slots, tallies, nothing, added)
