"""The interpreter of programs goes through equations, loops, branches and calls; an instrument says what is computed.

A program is interpreted equation by equation while JAX traces, or eagerly. What an instrument records at the equations
of a loop is carried through the loop, so memory grows with the number of equations, not with that of iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal, Var

from supremum.jax_compat import parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs.equations import loop_operands
from supremum.jaxprs.plans import Plan, Step
from supremum.typing import PyTree

V = TypeVar("V")
"""What stands for a value of the program: an array, or a tree of arrays."""
T = TypeVar("T")
Records: TypeAlias = dict[int, Any]
"""What was recorded at some steps, by their numbers: arrays, or trees of them."""
Outcome: TypeAlias = tuple[list[V], Records]
"""What stands for the results of a step or a function, and what was recorded there."""


class Instrument(Generic[V]):
    """What is computed and recorded when a program is interpreted. This one computes the program, and records nothing.

    >>> class CountingSines(Instrument):
    ...     def run(self, step, operands):
    ...         results, records = super().run(step, operands)
    ...         return results, (
    ...             {**records, step.number: 1} if step.name == "sin" else records
    ...         )
    ...
    ...     def empty(self, plan):
    ...         return {
    ...             step.number: 0 for step in plan.every_step() if step.name == "sin"
    ...         }
    ...
    ...     def join(self, earlier, later):
    ...         return earlier + later
    >>> from supremum.jaxprs.plans import plan_of
    >>> looped = jax.make_jaxpr(
    ...     lambda x: lax.fori_loop(0, 5, lambda i, c: jnp.sin(c), x)
    ... )(1.0)
    >>> interpret(plan_of(looped), [1.0], CountingSines())[1]
    {2: Array(5, dtype=int32, weak_type=True)}
    """

    def constant(self, variable: Var, value: Any) -> V:
        """What stands for a constant or a lifted literal of a function."""
        del variable
        return value

    def literal(self, literal: Literal) -> V:
        """What stands for a literal."""
        return literal.val

    def decider(self, value: V) -> Any:
        """The array that decides, for a value on which a branch or the end of a loop depends."""
        return value

    def run(self, step: Step, operands: Sequence[V]) -> Outcome[V]:
        """Run a step, and record something at it. The records are those of the step and of those that it calls."""
        return enter(step, operands, self) if step.inner else (self.compute(step, operands), {})

    def compute(self, step: Step, operands: Sequence[V]) -> list[V]:
        """Compute a step that is not entered."""
        return step.evaluate(operands)

    def in_iteration(self, index: jax.Array) -> Instrument[V]:
        """The instrument for one iteration of a loop."""
        del index
        return self

    def carry_form(self, start: list[V], following: Callable[[list[V]], list[V]]) -> Callable[[list[V]], list[V]]:
        """How to bring what a loop carries into a form that is the same in every iteration.

        Args:
            start: what the loop starts from.
            following: the types of what the loop carries after an iteration, given those before it.
        """
        del start, following
        return list

    def branch_form(self, branches: Sequence[Callable[[], list[V]]]) -> Callable[[list[V]], list[V]]:
        """How to bring the results of branches into a form that is the same for all branches.

        Args:
            branches: the types of the results of each branch.
        """
        del branches
        return list

    def empty(self, plan: Plan) -> Records:
        """The records of a function that did not run, in the form of `pack`."""
        del plan
        return {}

    def join(self, earlier: PyTree, later: PyTree) -> PyTree:
        """The record of all runs of a step that two records are of."""
        raise NotImplementedError

    def pack(self, records: Records) -> Records:
        """The records of a function in the form in which loops and branches return them."""
        return records


def interpret(plan: Plan, operands: Sequence[V], instrument: Instrument[V]) -> Outcome[V]:
    """Interpret a function.

    Args:
        plan: the function.
        operands: what stands for its operands.
        instrument: what is computed and recorded.

    Returns:
        What stands for its results, and the records.

    >>> import jax
    >>> from supremum.jaxprs.plans import plan_of
    >>> program = jax.make_jaxpr(lambda x: lax.cond(x > 0, jnp.exp, jnp.sin, x))(1.0)
    >>> interpret(plan_of(program), [0.0], Instrument())
    ([Array(0., dtype=float32, weak_type=True)], {})
    """
    values: dict[Any, V] = {
        variable: instrument.constant(variable, value)
        for variable, value in zip(plan.variables, plan.constants, strict=True)
    }
    values.update(zip(plan.operands, operands, strict=True))
    records: Records = {}

    def read(atom: Any) -> V:
        return instrument.literal(atom) if isinstance(atom, Literal) else values[atom]

    for step in plan.steps:
        results, step_records = instrument.run(step, [read(atom) for atom in step.equation.invars])
        values.update(zip(step.equation.outvars, results, strict=True))
        records |= step_records
    return [read(atom) for atom in plan.results], records


def enter(step: Step, operands: Sequence[V], instrument: Instrument[V]) -> Outcome[V]:
    """Interpret the functions that a step calls.

    A called function runs in place. A custom rule is never used, because the program is not transformed.

    Args:
        step: the step, which has inner plans.
        operands: its operands.
        instrument: what is computed and recorded.

    >>> import jax
    >>> from supremum.jaxprs.plans import plan_of
    >>> (step,) = plan_of(jax.make_jaxpr(jax.jit(jnp.sin))(1.0)).steps
    >>> enter(step, [0.0], Instrument())
    ([Array(0., dtype=float32, weak_type=True)], {})
    """
    special = _ENTER.get(step.name)
    return interpret(step.inner[0], operands, instrument) if special is None else special(step, operands, instrument)


def _remat(step: Step, operands: Sequence[V], instrument: Instrument[V]) -> Outcome[V]:
    values = list(operands)
    if parameter(step.equation, "differentiated"):
        # In a backward pass XLA must not reuse the values of the forward pass.
        prevent = parameter(step.equation, "prevent_cse")
        each = prevent if isinstance(prevent, tuple) else (prevent,) * len(values)
        values = [
            jax.tree.map(lax.optimization_barrier, value) if keep else value
            for value, keep in zip(values, each, strict=True)
        ]
    return interpret(step.inner[0], values, instrument)


def _scan(step: Step, operands: Sequence[V], instrument: Instrument[V]) -> Outcome[V]:
    (body,), loop = step.inner, loop_operands(step.equation)
    constants, first_slice = operands[: loop.constants], loop.constants + loop.carries
    start, stacked = list(operands[loop.constants : first_slice]), list(operands[first_slice:])
    length, is_reverse = parameter(step.equation, "length"), parameter(step.equation, "reverse")

    def once(carry: list[V], slices: list[V], index: Any) -> tuple[list[V], list[V], Records]:
        results, records = interpret(body, [*constants, *carry, *slices], instrument.in_iteration(index))
        return results[: loop.carries], results[loop.carries :], instrument.pack(records)

    def following(carry: list[V]) -> list[V]:
        return jax.eval_shape(once, carry, jax.tree.map(_slice, stacked), first)[0]

    def run(state: Any, slices: list[V]) -> Any:
        count, carry, records = state
        # A loop of a backward pass runs through the iterations of the forward pass in reverse.
        index = np.uint32(max(length, 1) - 1) - count if is_reverse else count
        results, outputs, new_records = once(carry, slices, index)
        return (count + np.uint32(1), settle(results), _join_records(instrument, records, new_records)), outputs

    first = jnp.zeros((), "uint32")
    settle = instrument.carry_form(start, following)
    state = first, settle(start), _nothing(step.inner, instrument)
    unroll = parameter(step.equation, "unroll")
    (_, carry, records), outputs = lax.scan(run, state, stacked, length=length, reverse=is_reverse, unroll=unroll)
    return [*carry, *outputs], records


def _slice(stacked: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(stacked.shape[1:], stacked.dtype)


def _while(step: Step, operands: Sequence[V], instrument: Instrument[V]) -> Outcome[V]:
    (condition, body), loop = step.inner, loop_operands(step.equation)
    of_condition, constants = operands[: loop.condition], operands[loop.condition : loop.first_carry]
    start = list(operands[loop.first_carry :])

    def ask(carry: list[V], index: Any) -> tuple[Any, Records]:
        (going_on,), records = interpret(condition, [*of_condition, *carry], instrument.in_iteration(index))
        return instrument.decider(going_on), on_each_device(instrument.pack(records))

    def once(carry: list[V], index: Any) -> Outcome[V]:
        results, records = interpret(body, [*constants, *carry], instrument.in_iteration(index))
        return results, instrument.pack(records)

    def following(carry: list[V]) -> list[V]:
        return jax.eval_shape(once, carry, first)[0]

    def run(state: Any) -> Any:
        index, going_on, carry, records = state
        results, new_records = once(carry, index)
        results = settle(results)
        if going_on.ndim:
            results = jax.tree.map(partial(_chosen, going_on), results, carry)
        index = index + np.uint32(1)
        going_on, asked = ask(results, index)
        return index, going_on, results, _join_records(instrument, records, new_records | asked)

    first = jnp.zeros((), "uint32")
    settle = instrument.carry_form(start, following)
    start = settle(start)
    # The condition of a loop returns only whether to go on, so it is computed before the loop and in its body.
    going_on, asked = ask(start, first)
    state = first, going_on, start, _nothing([body], instrument) | asked
    *_, carry, records = lax.while_loop(lambda state: lax.reduce_or(state[1], tuple(range(state[1].ndim))), run, state)
    return carry, records


def _chosen(going_on: Any, new: Any, old: Any) -> Any:
    """The carry of a loop that `vmap` made of several, each with its own condition: one that ended keeps its values."""
    return lax.select(lax.broadcast_in_dim(going_on, new.shape, tuple(range(going_on.ndim))), new, old)


def _cond(step: Step, operands: Sequence[V], instrument: Instrument[V]) -> Outcome[V]:
    index, *branch_operands = operands
    nothing = _nothing(step.inner, instrument)

    def types(plan: Plan) -> list[V]:
        return jax.eval_shape(partial(interpret, plan, instrument=instrument), branch_operands)[0]

    def branch(plan: Plan) -> Callable[..., Outcome[V]]:
        def run(*values: V) -> Outcome[V]:
            results, records = interpret(plan, values, instrument)
            return merge(results), nothing | on_each_device(instrument.pack(records))

        return run

    merge = instrument.branch_form([partial(types, plan) for plan in step.inner])
    return lax.switch(instrument.decider(index), list(map(branch, step.inner)), *branch_operands)


def _nothing(plans: Iterable[Plan], instrument: Instrument[Any]) -> Records:
    records: Records = {}
    for plan in plans:
        records |= instrument.empty(plan)
    return on_each_device(records)


def _join_records(instrument: Instrument[Any], records: Records, new_records: Records) -> Records:
    return {
        number: instrument.join(record, new_records[number]) if number in new_records else record
        for number, record in records.items()
    }


def on_each_device(records: T) -> T:
    """Tell JAX that arrays of integers may differ on the devices of the `shard_map` around the call, if there is one.

    The types of what loops carry and of what branches return must agree in this, too.

    >>> on_each_device({3: 1})
    {3: 1}
    """
    names = jax.sharding.get_abstract_mesh().manual_axes
    if not names:
        return records
    zero = lax.axis_index(names) & 0

    def different(leaf: Any) -> Any:
        return leaf | lax.convert_element_type(zero, leaf.dtype)

    return jax.tree.map(different, records)


_ENTER: Mapping[str, Callable[..., Outcome[Any]]] = {
    p.remat_p.name: _remat,
    p.scan_p.name: _scan,
    p.while_p.name: _while,
    p.cond_p.name: _cond,
}
