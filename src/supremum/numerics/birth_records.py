"""What `first_nonfinite` measures: the bad values that operations make, and whether they reach the results."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend.core import JaxprEqn, Literal, Var

from supremum.formats import DType, as_format
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Site, aval_of
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
from supremum.numerics.instrumented import Instrument, Lanes, Plan, is_floating, on_each_device

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


def birth_slots(site: Site) -> Iterator[BirthSlot]:
    """The slot of an operation, if it can make bad values."""
    if makes_bad(site.equation):
        yield BirthSlot(site)


def is_bad_literal(literal: Literal) -> bool:
    """Whether a literal is NaN or infinite."""
    if not is_floating(aval_of(literal)):
        return False
    return not bool(np.isfinite(np.asarray(literal.val).astype("complex128")).all())


def _floating(lanes: Sequence[Lanes], lane: int = 0) -> list[Any]:
    return [each[lane] for each in lanes if is_floating(each[lane])]


RUNS, CODE, FIRST_ITERATION = range(3)
"""The places in a record of `finding`; see there."""


class _Fresh(NamedTuple):
    """The record of one run of one operation.

    Args:
        code: what it made, as the joined code of its elements.
        iterations: the iterations of the loops around it.
    """

    code: Any
    iterations: tuple[Any, ...]


def loops_of(slots: Sequence[BirthSlot]) -> int:
    """The most loops around an operation."""
    return max((len(slot.loops) for slot in slots), default=0)


def finding(loops: int) -> Instrument[BirthSlot, Any]:
    """Find the operations that make bad values.

    Packed records are uint32[slots, 2 + loops]: the number of runs that made bad values; the code of what the first of
    these runs made; and the iteration of each loop around it.

    Args:
        loops: the most loops around an operation.
    """

    def measure(
        _: tuple[BirthSlot, ...], equation: JaxprEqn, operands: Sequence[Lanes], results: Sequence[Lanes],
        iterations: tuple[Any, ...],
    ) -> tuple[Sequence[Lanes], list[Any]]:  # fmt: skip
        given = _floating(operands)
        made = [joined_codes(born(equation, given, result)[0]) for result in _floating(results)]
        return results, [_Fresh(functools.reduce(lax.bitwise_or, made), iterations)]

    def packed(records: list[Any]) -> list[Any]:
        blocks: list[Any] = [empty(())[0]]
        for is_fresh, group in groupby(records, lambda record: isinstance(record, _Fresh)):
            # Few operations on long arrays, because XLA compiles each.
            found = list(group)
            blocks += [_block(found, loops)] if is_fresh else found
        return [jnp.concatenate(blocks)]

    def joined(left: Any, right: Any) -> Any:
        first = jnp.where(left[:, :1] != np.uint32(0), left, right)
        runs = left[:, :1] + right[:, :1]
        # More runs than an integer holds are as many as it holds.
        runs = jnp.where(runs < left[:, :1], np.uint32(0xFFFFFFFF), runs)
        return jnp.concatenate([runs, first[:, 1:]], axis=1)

    def empty(slots: Sequence[BirthSlot]) -> list[Any]:
        return [jnp.zeros((len(slots), FIRST_ITERATION + loops), "uint32")]

    return Instrument(NAME, birth_slots, measure, empty, joined, packed, is_lifted=is_bad_literal)


def _block(records: list[_Fresh], loops: int) -> Any:
    """The packed records of one run of operations in the same loops."""
    made = jnp.stack([record.code for record in records])
    iterations = [jnp.asarray(each, "uint32") for each in records[0].iterations]
    columns = [*iterations, *[jnp.zeros((), "uint32")] * (loops - len(iterations))]
    runs = lax.convert_element_type(made != np.uint32(0), "uint32")
    return jnp.stack([runs, made, *(jnp.broadcast_to(each, made.shape) for each in columns)], axis=1)


def constants_of(plan: Plan[BirthSlot]) -> dict[Var, Any]:
    """The floating constants and bad literals of a program and of the functions that it calls."""
    pairs = zip(plan.variables, plan.constants, strict=True)
    found = {variable: value for variable, value in pairs if is_floating(aval_of(variable))}
    for step in plan.steps:
        for inner in step.inner:
            found |= constants_of(inner)
    return found


def users_of(plan: Plan[BirthSlot]) -> dict[Var, Site]:
    """The first operation that uses each variable that is one of `constants_of`."""
    found: dict[Var, Site] = {}
    here = set(plan.variables)
    for step in plan.steps:
        for atom in step.equation.invars:
            if isinstance(atom, Var) and atom in here:
                found.setdefault(atom, step.site)
        for inner in step.inner:
            found = users_of(inner) | found
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


class Target(NamedTuple):
    """What `tracing_one` follows.

    Args:
        index: the index of the operation among the slots, or of a source, as in `Sources`.
        first: uint32[loops]: the iterations of its first bad run.
    """

    index: Any
    first: Any


class Sources(NamedTuple):
    """The constants that bad values can come from.

    Args:
        named: the index of each source, as a target has it.
        kept: constants that are never replaced.
    """

    named: Mapping[Var, int]
    kept: Collection[Var]


def tracing_one(
    candidates: Mapping[BirthSlot, int], integers: DType, target: Target, sources: Sources
) -> Instrument[BirthSlot, Any]:
    """Follow the bad values of one operation, or of one source.

    The program runs in two lanes. The first is as always. In the second, each bad value that comes from outside or is
    made of finite values is replaced by a finite one, except those of the target, which are those of the first lane.
    Bad results of the second lane therefore come from the target alone.

    Args:
        candidates: the slots that the target can be, and their indices.
        integers: the integers for ranges.
        target: what is followed.
        sources: the constants.

    The record is an integer[operands + 1, RANGE]: the ranges of the floating operands of the target in its first bad
    run, and the numbers of NaNs and infinities that it made.
    """
    size = rows_of(candidates)

    def measure(
        slots: tuple[BirthSlot, ...], equation: JaxprEqn, operands: Sequence[Lanes], results: Sequence[Lanes],
        iterations: tuple[Any, ...],
    ) -> tuple[Sequence[Lanes], list[Any]]:  # fmt: skip
        (slot,) = slots
        given, clean = _floating(operands), _floating(operands, 1)
        is_target = target.index == np.int32(candidates[slot]) if slot in candidates else None
        changed, made = [*results], []
        for place, result in enumerate(results):
            if not is_floating(result[0]):
                continue
            _, roots = born(equation, clean, result[1])
            kept = replaced(result[1], roots)
            if is_target is not None:
                made.append(born(equation, given, result[0])[0])
                kept = lax.select((made[-1] != np.uint32(0)) & is_target, result[0], kept)
            changed[place] = result[0], kept
        if is_target is None:
            return changed, []
        is_first = is_target
        for place, iteration in enumerate(iterations):
            is_first &= target.first[place] == jnp.asarray(iteration, "uint32")

        def ranges() -> Any:
            numbers = [sum((count(each == code) for each in made), np.uint32(0)) for code in (BAD | NAN, BAD)]
            last = jnp.stack([lax.convert_element_type(number, integers) for number in numbers])
            rows = [jnp.pad(last, (0, RANGE - 2)), *(range_of(value, integers) for value in given)]
            rest = [jnp.zeros(RANGE, integers)] * (size - len(rows))
            return on_each_device(jnp.stack([*rows, *rest]))

        def nothing() -> Any:
            return on_each_device(empty(())[0])

        return changed, [lax.cond(is_first, ranges, nothing)]

    def packed(records: list[Any]) -> list[Any]:
        return [functools.reduce(lax.bitwise_or, [empty(())[0], *records])]  # at most one of them is not zero

    def lanes(variable: Var, value: Any) -> Lanes:
        if variable in sources.kept or not is_floating(aval_of(variable)):
            return value, value
        return source_lanes(value, sources.named[variable], target.index)

    def empty(_: Sequence[BirthSlot]) -> list[Any]:
        return [jnp.zeros((size, RANGE), integers)]

    return Instrument(NAME, birth_slots, measure, empty, lax.bitwise_or, packed, 2, lanes, is_bad_literal)


def rows_of(candidates: Iterable[BirthSlot]) -> int:
    """The number of rows of the records of `tracing_one`."""
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
