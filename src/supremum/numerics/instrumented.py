"""Running a program so that it also counts the values that its operations make.

A program is evaluated equation by equation while JAX traces it. The tallies of the operations in a loop are carried
through the loop, so memory grows with the number of operations, not with that of iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from supremum.errors import ArgumentError
from supremum.formats import Format, as_format
from supremum.jax_compat import CALLS, WITH_RULE, open_jaxpr, parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Callee, Liveness, Site, aval_of, callees, evaluate_equation, line_of, loop_operands, walk
from supremum.numerics.tallies import Questions, Tally, added, counted_format, empty, questions_of

# Primitives that move the values of their operand and make none; `jax.extend` does not export all of them.
_MOVES = (
    *("broadcast_in_dim", "copy", "copy_p", "dynamic_slice", "optimization_barrier", "reshape", "rev", "slice"),
    *("split", "squeeze", "transpose"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A result whose values are counted.

    Args:
        site: the operation that makes it.
        result: its index among the results of the operation.
        source: the format that its values are counted in.
        questions: what is counted.
    """

    site: Site
    result: int
    source: Format
    questions: Questions


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An equation of a plan.

    Args:
        equation: the equation.
        slots: its results that are counted.
        inner: the plans of the functions that it calls, if it is entered; else none.
    """

    equation: JaxprEqn
    slots: tuple[Slot, ...]
    inner: tuple[Plan, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What to count in a function.

    Args:
        jaxpr: the function.
        constants: the values of its constants.
        steps: its equations.
    """

    jaxpr: Jaxpr
    constants: tuple[Any, ...]
    steps: tuple[Step, ...]

    def with_constants(self, constants: tuple[Any, ...]) -> Plan:
        """The same plan with other values of the function's constants."""
        return Plan(self.jaxpr, constants, self.steps)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The results that are counted in this function and those that it calls, in the order of `evaluate`."""
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


Measure: TypeAlias = Callable[[Any, Slot], Tally]
"""Makes the tally of a result of one run."""


def plan_of(program: ClosedJaxpr, formats: tuple[Format, ...], histogram: bool = False) -> Plan:
    """Decide what to count in a program.

    Args:
        program: the program.
        formats: the formats that its values may be converted to.
        histogram: whether to count exponents, too.

    Raises:
        ArgumentError: for a `shard_map` and for arrays of at least 2**32 elements.
    """
    return _Planner(program, formats, histogram).plan(program)


class _Planner:
    """Follows the sites of a program, in the order of `walk`."""

    def __init__(self, program: ClosedJaxpr, formats: tuple[Format, ...], histogram: bool) -> None:
        self._sites: Iterator[Site] = walk(program)
        self._liveness = Liveness()
        self._formats = formats
        self._histogram = histogram

    def plan(self, function: Jaxpr | ClosedJaxpr) -> Plan:
        jaxpr = open_jaxpr(function)
        steps = tuple(self._step(next(self._sites)) for _ in jaxpr.eqns)
        constants = tuple(function.consts) if isinstance(function, ClosedJaxpr) else ()
        return Plan(jaxpr, constants, steps)

    def _step(self, site: Site) -> Step:
        equation = site.equation
        if equation.primitive.name == "shard_map":
            raise ArgumentError(
                f"profile cannot look inside of a shard_map ({line_of(equation)}): profile the function that it maps"
            )
        used = self._liveness.used(site)
        plans = [(callee.parameter, self.plan(function)) for callee, function in _called(equation)]
        if equation.primitive.name in _ENTERED:
            names = _ENTERED[equation.primitive.name].functions
            inner = tuple(plan for name in names for parameter, plan in plans if parameter == name)
            return Step(equation, (), inner if any(plan.slots for plan in inner) else ())
        makes = used and not _only_moves(equation)
        return Step(equation, tuple(self._slots(site)) if makes else (), ())

    def _slots(self, site: Site) -> Iterator[Slot]:
        for index, result in enumerate(site.equation.outvars):
            aval = aval_of(result)
            if not is_floating(aval):
                continue
            if aval.size >= 2**32:
                raise ArgumentError(
                    f"profile counts arrays of less than 2**32 elements, got {aval.shape} at {line_of(site.equation)}"
                )
            source = counted_format(aval.dtype)
            yield Slot(site, index, source, questions_of(source, self._formats, self._histogram))


def is_floating(aval: Any) -> bool:
    """Whether a type has floating values, real or complex."""
    dtype = getattr(aval, "dtype", None)
    return isinstance(dtype, np.dtype) and as_format(dtype).is_inexact  # the dtypes of random keys are not NumPy's


def _only_moves(equation: JaxprEqn) -> bool:
    """Whether an equation makes no values: it moves those of operands that are not literals."""
    if equation.primitive is p.convert_element_type_p:  # one that only makes a weak type strong
        return aval_of(equation.invars[0]).dtype == aval_of(equation.outvars[0]).dtype
    return equation.primitive.name in _MOVES and not all(isinstance(atom, Literal) for atom in equation.invars)


def evaluate(plan: Plan, operands: Sequence[Any], measure: Measure) -> tuple[list[Any], list[Tally]]:
    """Run a function and count.

    Args:
        plan: the function.
        operands: its operands.
        measure: makes the tally of a result.

    Returns:
        The results of the function, and the tally of each of the plan's slots.
    """
    values: dict[Any, Any] = dict(zip(plan.jaxpr.constvars, plan.constants, strict=True))
    values.update(zip(plan.jaxpr.invars, operands, strict=True))
    tallies: list[Tally] = []

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for step in plan.steps:
        given = [read(atom) for atom in step.equation.invars]
        if step.inner:
            results, found = _ENTERED[step.equation.primitive.name].run(step, given, measure)
            tallies += found
        else:
            results = evaluate_equation(plan.jaxpr, step.equation, given)
            tallies += [measure(results[slot.result], slot) for slot in step.slots]
        values.update(zip(step.equation.outvars, results, strict=True))
    return [read(atom) for atom in plan.jaxpr.outvars], tallies


_Counted: TypeAlias = tuple[list[Any], list[Tally]]
"""The results of an equation, and the tallies of the functions that it calls."""


def _run_call(step: Step, operands: Sequence[Any], measure: Measure) -> _Counted:
    """Run a called function in place. A rule for derivatives is never used, because the program is not transformed."""
    return evaluate(step.inner[0], operands, measure)


def _run_remat(step: Step, operands: Sequence[Any], measure: Measure) -> _Counted:
    given = list(operands)
    if parameter(step.equation, "differentiated"):
        # In a backward pass XLA must not reuse the values of the forward pass.
        prevent = parameter(step.equation, "prevent_cse")
        each = prevent if isinstance(prevent, tuple) else (prevent,) * len(given)
        given = [lax.optimization_barrier(value) if keep else value for value, keep in zip(given, each, strict=True)]
    return evaluate(step.inner[0], given, measure)


def _run_scan(step: Step, operands: Sequence[Any], measure: Measure) -> _Counted:
    (body,), loop = step.inner, loop_operands(step.equation)
    constants, start = operands[: loop.constants], operands[loop.constants : loop.constants + loop.carries]

    def run(state: Any, slices: Any) -> Any:
        carry, tallies = state
        results, found = evaluate(body, [*constants, *carry, *slices], measure)
        return (results[: loop.carries], _sums(tallies, found)), results[loop.carries :]

    (carry, tallies), stacked = lax.scan(
        run,
        (list(start), _nothing(body)),
        list(operands[loop.constants + loop.carries :]),
        length=parameter(step.equation, "length"),
        reverse=parameter(step.equation, "reverse"),
        unroll=parameter(step.equation, "unroll"),
    )
    return [*carry, *stacked], tallies


def _run_while(step: Step, operands: Sequence[Any], measure: Measure) -> _Counted:
    (condition, body), loop = step.inner, loop_operands(step.equation)
    of_condition, constants = operands[: loop.condition], operands[loop.condition : loop.first_carry]
    start = list(operands[loop.first_carry :])

    def asked(carry: Sequence[Any]) -> tuple[Any, list[Tally]]:
        (going_on,), found = evaluate(condition, [*of_condition, *carry], measure)
        return going_on, found

    def run(state: Any) -> Any:
        going_on, carry, of_asking, of_running = state
        results, found = evaluate(body, [*constants, *carry], measure)
        if going_on.ndim:
            results = [_chosen(going_on, new, old) for new, old in zip(results, carry, strict=True)]
        next_going_on, found_asking = asked(results)
        return next_going_on, results, _sums(of_asking, found_asking), _sums(of_running, found)

    # The condition of a loop returns only whether to go on, so it is computed before the loop and in its body.
    going_on, of_asking = asked(start)
    _, carry, of_asking, of_running = lax.while_loop(
        lambda state: lax.reduce_or(state[0], tuple(range(state[0].ndim))),
        run,
        (going_on, start, of_asking, _nothing(body)),
    )
    return carry, [*of_asking, *of_running]


def _chosen(going_on: Any, new: Any, old: Any) -> Any:
    """The carry of a loop that `vmap` made of several, each with its own condition: one that ended keeps its values."""
    return lax.select(lax.broadcast_in_dim(going_on, new.shape, tuple(range(going_on.ndim))), new, old)


def _run_cond(step: Step, operands: Sequence[Any], measure: Measure) -> _Counted:
    index, *given = operands

    def branch(place: int) -> Callable[..., Any]:
        def run(*values: Any) -> Any:
            results, found = evaluate(step.inner[place], values, measure)
            others = [_nothing(each) for each in step.inner]
            return results, [tally for at, each in enumerate(others) for tally in (found if at == place else each)]

        return run

    return lax.switch(index, [branch(place) for place in range(len(step.inner))], *given)


def _nothing(plan: Plan) -> list[Tally]:
    return [empty(slot.source, slot.questions) for slot in plan.slots]


def _sums(left: Sequence[Tally], right: Sequence[Tally]) -> list[Tally]:
    return [added(a, b) for a, b in zip(left, right, strict=True)]


@dataclass(frozen=True, slots=True)
class _Entry:
    """How to run an equation that calls functions.

    Args:
        functions: the parameters that hold the functions.
        run: runs it.
    """

    functions: tuple[str, ...]
    run: Callable[[Step, Sequence[Any], Measure], _Counted]


_ENTERED: Mapping[str, _Entry] = {
    **{
        name: _Entry((function,), _run_call) for name, function in {**CALLS, **WITH_RULE}.items() if name != "shard_map"
    },
    p.remat_p.name: _Entry(("jaxpr",), _run_remat),
    p.scan_p.name: _Entry(("jaxpr",), _run_scan),
    p.while_p.name: _Entry(("cond_jaxpr", "body_jaxpr"), _run_while),
    p.cond_p.name: _Entry(("branches",), _run_cond),
}
