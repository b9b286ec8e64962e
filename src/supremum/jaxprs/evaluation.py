"""Evaluating a rewritten program, with JAX's search for NaNs if that is on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var, jaxpr_as_fun

from supremum.jax_compat import WITH_RULE
from supremum.jax_compat import primitives as p
from supremum.jaxprs.equations import line_of
from supremum.jaxprs.interpreter import Instrument, Outcome, enter, interpret
from supremum.jaxprs.plans import Step, plan_of
from supremum.typing import ArrayLike


def evaluate(program: Jaxpr | ClosedJaxpr, arrays: Sequence[Any], under: str) -> list[Any]:
    """Evaluate a program.

    JAX does not search for NaNs when it evaluates a jaxpr: functions such as `jnp.var` switch the search off where they
    write a NaN on purpose, and a jaxpr does not record that. This search skips values that contain such a NaN, and
    finds the same NaNs as JAX does in the program before it was rewritten.

    Args:
        program: the program, with the values of its constants.
        arrays: the arguments.
        under: what rewrote the program, for the message.

    Raises:
        FloatingPointError: with `jax_debug_nans` on, for the operation that returns a NaN, with its line.

    >>> program = jax.make_jaxpr(lambda x: x + 1)(1.0)
    >>> evaluate(program, [2.0], "autocast")
    [Array(3., dtype=float32, weak_type=True)]
    """
    config: Any = jax.config
    assert isinstance(program, ClosedJaxpr)
    if not config.jax_debug_nans:
        return jaxpr_as_fun(program)(*arrays)
    results, _ = interpret(plan_of(program), [(value, False) for value in arrays], _NanSearch(under))
    return [value for value, _ in results]


_Known: TypeAlias = tuple[Any, bool]
"""A value, and whether it contains NaNs that are constants of the program."""


@dataclass(frozen=True)
class _NanSearch(Instrument[_Known]):
    """Evaluates a program, and searches the results of its equations for NaNs.

    Args:
        under: what rewrote the program, for the message.
    """

    under: str

    def constant(self, variable: Var, value: ArrayLike) -> _Known:
        del variable
        return value, _has_nan(value)

    def literal(self, literal: Literal) -> _Known:
        return literal.val, _has_nan(literal.val)

    def run(self, step: Step, operands: Sequence[_Known]) -> Outcome[_Known]:
        # JAX must apply a custom rule itself if an operand is traced.
        has_values = not any(isinstance(value, Tracer) for value, _ in operands)
        if step.equation.primitive is p.jit_p or (has_values and step.name in WITH_RULE):
            return enter(step, operands, self)
        return self.compute(step, operands), {}

    def compute(self, step: Step, operands: Sequence[_Known]) -> list[_Known]:
        written = any(each for _, each in operands)
        with jax.debug_nans(not written):
            try:
                results = step.evaluate([value for value, _ in operands])
            except FloatingPointError as error:
                raise FloatingPointError(f"{error}, at {line_of(step.equation)}, under {self.under}") from None
        return [(result, written and _has_nan(result)) for result in results]


def _has_nan(value: ArrayLike) -> bool:
    """Whether a value contains a NaN; False for traced values."""
    if isinstance(value, Tracer) or not jax.numpy.issubdtype(getattr(value, "dtype", type(value)), np.inexact):
        return False
    array = np.asarray(value)
    return bool((array != array).any())
