"""`first_nonfinite`, which runs a function once and finds the operations that make NaNs and infinities."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Var

from supremum.argument_checks import function
from supremum.bounded_cache import Bounded
from supremum.jaxprs import Plan, Site, TracedCall, aval_of, has_tracers, interpret, on_each_device
from supremum.numerics.calls import floating_numbers, refuse_derivatives, trace_to_run
from supremum.numerics.counting_program import CountingProgram
from supremum.numerics.kept_programs import KeptPrograms
from supremum.numerics.nonfinite_origins import NonfiniteOrigins, OriginOutcomes, OriginRecords, SourceSlot
from supremum.numerics.nonfinite_records import (
    FIRST_ITERATION,
    NAME,
    RUNS,
    OriginFinder,
    OriginFollower,
    constants_of,
    count_bad,
    is_bad_literal,
    is_neutral,
    nonfinite_sites,
    users_of,
)
from supremum.numerics.plans import measured_plan
from supremum.numerics.tallied_results import slots_of
from supremum.numerics.tallies import has_nonfinite
from supremum.numerics.widening import is_floating


def first_nonfinite(fn: Callable[..., Any]) -> Callable[..., NonfiniteOrigins]:
    """Find the operations that make the NaNs and infinities of a function.

    The function is compiled and run once, and its NaNs and infinities are counted. If there are any, a second program
    finds the operations that made a NaN of operands without NaN, or an infinity of finite operands. A third one runs
    once for each of them, and for each source that had bad values, with finite values in the place of all others; it
    shows which of them reach the results.

    `jit`, `grad`, `vmap`, `scan`, `while_loop`, `cond`, `checkpoint` and functions with custom derivatives may be used
    inside; `jax.jit`, `jax.vmap` and `jax.shard_map` may be put around the result. The origins are then known once the
    outermost function returned. If `fn` is jitted, later calls with arguments of the same kind compile nothing.

    Args:
        fn: any function of arrays that JAX can trace, jitted or not, without side effects. Modules of Flax nnx are
            updated as by a call. Arguments that are not arrays, such as Python numbers, are passed on as they are.

    Returns:
        A function that takes the same arguments and returns `NonfiniteOrigins`, a sequence of `NonfiniteOrigin` in
        order of execution.

    Raises:
        OperandError: if `fn` is not a function, and in a call for arguments without an array.
        ArgumentError: in a call, for a function with side effects, without a floating-point result, or with a
            `shard_map`, and for derivatives of the returned function.

    >>> import jax.numpy as jnp
    >>> def entropy(p):
    ...     return -jnp.sum(p * jnp.log(p))
    >>> origins = first_nonfinite(entropy)(jnp.array([0.5, 0.5, 0.0]))
    >>> for origin in origins:
    ...     print(origin.kind, origin.expression, origin.reached_output, origin.cause)
    infinity jnp.log(p) True the logarithm of zero
    nan p * jnp.log(p) True zero times infinity
    """
    function("fn", fn, "jnp.log")

    programs = KeptPrograms(lambda call: _SearchPrograms(call.program))

    @wraps(fn, updated=())
    def search(*args: Any, **kwargs: Any) -> NonfiniteOrigins:
        call = trace_to_run(fn, args, kwargs, NAME)
        return programs.of(call).search(call, _inputs(fn, call))

    return search


class _SearchPrograms:
    """The programs that find the origins in a program, compiled when they first run.

    The first one only counts bad values. It compiles much faster than the others, which run if there are any.

    Args:
        program: the program.
    """

    def __init__(self, program: ClosedJaxpr) -> None:
        plan = measured_plan(program, NAME, is_bad_literal)
        self._sites = nonfinite_sites(plan)
        self._plan = plan.entering_for(self._sites)
        users = users_of(self._plan)
        self._constants = {
            var: SourceSlot("constant", "", aval_of(var), next(iter(users.get(var, ())), None))
            for var, value in constants_of(self._plan).items()
            if not (var in users and all(is_neutral(site, value) for site in users[var]))
        }
        slots = slots_of((step for step in plan.every_step() if step.number in self._sites), ())
        self._count: CountingProgram | None = CountingProgram(plan, slots, NAME)
        self._count_sources = jax.jit(self._sources_and_outputs)
        self._find = jax.jit(refuse_derivatives(self._find_origins, NAME))
        self._follow: Bounded[tuple[int, ...] | None, Callable[..., OriginOutcomes]] = Bounded(8)

    def search(self, call: TracedCall, inputs: Sequence[SourceSlot]) -> NonfiniteOrigins:
        """Run the programs on the operands of a call.

        Args:
            call: the call.
            inputs: the floating operands.
        """
        numbers = list(map(jnp.asarray, floating_numbers(call)))
        # The flags would stop at the first NaN.
        with jax.debug_nans(False), jax.debug_infs(False):
            results, records = self._find_none(call.arrays, numbers) or self._find(
                self._plan.constants, call.arrays, numbers
            )
            outcomes, followed = None, _followed(records)
            if followed != ():
                follow = partial(_follow, self._plan, self._sites, followed, list(self._constants))
                follow = self._follow.setdefault(followed, jax.jit(follow))
                outcomes = follow(self._plan.constants, call.arrays, records)
        slots, sites = (*inputs, *self._constants.values()), tuple(self._sites.values())
        return NonfiniteOrigins(call.put_back(results), records, outcomes, sites, slots, followed)

    def _find_none(self, operands: list[Any], numbers: list[Any]) -> tuple[list[Any], OriginRecords] | None:
        """The results of the program, and the records of a run without bad values; None if there may be some.

        Once there were some, this is not tried again.
        """
        if self._count is None or has_tracers((operands, self._plan.constants)):
            return None
        results, tallies = self._count.run(operands)
        counted = self._count_sources(self._plan.constants, operands, results, numbers)
        if has_tracers(counted):  # the call is inside of a jitted function that gives it no arrays
            return None
        sources, outputs = jax.device_get(counted)
        tallied = zip(tallies.fetch(), self._count.slots, strict=True)
        if sources.any() or outputs.any() or any(has_nonfinite(tally, slot.questions) for tally, slot in tallied):
            self._count = None
            return None
        return results, OriginRecords(OriginFinder(self._sites).table({})[None], sources[None], outputs[None])

    def _find_origins(
        self, values: tuple[Any, ...], operands: list[Any], numbers: list[Any]
    ) -> tuple[list[Any], OriginRecords]:
        here, instrument = self._plan.with_constants(values), OriginFinder(self._sites)
        results, records = interpret(here, operands, instrument)
        bad, outputs = self._sources_and_outputs(values, operands, results, numbers)
        return results, OriginRecords(instrument.table(records)[None], bad[None], outputs[None])

    def _sources_and_outputs(
        self, values: tuple[Any, ...], operands: list[Any], results: list[Any], numbers: list[Any]
    ) -> tuple[Any, Any]:
        """The numbers of NaNs and infinities in each source, and in the results."""
        known = constants_of(self._plan.with_constants(values))
        sources = *_floating(operands), *(jnp.asarray(known[var]) for var in self._constants)
        counts = [count_bad([each]) for each in sources]
        bad = jnp.stack(counts) if counts else jnp.zeros((0, 2), "uint32")
        return bad, count_bad([*_floating(results), *numbers])


def _followed(records: OriginRecords) -> tuple[int, ...] | None:
    """The indices of operations and sources that made bad values; None for all, while JAX traces."""
    if has_tracers(records):
        return None
    operations = np.asarray(records.operations)[0, :, RUNS] != 0
    bad = np.concatenate([operations, np.asarray(records.sources)[0].any(axis=-1)])
    return tuple(map(int, np.flatnonzero(bad)))


def _floating(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if is_floating(value)]


def _inputs(fn: Callable[..., Any], call: TracedCall) -> list[SourceSlot]:
    """The floating arguments."""
    names: list[str] = []
    with suppress(TypeError, ValueError):  # functions of C, and objects that only look like functions
        names = list(inspect.signature(fn).parameters)
    return [
        SourceSlot("argument", _name_of(path, names), aval, None)
        for path, array, aval in zip(call.paths, call.arrays, call.program.in_avals, strict=True)
        if is_floating(array)
    ]


def _name_of(path: tuple[Any, ...], names: list[str]) -> str:
    """The name of an operand, as in `params['w']`."""
    which, first, *rest = path
    name = str(first.key) if which.idx == 1 else names[first.idx] if first.idx < len(names) else f"args[{first.idx}]"
    return name + jax.tree_util.keystr(tuple(rest))


def _follow(
    plan: Plan,
    sites: Mapping[int, Site],
    followed: tuple[int, ...] | None,
    named: Sequence[Var],
    constants: tuple[Any, ...],
    operands: list[Any],
    records: OriginRecords,
) -> OriginOutcomes:
    """Run the program once for each operation and each source, to see whether the bad values reach the results.

    Args:
        plan: the program.
        sites: the operations.
        followed: the indices of the operations and sources that made bad values; None for all.
        named: the constants that are sources.
        constants: the values of the constants of the program.
        operands: its operands.
        records: what the first run recorded.
    """
    here = plan.with_constants(constants)
    first_constant = len(sites) + len(_floating(operands))
    if followed is None:
        followed = tuple(range(first_constant + len(named)))
    numbers = list(sites)
    candidates = {numbers[index]: index for index in followed if index < len(sites)}
    sources = {variable: first_constant + place for place, variable in enumerate(named)}
    operations, counts = records.operations[0], records.sources[0]
    occurred = jnp.concatenate([operations[:, RUNS] != np.uint32(0), (counts != np.uint32(0)).any(axis=1)])
    firsts = jnp.pad(operations[:, FIRST_ITERATION:], ((0, counts.shape[0]), (0, 0)))

    def follow(index: Any) -> tuple[Any, Any]:
        instrument = OriginFollower(sites, candidates, index, firsts[index], sources)

        def run() -> tuple[Any, Any]:
            lanes: list[tuple[Any, Any]] = []
            place = len(sites)
            for value in operands:
                lanes.append(instrument.source(value, place) if is_floating(value) else (value, value))
                place += is_floating(value)
            results, ranges = interpret(here, lanes, instrument)
            reached = lax.reduce_max(count_bad(_floating([each[1] for each in results])), (0,))
            return on_each_device((reached, instrument.ranges(ranges)))

        def nothing() -> tuple[Any, Any]:
            return on_each_device((jnp.zeros((), "uint32"), instrument.nothing()))

        return lax.cond(occurred[index], run, nothing)

    reached, ranges = lax.map(follow, jnp.asarray(followed, "int32"))
    return OriginOutcomes(reached[None], ranges[None])
