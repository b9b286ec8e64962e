"""Evaluating a rewritten program, with JAX's search for NaNs if that is on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, jaxpr_as_fun

from supremum.jax_compat import WITH_RULE, parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs.equations import evaluate_equation, line_of


def evaluated(program: ClosedJaxpr, arrays: Sequence[Any], under: str) -> list[Any]:
    """Evaluate a program.

    JAX does not search for NaNs when it evaluates a jaxpr: functions such as `jnp.var` switch the search off where they
    write a NaN on purpose, and a jaxpr does not record that. This search skips values that contain such a NaN, and
    finds the same NaNs as JAX does in the program before it was rewritten.

    Args:
        program: the program.
        arrays: the arguments.
        under: what rewrote the program, for the message.

    Raises:
        FloatingPointError: with `jax_debug_nans` on, for the operation that returns a NaN, with its line.

    >>> program = jax.make_jaxpr(lambda x: x + 1)(1.0)
    >>> evaluated(program, [2.0], "autocast")
    [Array(3., dtype=float32, weak_type=True)]
    """
    config: Any = jax.config
    if not config.jax_debug_nans:
        return jaxpr_as_fun(program)(*arrays)
    return [value for value, _ in _searched(program, [(value, False) for value in arrays], under)]


_Known = tuple[Any, bool]
"""A value, and whether it contains NaNs that are constants of the program."""


def _searched(program: ClosedJaxpr, given: Sequence[_Known], under: str) -> list[_Known]:
    jaxpr = program.jaxpr
    known: dict[Any, _Known] = dict(zip(jaxpr.invars, given, strict=True))
    known.update((var, (value, _has_nan(value))) for var, value in zip(jaxpr.constvars, program.consts, strict=True))

    def read(atom: Any) -> _Known:
        return (atom.val, _has_nan(atom.val)) if isinstance(atom, Literal) else known[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        function = _entered(equation, operands)
        results = _results(program, equation, operands, under) if function is None else _searched(function, operands, under)
        known.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _entered(equation: JaxprEqn, operands: Sequence[_Known]) -> ClosedJaxpr | None:
    """Return the function that an equation calls, if the search enters it; None for all other equations.

    A function with a custom rule is not entered if an operand is traced, because JAX must apply the rule.
    """
    if equation.primitive is p.jit_p:
        return parameter(equation, "jaxpr")
    if any(isinstance(value, Tracer) for value, _ in operands):
        return None
    return equation.params.get(WITH_RULE.get(equation.primitive.name, ""))


def _results(program: ClosedJaxpr, equation: JaxprEqn, operands: Sequence[_Known], under: str) -> list[_Known]:
    """Evaluate one equation."""
    written = any(each for _, each in operands)
    with jax.debug_nans(not written):
        try:
            results = evaluate_equation(program.jaxpr, equation, [value for value, _ in operands])
        except FloatingPointError as error:
            raise FloatingPointError(f"{error}, at {line_of(equation)}, under {under}") from None
    return [(result, written and _has_nan(result)) for result in results]


def _has_nan(value: Any) -> bool:
    """Whether a value contains a NaN; False for traced values."""
    if isinstance(value, Tracer) or not jax.numpy.issubdtype(getattr(value, "dtype", type(value)), np.inexact):
        return False
    array = np.asarray(value)
    return bool((array != array).any())
