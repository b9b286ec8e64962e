"""What `first_nonfinite` measures: the bad values that operations make, and whether they reach the results."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend.core import JaxprEqn, Literal, Var

from supremum.formats import DType, as_format
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Instrument, Outcome, Plan, Records, Site, Step, aval_of, on_each_device
from supremum.numerics.bad_values import (
    BAD,
    NAN,
    RANGE,
    born,
    codes,
    count,
    joined_codes,
    makes_bad,
    range_of,
    replaced,
)
from supremum.numerics.lanes import Lanes, TwoLanes
from supremum.numerics.plans import steps_with_values
from supremum.numerics.widening import is_floating

NAME = "first_nonfinite"
LOOPS = p.scan_p.name, p.while_p.name


@dataclass(frozen=True, slots=True, eq=False)
class BirthSlot:
    """An operation that may make bad values.

    Args:
        site: the operation.
    """

    site: Site

    @property
    def loops(self) -> tuple[Site, ...]:
        """The loops around it, outermost first."""
        found: list[Site] = []
        caller = self.site.caller
        while caller is not None:
            found += [caller] * (caller.equation.primitive.name in LOOPS)
            caller = caller.caller
        return tuple(reversed(found))

    @property
    def operands(self) -> tuple[Any, ...]:
        """The types of its floating operands."""
        return tuple(aval for aval in map(aval_of, self.site.equation.invars) if is_floating(aval))


def birth_slots(plan: Plan) -> dict[int, BirthSlot]:
    """The operations that can make bad values, by the numbers of their steps, in order.

    Raises:
        ArgumentError: for arrays of at least 2**32 elements.
    """
    steps = [step for step in steps_with_values(plan, NAME) if makes_bad(step.site.equation)]
    return {step.number: BirthSlot(step.site) for step in sorted(steps, key=lambda step: step.number)}


def is_bad_literal(literal: Literal) -> bool:
    """Whether a literal is NaN or infinite."""
    if not is_floating(aval_of(literal)):
        return False
    return not bool(np.isfinite(np.asarray(literal.val).astype("complex128")).all())


def _floating(equation: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """The floating operands of an equation, as arrays; literals are Python's or JAX's own numbers."""
    types = map(aval_of, equation.invars)
    pairs = [(value, aval) for value, aval in zip(operands, types, strict=True) if is_floating(aval)]
    return [value if isinstance(value, jax.Array) else jnp.asarray(value, aval.dtype) for value, aval in pairs]


RUNS, CODE, FIRST_ITERATION = range(3)
"""The places in a record of `Finding`; see there."""


class _Fresh(NamedTuple):
    """The record of one run of one operation.

    Args:
        code: what it made, as the joined code of its elements.
        iterations: the iterations of the loops around it.
    """

    code: Any
    iterations: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Finding(Instrument[Any]):
    """Finds the operations that make bad values.

    Packed records are uint32[slots, 2 + loops]: the number of runs that made bad values; the code of what the first of
    these runs made; and the iteration of each loop around it. They stand under the number of the first slot.

    Args:
        slots: the operations, by the numbers of their steps, in order.
        loops: the most loops around an operation.
        iterations: the iteration of each loop around what runs.
    """

    slots: Mapping[int, BirthSlot]
    loops: int
    iterations: tuple[Any, ...] = ()

    def in_iteration(self, index: Any) -> Finding:
        """The same instrument inside of a loop."""
        return replace(self, iterations=(*self.iterations, index))

    def run(self, step: Step, operands: Sequence[Any]) -> Outcome[Any]:
        """Run a step, and look at its results."""
        results, records = super().run(step, operands)
        if step.number not in self.slots:
            return results, records
        equation = step.site.equation
        given = _floating(equation, operands)
        made = [joined_codes(born(equation, given, value)[0]) for value in results if is_floating(value)]
        return results, {step.number: _Fresh(functools.reduce(lax.bitwise_or, made), self.iterations)}

    def packed(self, records: Records) -> Records:
        """The records as one array."""
        if not records:
            return {}
        blocks: list[Any] = []
        ordered = [records[number] for number in sorted(records)]
        for is_fresh, group in groupby(ordered, lambda record: isinstance(record, _Fresh)):
            # Few operations on long arrays, because XLA compiles each.
            found = list(group)
            blocks += [_block(found, self.loops)] if is_fresh else found
        return {min(records): jnp.concatenate(blocks)}

    def joined(self, earlier: Any, later: Any) -> Any:
        """The numbers of runs added up, and the first of both."""
        first = jnp.where(earlier[:, :1] != np.uint32(0), earlier, later)
        runs = earlier[:, :1] + later[:, :1]
        # More runs than an integer holds are as many as it holds.
        runs = jnp.where(runs < earlier[:, :1], np.uint32(0xFFFFFFFF), runs)
        return jnp.concatenate([runs, first[:, 1:]], axis=1)

    def empty(self, plan: Plan) -> Records:
        """The record of operations that did not run."""
        numbers = [step.number for step in plan.every_step() if step.number in self.slots]
        return {min(numbers): self._nothing(len(numbers))} if numbers else {}

    def table(self, records: Records) -> Any:
        """The packed record of the whole program, also of one without slots."""
        return next(iter(self.packed(records).values()), self._nothing(0))

    def _nothing(self, slots: int) -> Any:
        return jnp.zeros((slots, FIRST_ITERATION + self.loops), "uint32")


def _block(records: list[_Fresh], loops: int) -> Any:
    """The packed records of one run of operations in the same loops."""
    made = jnp.stack([record.code for record in records])
    iterations = [jnp.asarray(each, "uint32") for each in records[0].iterations]
    columns = [*iterations, *[jnp.zeros((), "uint32")] * (loops - len(iterations))]
    runs = lax.convert_element_type(made != np.uint32(0), "uint32")
    return jnp.stack([runs, made, *(jnp.broadcast_to(each, made.shape) for each in columns)], axis=1)


def constants_of(plan: Plan) -> dict[Var, Any]:
    """The floating constants and bad literals of a program and of the functions that it calls."""
    found: dict[Var, Any] = {}
    for each in plan.every_plan():
        found.update(zip(each.variables, each.constants, strict=True))
    return {variable: value for variable, value in found.items() if is_floating(aval_of(variable))}


def users_of(plan: Plan) -> dict[Var, Site]:
    """The first operation that uses each variable that is one of `constants_of`."""
    found: dict[Var, Site] = {}
    for each in plan.every_plan():
        here = set(each.variables)
        for step in each.steps:
            for atom in step.equation.invars:
                if isinstance(atom, Var) and atom in here:
                    found.setdefault(atom, step.site)
    return found


_NEUTRAL: Mapping[str, float] = {"max": -np.inf, "min": np.inf}


def is_neutral(site: Site | None, value: Any) -> bool:
    """Whether an operation cannot see a constant, as a maximum does not see minus infinity.

    Args:
        site: the operation that uses it.
        value: its value.
    """
    neutral = None if site is None else _NEUTRAL.get(site.equation.primitive.name)
    return neutral is not None and not isinstance(value, Tracer) and bool((np.asarray(value) == neutral).all())


def common_integers(slots: Iterable[BirthSlot]) -> DType:
    """The integers that hold the ranks of all operands."""
    wide = any(as_format(aval.dtype).component.bits > 32 for slot in slots for aval in slot.operands)
    return np.dtype("int64" if wide else "int32")


@dataclass(frozen=True, eq=False)
class Following(TwoLanes):
    """Follows the bad values of one operation, or of one source.

    The first lane is as always. In the second, each bad value that comes from outside or is made of finite values is
    replaced by a finite one, except those of the target, which are those of the first lane. Bad results of the second
    lane therefore come from the target alone.

    A record is an integer[operands + 1, RANGE]: the ranges of the floating operands of the target in its first bad run,
    and the numbers of NaNs and infinities that it made.

    Args:
        slots: the operations, by the numbers of their steps.
        candidates: the indices of the slots that the target can be, by the numbers of their steps.
        integers: the integers for ranges.
        target: what is followed: the index of a slot, or of a source.
        first: uint32[loops]: the iterations of the first bad run of the target.
        sources: the indices of the constants that bad values can come from.
        iterations: the iteration of each loop around what runs.
    """

    slots: Mapping[int, BirthSlot]
    candidates: Mapping[int, int]
    integers: DType
    target: Any
    first: Any
    sources: Mapping[Var, int]
    iterations: tuple[Any, ...] = ()

    def in_iteration(self, index: Any) -> Following:
        """The same instrument inside of a loop."""
        return replace(self, iterations=(*self.iterations, index))

    def constant(self, variable: Var, value: Any) -> Lanes:
        """A constant: in the second lane it is bad only if it is the target."""
        if variable not in self.sources:
            return value, value
        return source_lanes(value, self.sources[variable], self.target)

    def run(self, step: Step, operands: Sequence[Lanes]) -> Outcome[Lanes]:
        """Run a step in both lanes, and replace the bad values that it made in the second."""
        results, records = super().run(step, operands)
        if step.number not in self.slots:
            return results, records
        equation = step.site.equation
        given, clean = (_floating(equation, [lanes[lane] for lanes in operands]) for lane in (0, 1))
        is_target = None
        if step.number in self.candidates:
            is_target = self.target == np.int32(self.candidates[step.number])
        made: list[Any] = []
        for place, (first, second) in enumerate(results):
            if not is_floating(first):
                continue
            kept = replaced(second, born(equation, clean, second)[1])
            if is_target is not None:
                made.append(born(equation, given, first)[0])
                kept = lax.select((made[-1] != np.uint32(0)) & is_target, first, kept)
            results[place] = first, kept
        if is_target is None:
            return results, {}
        for place, iteration in enumerate(self.iterations):
            is_target &= self.first[place] == jnp.asarray(iteration, "uint32")
        return results, {step.number: self._ranges_if(is_target, made, given)}

    def _ranges_if(self, is_first: Any, made: Sequence[Any], operands: Sequence[Any]) -> Any:
        """The record of one run of a candidate, which is zero unless it is the first bad run of the target."""

        def ranges() -> Any:
            numbers = [sum((count(each == code) for each in made), np.uint32(0)) for code in (BAD | NAN, BAD)]
            last = jnp.stack([lax.convert_element_type(number, self.integers) for number in numbers])
            rows = [jnp.pad(last, (0, RANGE - 2)), *(range_of(value, self.integers) for value in operands)]
            missing = self._nothing().shape[0] - len(rows)
            return on_each_device(jnp.stack([*rows, *[jnp.zeros(RANGE, self.integers)] * missing]))

        return lax.cond(is_first, ranges, lambda: on_each_device(self._nothing()))

    def packed(self, records: Records) -> Records:
        """The records as one: at most one of them is not zero."""
        return {min(records): functools.reduce(lax.bitwise_or, records.values())} if records else {}

    def joined(self, earlier: Any, later: Any) -> Any:
        """The one that is not zero."""
        return lax.bitwise_or(earlier, later)

    def empty(self, plan: Plan) -> Records:
        """The record of operations that did not run."""
        numbers = [step.number for step in plan.every_step() if step.number in self.candidates]
        return {min(numbers): self._nothing()} if numbers else {}

    def ranges(self, records: Records) -> Any:
        """The packed record of the whole program."""
        return next(iter(self.packed(records).values()), self._nothing())

    def _nothing(self) -> Any:
        return jnp.zeros((rows_of(self.slots[number] for number in self.candidates), RANGE), self.integers)


def rows_of(candidates: Iterable[BirthSlot]) -> int:
    """The number of rows of the records of `Following`."""
    return 1 + max((len(slot.operands) for slot in candidates), default=0)


def source_lanes(value: Any, source: int, target: Any) -> Lanes:
    """The lanes of a floating value from outside: it is bad in the second only if it is the target.

    Args:
        value: the value.
        source: its index, as the target has it.
        target: the target.
    """
    value = jnp.asarray(value)
    return value, lax.select(jnp.broadcast_to(target == np.int32(source), value.shape), value, replaced(value))


def count_bad(values: Sequence[Any]) -> Any:
    """The numbers of NaNs and infinities in floating arrays, as uint32[2]."""
    found = [codes(value) for value in values]
    return jnp.stack([sum((count(each == code) for each in found), jnp.zeros((), "uint32")) for code in
                      (BAD | NAN, BAD)])  # fmt: skip
