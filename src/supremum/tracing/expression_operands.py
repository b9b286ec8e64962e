"""Which operands met in the expression that a cast belongs to."""

from __future__ import annotations

from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from supremum.jax_compat import primitives as p
from supremum.jaxprs import Frames, Position, Site, frames_of

# What changes nothing but the shape: an operand is the same operand behind them.
_MOVING = frozenset(
    primitive.name
    for primitive in (p.broadcast_in_dim_p, p.reshape_p, p.squeeze_p, p.transpose_p, p.convert_element_type_p)
)
_CONVERT = p.convert_element_type_p.name


class Function:
    """A function of a program, with who makes and who uses each of its values.

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
        """Which equation makes a value; None for an argument or a constant."""
        return self._maker.get(var)

    def operands(self, index: int) -> tuple[Any, ...]:
        """The operands that met in the expression of an equation, as variables and literals.

        Args:
            index: which equation. A cast leads to the equation that uses what it gives, if the same expression made
                that; of any other these are its own operands.
        """
        equation = self.jaxpr.eqns[index]
        here = self.frames(index).positions
        user = equation
        if equation.primitive.name == _CONVERT:
            user = self._user(index, here) or equation
        return tuple(self._origin(atom, here) for atom in user.invars)

    def _user(self, index: int, here: tuple[Position, ...]) -> JaxprEqn | None:
        """The first equation of more than one operand that a cast, at most moved, goes into."""
        while True:
            (result,) = self.jaxpr.eqns[index].outvars
            users = [user for user in self._users.get(result, ()) if self.frames(user).positions == here]
            for user in users:
                if len(self.jaxpr.eqns[user].invars) > 1:
                    return self.jaxpr.eqns[user]
            if not self._users.get(result):
                # Nothing uses it: what the expression does next is what it was made for.
                after = range(index + 1, min(index + 3, len(self.jaxpr.eqns)))
                near = [self.jaxpr.eqns[user] for user in after if self.frames(user).positions == here]
                return next((equation for equation in near if len(equation.invars) > 1), None)
            moving = [user for user in users if self.jaxpr.eqns[user].primitive.name in _MOVING]
            if not moving:
                return None
            index = moving[0]

    def _origin(self, atom: Var | Literal, here: tuple[Position, ...]) -> Var | Literal:
        """What an operand was before the same expression cast and moved it."""
        while isinstance(atom, Var) and atom in self._maker:
            index = self._maker[atom]
            equation = self.jaxpr.eqns[index]
            if equation.primitive.name not in _MOVING or self.frames(index).positions != here:
                break
            atom = equation.invars[0]
        return atom


class Functions:
    """The functions of a program, each looked through once; they keep the program alive, and so its identities."""

    def __init__(self) -> None:
        self._functions: dict[int, Function] = {}

    def of(self, site: Site) -> Function:
        """The function that a site stands in."""
        key = id(site.function)
        if key not in self._functions:
            self._functions[key] = Function(site.function)
        return self._functions[key]
