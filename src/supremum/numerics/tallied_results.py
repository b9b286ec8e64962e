"""What `profile` measures: a tally of each floating-point result of an operation.

The program runs in two lanes. The first makes the outputs, and nothing reads its values in between, so XLA compiles it
as it compiles the function alone: a counter that read a sum, for example, would keep XLA from fusing that sum into the
operation that uses it, and the sum would be added up in a different order. The second lane is counted. Products outside
of loops, which XLA does not fuse, are computed once for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import jax
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Var

from supremum.formats import Format
from supremum.jax_compat import primitives as p
from supremum.jaxprs import LOOPS_AND_BRANCHES, Instrument, Outcome, Plan, Records, Site, Step, aval_of
from supremum.numerics.lanes import Lanes, TwoLanes
from supremum.numerics.plans import only_moves
from supremum.numerics.tallies import Questions, Tally, add_tallies, empty_tally, measure, questions_of
from supremum.numerics.widening import is_floating
from supremum.typing import ArrayLike


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
        self._slots = {number: list(group) for number, group in groupby(slots, lambda slot: slot.number)}

    def run(self, step: Step, operands: Sequence[Any]) -> Outcome[Any]:
        """Run a step, and count its results."""
        results, records = super().run(step, operands)
        return results, records | self.tallies(step, results)

    def tallies(self, step: Step, results: Sequence[Any]) -> Records:
        """The tallies of the results of a step."""
        if step.number not in self._slots:
            return {}
        return {step.number: [self.tally(results[slot.result], slot) for slot in self._slots[step.number]]}

    def tally(self, value: jax.Array, slot: Slot) -> Tally:
        """The tally of a result of one run."""
        equation = slot.site.equation
        if equation.primitive is p.broadcast_in_dim_p and not only_moves(equation):
            # It repeats a constant. XLA would fold the count of all copies, slowly.
            return measure(value.ravel()[:1], slot.questions, value.size)
        return measure(value, slot.questions)

    def empty(self, plan: Plan) -> Records:
        """Tallies of no values."""
        numbers = [step.number for step in plan.every_step() if step.number in self._slots]
        return {number: [empty_tally(slot.questions) for slot in self._slots[number]] for number in numbers}

    def join(self, earlier: Sequence[Tally], later: Sequence[Tally]) -> list[Tally]:
        """The sums of tallies."""
        return [add_tallies(a, b) for a, b in zip(earlier, later, strict=True)]

    def in_order(self, records: Records) -> list[Tally]:
        """The tallies of all slots, in their order."""
        return [tally for number in self._slots for tally in records[number]]


# `jax.extend` does not export all of these primitives.
_SHARED: Final = frozenset({
    "cholesky", "conv_general_dilated", "dot_general", "eigh", "fft", "lu", "pure_callback", "ragged_dot_general",
    "sort", "svd", "triangular_solve",
})  # fmt: skip
"""Primitives that take long, and that XLA on CPUs does not fuse; both lanes share their results."""
MADE, COUNTED = 0, 1
"""The lane that makes the outputs, and the one that is counted."""


def two_lanes(value: ArrayLike) -> Lanes:
    """A value in both lanes, in a way that keeps XLA from merging what follows."""
    return value, lax.optimization_barrier(value)


@dataclass(frozen=True, eq=False)
class CountingApart(TwoLanes):
    """Counts the values of results in a lane of their own.

    Loops and branches of the first lane run as they are, apart from those of the second lane.

    Args:
        counting: counts in the second lane.
    """

    counting: Counting

    def constant(self, variable: Var, value: ArrayLike) -> Lanes:
        """A constant in both lanes."""
        del variable
        return two_lanes(value)

    def run(self, step: Step, operands: Sequence[Lanes]) -> Outcome[Lanes]:
        """Run a step in both lanes, and count the results of the second."""
        if step.inner and step.name in LOOPS_AND_BRANCHES:
            first = step.evaluate([lanes[MADE] for lanes in operands])
            second, records = self.counting.run(step, [lanes[COUNTED] for lanes in operands])
            return list(zip(first, second, strict=True)), records
        results, records = super().run(step, operands)
        if step.name in _SHARED:
            results = [two_lanes(lanes[MADE]) for lanes in results]
        return results, records | self.counting.tallies(step, [lanes[COUNTED] for lanes in results])
