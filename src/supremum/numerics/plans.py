"""The plans of programs that are measured, and which of their operations make values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal

from supremum.errors import ArgumentError
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Plan, Step, aval_of, line_of, plan_of
from supremum.numerics.widening import is_floating

# Primitives that move the values of their operand and make none; `jax.extend` does not export all of them.
_MOVES = (
    *("broadcast_in_dim", "copy", "copy_p", "dynamic_slice", "optimization_barrier", "reshape", "rev", "slice"),
    *("split", "squeeze", "transpose"),
)


def measured_plan(program: ClosedJaxpr, under: str, is_lifted: Callable[[Literal], bool] = lambda _: False) -> Plan:
    """Make the plan of a program whose operations are all to be measured.

    Args:
        program: the program.
        under: the name of the function that the user called, for messages.
        is_lifted: whether to treat a literal like a constant.

    Raises:
        ArgumentError: for a `shard_map`.
    """
    plan = plan_of(program, is_lifted)
    for step in plan.every_step():
        if step.name == "shard_map":
            raise ArgumentError(
                f"{under} cannot look inside of a shard_map ({line_of(step.equation)}): use {under} on the function "
                "that it maps"
            )
    return plan


def steps_with_values(plan: Plan, under: str) -> Iterator[Step]:
    """The operations of a program that make values which something depends on.

    Args:
        plan: the program.
        under: the name of the function that the user called, for messages.

    Raises:
        ArgumentError: for arrays of at least 2**32 elements.
    """
    for step in plan.every_step():
        if step.inner or not step.site.used or only_moves(step.site.equation):
            continue
        for result in map(aval_of, step.equation.outvars):
            if is_floating(result) and result.size >= 2**32:
                line = line_of(step.equation)
                raise ArgumentError(f"{under} counts arrays of less than 2**32 elements, got {result.shape} at {line}")
        yield step


def only_moves(equation: JaxprEqn) -> bool:
    """Whether an equation makes no values: it moves those of operands that are not literals."""
    if equation.primitive is p.convert_element_type_p:  # one that only makes a weak type strong
        return aval_of(equation.invars[0]).dtype == aval_of(equation.outvars[0]).dtype
    return equation.primitive.name in _MOVES and not all(isinstance(atom, Literal) for atom in equation.invars)
