"""The user's expression that an equation comes from: the calls that led to it, and its operands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from supremum.jax_compat import argument_names
from supremum.jax_compat import primitives as p
from supremum.jaxprs import USER, Frames, Position, Site, callees, frames_of, is_backward, loop_operands

# Primitives that change only the shape or the dtype: the result is still the same operand.
RESHAPES = (p.broadcast_in_dim_p, p.reshape_p, p.squeeze_p, p.transpose_p, p.convert_element_type_p)


@dataclass(frozen=True, slots=True)
class CallOrigin:
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

    @property
    def place(self) -> Position | None:
        """The user's expression; without one, the library's."""
        return self.user or self.maker


@dataclass(frozen=True, slots=True)
class Carry:
    """A value of a loop's carry that starts with another dtype than the body returns.

    Args:
        name: its name in the body, such as `"state['count']"`; empty if unknown.
        operands: the value that it starts with, and the result of the body.
    """

    name: str
    operands: tuple[Any, Any]


class Origins:
    """Finds where the equations of a program come from. Each function of the program is analysed once."""

    def __init__(self) -> None:
        # Keeping the program and its sites alive keeps their ids unique.
        self._functions: dict[int, _Function] = {}
        self._of_callers: dict[int, tuple[Site, CallOrigin]] = {}

    def of(self, site: Site) -> CallOrigin:
        """Find where an equation comes from."""
        frames = self._function(site).frames(site.index)
        outer = None if site.caller is None else self._of_caller(site.caller)
        backward = is_backward(site.equation) or (outer is not None and outer.backward)
        if not frames.positions:
            if outer is None:
                return CallOrigin(site, None, (), frames.entry, backward)
            return replace(outer, backward=backward)
        own = tuple(position for position in reversed(frames.positions) if position.owner == USER)
        path = (*(() if outer is None else outer.path), *own)
        between = tuple(takewhile(lambda position: position.owner != USER, frames.positions))
        if not own and outer is not None:
            between += outer.between
        return CallOrigin(site, frames.positions[0], path, frames.entry, backward, between, frames.in_custom_rule)

    def operands(self, site: Site) -> tuple[Any, ...]:
        """The operands of the expression that an equation belongs to, as variables and literals.

        Args:
            site: the equation. For a cast, these are the operands of the equation that uses its result, if both belong
                to the same expression; otherwise they are the equation's own.
        """
        return self._function(site).operands(site.index)

    def carry(self, site: Site) -> Carry | None:
        """The carried value that a cast brings to the dtype that the body of a loop returns; None for other casts.

        Args:
            site: the equation.
        """
        return self._function(site).carry(site.index)

    def _function(self, site: Site) -> _Function:
        key = id(site.function)
        if key not in self._functions:
            self._functions[key] = _Function(site.function)
        return self._functions[key]

    def _of_caller(self, site: Site) -> CallOrigin:
        # Not recursive, because programs nest deeper than Python recurses.
        unknown: list[Site] = []
        caller: Site | None = site
        while caller is not None and id(caller) not in self._of_callers:
            unknown.append(caller)
            caller = caller.caller
        for each in reversed(unknown):
            self._of_callers[id(each)] = each, self.of(each)
        return self._of_callers[id(site)][1]


class _Function:
    """A function of a program, with the equations that make and use each value."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.frames = cache(self._frames)
        self._maker = {var: index for index, equation in enumerate(jaxpr.eqns) for var in equation.outvars}
        self._users: dict[Var, list[int]] = {}
        for index, equation in enumerate(jaxpr.eqns):
            for atom in equation.invars:
                if isinstance(atom, Var):
                    self._users.setdefault(atom, []).append(index)

    def _frames(self, index: int) -> Frames:
        """The calls that led to an equation."""
        return frames_of(self.jaxpr.eqns[index])

    def operands(self, index: int) -> tuple[Any, ...]:
        equation = self.jaxpr.eqns[index]
        here = self.frames(index).positions
        if equation.primitive is p.convert_element_type_p:
            equation = self._user(index, here) or equation
        return tuple(self._origin(atom, here) for atom in equation.invars)

    def carry(self, index: int) -> Carry | None:
        cast, here = self.jaxpr.eqns[index], self.frames(index).positions
        loop = self._user(index, here) if cast.primitive is p.convert_element_type_p else None
        if loop is None or loop.primitive not in (p.scan_p, p.while_p) or cast.outvars[0] not in loop.invars:
            return None
        operands, body = loop_operands(loop), callees(loop)[-1].jaxpr
        place = loop.invars.index(cast.outvars[0]) - operands.first_carry
        if not 0 <= place < operands.carries:
            return None
        name = argument_names(body)[operands.constants + place]
        return Carry(name, (self._origin(cast.invars[0], here), body.outvars[place]))

    def _user(self, index: int, here: tuple[Position, ...]) -> JaxprEqn | None:
        """The first equation with several operands that uses the result of a cast, possibly reshaped."""
        equations = self.jaxpr.eqns
        while True:
            (result,) = equations[index].outvars
            uses = self._users.get(result)
            # If nothing uses the result, it was made for the next operation of the expression.
            near = range(index + 1, min(index + 3, len(equations))) if uses is None else uses
            users = [user for user in near if self.frames(user).positions == here]
            if equation := next((equations[user] for user in users if len(equations[user].invars) > 1), None):
                return equation
            reshapes = [user for user in users if equations[user].primitive in RESHAPES]
            if uses is None or not reshapes:
                return None
            index = reshapes[0]

    def _origin(self, atom: Var | Literal, here: tuple[Position, ...]) -> Var | Literal:
        """An operand before the same expression cast and reshaped it."""
        while isinstance(atom, Var) and (index := self._maker.get(atom)) is not None:
            equation = self.jaxpr.eqns[index]
            if equation.primitive not in RESHAPES or self.frames(index).positions != here:
                break
            atom = equation.invars[0]
        return atom
