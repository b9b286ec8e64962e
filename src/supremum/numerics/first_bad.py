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
from jax.core import Tracer
from jax.extend.core import Var

from supremum.argument_checks import function
from supremum.errors import ArgumentError
from supremum.jaxprs import Plan, TracedCall, aval_of, interpret, on_each_device
from supremum.numerics.bad_values import RANGE
from supremum.numerics.birth_records import (
    FIRST_ITERATION,
    NAME,
    RUNS,
    BirthSlot,
    Finding,
    Following,
    birth_slots,
    common_integers,
    constants_of,
    count_bad,
    is_bad_literal,
    is_neutral,
    rows_of,
    source_lanes,
    users_of,
)  # fmt: skip
from supremum.numerics.births import Births, Fates, Found, SourceSlot
from supremum.numerics.calls import checked_call
from supremum.numerics.plans import measured_plan
from supremum.numerics.widening import is_floating


def first_nonfinite(fn: Callable[..., Any]) -> Callable[..., Births]:
    """Find where the NaNs and infinities of a function are born.

    The function is compiled and run once. An operation is listed if it made a NaN of operands without NaN, or an
    infinity of finite operands. If there are any, or if bad values came in, a second program runs once for each of
    them, with finite values in the place of all others; it tells which of them reach the results.

    `jit`, `grad`, `vmap`, `scan`, `while_loop`, `cond`, `checkpoint` and functions with custom derivatives may be used
    inside; `jax.jit`, `jax.vmap` and `jax.shard_map` may be put around the result. The births are then known once the
    outermost function returned.

    Args:
        fn: any function of arrays that JAX can trace, jitted or not, without side effects. Modules of Flax nnx are
            updated as by a call. Arguments that are not arrays, such as Python numbers, are passed on as they are.

    Returns:
        A function that takes the same arguments and returns `Births`, a sequence of `Birth` in order of execution.

    Raises:
        OperandError: if `fn` is not a function, and in a call for arguments without an array.
        ArgumentError: in a call, for a function with side effects, without a floating-point result, or with a
            `shard_map`, and for derivatives of the returned function.

    >>> import jax.numpy as jnp
    >>> def entropy(p):
    ...     return -jnp.sum(p * jnp.log(p))
    >>> found = first_nonfinite(entropy)(jnp.array([0.5, 0.5, 0.0]))
    >>> for birth in found:
    ...     print(birth.kind, birth.expression, birth.reached_output, birth.cause)
    infinity jnp.log(p) True the logarithm of zero
    nan p * jnp.log(p) True zero times infinity
    """
    function("fn", fn, "jnp.log")

    @wraps(fn, updated=())
    def found(*args: Any, **kwargs: Any) -> Births:
        return _found(fn, checked_call(fn, args, kwargs, NAME))

    return found


def _found(fn: Callable[..., Any], call: TracedCall) -> Births:
    plan = measured_plan(call.program, NAME, is_bad_literal)
    slots = birth_slots(plan)
    plan = plan.entering_for(slots)
    instrument = Finding(slots, max((len(slot.loops) for slot in slots.values()), default=0))
    users = users_of(plan)
    neutral = {var for var, value in constants_of(plan).items() if is_neutral(users.get(var), value)}
    named = [var for var in constants_of(plan) if var not in neutral]
    inputs = _inputs(fn, call)
    source_slots = (*inputs, *(SourceSlot("constant", "", aval_of(var), users.get(var)) for var in named))

    @jax.custom_jvp
    def find(constants: tuple[Any, ...], operands: list[Any]) -> tuple[list[Any], Found]:
        here = plan.with_constants(constants)
        results, records = interpret(here, operands, instrument)
        values = constants_of(here)
        given = [*_only_floating(operands), *(jnp.asarray(values[variable]) for variable in named)]
        counts = [count_bad([value]) for value in given]
        sources = jnp.stack(counts) if counts else jnp.zeros((0, 2), "uint32")
        return results, Found(instrument.table(records)[None], sources[None], count_bad(_only_floating(results))[None])

    @find.defjvp
    def refuse(*_: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        raise ArgumentError(
            f"{NAME} cannot be differentiated; look into the derivative: use {NAME}(jax.grad(function))"
        )

    # The flags would stop at the first NaN.
    with jax.debug_nans(False), jax.debug_infs(False):
        results, records = jax.jit(find)(plan.constants, call.arrays)
        fates, candidates = None, _candidates(records)
        if candidates != ():
            follow = jax.jit(partial(_fates, plan, slots, candidates, named))
            fates = follow(plan.constants, call.arrays, records)
    return Births(call.put_back(results), records, fates, tuple(slots.values()), source_slots, candidates)


def _candidates(found: Found) -> tuple[int, ...] | None:
    """The indices of operations and sources that made bad values; None while JAX traces, if any may have."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(found)):
        return None
    born = np.asarray(found.records)[0, :, RUNS] != 0
    bad = np.concatenate([born, np.asarray(found.sources)[0].any(axis=-1)])
    return tuple(int(index) for index in np.flatnonzero(bad))


def _only_floating(values: Sequence[Any]) -> list[Any]:
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


def _fates(
    plan: Plan,
    slots: Mapping[int, BirthSlot],
    chosen: tuple[int, ...] | None,
    named: Sequence[Var],
    constants: tuple[Any, ...],
    operands: list[Any],
    found: Found,
) -> Fates:
    """Run the program once for each birth and each source, to see whether the bad values reach the results.

    Args:
        plan: the program.
        slots: the operations.
        chosen: the indices of the operations and sources that made bad values; None for all.
        named: the constants that are sources.
        constants: the values of the constants of the program.
        operands: its operands.
        found: what the first run found.
    """
    here = plan.with_constants(constants)
    inputs = sum(map(is_floating, operands))
    first_source = len(slots)
    if chosen is None:
        chosen = tuple(range(first_source + inputs + len(named)))
    numbers = list(slots)
    candidates = {numbers[index]: index for index in chosen if index < first_source}
    operations = [slots[number] for number in candidates]
    integers, shape = common_integers(operations), (rows_of(operations), RANGE)
    sources = {variable: first_source + inputs + place for place, variable in enumerate(named)}
    records, given = found.records[0], found.sources[0]
    occurred = jnp.concatenate([records[:, RUNS] != np.uint32(0), (given != np.uint32(0)).any(axis=1)])
    firsts = jnp.pad(records[:, FIRST_ITERATION:], ((0, given.shape[0]), (0, 0)))

    def follow(index: Any) -> tuple[Any, Any]:
        instrument = Following(slots, candidates, integers, index, firsts[index], sources)
        lanes: list[tuple[Any, ...]] = []
        place = first_source
        for value in operands:
            lanes.append(source_lanes(value, place, index) if is_floating(value) else (value, value))
            place += is_floating(value)
        results, made = interpret(here, lanes, instrument)
        reached = lax.reduce_max(count_bad(_only_floating([each[1] for each in results])), (0,))
        return on_each_device((reached, instrument.ranges(made)))

    def fate(index: Any) -> tuple[Any, Any]:
        def nothing() -> tuple[Any, Any]:
            return on_each_device((jnp.zeros((), "uint32"), jnp.zeros(shape, integers)))

        return lax.cond(occurred[index], lambda: follow(index), nothing)

    reached, ranges = lax.map(fate, jnp.asarray(chosen, "int32"))
    return Fates(reached[None], ranges[None])
