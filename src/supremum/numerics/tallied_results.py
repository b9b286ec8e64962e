"""What is counted of a program: a tally of each floating-point result of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import jax
from jax import lax
from jax.core import ShapedArray

from supremum.formats import Format
from supremum.jax_compat import primitives as p
from supremum.jaxprs import LOOPS_AND_BRANCHES, Instrument, Outcome, Plan, Records, Site, Step, aval_of
from supremum.numerics.plans import only_moves
from supremum.numerics.tallies import Questions, Tally, add_tallies, empty_tally, measure, questions_of
from supremum.numerics.widening import is_floating


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A result whose values are counted.

    Args:
        number: the number of the step that makes it.
        site: the operation.
        result: its index among the results of the operation.
        aval: its type.
        questions: what is counted.
    """

    number: int
    site: Site
    result: int
    aval: ShapedArray
    questions: Questions

    @property
    def copies(self) -> int:
        """How often each distinct value counts."""
        equation = self.site.equation
        repeats = equation.primitive is p.broadcast_in_dim_p and not only_moves(equation)
        return self.aval.size if repeats else 1

    def distinct(self, value: jax.Array) -> jax.Array:
        """The values to count, in one axis: one, if the operation repeats a constant, whose count XLA folds slowly."""
        return value.ravel() if self.copies == 1 else value.ravel()[:1]


def slots_of(
    steps: Iterable[Step],
    formats: tuple[Format, ...],
    histogram: bool = False,
    choose: Callable[[Site], Iterable[int]] = lambda site: range(len(site.equation.outvars)),
) -> tuple[Slot, ...]:
    """What is counted of the floating results of operations.

    Args:
        steps: the operations.
        formats: the formats that values may be converted to.
        histogram: whether to count exponents, too.
        choose: chooses results of an operation by their indices; by default all.
    """
    slots: list[Slot] = []
    for step in steps:
        for index in choose(step.site):
            aval = aval_of(step.equation.outvars[index])
            if is_floating(aval):
                slots.append(Slot(step.number, step.site, index, aval, questions_of(aval.dtype, formats, histogram)))
    return tuple(slots)


class Counting(Instrument[Any]):
    """Counts the values of results. The record of a step is the tallies of its results.

    Args:
        slots: the results.
    """

    def __init__(self, slots: Iterable[Slot]) -> None:
        self.slots = {number: list(group) for number, group in groupby(slots, lambda slot: slot.number)}

    def run(self, step: Step, operands: Sequence[Any]) -> Outcome[Any]:
        """Run a step, and count its results."""
        results, records = super().run(step, operands)
        return results, records | self.tallies(step, results)

    def tallies(self, step: Step, results: Sequence[Any]) -> Records:
        """The tallies of the results of a step."""
        if step.number not in self.slots:
            return {}
        return {step.number: [self.tally(results[slot.result], slot) for slot in self.slots[step.number]]}

    def values(self, step: Step, results: Sequence[Any]) -> Records:
        """The values to count of the results of a step."""
        slots = self.slots.get(step.number)
        return {} if slots is None else {step.number: [slot.distinct(results[slot.result]) for slot in slots]}

    def tally(self, value: jax.Array, slot: Slot) -> Tally:
        """The tally of a result of one run."""
        return measure(slot.distinct(value), slot.questions, slot.copies)

    def empty(self, plan: Plan) -> Records:
        """Tallies of no values."""
        numbers = [step.number for step in plan.every_step() if step.number in self.slots]
        return {number: [empty_tally(slot.questions) for slot in self.slots[number]] for number in numbers}

    def join(self, earlier: Sequence[Tally], later: Sequence[Tally]) -> list[Tally]:
        """The sums of tallies."""
        return [add_tallies(a, b) for a, b in zip(earlier, later, strict=True)]

    def in_order(self, records: Records) -> list[Tally]:
        """The tallies of all slots, in their order."""
        return [tally for number in self.slots for tally in records[number]]


@dataclass(frozen=True, eq=False)
class CountingLater(Instrument[Any]):
    """Records the values to count, so that they are results of the program; it counts in loops and branches only.

    Args:
        counting: counts in loops and branches. These run a second time for it, and what follows reads the first run,
            which XLA compiles as in the function alone.
    """

    counting: Counting

    def run(self, step: Step, operands: Sequence[Any]) -> Outcome[Any]:
        """Run a step, and record its results."""
        if step.inner and step.name in LOOPS_AND_BRANCHES:
            _, records = self.counting.run(step, lax.optimization_barrier(list(operands)))
            return step.evaluate(operands), records
        results, records = super().run(step, operands)
        return results, records | self.counting.values(step, results)
