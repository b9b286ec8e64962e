"""What `first_nonfinite` measures: the bad values that operations make, and whether they reach the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import JaxprEqn, Literal, Var

from supremum.formats import DType, as_format
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Site, aval_of
from supremum.numerics.bad_values import RANGE, bad, born, count, makes_bad, range_of, replaced
from supremum.numerics.instrumented import Instrument, Lanes, Plan, is_floating

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


RUNS, NANS, INFINITIES, FIRST_ITERATION = range(4)
"""The places in a record of `finding`; see there."""


def finding() -> Instrument[BirthSlot, Any]:
    """Find the operations that make bad values.

    Each record is uint32[1, 3 + loops]: the number of runs that made bad values; how many NaNs and infinities the first
    of these runs made; and the iteration of each loop around it. The first axis is that of the devices of a
    `shard_map`.
    """

    def measure(
        slots: tuple[BirthSlot, ...], equation: JaxprEqn, operands: Sequence[Lanes], results: Sequence[Lanes],
        iterations: tuple[Any, ...],
    ) -> tuple[Sequence[Lanes], list[Any]]:  # fmt: skip
        given = _floating(operands)
        made = [born(equation, given, result)[0] for result in _floating(results)]
        nans, infinities = (sum((count(each) for each in masks), np.uint32(0)) for masks in zip(*made, strict=True))
        runs = lax.convert_element_type((nans != np.uint32(0)) | (infinities != np.uint32(0)), "uint32")
        record = jnp.stack([runs, nans, infinities, *(jnp.asarray(each, "uint32") for each in iterations)])
        return results, [record[None]]

    def joined(left: Any, right: Any) -> Any:
        first = jnp.where(left[:, :1] != np.uint32(0), left, right)
        runs = left[:, :1] + right[:, :1]
        # More runs than an integer holds are as many as it holds.
        runs = jnp.where(runs < left[:, :1], np.uint32(0xFFFFFFFF), runs)
        return jnp.concatenate([runs, first[:, 1:]], axis=1)

    def empty(slot: BirthSlot) -> Any:
        return jnp.zeros((1, FIRST_ITERATION + len(slot.loops)), "uint32")

    return Instrument(NAME, birth_slots, measure, empty, joined, is_lifted=is_bad_literal)


def sources_of(plan: Plan[BirthSlot]) -> Iterator[tuple[Var, Any, Site | None]]:
    """The floating constants and bad literals of a program and the functions that it calls.

    Yields:
        The variable and the value of each, and the first operation that uses it.
    """
    users: dict[Any, Site] = {}
    for step in plan.steps:
        for atom in step.equation.invars:
            users.setdefault(id(atom), step.site)
    for variable, value in zip(plan.variables, plan.constants, strict=True):
        site = users.get(id(variable))
        if is_floating(aval_of(variable)) and not _is_neutral(site, value):
            yield variable, value, site
    for step in plan.steps:
        for inner in step.inner:
            yield from sources_of(inner)


_NEUTRAL: Mapping[str, float] = {"max": -np.inf, "min": np.inf}


def _is_neutral(site: Site | None, value: Any) -> bool:
    """Whether an operation cannot see a constant, as a maximum does not see minus infinity."""
    neutral = None if site is None else _NEUTRAL.get(site.equation.primitive.name)
    return neutral is not None and np.ndim(value) == 0 and not _is_traced(value) and float(value) == neutral


def _is_traced(value: Any) -> bool:
    from jax.core import Tracer

    return isinstance(value, Tracer)


def common_integers(slots: Sequence[BirthSlot]) -> DType:
    """The integers that hold the ranks of all operands."""
    wide = any(as_format(aval.dtype).component.bits > 32 for slot in slots for aval in slot.operands)
    return np.dtype("int64" if wide else "int32")


def tracing_one(
    slots: Sequence[BirthSlot], integers: DType, target: Any, first: Any, source_of: Callable[[Var], Any]
) -> Instrument[BirthSlot, Any]:
    """Follow the bad values of one operation, or of one source.

    The program runs in two lanes. The first is as always. In the second, each bad value that comes from outside or is
    made of finite values is replaced by a finite one, except those of the target, which are those of the first lane.
    Bad results of the second lane therefore come from the target alone.

    Args:
        slots: the slots of the program, in order.
        integers: the integers for ranges.
        target: the index of the operation among the slots, or of a source behind them.
        first: uint32[loops]: the iterations of the run of the target whose operands are measured; loops are those of
            the slot in most loops.
        source_of: the index of the source that a variable holds; None if it holds none.

    Each record is an integer[operands, RANGE]: the ranges of the floating operands in that run. All records have the
    size of the largest.
    """
    index = {id(slot): place for place, slot in enumerate(slots)}
    size = max((len(slot.operands) for slot in slots), default=0)

    def measure(
        given_slots: tuple[BirthSlot, ...], equation: JaxprEqn, operands: Sequence[Lanes], results: Sequence[Lanes],
        iterations: tuple[Any, ...],
    ) -> tuple[Sequence[Lanes], list[Any]]:  # fmt: skip
        (slot,) = given_slots
        is_target = target == np.int32(index[id(slot)])
        given, clean = _floating(operands), _floating(operands, 1)
        changed: list[Lanes] = []
        for result in results:
            if not is_floating(result[0]):
                changed.append(result)
                continue
            new, _ = born(equation, given, result[0])
            _, roots = born(equation, clean, result[1])
            kept = replaced(result[1], roots)
            changed.append((result[0], lax.select((new.nan | new.infinite) & is_target, result[0], kept)))
        is_first = is_target
        for place, iteration in enumerate(iterations):
            is_first &= first[place] == jnp.asarray(iteration, "uint32")

        def ranges(*values: Any) -> Any:
            rows = [range_of(value, integers) for value in values]
            rows += [jnp.zeros(RANGE, integers)] * (size - len(rows))
            return jnp.stack(rows) if rows else jnp.zeros((0, RANGE), integers)

        record = lax.cond(is_first, ranges, lambda *_: jnp.zeros((size, RANGE), integers), *given)
        return changed, [record]

    def lanes(variable: Var, value: Any) -> Lanes:
        return source_lanes(value, source_of(variable), target) if is_floating(aval_of(variable)) else (value, value)

    def empty(_: BirthSlot) -> Any:
        return jnp.zeros((size, RANGE), integers)

    # At most one run of one slot is not zero.
    return Instrument(NAME, birth_slots, measure, empty, lax.bitwise_or, lanes, is_bad_literal)


def source_lanes(value: Any, source: int | None, target: Any) -> Lanes:
    """The lanes of a floating value from outside: it is bad in the second only if it is the target.

    Args:
        value: the value.
        source: its index, as the target has it; None for a value that is always replaced.
        target: the target.
    """
    value = jnp.asarray(value)
    clean = replaced(value)
    if source is None:
        return value, clean
    return value, lax.select(jnp.broadcast_to(target == np.int32(source), value.shape), value, clean)


def count_bad(values: Sequence[Any]) -> Any:
    """The numbers of NaNs and infinities in floating arrays, as uint32[2]."""
    found = [bad(value) for value in values]
    return jnp.stack([sum((count(each) for each in masks), jnp.zeros((), "uint32")) for masks in
                      ([each.nan for each in found], [each.infinite for each in found])])  # fmt: skip
