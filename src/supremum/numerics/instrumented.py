"""Running a program so that it also measures the values that its operations take and make.

A program is evaluated equation by equation while JAX traces it. What is measured at the operations of a loop is carried
through the loop, so memory grows with the number of operations, not with that of iterations. What is measured is the
choice of an `Instrument`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.jax_compat import CALLS, WITH_RULE, open_jaxpr, parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Callee, Liveness, Site, aval_of, callees, evaluate_equation, line_of, loop_operands, walk

# Primitives that move the values of their operand and make none; `jax.extend` does not export all of them.
_MOVES = (
    *("broadcast_in_dim", "copy", "copy_p", "dynamic_slice", "optimization_barrier", "reshape", "rev", "slice"),
    *("split", "squeeze", "transpose"),
)

S = TypeVar("S")
"""What describes the place of a record, such as a result of an operation."""
R = TypeVar("R")
"""What is known about the runs of such a place: arrays, or a tree of them."""
T = TypeVar("T")
Lanes: TypeAlias = tuple[Any, ...]
"""A value of the program in each of the lanes that run side by side."""


@dataclass(frozen=True, slots=True, eq=False)
class Instrument(Generic[S, R]):
    """What is measured while a program runs.

    A program can run in several lanes: each value is then computed once for each lane. The first lane decides which
    branches run, and how often loops do.

    Args:
        name: the name of the function that the user called, for messages.
        slots: tells what is measured at an operation, which makes values that something depends on.
        measure: makes the records of one run of an operation. It takes the slots, the equation, its operands, its
            results, and the iteration of each loop around it; operands and results are lanes. It returns the results,
            which it may change, and the records.
        empty: the records of slots that did not run, packed.
        joined: the record of all runs of two packed records, the earlier one first.
        packed: the records of the slots of a function, in the form in which loops and branches return them.
        width: the number of lanes.
        lanes: the lanes of a constant of the program: its variable and its value are given.
        is_lifted: whether a literal is to be treated like a constant.
        is_apart: whether loops and branches of the first lane run apart from those of the others, as they are.
        everywhere: whether `slots` is asked about all operations, also those that call functions, only move values, or
            make values that nothing depends on. A `shard_map` then runs as it is, instead of raising.
    """

    name: str
    slots: Callable[[Site], Iterable[S]]
    measure: Callable[
        [tuple[S, ...], JaxprEqn, Sequence[Lanes], Sequence[Lanes], tuple[Any, ...]],
        tuple[Sequence[Lanes], Sequence[R]],
    ]
    empty: Callable[[Sequence[S]], list[R]]
    joined: Callable[[R, R], R]
    packed: Callable[[list[R]], list[R]] = lambda records: records
    width: int = 1
    lanes: Callable[[Var, Any], Lanes] = lambda _, value: (value,)
    is_lifted: Callable[[Literal], bool] = lambda _: False
    is_apart: bool = False
    everywhere: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Step(Generic[S]):
    """An equation of a plan.

    Args:
        site: the equation and its place in the program.
        equation: the equation, whose lifted literals are variables.
        slots: what is measured at it.
        inner: the plans of the functions that it calls, if it is entered; else none.
    """

    site: Site
    equation: JaxprEqn
    slots: tuple[S, ...]
    inner: tuple[Plan[S], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan(Generic[S]):
    """What to measure in a function.

    Args:
        jaxpr: the function.
        variables: its constants and lifted literals.
        constants: their values.
        steps: its equations.
        results: its results.
    """

    jaxpr: Jaxpr
    variables: tuple[Var, ...]
    constants: tuple[Any, ...]
    steps: tuple[Step[S], ...]
    results: tuple[Any, ...]

    def with_constants(self, constants: tuple[Any, ...]) -> Plan[S]:
        """The same plan with other values of the constants and lifted literals of the function."""
        return replace(self, constants=constants)

    @property
    def slots(self) -> tuple[S, ...]:
        """What is measured in this function and those that it calls, in the order of `evaluate`."""
        return tuple(
            slot
            for step in self.steps
            for slots in (step.slots, *(inner.slots for inner in step.inner))
            for slot in slots
        )


def _called(equation: JaxprEqn) -> Iterator[tuple[Callee, Jaxpr | ClosedJaxpr]]:
    """The functions that an equation calls, with the values of their constants if it holds them."""
    held = (
        each for value in equation.params.values() for each in (value if isinstance(value, (tuple, list)) else (value,))
    )
    functions = (each for each in held if isinstance(each, (Jaxpr, ClosedJaxpr)))
    return zip(callees(equation), functions, strict=True)


def plan_of(program: ClosedJaxpr, instrument: Instrument[S, R]) -> Plan[S]:
    """Decide what to measure in a program.

    Args:
        program: the program.
        instrument: what is measured.

    Raises:
        ArgumentError: for a `shard_map` and for arrays of at least 2**32 elements.
    """
    return _Planner(program, instrument).plan(program)


class _Planner(Generic[S, R]):
    """Follows the sites of a program, in the order of `walk`."""

    def __init__(self, program: ClosedJaxpr, instrument: Instrument[S, R]) -> None:
        self._sites: Iterator[Site] = walk(program)
        self._liveness = Liveness()
        self._instrument = instrument

    def plan(self, function: Jaxpr | ClosedJaxpr) -> Plan[S]:
        jaxpr = open_jaxpr(function)
        constants = tuple(function.consts) if isinstance(function, ClosedJaxpr) else ()
        lifted: dict[Var, Any] = {}
        steps = tuple(self._step(next(self._sites), lifted) for _ in jaxpr.eqns)
        results = tuple(self._lifted(jaxpr.outvars, lifted))
        return Plan(jaxpr, (*jaxpr.constvars, *lifted), (*constants, *lifted.values()), steps, results)

    def _lifted(self, atoms: Iterable[Any], lifted: dict[Var, Any]) -> Iterator[Any]:
        for atom in atoms:
            if isinstance(atom, Literal) and self._instrument.is_lifted(atom):
                variable = Var(atom.aval)
                lifted[variable] = jnp.asarray(atom.val, aval_of(atom).dtype)
                yield variable
            else:
                yield atom

    def _step(self, site: Site, lifted: dict[Var, Any]) -> Step[S]:
        name = self._instrument.name
        everywhere = self._instrument.everywhere
        if site.equation.primitive.name == "shard_map" and not everywhere:
            raise ArgumentError(
                f"{name} cannot look inside of a shard_map ({line_of(site.equation)}): {name} the function that it maps"
            )
        used = self._liveness.used(site)
        plans = [(callee.parameter, self.plan(function)) for callee, function in _called(site.equation)]
        operands = list(self._lifted(site.equation.invars, lifted))
        unchanged = all(new is old for new, old in zip(operands, site.equation.invars, strict=True))
        equation = site.equation if unchanged else site.equation.replace(invars=operands)
        if equation.primitive.name in _ENTERED:
            names = _ENTERED[equation.primitive.name].functions
            inner = tuple(plan for name in names for parameter, plan in plans if parameter == name)
            slots = tuple(self._instrument.slots(site)) if everywhere else ()
            return Step(site, equation, slots, inner if any(plan.slots or plan.variables for plan in inner) else ())
        makes = everywhere or (used and not only_moves(site.equation))
        if makes:
            self._check_size(site)
        return Step(site, equation, tuple(self._instrument.slots(site)) if makes else (), ())

    def _check_size(self, site: Site) -> None:
        for result in map(aval_of, site.equation.outvars):
            if is_floating(result) and result.size >= 2**32:
                name, line = self._instrument.name, line_of(site.equation)
                raise ArgumentError(f"{name} counts arrays of less than 2**32 elements, got {result.shape} at {line}")


def is_floating(aval: Any) -> bool:
    """Whether a type has floating values, real or complex."""
    dtype = getattr(aval, "dtype", None)
    return isinstance(dtype, np.dtype) and as_format(dtype).is_inexact  # the dtypes of random keys are not NumPy's


def only_moves(equation: JaxprEqn) -> bool:
    """Whether an equation makes no values: it moves those of operands that are not literals."""
    if equation.primitive is p.convert_element_type_p:  # one that only makes a weak type strong
        return aval_of(equation.invars[0]).dtype == aval_of(equation.outvars[0]).dtype
    return equation.primitive.name in _MOVES and not all(isinstance(atom, Literal) for atom in equation.invars)


_Measured: TypeAlias = tuple[list[Lanes], list[R]]
"""The results of an equation or a function, and the records of the functions that it calls."""


def evaluate(
    plan: Plan[S], operands: Sequence[Lanes], instrument: Instrument[S, R], iterations: tuple[Any, ...] = ()
) -> _Measured[R]:
    """Run a function and measure.

    Args:
        plan: the function.
        operands: the lanes of its operands.
        instrument: what is measured.
        iterations: the iteration of each loop around the function, outermost first.

    Returns:
        The lanes of the results of the function, and the records of the plan's slots, in their order.
    """
    constants = zip(plan.variables, plan.constants, strict=True)
    values: dict[Any, Lanes] = {variable: instrument.lanes(variable, value) for variable, value in constants}
    values.update(zip(plan.jaxpr.invars, operands, strict=True))
    records: list[R] = []

    def read(atom: Any) -> Lanes:
        return (atom.val,) * instrument.width if isinstance(atom, Literal) else values[atom]

    for step in plan.steps:
        given = [read(atom) for atom in step.equation.invars]
        inside: list[R] = []
        if step.inner:
            results, inside = _entered(plan, step, given, instrument, iterations)
        else:
            results = list(zip(*(_evaluated(plan, step, given, lane) for lane in range(instrument.width)), strict=True))
        if step.slots:
            results, found = instrument.measure(step.slots, step.site.equation, given, results, iterations)
            records += found
        records += inside
        values.update(zip(step.equation.outvars, results, strict=True))
    return [read(atom) for atom in plan.results], records


def _entered(
    plan: Plan[S],
    step: Step[S],
    operands: Sequence[Lanes],
    instrument: Instrument[S, R],
    iterations: tuple[Any, ...],
) -> _Measured[R]:
    """Run an equation that calls functions, and measure in these."""
    name = step.equation.primitive.name
    if not instrument.is_apart or name not in _LOOPS_AND_BRANCHES:
        return _ENTERED[name].run(step, operands, instrument, iterations)
    first = _evaluated(plan, step, operands, 0)

    def lanes_inside(variable: Var, value: Any) -> Lanes:
        return instrument.lanes(variable, value)[1:]

    inside = replace(instrument, width=instrument.width - 1, lanes=lanes_inside, is_apart=False)
    others, records = _ENTERED[name].run(step, [each[1:] for each in operands], inside, iterations)
    return [(one, *rest) for one, rest in zip(first, others, strict=True)], records


def _evaluated(plan: Plan[S], step: Step[S], operands: Sequence[Lanes], lane: int) -> list[Any]:
    return evaluate_equation(plan.jaxpr, step.equation, [each[lane] for each in operands])


def _run_call(
    step: Step[S], operands: Sequence[Lanes], instrument: Instrument[S, R], iterations: tuple[Any, ...]
) -> _Measured[R]:
    """Run a called function in place. A rule for derivatives is never used, because the program is not transformed."""
    return evaluate(step.inner[0], operands, instrument, iterations)


def _run_remat(
    step: Step[S], operands: Sequence[Lanes], instrument: Instrument[S, R], iterations: tuple[Any, ...]
) -> _Measured[R]:
    given = list(operands)
    if parameter(step.equation, "differentiated"):
        # In a backward pass XLA must not reuse the values of the forward pass.
        prevent = parameter(step.equation, "prevent_cse")
        each = prevent if isinstance(prevent, tuple) else (prevent,) * len(given)
        given = [
            tuple(map(lax.optimization_barrier, value)) if keep else value
            for value, keep in zip(given, each, strict=True)
        ]
    return evaluate(step.inner[0], given, instrument, iterations)


def _run_scan(
    step: Step[S], operands: Sequence[Lanes], instrument: Instrument[S, R], iterations: tuple[Any, ...]
) -> _Measured[R]:
    (body,), loop = step.inner, loop_operands(step.equation)
    constants, start = operands[: loop.constants], operands[loop.constants : loop.constants + loop.carries]
    length, is_reverse = parameter(step.equation, "length"), parameter(step.equation, "reverse")

    def run(state: Any, slices: Any) -> Any:
        count, carry, records = state
        # A loop of a backward pass runs through the iterations of the forward pass in reverse.
        index = np.uint32(max(length, 1) - 1) - count if is_reverse else count
        results, found = evaluate(body, [*constants, *carry, *slices], instrument, (*iterations, index))
        records = _joined(instrument, records, instrument.packed(found))
        return (count + np.uint32(1), results[: loop.carries], records), results[loop.carries :]

    (_, carry, records), stacked = lax.scan(
        run,
        (jnp.zeros((), "uint32"), list(start), _nothing(body, instrument)),
        list(operands[loop.constants + loop.carries :]),
        length=length,
        reverse=is_reverse,
        unroll=parameter(step.equation, "unroll"),
    )
    return [*carry, *stacked], records


def _run_while(
    step: Step[S], operands: Sequence[Lanes], instrument: Instrument[S, R], iterations: tuple[Any, ...]
) -> _Measured[R]:
    (condition, body), loop = step.inner, loop_operands(step.equation)
    of_condition, constants = operands[: loop.condition], operands[loop.condition : loop.first_carry]
    start = list(operands[loop.first_carry :])

    def asked(carry: Sequence[Lanes], index: Any) -> tuple[Any, list[R]]:
        (going_on,), found = evaluate(condition, [*of_condition, *carry], instrument, (*iterations, index))
        return going_on[0], on_each_device(instrument.packed(found))

    def run(state: Any) -> Any:
        index, going_on, carry, of_asking, of_running = state
        results, found = evaluate(body, [*constants, *carry], instrument, (*iterations, index))
        if going_on.ndim:
            results = jax.tree.map(partial(_chosen, going_on), results, carry)
        index = index + np.uint32(1)
        next_going_on, found_asking = asked(results, index)
        of_asking = _joined(instrument, of_asking, found_asking)
        return index, next_going_on, results, of_asking, _joined(instrument, of_running, instrument.packed(found))

    # The condition of a loop returns only whether to go on, so it is computed before the loop and in its body.
    first = jnp.zeros((), "uint32")
    going_on, of_asking = asked(start, first)
    *_, carry, of_asking, of_running = lax.while_loop(
        lambda state: lax.reduce_or(state[1], tuple(range(state[1].ndim))),
        run,
        (first, going_on, start, of_asking, _nothing(body, instrument)),
    )
    return carry, [*of_asking, *of_running]


def _chosen(going_on: Any, new: Any, old: Any) -> Any:
    """The carry of a loop that `vmap` made of several, each with its own condition: one that ended keeps its values."""
    return lax.select(lax.broadcast_in_dim(going_on, new.shape, tuple(range(going_on.ndim))), new, old)


def _run_cond(
    step: Step[S], operands: Sequence[Lanes], instrument: Instrument[S, R], iterations: tuple[Any, ...]
) -> _Measured[R]:
    index, *given = operands

    def branch(place: int) -> Callable[..., Any]:
        def run(*values: Any) -> Any:
            results, found = evaluate(step.inner[place], values, instrument, iterations)
            others = [_nothing(each, instrument) for each in step.inner]
            others[place] = on_each_device(instrument.packed(found))
            return results, [record for each in others for record in each]

        return run

    return lax.switch(index[0], [branch(place) for place in range(len(step.inner))], *given)


def _nothing(plan: Plan[S], instrument: Instrument[S, R]) -> list[R]:
    return on_each_device(instrument.empty(plan.slots))


def on_each_device(records: T) -> T:
    """Tell JAX that arrays of integers may differ on the devices of the `shard_map` around the call, if there is one.

    The types of what loops carry and of what branches return must agree in this, too.
    """
    names = jax.sharding.get_abstract_mesh().manual_axes
    if not names:
        return records
    zero = lax.axis_index(names) & 0

    def different(leaf: Any) -> Any:
        return leaf | lax.convert_element_type(zero, leaf.dtype)

    return jax.tree.map(different, records)


def _joined(instrument: Instrument[S, R], left: Sequence[R], right: Sequence[R]) -> list[R]:
    return [instrument.joined(a, b) for a, b in zip(left, right, strict=True)]


@dataclass(frozen=True, slots=True)
class _Entry:
    """How to run an equation that calls functions.

    Args:
        functions: the parameters that hold the functions.
        run: runs it.
    """

    functions: tuple[str, ...]
    run: Callable[[Step[Any], Sequence[Lanes], Instrument[Any, Any], tuple[Any, ...]], _Measured[Any]]


_LOOPS_AND_BRANCHES = frozenset({p.scan_p.name, p.while_p.name, p.cond_p.name})
_ENTERED: Mapping[str, _Entry] = {
    **{
        name: _Entry((function,), _run_call) for name, function in {**CALLS, **WITH_RULE}.items() if name != "shard_map"
    },
    p.remat_p.name: _Entry(("jaxpr",), _run_remat),
    p.scan_p.name: _Entry(("jaxpr",), _run_scan),
    p.while_p.name: _Entry(("cond_jaxpr", "body_jaxpr"), _run_while),
    p.cond_p.name: _Entry(("branches",), _run_cond),
}
