"""The properties of a jaxpr's equations: their named scopes, the functions they call, and how often those run."""

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
"""The `jax.named_scope` of the casts that autocast inserts, and of their gradients."""
CUSTOM_VMAP = "custom_vmap_call"
"""The primitive that calls a function with a custom rule for `jax.vmap`; `jax.extend` does not export it."""

# Functions in parameters of other primitives are found by their type, but how operands map to arguments is unknown.
CALLS: Mapping[str, str] = {
    p.jit_p.name: "jaxpr",
    p.closed_call_p.name: "call_jaxpr",
    p.call_p.name: "call_jaxpr",
    p.remat_p.name: "jaxpr",
    "shard_map": "jaxpr",
}
"""Primitives that call one function with exactly their operands, and the parameter that holds the function."""

WITH_RULE: Mapping[str, str] = {
    p.custom_jvp_call_p.name: "call_jaxpr",
    p.custom_vjp_call_p.name: "call_jaxpr",
    CUSTOM_VMAP: "call",
}
"""The same for primitives whose function has a custom rule for derivatives or `vmap`."""


def as_equation(equation: Any) -> JaxprEqn:
    """Check that the argument is an equation of a jaxpr.

    Raises:
        OperandError: for anything else; a `TypeError`.
    """
    return instance("equation", equation, JaxprEqn, "an equation of jax.make_jaxpr(...)(...).eqns")


def scopes_of(equation: JaxprEqn) -> tuple[str, ...]:
    """The names of the `jax.named_scope` blocks around an equation, outermost first.

    Flax layers are named scopes. The names exclude transformations (`jvp`, `transpose`, `vmap`), so the backward pass
    of a layer has the scopes of its forward pass.

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
    """Whether autocast inserted an equation."""
    return CAST_SCOPE in scopes_of(equation)


def name_of_call(equation: JaxprEqn) -> str:
    """The name of the function that an equation calls; empty if there is no function or it has no name.

    >>> import jax
    >>> name_of_call(jax.make_jaxpr(jax.nn.relu)(1.0).eqns[0])
    'relu'
    """
    if "name" in as_equation(equation).params and equation.primitive is p.jit_p:
        return str(equation.params["name"])
    function = equation.params.get(WITH_RULE.get(equation.primitive.name, "call_jaxpr"))
    return "" if function is None else function_name(open_jaxpr(function))


def aval_of(atom: Var | Literal) -> Any:
    """The abstract value of an operand or a result. `Any`, because JAX's type lacks the shape and the dtype."""
    if not isinstance(atom, (Var, Literal)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OperandError(f"atom must be an operand or a result of an equation, got {shown(atom)}.")
    return atom.aval


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that an equation calls.

    Args:
        parameter: the parameter of the equation that holds the function.
        jaxpr: the function.
        trips: how often one run of the equation runs the function; None if only the run can tell. Each branch of a
            `cond` counts as one run.
    """

    parameter: str
    jaxpr: Jaxpr
    trips: int | None


def callees(equation: JaxprEqn) -> tuple[Callee, ...]:
    """The functions that an equation calls, for any primitive.

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
        return parameter(equation, "length")  # an expression if the size of the axis is symbolic
    return None if equation.primitive is p.while_p else 1


@dataclass(frozen=True, slots=True)
class LoopOperands:
    """How the operands of a `scan` or a `while` are divided.

    Args:
        condition: the number of operands that only the condition of a `while` takes; they come first.
        constants: the number of operands that the body takes unchanged in every iteration.
        carries: the number of carried operands; they are also the first results.
    """

    condition: int
    constants: int
    carries: int

    @property
    def first_carry(self) -> int:
        """The index of the first carried operand."""
        return self.condition + self.constants


def loop_operands(equation: JaxprEqn) -> LoopOperands:
    """How the operands of a `scan` or a `while` are divided.

    This is read from the body: the stacked inputs and outputs of a `scan` have one axis more outside of the body, and
    the body of a `while` returns only the carries. JAX also stores the counts, but under names that change.

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
