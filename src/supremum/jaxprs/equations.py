"""What the equations of a jaxpr say about themselves: where they stand, what they call, how often they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from supremum.argument_checks import instance
from supremum.errors import OperandError, shown
from supremum.jax_compat import function_name, is_transposed, open_jaxpr, parameter, scope_names
from supremum.jax_compat import primitives as p

CAST_SCOPE: Final = "supremum.autocast.cast"
"""The `jax.named_scope` of the casts that autocast has put into a program; their gradients stand in it too."""
CUSTOM_VMAP = "custom_vmap_call"
"""The primitive that calls a function with a rule of its own for `jax.vmap`; `jax.extend` does not offer it."""

# The parameters that hold the functions which an equation calls. Those of other primitives are found by their type,
# but nothing is known of how their operands meet the function's arguments.
CALLS: Mapping[str, str] = {
    p.jit_p.name: "jaxpr",
    p.closed_call_p.name: "call_jaxpr",
    p.call_p.name: "call_jaxpr",
    p.remat_p.name: "jaxpr",
    "shard_map": "jaxpr",
}
"""Primitives that call one function with exactly their operands, and the parameter that holds it."""

WITH_RULE: Mapping[str, str] = {
    p.custom_jvp_call_p.name: "call_jaxpr",
    p.custom_vjp_call_p.name: "call_jaxpr",
    CUSTOM_VMAP: "call",
}
"""The same of those whose function has a rule of its own, for derivatives or for `vmap`."""


def as_equation(equation: Any) -> JaxprEqn:
    """An equation of a jaxpr.

    Raises:
        OperandError: for anything else; a `TypeError`.
    """
    return instance("equation", equation, JaxprEqn, "an equation of jax.make_jaxpr(...)(...).eqns")


def scopes_of(equation: JaxprEqn) -> tuple[str, ...]:
    """The names of the `jax.named_scope` blocks around an equation, outermost first.

    Layers of Flax are such scopes. What transformations (`jvp`, `transpose`, `vmap`) wrap around them is left out, so
    that the backward pass of a layer stands where its forward pass does.

    >>> import jax
    >>> def double(x):
    ...     with jax.named_scope("encoder"), jax.named_scope("norm"):
    ...         return 2 * x
    >>> scopes_of(jax.make_jaxpr(jax.grad(double))(1.0).eqns[0])
    ('encoder', 'norm')
    """
    return scope_names(as_equation(equation).source_info.name_stack)


def is_backward(equation: JaxprEqn) -> bool:
    """Whether an equation belongs to a backward pass.

    >>> import jax
    >>> [is_backward(equation) for equation in jax.make_jaxpr(jax.grad(jax.numpy.sin))(1.0).eqns]
    [False, False, True]
    """
    return is_transposed(equation.source_info.name_stack)


def is_of_autocast(equation: JaxprEqn) -> bool:
    """Whether autocast has put an equation into the program."""
    return CAST_SCOPE in scopes_of(equation)


def name_of_call(equation: JaxprEqn) -> str:
    """The name of the function that an equation calls; empty where it calls none or one without a name.

    >>> import jax
    >>> name_of_call(jax.make_jaxpr(jax.nn.relu)(1.0).eqns[0])
    'relu'
    """
    if "name" in as_equation(equation).params and equation.primitive is p.jit_p:
        return str(equation.params["name"])
    function = equation.params.get(WITH_RULE.get(equation.primitive.name, "call_jaxpr"))
    if function is None:
        return ""
    return function_name(open_jaxpr(function))


def aval_of(atom: Var | Literal) -> Any:
    """The abstract value of an operand or a result; JAX's annotations do not say that it has a shape and a dtype."""
    if not isinstance(atom, (Var, Literal)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OperandError(f"atom is an operand or a result of an equation, not {shown(atom)}")
    return atom.aval


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that an equation calls.

    Args:
        parameter: the parameter of the equation that holds it.
        jaxpr: the function.
        trips: how often one run of the equation runs it; None where only the run can say. Of the branches of a
            `cond` one runs, which counts as once each.
    """

    parameter: str
    jaxpr: Jaxpr
    trips: int | None


def callees(equation: JaxprEqn) -> tuple[Callee, ...]:
    """The functions that an equation calls, whatever its primitive.

    >>> import jax, jax.numpy as jnp
    >>> total = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c + x, x))(1.0).eqns[-1]
    >>> [(callee.parameter, callee.trips) for callee in callees(total)]
    [('jaxpr', 3)]
    """
    return tuple(
        Callee(name, open_jaxpr(function), _trips(equation))
        for name, value in as_equation(equation).params.items()
        for function in (value if isinstance(value, (tuple, list)) else (value,))
        if isinstance(function, (Jaxpr, ClosedJaxpr))
    )


def _trips(equation: JaxprEqn) -> int | None:
    if equation.primitive is p.scan_p:
        return parameter(equation, "length")  # an expression where the size of the axis is one
    return None if equation.primitive is p.while_p else 1


@dataclass(frozen=True, slots=True)
class LoopOperands:
    """How the operands of a `scan` or a `while` are divided.

    Args:
        condition: how many only the condition of a `while` takes; they come first.
        constants: how many the body takes in every round.
        carries: how many it hands from round to round; they are the first results, too.
    """

    condition: int
    constants: int
    carries: int

    @property
    def first_carry(self) -> int:
        """The index of the first operand that is carried."""
        return self.condition + self.constants


def loop_operands(equation: JaxprEqn) -> LoopOperands:
    """How the operands of a `scan` or a `while` are divided, read off the functions that it calls.

    What a `scan` goes through, and what it stacks, has one axis more outside of the body. The body of a `while` gives
    what is carried and nothing else. So the numbers that JAX keeps beside them, under names that change, are not
    needed.

    Args:
        equation: a `scan` or a `while`.

    >>> import jax, jax.numpy as jnp
    >>> looped = jax.make_jaxpr(lambda w, x: jax.lax.scan(lambda c, t: (c * w + t, c), w, x))(1.0, jnp.ones(3))
    >>> loop_operands(looped.eqns[-1])
    LoopOperands(condition=0, constants=1, carries=1)
    """
    if as_equation(equation).primitive is p.while_p:
        body = open_jaxpr(parameter(equation, "body_jaxpr"))
        carries = len(body.outvars)
        return LoopOperands(len(equation.invars) - len(body.invars), len(body.invars) - carries, carries)
    body = open_jaxpr(parameter(equation, "jaxpr"))
    carries = _unstacked(equation.outvars, body.outvars)
    return LoopOperands(0, _unstacked(equation.invars, body.invars) - carries, carries)


def _unstacked(outside: Sequence[Any], inside: Sequence[Any]) -> int:
    return sum(len(aval_of(out).shape) == len(aval_of(own).shape) for out, own in zip(outside, inside, strict=True))


def line_of(equation: JaxprEqn) -> str:
    """The user's line that an equation comes from, as `file:line:column (function)`."""
    return source_info_util.summarize(as_equation(equation).source_info)
