"""What `first_nonfinite` measures: the bad values that operations make, and whether they reach the results."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
    codes,
    count,
    join_codes,
    makes_bad,
    new_bad_values,
    range_of,
    replace_bad,
)
from supremum.numerics.lanes import Lanes, TwoLanes
from supremum.numerics.plans import steps_with_values
from supremum.numerics.widening import floating_avals, is_floating
from supremum.typing import ArrayLike

NAME = "first_nonfinite"
LOOPS = p.scan_p.name, p.while_p.name


def loops_around(site: Site) -> list[Site]:
    """The loops around an operation, outermost first."""
    return [caller for caller in site.chain[:-1] if caller.equation.primitive.name in LOOPS]


def nonfinite_sites(plan: Plan) -> dict[int, Site]:
    """The operations that can make bad values, by the numbers of their steps, in order.

    Raises:
        ArgumentError: for arrays of at least 2**32 elements.
    """
    sites = {step.number: step.site for step in steps_with_values(plan, NAME) if makes_bad(step.site.equation)}
    return dict(sorted(sites.items()))


def is_bad_literal(literal: Literal) -> bool:
    """Whether a literal is NaN or infinite."""
    if not is_floating(aval_of(literal)):
        return False
    return not bool(np.isfinite(np.asarray(literal.val).astype("complex128")).all())


def _floating_operands(equation: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """The floating operands of an equation, as arrays; literals are Python's or JAX's own numbers."""
    types = map(aval_of, equation.invars)
    pairs = [(value, aval) for value, aval in zip(operands, types, strict=True) if is_floating(aval)]
    return [value if isinstance(value, jax.Array) else jnp.asarray(value, aval.dtype) for value, aval in pairs]


RUNS, CODE, FIRST_ITERATION = range(3)
"""The places in a record of `OriginFinder`; see there."""


class _RunRecord(NamedTuple):
    """The record of one run of one operation.

    Args:
        code: what it made, as the joined code of its elements.
        iterations: the iterations of the loops around it.
    """

    code: Any
    iterations: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class OriginFinder(Instrument[Any]):
    """Finds the operations that make bad values.

    Packed records are uint32[sites, 2 + loops]: the number of runs that made bad values; the code of what the first of
    these runs made; and the iteration of each loop around it. They stand under the number of the first site.

    Args:
        sites: the operations, by the numbers of their steps, in order.
        iterations: the iteration of each loop around what runs.
    """

    sites: Mapping[int, Site]
    iterations: tuple[Any, ...] = ()

    @cached_property
    def _loops(self) -> int:
        """The most loops around an operation."""
        return max((len(loops_around(site)) for site in self.sites.values()), default=0)

    def in_iteration(self, index: jax.Array) -> OriginFinder:
        """The same instrument inside of a loop."""
        return replace(self, iterations=(*self.iterations, index))

    def run(self, step: Step, operands: Sequence[Any]) -> Outcome[Any]:
        """Run a step, and look at its results."""
        results, records = super().run(step, operands)
        if step.number not in self.sites:
            return results, records
        equation = step.site.equation
        floating = _floating_operands(equation, operands)
        new = [join_codes(new_bad_values(equation, floating, value)[0]) for value in results if is_floating(value)]
        return results, {step.number: _RunRecord(functools.reduce(lax.bitwise_or, new), self.iterations)}

    def pack(self, records: Records) -> Records:
        """The records as one array."""
        if not records:
            return {}
        blocks: list[Any] = []
        ordered = [records[number] for number in sorted(records)]
        for is_single, group in groupby(ordered, lambda record: isinstance(record, _RunRecord)):
            each = list(group)
            # Few operations on long arrays, because XLA compiles each.
            blocks += [self._block(each)] if is_single else each
        return {min(records): jnp.concatenate(blocks)}

    def _block(self, records: list[_RunRecord]) -> Any:
        """The packed records of one run of operations in the same loops."""
        codes_made = jnp.stack([record.code for record in records])
        iterations = [jnp.asarray(each, "uint32") for each in records[0].iterations]
        columns = [*iterations, *[jnp.zeros((), "uint32")] * (self._loops - len(iterations))]
        runs = lax.convert_element_type(codes_made != np.uint32(0), "uint32")
        return jnp.stack([runs, codes_made, *(jnp.broadcast_to(each, codes_made.shape) for each in columns)], axis=1)

    def join(self, earlier: jax.Array, later: jax.Array) -> jax.Array:
        """The numbers of runs added up, and the first of both."""
        first = jnp.where(earlier[:, :1] != np.uint32(0), earlier, later)
        runs = earlier[:, :1] + later[:, :1]
        # More runs than an integer holds are as many as it holds.
        runs = jnp.where(runs < earlier[:, :1], np.uint32(0xFFFFFFFF), runs)
        return jnp.concatenate([runs, first[:, 1:]], axis=1)

    def empty(self, plan: Plan) -> Records:
        """The record of operations that did not run."""
        numbers = [step.number for step in plan.every_step() if step.number in self.sites]
        return {min(numbers): self._nothing(len(numbers))} if numbers else {}

    def table(self, records: Records) -> Any:
        """The packed record of the whole program, also of one without sites."""
        return next(iter(self.pack(records).values()), self._nothing(0))

    def _nothing(self, sites: int) -> Any:
        return jnp.zeros((sites, FIRST_ITERATION + self._loops), "uint32")


def constants_of(plan: Plan) -> dict[Var, Any]:
    """The floating constants and bad literals of a program and of the functions that it calls."""
    return {
        variable: value
        for each in plan.every_plan()
        for variable, value in zip(each.variables, each.constants, strict=True)
        if is_floating(aval_of(variable))
    }


def users_of(plan: Plan) -> dict[Var, list[Site]]:
    """The operations that use each variable that is one of `constants_of`."""
    users: dict[Var, list[Site]] = {}
    for each in plan.every_plan():
        here = set(each.variables)
        for step in each.steps:
            for atom in step.equation.invars:
                if isinstance(atom, Var) and atom in here:
                    users.setdefault(atom, []).append(step.site)
    return users


_NEUTRAL: Mapping[str, float] = {"max": -np.inf, "min": np.inf}
_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")


def is_neutral(site: Site, value: ArrayLike) -> bool:
    """Whether an operation cannot see a constant, as a maximum does not see minus infinity, or only compares with it.

    Args:
        site: the operation that uses it.
        value: its value.
    """
    if site.equation.primitive.name in _COMPARISONS:
        return True
    neutral = _NEUTRAL.get(site.equation.primitive.name)
    return neutral is not None and not isinstance(value, Tracer) and bool((np.asarray(value) == neutral).all())


@dataclass(frozen=True, eq=False)
class OriginFollower(TwoLanes):
    """Follows the bad values of one operation, or of one source.

    The first lane is as always. In the second, each bad value that comes from outside or is made of finite values is
    replaced by a finite one, except those of the target, which are those of the first lane. Bad results of the second
    lane therefore come from the target alone.

    A record is an integer[operands + 1, RANGE]: the ranges of the floating operands of the target in its first bad run,
    and the numbers of NaNs and infinities that it made.

    Args:
        sites: the operations, by the numbers of their steps.
        candidates: the indices of the sites that the target can be, by the numbers of their steps.
        target: what is followed: the index of a site, or of a source.
        first: uint32[loops]: the iterations of the first bad run of the target.
        sources: the indices of the constants that bad values can come from.
        iterations: the iteration of each loop around what runs.
    """

    sites: Mapping[int, Site]
    candidates: Mapping[int, int]
    target: Any
    first: Any
    sources: Mapping[Var, int]
    iterations: tuple[Any, ...] = ()

    @cached_property
    def _operands(self) -> list[list[Any]]:
        """The types of the floating operands of each candidate."""
        return [floating_avals(self.sites[number].equation.invars) for number in self.candidates]

    @cached_property
    def _integers(self) -> DType:
        """The integers that hold the ranks of all operands."""
        wide = any(as_format(aval.dtype).component.bits > 32 for avals in self._operands for aval in avals)
        return np.dtype("int64" if wide else "int32")

    def in_iteration(self, index: jax.Array) -> OriginFollower:
        """The same instrument inside of a loop."""
        return replace(self, iterations=(*self.iterations, index))

    def constant(self, variable: Var, value: ArrayLike) -> Lanes:
        """A constant: in the second lane it is bad only if it is the target."""
        if variable not in self.sources:
            return value, value
        return self.source(value, self.sources[variable])

    def source(self, value: ArrayLike, index: int) -> Lanes:
        """The lanes of a floating value from outside: it is bad in the second only if it is the target."""
        value = jnp.asarray(value)
        is_target = jnp.broadcast_to(self.target == np.int32(index), value.shape)
        return value, lax.select(is_target, value, replace_bad(value))

    def run(self, step: Step, operands: Sequence[Lanes]) -> Outcome[Lanes]:
        """Run a step in both lanes, and replace the bad values that it made in the second."""
        results, records = super().run(step, operands)
        if step.number not in self.sites:
            return results, records
        equation = step.site.equation
        bad, clean = (_floating_operands(equation, [lanes[lane] for lanes in operands]) for lane in (0, 1))
        is_target = None
        if step.number in self.candidates:
            is_target = self.target == np.int32(self.candidates[step.number])
        new_codes: list[Any] = []
        for place, (first, second) in enumerate(results):
            if not is_floating(first):
                continue
            kept = replace_bad(second, new_bad_values(equation, clean, second)[1])
            if is_target is not None:
                new_codes.append(new_bad_values(equation, bad, first)[0])
                kept = lax.select((new_codes[-1] != np.uint32(0)) & is_target, first, kept)
            results[place] = first, kept
        if is_target is None:
            return results, {}
        for place, iteration in enumerate(self.iterations):
            is_target &= self.first[place] == jnp.asarray(iteration, "uint32")
        return results, {step.number: self._ranges_if(is_target, new_codes, bad)}

    def _ranges_if(self, is_first: Any, new_codes: Sequence[Any], operands: Sequence[Any]) -> Any:
        """The record of one run of a candidate, which is zero unless it is the first bad run of the target."""

        def ranges() -> Any:
            last = lax.convert_element_type(_count_codes(new_codes), self._integers)
            rows = [jnp.pad(last, (0, RANGE - 2)), *(range_of(value, self._integers) for value in operands)]
            missing = self.nothing().shape[0] - len(rows)
            return on_each_device(jnp.stack([*rows, *[jnp.zeros(RANGE, self._integers)] * missing]))

        return lax.cond(is_first, ranges, lambda: on_each_device(self.nothing()))

    def pack(self, records: Records) -> Records:
        """The records as one: at most one of them is not zero."""
        return {min(records): functools.reduce(lax.bitwise_or, records.values())} if records else {}

    def join(self, earlier: jax.Array, later: jax.Array) -> jax.Array:
        """The one that is not zero."""
        return lax.bitwise_or(earlier, later)

    def empty(self, plan: Plan) -> Records:
        """The record of operations that did not run."""
        numbers = [step.number for step in plan.every_step() if step.number in self.candidates]
        return {min(numbers): self.nothing()} if numbers else {}

    def ranges(self, records: Records) -> Any:
        """The packed record of the whole program."""
        return next(iter(self.pack(records).values()), self.nothing())

    def nothing(self) -> Any:
        """The record of candidates that did not run."""
        return jnp.zeros((1 + max(map(len, self._operands), default=0), RANGE), self._integers)


def count_bad(values: Sequence[Any]) -> Any:
    """The numbers of NaNs and infinities in floating arrays, as uint32[2]."""
    return _count_codes([codes(value) for value in values])


def _count_codes(arrays: Sequence[Any]) -> Any:
    """The numbers of codes of NaNs and of infinities in arrays of codes, as uint32[2]."""
    zero = jnp.zeros((), "uint32")
    return jnp.stack([sum((count(each == code) for each in arrays), zero) for code in (BAD | NAN, BAD)])
