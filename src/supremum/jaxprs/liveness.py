"""The equations of a program that its results depend on; JAX drops the others before the program runs."""

from __future__ import annotations

from jax.extend.core import Jaxpr, JaxprEqn, Var

from supremum.jax_compat import primitives as p
from supremum.jaxprs.equations import CALLS, callees, loop_operands
from supremum.jaxprs.sites import Site

# Calls whose function has the same results as the equation.
_SAME_RESULTS = frozenset({*CALLS, p.cond_p.name, p.custom_jvp_call_p.name, p.custom_vjp_call_p.name})


class Liveness:
    """Tells which equations of a program are used; ask in the order of `walk`.

    An equation that it calls unused is unused. The converse may not hold: every operand of a used call counts as used,
    even if the called function ignores it.
    """

    def __init__(self) -> None:
        # Keeping the sites alive keeps their ids unique.
        self._callers: dict[int, tuple[Site, bool, set[Var]]] = {}
        self._needed: dict[tuple[int, tuple[bool, ...]], set[Var]] = {}

    def used(self, site: Site) -> bool:
        """Whether anything depends on an equation."""
        used, wanted = True, (True,) * len(site.function.outvars)
        if site.caller is not None:
            _, used, needed_outside = self._callers[id(site.caller)]
            wanted = _wanted(site.caller.equation, needed_outside, wanted)
        key = id(site.function), wanted
        if key not in self._needed:
            self._needed[key] = _needed(site.function, wanted)
        needed = self._needed[key]
        used = used and (bool(site.equation.effects) or any(var in needed for var in site.equation.outvars))
        if callees(site.equation):
            self._callers[id(site)] = site, used, needed
        return used


def _wanted(equation: JaxprEqn, needed: set[Var], every: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which results of the called function the equation needs."""
    results = tuple(var in needed for var in equation.outvars)
    if equation.primitive.name in _SAME_RESULTS and len(results) == len(every):
        return results
    if equation.primitive is p.scan_p:
        carries = loop_operands(equation).carries
        return (True,) * carries + results[carries:]
    return every


def _needed(function: Jaxpr, wanted: tuple[bool, ...]) -> set[Var]:
    results = zip(function.outvars, wanted, strict=True)
    needed = {atom for atom, want in results if want and isinstance(atom, Var)}
    for equation in reversed(function.eqns):
        if equation.effects or any(var in needed for var in equation.outvars):
            needed.update(atom for atom in equation.invars if isinstance(atom, Var))
    return needed
