"""Programs that also return the values of chosen operations, which are counted after the program has run."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import jax
from jax import lax

from supremum.jaxprs import Plan, Records, Step, has_tracers, inlined, interpret, run_segments, segments_of
from supremum.numerics.calls import refuse_derivatives
from supremum.numerics.packed_tallies import PackedTallies, Packing
from supremum.numerics.tallied_results import Counting, CountingLater, Slot

MOST_BYTES: Final = 2**28
"""How many bytes of values are held to be counted; a single operation may make more."""


class CountingProgram:
    """A program whose values are counted after it has run, segment by segment, so that few of them are held at once.

    A counter inside of the program would take XLA about twenty times as long as the operation that it counts.

    Args:
        plan: the program.
        slots: the results to count.
        under: the name of the function that the user called, for messages.
    """

    def __init__(self, plan: Plan, slots: tuple[Slot, ...], under: str) -> None:
        self.slots: tuple[Slot, ...] = slots
        self._counting = Counting(self.slots)
        self._plan = inlined(plan.entering_for({slot.number for slot in self.slots}))
        self._segments = segments_of(self._plan, self._bytes_of, MOST_BYTES)
        self._runs = [jax.jit(refuse_derivatives(partial(self._run, each.plan), under)) for each in self._segments]

    def _bytes_of(self, step: Step) -> int:
        return sum(slot.aval.size * slot.aval.dtype.itemsize for slot in self._counting.slots.get(step.number, ()))

    def _run(self, plan: Plan, operands: list[Any]) -> tuple[list[Any], Records]:
        outcome = interpret(plan, operands, CountingLater(self._counting))
        return lax.optimization_barrier(outcome)  # so that XLA does the same where this is a part of a larger program

    def run(self, operands: list[Any]) -> tuple[list[Any], PackedTallies]:
        """Run the program; returns its results and the tallies of all slots."""
        run = jax.jit(self._run_segments) if has_tracers(operands) else self._run_segments
        return run(self._plan.constants, operands)

    def _run_segments(self, constants: tuple[Any, ...], operands: list[Any]) -> tuple[list[Any], PackedTallies]:
        packing = Packing()

        def run(index: int, operands: list[Any]) -> list[Any]:
            results, records = self._runs[index](operands)
            for number, values in records.items():
                for slot, value in zip(self._counting.slots[number], values, strict=True):
                    packing.add(slot, value)
            return results

        results = run_segments(self._plan, self._segments, run, constants, operands)
        return results, packing.tallies(self.slots)
