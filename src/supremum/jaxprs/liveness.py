"""Which equations of a program anything depends on; the others are dropped before the program runs."""

from __future__ import annotations

from jax.extend.core import Jaxpr, JaxprEqn, Var

from supremum.jax_compat import primitives as p
from supremum.jaxprs.equations import CALLS, callees, loop_operands
from supremum.jaxprs.sites import Site

# Calls whose functions have the results of the equation; of scans the carries come first.
_SAME_RESULTS = frozenset({*CALLS, p.cond_p.name, p.custom_jvp_call_p.name, p.custom_vjp_call_p.name})


class Liveness:
    """Which equations of a program are used, asked in the order in which `walk` gives them.

    It errs to one side: what it calls unused is, but an operand of a call counts as used even where the function called
    makes nothing of it.
    """

    def __init__(self) -> None:
        # The sites are kept so that their identities stay theirs.
        self._callers: dict[int, tuple[Site, bool, set[Var]]] = {}
        self._needed: dict[tuple[int, tuple[bool, ...]], set[Var]] = {}

    def used(self, site: Site) -> bool:
        """Whether anything depends on an equation."""
        _, used, needed_outside = self._callers[id(site.caller)] if site.caller is not None else (None, True, None)
        wanted = (True,) * len(site.function.outvars)
        if site.caller is not None and needed_outside is not None:
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
    """Which results of the function that an equation calls are needed."""
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
