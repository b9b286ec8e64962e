"""Programs as plans, and running a plan in other dtypes than those that it declares.

The reference of an attribution is such a run in float64; a change that is tried is one with some operations in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from supremum.errors import ArgumentError
from supremum.formats import DType
from supremum.jax_compat import CALLS, WITH_RULE, open_jaxpr, parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Liveness, Site, aval_of, callees, line_of, loop_operands, walk
from supremum.numerics.widening import (
    FLOAT64,
    component,
    evaluate_as_declared,
    evaluate_cast,
    evaluate_in,
    in_dtype,
    is_floating,
    literal_value,
    widest,
)
from supremum.promotion import result_type

CALLED: Mapping[str, str] = {name: held for name, held in {**CALLS, **WITH_RULE}.items() if name != "shard_map"}
"""Primitives that call one function with exactly their operands, and the parameter that holds it."""
_ENTERED: Mapping[str, tuple[str, ...]] = {
    **{name: (held,) for name, held in CALLED.items()},
    p.scan_p.name: ("jaxpr",),
    p.while_p.name: ("cond_jaxpr", "body_jaxpr"),
    p.cond_p.name: ("branches",),
}
_CASTS = frozenset({p.convert_element_type_p.name, p.reduce_precision_p.name})


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An equation of a plan.

    Args:
        site: the equation and its place.
        number: its number in the whole program.
        used: whether the results of the program depend on it.
        inner: the plans of the functions that it calls, if it is entered.
    """

    site: Site
    number: int
    used: bool
    inner: tuple[Plan, ...]

    @property
    def equation(self) -> JaxprEqn:
        """The equation."""
        return self.site.equation

    @property
    def name(self) -> str:
        """The name of its primitive."""
        return self.site.equation.primitive.name


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A function whose equations are run one by one.

    Args:
        jaxpr: the function.
        constants: the values of its constants.
        steps: its equations.
    """

    jaxpr: Jaxpr
    constants: tuple[Any, ...]
    steps: tuple[Step, ...]

    def every_step(self) -> Iterator[Step]:
        """The equations of the function and of those that it calls; a caller comes before what it calls."""
        for step in self.steps:
            yield step
            for inner in step.inner:
                yield from inner.every_step()


def plan_of(program: ClosedJaxpr, under: str) -> Plan:
    """Make the plan of a program.

    Args:
        program: the program.
        under: the name of the function, for messages.

    Raises:
        ArgumentError: for a `shard_map`.
    """
    sites, liveness, number = walk(program), Liveness(), iter(range(2**62))

    def plan(function: Jaxpr | ClosedJaxpr) -> Plan:
        jaxpr = open_jaxpr(function)
        constants = tuple(function.consts) if isinstance(function, ClosedJaxpr) else ()
        return Plan(jaxpr, constants, tuple(step(next(sites)) for _ in jaxpr.eqns))

    def step(site: Site) -> Step:
        equation, used, own = site.equation, liveness.used(site), next(number)
        if equation.primitive.name == "shard_map":
            raise ArgumentError(
                f"{under} cannot look inside of a shard_map ({line_of(equation)}): use the function that it maps"
            )
        held = (value if isinstance(value, (tuple, list)) else (value,) for value in equation.params.values())
        functions = [each for group in held for each in group if isinstance(each, (Jaxpr, ClosedJaxpr))]
        plans = [(callee.parameter, plan(each)) for callee, each in zip(callees(equation), functions, strict=True)]
        names = _ENTERED.get(equation.primitive.name, ())
        return Step(site, own, used, tuple(made for name in names for parameter, made in plans if parameter == name))

    return plan(program)


@dataclass(frozen=True, slots=True)
class RoundedTo:
    """An equation runs on operands rounded to a narrower dtype, in the dtypes that it declares, and rounds its results.

    Args:
        dtype: the real dtype.
    """

    dtype: DType


Choice: TypeAlias = Callable[[Step], DType | RoundedTo | None]
"""The dtype that an equation runs in at least, or the one that it rounds to; None for the widest dtype of its operands,
and at least the one that it declares."""


def in_float64(_: Step) -> DType:
    """The choice of float64 for every equation."""
    return FLOAT64


def run(plan: Plan, operands: Sequence[Any], choose: Choice) -> list[Any]:
    """Run a plan. An equation whose operands are wider than it declares runs in their dtype, except for casts.

    Narrower operands, which are results of equations that round, are cast to what an equation declares.

    Args:
        plan: the plan.
        operands: the operands.
        choose: the dtypes.
    """
    values: dict[Any, Any] = dict(zip(plan.jaxpr.constvars, plan.constants, strict=False))
    values.update(zip(plan.jaxpr.invars, operands, strict=True))

    def read(atom: Any) -> Any:
        return literal_value(atom) if isinstance(atom, Literal) else values[atom]

    for step in plan.steps:
        given = [read(atom) for atom in step.equation.invars]
        runner = _RUNNERS.get(step.name)
        results = _run_alone(plan.jaxpr, step, given, choose) if runner is None else runner(step, given, choose)
        values.update(zip(step.equation.outvars, results, strict=True))
    return [read(atom) for atom in plan.jaxpr.outvars]


def _run_alone(jaxpr: Jaxpr, step: Step, operands: Sequence[Any], choose: Choice) -> list[Any]:
    dtype = choose(step)
    if isinstance(dtype, RoundedTo):
        given = [_rounded(in_dtype(value, dtype.dtype)) for value in operands]
        results = evaluate_as_declared(jaxpr, step.equation, given)
        return [_rounded(in_dtype(value, dtype.dtype)) for value in results]
    if dtype is None and step.name in _CASTS:
        return list(map(_rounded, evaluate_cast(jaxpr, step.equation, operands)))
    if dtype is None:
        actual, declared = widest(operands), widest([aval_of(atom) for atom in step.equation.invars])
        if actual is None or declared is None or result_type(actual, declared, rules="jax-x64") == declared:
            return list(map(_rounded, evaluate_as_declared(jaxpr, step.equation, operands)))
        dtype = actual
    return evaluate_in(jaxpr, step.equation, operands, dtype)


def _rounded(value: Any) -> Any:
    """A result as its format holds it; see `operation_errors`."""
    return lax.optimization_barrier(value) if is_floating(value) else value


def _run_call(step: Step, operands: Sequence[Any], choose: Choice) -> list[Any]:
    return run(step.inner[0], operands, choose)


def _types(values: Sequence[Any]) -> list[DType | None]:
    return [component(value.dtype) if is_floating(value) else None for value in values]


def joined(types: Sequence[Sequence[DType | None]]) -> list[DType | None]:
    """The widest dtype of each place."""
    return [
        None if group[0] is None else result_type(*{each for each in group if each is not None}, rules="jax-x64")
        for group in zip(*types, strict=True)
    ]


def cast_all(values: Sequence[Any], dtypes: Sequence[DType | None]) -> list[Any]:
    """Values in these dtypes; None leaves one as it is."""
    return [value if dtype is None else in_dtype(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]


def _settled(start: list[Any], once: Callable[..., Sequence[Any]], *others: Any) -> list[Any]:
    """The first values of a loop in the dtypes that they have after every iteration."""
    while True:
        found = joined([_types(start), _types(jax.eval_shape(once, start, *others))])
        if found == _types(start):
            return start
        start = cast_all(start, found)


def _run_scan(step: Step, operands: Sequence[Any], choose: Choice) -> list[Any]:
    (body,), loop = step.inner, loop_operands(step.equation)
    constants, stacked = operands[: loop.constants], list(operands[loop.constants + loop.carries :])

    def once(carry: list[Any], slices: Sequence[Any]) -> list[Any]:
        return run(body, [*constants, *carry, *slices], choose)

    start = list(operands[loop.constants : loop.constants + loop.carries])
    if not parameter(step.equation, "length"):
        return [*start, *empty_outputs(step)]

    def firsts(values: list[Any]) -> list[Any]:
        return [value[0] for value in values]

    def carried(carry: list[Any], slices: Sequence[Any]) -> list[Any]:
        return once(carry, slices)[: loop.carries]

    start = _settled(start, carried, jax.eval_shape(firsts, stacked))
    types = _types(start)

    def iterate(carry: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        results = once(carry, slices)
        return cast_all(results[: loop.carries], types), results[loop.carries :]

    options = {name: parameter(step.equation, name) for name in ("length", "reverse", "unroll")}
    carry, outputs = lax.scan(iterate, start, stacked, **options)
    return [*carry, *outputs]


def empty_outputs(step: Step) -> list[Any]:
    """The stacked outputs of a scan without iterations."""
    avals = [aval_of(var) for var in step.equation.outvars[loop_operands(step.equation).carries :]]
    return [lax.empty(each.shape, each.dtype) for each in avals]


def _run_while(step: Step, operands: Sequence[Any], choose: Choice) -> list[Any]:
    (condition, body), loop = step.inner, loop_operands(step.equation)
    of_condition, constants = operands[: loop.condition], operands[loop.condition : loop.first_carry]

    def once(carry: list[Any]) -> list[Any]:
        return run(body, [*constants, *carry], choose)

    start = _settled(list(operands[loop.first_carry :]), once)
    types = _types(start)
    batch = len(aval_of(condition.jaxpr.outvars[0]).shape)

    def going_on(carry: list[Any]) -> Any:
        return run(condition, [*of_condition, *carry], choose)[0]

    def iterate(carry: list[Any]) -> list[Any]:
        results = cast_all(once(carry), types)
        if not batch:
            return results
        going = going_on(carry)
        return [kept_where(going, new, old) for new, old in zip(results, carry, strict=True)]

    return lax.while_loop(lambda carry: going_on(carry).any() if batch else going_on(carry), iterate, start)


def kept_where(going_on: Any, new: Any, old: Any) -> Any:
    """The carry of a loop that `vmap` made of several, each with its own condition: one that ended keeps its values."""
    return lax.select(lax.broadcast_in_dim(going_on, new.shape, tuple(range(going_on.ndim))), new, old)


def _run_cond(step: Step, operands: Sequence[Any], choose: Choice) -> list[Any]:
    index, *given = operands

    def branch(plan: Plan, types: Sequence[DType | None] | None) -> Callable[..., list[Any]]:
        def compute(*values: Any) -> list[Any]:
            results = run(plan, values, choose)
            return results if types is None else cast_all(results, types)

        return compute

    types = joined([_types(jax.eval_shape(branch(plan, None), *given)) for plan in step.inner])
    return lax.switch(index, [branch(plan, types) for plan in step.inner], *given)


def run_step(step: Step, operands: Sequence[Any], choose: Choice) -> list[Any]:
    """Run an equation that is entered."""
    return _RUNNERS[step.name](step, operands, choose)


_RUNNERS: Mapping[str, Callable[[Step, Sequence[Any], Choice], list[Any]]] = {
    **dict.fromkeys(CALLED, _run_call),
    p.scan_p.name: _run_scan,
    p.while_p.name: _run_while,
    p.cond_p.name: _run_cond,
}
