"""Walking a jaxpr and all the functions in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from supremum.argument_checks import instance
from supremum.jax_compat import open_jaxpr
from supremum.jaxprs.equations import CAST_SCOPE, callees, scopes_of


@dataclass(frozen=True, slots=True)
class Site:
    """An equation and where it stands.

    Args:
        equation: the equation.
        scopes: the `jax.named_scope` blocks around it, those of the calling equations first.
        callers: the equations that call the function it stands in, outermost first.
        trips: how often it runs when the whole program runs once; None where only the run can say.
        function: the function it stands in.
        index: which of its equations it is.
        caller: the site of the last of the callers; None in the program itself.
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
    """Every equation of a jaxpr, those of the functions it calls included, right after the equation that calls.

    A function that is called twice is walked twice: its equations run twice.

    >>> import jax, jax.numpy as jnp
    >>> looped = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, length=5))(1.0)
    >>> [(site.equation.primitive.name, site.trips) for site in walk(looped)]
    [('scan', 1), ('sin', 5)]
    """
    # A stack, not a recursion: programs nest deeper than Python does.
    pending = [_sites(open_jaxpr(function), None, 1)]
    while pending:
        site = next(pending[-1], None)
        if site is None:
            pending.pop()
            continue
        yield site
        pending.extend(
            _sites(
                callee.jaxpr,
                site,
                None if site.trips is None or callee.trips is None else site.trips * callee.trips,
            )
            for callee in reversed(callees(site.equation))
        )


def _sites(jaxpr: Jaxpr, caller: Site | None, trips: int | None) -> Iterator[Site]:
    instance("program", jaxpr, Jaxpr, "a jaxpr, such as jax.make_jaxpr(function)(*args)")
    scopes = () if caller is None else caller.scopes
    callers = () if caller is None else (*caller.callers, caller.equation)
    for index, equation in enumerate(jaxpr.eqns):
        yield Site(equation, (*scopes, *scopes_of(equation)), callers, trips, jaxpr, index, caller)
