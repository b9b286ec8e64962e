"""Which operations make a value and feed an operation, through the functions that a program calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from jax.extend.core import Literal, Var

from supremum.jax_compat import primitives as p
from supremum.jaxprs import CALLED, Plan, Step, loop_operands

_PRODUCTS = frozenset({p.dot_general_p.name, p.conv_general_dilated_p.name})
Value: TypeAlias = "tuple[Plan, Var | Literal]"
"""A value of a program, and the function that it belongs to."""


class Dataflow:
    """The makers of the values of a program.

    Args:
        plan: the program.

    Attributes:
        steps: the steps of the program, by their numbers.
    """

    def __init__(self, plan: Plan) -> None:
        self._makers: dict[Any, tuple[Plan, Step, int]] = {}
        self._callers: dict[int, tuple[Plan, Step]] = {}
        self._plan_of: dict[int, Plan] = {}
        self.steps: dict[int, Step] = {}
        for each in plan.every_plan():
            for step in each.steps:
                self._plan_of[step.number], self.steps[step.number] = each, step
                self._callers |= {id(inner): (each, step) for inner in step.inner}
                for index, var in enumerate(step.equation.outvars):
                    self._makers[id(each), var] = each, step, index

    def operands(self, step: Step) -> list[Value]:
        """The operands of a step."""
        return [(self._plan_of[step.number], atom) for atom in step.equation.invars]

    def maker(self, value: Value) -> Step | None:
        """The step that makes a value; None for literals and arguments. Calls are looked into."""
        place: Value | None = value
        while place is not None and isinstance(place[1], Var):
            maker = self._makers.get((id(place[0]), place[1]))
            if maker is None:
                place = self.operand_of_call(place)
                continue
            _, step, index = maker
            if step.name not in CALLED:
                return step
            place = step.inner[0], step.inner[0].results[index]
        return None

    def operand_of_call(self, value: Value) -> Value | None:
        """The operand of a call that an argument of the called function is; None for other values."""
        plan, atom = value
        outer, caller = self._callers.get(id(plan), (plan, None))
        if caller is None or caller.name not in CALLED or atom not in plan.operands:
            return None
        return outer, caller.equation.invars[plan.operands.index(atom)]

    def accumulates(self, step: Step) -> bool:
        """Whether a step adds to a value that a `scan` carries from iteration to iteration."""
        plan = self._plan_of[step.number]
        caller = self._callers.get(id(plan))
        if caller is None or caller[1].name != p.scan_p.name:
            return False
        loop = loop_operands(caller[1].equation)
        carried = plan.operands[loop.constants : loop.constants + loop.carries]
        return any(
            start in step.equation.invars and result in step.equation.outvars
            for start, result in zip(carried, plan.results, strict=False)
        )

    def relative_error(self, step: Step, known: Mapping[int, float]) -> float:
        """The largest relative error of the operands of a step.

        Args:
            step: the step.
            known: the relative errors of the results of steps; values are only moved by the others.
        """
        return max((self._of_atom(*operand, known, set()) for operand in self.operands(step)), default=0.0)

    def _of_atom(self, plan: Plan, atom: Any, known: Mapping[int, float], seen: set[Any]) -> float:
        if isinstance(atom, Literal) or (id(plan), atom) in seen:
            return 0.0
        seen.add((id(plan), atom))
        maker = self._makers.get((id(plan), atom))
        if maker is None:
            return max((self._of_atom(*each, known, seen) for each in self._outside(plan, atom)), default=0.0)
        _, step, index = maker
        if step.number in known:
            return known[step.number]
        if step.inner:
            places = [(inner, inner.results[index]) for inner in step.inner if index < len(inner.results)]
        else:
            places = [(plan, each) for each in step.equation.invars]
        return max((self._of_atom(*each, known, seen) for each in places), default=0.0)

    def _outside(self, plan: Plan, var: Any) -> Iterator[tuple[Plan, Any]]:
        """Where the value of an operand of a called function comes from."""
        if id(plan) not in self._callers or var not in plan.operands:
            return
        outer, caller = self._callers[id(plan)]
        index = plan.operands.index(var)
        if caller.name in CALLED:
            yield outer, caller.equation.invars[index]
        elif caller.name == p.cond_p.name:
            yield outer, caller.equation.invars[index + 1]
        elif caller.name == p.scan_p.name:
            yield outer, caller.equation.invars[index]
            loop = loop_operands(caller.equation)
            if loop.constants <= index < loop.constants + loop.carries:
                yield plan, plan.results[index - loop.constants]

    def feeding(self, step: Step) -> set[int]:
        """The numbers of a step and of those whose results flow into it, back to the last products."""
        numbers = {step.number}
        pending = self.operands(step)
        seen: set[Any] = set()
        while pending:
            plan, atom = pending.pop()
            if isinstance(atom, Literal) or (id(plan), atom) in seen:
                continue
            seen.add((id(plan), atom))
            if (id(plan), atom) not in self._makers:
                pending += self._outside(plan, atom)
                continue
            _, maker, _ = self._makers[id(plan), atom]
            numbers.add(maker.number)
            inside = [each for inner in maker.inner for each in inner.every_step()]
            numbers.update(each.number for each in inside)
            if not any(each.name in _PRODUCTS for each in (maker, *inside)):
                pending += [(plan, each) for each in maker.equation.invars]
        return numbers
