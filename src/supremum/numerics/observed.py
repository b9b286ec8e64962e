"""Programs that also count chosen values: those with a name, and those that leave a named scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr, Var

from supremum.formats import Format
from supremum.jaxprs import Site, interpret, plan_of, scopes_of
from supremum.numerics.named_tallies import NamedTallies, row_of
from supremum.numerics.tallied_results import Counting, slots_of

NAMED = "name"
"""The primitive that `jax.ad_checkpoint.checkpoint_name` binds; its parameter `name` is the name."""


def name_at(site: Site) -> str | None:
    """The name that `jax.ad_checkpoint.checkpoint_name` gives the result of an equation; None if it gives none."""
    equation = site.equation
    return str(equation.params["name"]) if equation.primitive.name == NAMED else None


def scope_boundaries() -> Callable[[Site], list[int]]:
    """Make the function that returns which results of an equation leave the named scope that made them.

    A value leaves its scope if an equation outside of the scope uses it, or if it is a result of the program. What a
    backward pass makes in the scope of a layer belongs to the same scope.

    Returns:
        A function of an equation; it returns the indices of the results, none outside of all scopes.
    """
    users_in = lru_cache(maxsize=None)(_users_in)

    def leaving(site: Site) -> list[int]:
        if not site.scopes:
            return []
        outer = () if site.caller is None else site.caller.scopes
        users = users_in(site.function)
        indices: list[int] = []
        for index, result in enumerate(site.equation.outvars):
            around = [(*outer, *scopes) for scopes in users.get(result, [])]
            if result in site.function.outvars:
                around.append(outer)
            if any(scopes[: len(site.scopes)] != site.scopes for scopes in around):
                indices.append(index)
        return indices

    return leaving


def _users_in(jaxpr: Jaxpr) -> dict[Var, list[tuple[str, ...]]]:
    """The scopes of the equations that use each value of a function."""
    users: dict[Var, list[tuple[str, ...]]] = {}
    for equation in jaxpr.eqns:
        scopes = scopes_of(equation)
        for atom in equation.invars:
            if isinstance(atom, Var):
                users.setdefault(atom, []).append(scopes)
    return users


def observe(
    program: ClosedJaxpr,
    operands: Sequence[Any],
    formats: tuple[Format, ...],
    choose: Callable[[Site], Iterable[int]],
    name_of: Callable[[Site], tuple[str, str]],
) -> tuple[list[Any], NamedTallies]:
    """Run a program while JAX traces, and count the values of chosen results.

    Args:
        program: the program.
        operands: its operands.
        formats: the formats to answer for.
        choose: chooses the results of an equation to count, by their indices; those that are not floating are
            left out.
        name_of: returns the kind and the name of the results of an equation.

    Returns:
        The results of the program, and the tallies.
    """
    plan = plan_of(program)
    slots = slots_of(plan.every_step(), formats, choose=choose)
    counting = Counting(slots)
    results, records = interpret(plan.entering_for({slot.number for slot in slots}), operands, counting)
    rows = [row_of(*name_of(slot.site), slot.aval, formats) for slot in slots]
    return results, NamedTallies(tuple(counting.in_order(records)), tuple(rows))
