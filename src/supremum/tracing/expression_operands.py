"""The operands of the expression that a cast belongs to."""

from __future__ import annotations

from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from supremum.jax_compat import primitives as p
from supremum.jaxprs import Frames, Position, Site, frames_of

# Primitives that change only the shape or the dtype: the result is still the same operand.
_RESHAPES = (p.broadcast_in_dim_p, p.reshape_p, p.squeeze_p, p.transpose_p, p.convert_element_type_p)


class Function:
    """A function of a program, with the equations that make and use each value.

    Args:
        jaxpr: the function.
    """

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self._frames: dict[int, Frames] = {}
        self._maker: dict[Var, int] = {}
        self._users: dict[Var, list[int]] = {}
        for index, equation in enumerate(jaxpr.eqns):
            for var in equation.outvars:
                self._maker[var] = index
            for atom in equation.invars:
                if isinstance(atom, Var):
                    self._users.setdefault(atom, []).append(index)

    def frames(self, index: int) -> Frames:
        """The calls that led to an equation."""
        if index not in self._frames:
            self._frames[index] = frames_of(self.jaxpr.eqns[index])
        return self._frames[index]

    def maker(self, var: Var) -> int | None:
        """The index of the equation that makes a value; None for an argument or a constant."""
        return self._maker.get(var)

    def operands(self, index: int) -> tuple[Any, ...]:
        """The operands of the expression that an equation belongs to, as variables and literals.

        Args:
            index: the equation. For a cast, these are the operands of the equation that uses its result, if both
                belong to the same expression; otherwise they are the equation's own.
        """
        equation = self.jaxpr.eqns[index]
        here = self.frames(index).positions
        if equation.primitive is p.convert_element_type_p:
            equation = self._user(index, here) or equation
        return tuple(self._origin(atom, here) for atom in equation.invars)

    def _user(self, index: int, here: tuple[Position, ...]) -> JaxprEqn | None:
        """The first equation with several operands that uses the result of a cast, possibly reshaped."""
        equations = self.jaxpr.eqns
        while True:
            (result,) = equations[index].outvars
            uses = self._users.get(result)
            # If nothing uses the result, it was made for the next operation of the expression.
            near = range(index + 1, min(index + 3, len(equations))) if uses is None else uses
            users = [user for user in near if self.frames(user).positions == here]
            if found := next((equations[user] for user in users if len(equations[user].invars) > 1), None):
                return found
            reshapes = [user for user in users if equations[user].primitive in _RESHAPES]
            if uses is None or not reshapes:
                return None
            index = reshapes[0]

    def _origin(self, atom: Var | Literal, here: tuple[Position, ...]) -> Var | Literal:
        """An operand before the same expression cast and reshaped it."""
        while isinstance(atom, Var) and (index := self._maker.get(atom)) is not None:
            equation = self.jaxpr.eqns[index]
            if equation.primitive not in _RESHAPES or self.frames(index).positions != here:
                break
            atom = equation.invars[0]
        return atom


class Functions:
    """The functions of a program, each analysed once. They keep the program alive, so that its `id`s stay unique."""

    def __init__(self) -> None:
        self._functions: dict[int, Function] = {}

    def of(self, site: Site) -> Function:
        """The function that contains a site."""
        key = id(site.function)
        if key not in self._functions:
            self._functions[key] = Function(site.function)
        return self._functions[key]
