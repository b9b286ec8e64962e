"""The user's expression that an equation comes from, and the calls that led to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile

from supremum.jaxprs import USER, Position, Site, is_backward
from supremum.tracing.expression_operands import Functions


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an equation comes from.

    Args:
        site: the innermost site with a position outside of JAX: the equation's, or that of the call to the JAX function
            that contains it; the outermost site if there is none.
        maker: that position, in the user's code or a library's; None if there is none.
        path: the user's calls that led there, outermost first. The last one is the user's expression.
        entry: the JAX function that was called there; empty if unknown.
        backward: whether the equation belongs to a backward pass.
        between: the library calls from the user's expression to `maker`, innermost first.
        in_custom_rule: whether the equation belongs to the derivative rule of one of the user's functions, for which
            only the call of the function is known.
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
        """The user's expression."""
        return self.path[-1] if self.path else None


class Origins:
    """Finds where the equations of a program come from; results for callers are cached.

    Args:
        functions: the functions of the program.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._of_callers: dict[int, tuple[Site, Origin]] = {}

    def of(self, site: Site) -> Origin:
        """Find where an equation comes from."""
        frames = self._functions.of(site).frames(site.index)
        outer = None if site.caller is None else self._of_caller(site.caller)
        backward = is_backward(site.equation) or (outer is not None and outer.backward)
        if not frames.positions:
            if outer is None:
                return Origin(site, None, (), frames.entry, backward)
            return replace(outer, backward=backward)
        own = tuple(position for position in reversed(frames.positions) if position.owner == USER)
        path = (*(() if outer is None else outer.path), *own)
        between = tuple(takewhile(lambda position: position.owner != USER, frames.positions))
        if not own and outer is not None:
            between += outer.between
        return Origin(site, frames.positions[0], path, frames.entry, backward, between, frames.in_custom_rule)

    def _of_caller(self, site: Site) -> Origin:
        # Not recursive, because programs nest deeper than Python recurses.
        unknown: list[Site] = []
        caller: Site | None = site
        while caller is not None and id(caller) not in self._of_callers:
            unknown.append(caller)
            caller = caller.caller
        for each in reversed(unknown):
            # Keeping the site alive keeps its id unique.
            self._of_callers[id(each)] = each, self.of(each)
        return self._of_callers[id(site)][1]
