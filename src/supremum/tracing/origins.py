"""Which of the user's expressions an equation comes from, and by which calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile

from supremum.jaxprs import USER, Position, Site, is_backward
from supremum.tracing.expression_operands import Functions


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an equation comes from.

    Args:
        site: the innermost site that somebody outside of JAX wrote: that of the equation itself, or of the call of the
            function of JAX that it belongs to; the outermost one where nobody did.
        maker: what stands there, the user's or a library's; None where nobody outside of JAX wrote any of it.
        path: the user's calls that led there, outermost first; the last of them is the user's own expression.
        entry: the function of JAX that was called there; empty where it is not known.
        backward: whether it belongs to a backward pass.
        between: the calls of libraries from the user's own expression to `maker`, innermost first.
        in_custom_rule: whether it belongs to a derivative rule of a function of the user's, of which only the call of
            that function is known.
    """

    site: Site
    maker: Position | None
    path: tuple[Position, ...]
    entry: str
    backward: bool
    between: tuple[Position, ...] = ()
    in_custom_rule: bool = False

    @property
    def user(self) -> Position | None:
        """The user's own expression."""
        return self.path[-1] if self.path else None


class Origins:
    """Where the equations of a program come from; what calls have in common is found once.

    Args:
        functions: the functions of the program.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._of_callers: dict[int, tuple[Site, Origin]] = {}

    def of(self, site: Site) -> Origin:
        """Where an equation comes from."""
        frames = self._functions.of(site).frames(site.index)
        outer = None if site.caller is None else self._of_caller(site.caller)
        backward = is_backward(site.equation) or (outer is not None and outer.backward)
        if not frames.positions:
            if outer is None:
                return Origin(site, None, (), frames.entry, backward)
            # Of the functions that JAX calls in itself the outermost one is what was called.
            return replace(outer, backward=backward)
        own = tuple(position for position in reversed(frames.positions) if position.owner == USER)
        path = (*(() if outer is None else outer.path), *own)
        between = tuple(takewhile(lambda position: position.owner != USER, frames.positions))
        if not own and outer is not None:
            between += outer.between
        return Origin(site, frames.positions[0], path, frames.entry, backward, between, frames.in_custom_rule)

    def _of_caller(self, site: Site) -> Origin:
        # Programs nest deeper than Python recurses: what is not known yet is asked for from the outside in.
        unknown: list[Site] = []
        caller: Site | None = site
        while caller is not None and id(caller) not in self._of_callers:
            unknown.append(caller)
            caller = caller.caller
        for each in reversed(unknown):
            # The site is kept with what is known of it, or another could come to have its identity.
            self._of_callers[id(each)] = each, self.of(each)
        return self._of_callers[id(site)][1]
