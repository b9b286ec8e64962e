"""Walking over a jaxpr and all functions that it calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from supremum.argument_checks import instance
from supremum.jax_compat import open_jaxpr
from supremum.jaxprs.equations import CAST_SCOPE, callees, scopes_of


@dataclass(frozen=True, slots=True)
class Site:
    """An equation and its place in the program.

    Args:
        equation: the equation.
        scopes: the `jax.named_scope` blocks around it, those of the calling equations first.
        callers: the equations that call the function that contains it, outermost first.
        trips: how often it runs when the whole program runs once; None if only the run can tell.
        function: the function that contains it.
        index: its index in the equations of that function.
        caller: the site of the innermost caller; None in the program itself.
    """

    equation: JaxprEqn
    scopes: tuple[str, ...]
    callers: tuple[JaxprEqn, ...]
    trips: int | None
    function: Jaxpr = field(repr=False, compare=False)
    index: int = field(compare=False)
    caller: Site | None = field(repr=False, compare=False)

    @property
    def path(self) -> str:
        """The scopes as one path, such as `"encoder/0/norm"`."""
        return "/".join(scope for scope in self.scopes if scope != CAST_SCOPE)


def walk(function: Jaxpr | ClosedJaxpr) -> Iterator[Site]:
    """Iterate over the equations of a jaxpr; the equations of a called function follow the one that calls it.

    A function that is called twice is walked twice, because its equations run twice.

    >>> import jax, jax.numpy as jnp
    >>> looped = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, length=5))(1.0)
    >>> [(site.equation.primitive.name, site.trips) for site in walk(looped)]
    [('scan', 1), ('sin', 5)]
    """
    # Not recursive, because programs nest deeper than Python recurses.
    pending = [_sites(open_jaxpr(function), None, 1)]
    while pending:
        site = next(pending[-1], None)
        if site is None:
            pending.pop()
            continue
        yield site
        for callee in reversed(callees(site.equation)):
            trips = None if site.trips is None or callee.trips is None else site.trips * callee.trips
            pending.append(_sites(callee.jaxpr, site, trips))


def _sites(jaxpr: Jaxpr, caller: Site | None, trips: int | None) -> Iterator[Site]:
    instance("program", jaxpr, Jaxpr, "a jaxpr, such as jax.make_jaxpr(function)(*args)")
    scopes = () if caller is None else caller.scopes
    callers = () if caller is None else (*caller.callers, caller.equation)
    for index, equation in enumerate(jaxpr.eqns):
        yield Site(equation, (*scopes, *scopes_of(equation)), callers, trips, jaxpr, index, caller)
