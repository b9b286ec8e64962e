"""The types of rewriting: what is known about values, the action for an equation, and the rule that chooses it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jax.core import AbstractValue
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive

from supremum.formats import DType


@dataclass(frozen=True, slots=True)
class Value:
    """What is known about a value while its program is rewritten.

    Args:
        dtype: its current dtype; None for a value that is never cast.
        fits: for a literal, the dtypes that can hold it: it takes the dtype of the other operands, like a Python
            number. None for computed values.
        held: whether the program cast the value explicitly.
        given: whether it is an operand of the whole program, possibly reshaped.
        sides: for a product with given operands, the axes that come from each of them.

    >>> import numpy as np
    >>> float32, float16 = np.dtype("float32"), np.dtype("float16")
    >>> computed, number = (
    ...     Value(float32),
    ...     Value(float32, fits=frozenset({float16, float32})),
    ... )
    >>> computed.fits, float16 in number.fits
    (None, True)
    """

    dtype: DType | None
    fits: frozenset[DType] | None = None
    held: bool = False
    given: bool = False
    sides: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteAction:
    """How to rewrite an equation.

    Args:
        operands: the dtype to cast each operand to; None leaves it unchanged.
        results: what is known about each result afterwards.
        note: the reason, for readers of the record.
        params: the parameters of the equation that change with the dtypes.
        vanishes: whether to remove the equation; the cast operand is then the result.
        spread: the index of an operand to broadcast to the shape of the result before its cast, so that its gradient is
            summed in its previous dtype; None for no operand.
        inside: for an equation that calls functions, the context to rewrite them in; None leaves them unchanged.
        primitive: a primitive that takes the place of the equation's own, with the same operands and results; None
            keeps it.

    >>> import numpy as np
    >>> bfloat16 = np.dtype("bfloat16")
    >>> action = RewriteAction(
    ...     (bfloat16, bfloat16), (Value(bfloat16),), "products are most of the work"
    ... )
    >>> action.operands, action.vanishes, action.inside
    ((dtype(bfloat16), dtype(bfloat16)), False, None)
    """

    operands: tuple[DType | None, ...]
    results: tuple[Value, ...]
    note: Any
    params: dict[str, Any] | None = None
    vanishes: bool = False
    spread: int | None = None
    inside: Hashable = None
    primitive: Primitive | None = None


class RewriteRule(Protocol):
    """Chooses the action for each equation. A rule must be pure, and hashable by everything that it depends on.

    >>> import jax, jax.numpy as jnp
    >>> from supremum.jaxprs import Rewriter, walk
    >>> class ProductsInBfloat16(RewriteRule):
    ...     def value(self, aval):
    ...         return Value(aval.dtype)
    ...
    ...     def action_for(self, equation, values, context):
    ...         dtype = jnp.dtype(
    ...             "bfloat16"
    ...             if equation.primitive.name == "dot_general"
    ...             else "float32"
    ...         )
    ...         params = (
    ...             {"preferred_element_type": dtype}
    ...             if equation.primitive.name == "dot_general"
    ...             else None
    ...         )
    ...         return RewriteAction(
    ...             (dtype,) * len(values), (Value(dtype),), "", params
    ...         )
    >>> program = jax.make_jaxpr(lambda x: jnp.exp(x @ x))(jnp.ones((2, 2)))
    >>> rewritten = Rewriter(ProductsInBfloat16()).rewrite(
    ...     program, [Value(jnp.dtype("float32"))], None
    ... )
    >>> equations = [site.equation for site in walk(rewritten.function)]
    >>> print(
    ...     *(f"{each.primitive}: {each.outvars[0].aval.dtype}" for each in equations)
    ... )
    convert_element_type: bfloat16 dot_general: bfloat16 convert_element_type: float32 exp: float32
    """

    def value(self, aval: AbstractValue) -> Value:
        """What is known about an input or a constant of a function; by default it is never cast."""
        del aval
        return Value(None)

    def literal(self, literal: Literal) -> Value:
        """What is known about a literal; by default it is never cast."""
        del literal
        return Value(None)

    def action_for(self, equation: JaxprEqn, values: Sequence[Value], context: Any) -> RewriteAction:
        """The action for an equation with these operands; `context` is that of the function that contains it."""
        ...

    def join(self, dtypes: Sequence[DType]) -> DType:
        """The common dtype for the results of branches; by default that of the first."""
        return dtypes[0]


@dataclass(frozen=True, slots=True)
class RewriteRecord:
    """The record of one rewritten equation.

    Args:
        equation: the original equation.
        action: the action that the rule chose.
        functions: the functions that it calls, rewritten.

    >>> import jax
    >>> (equation,) = jax.make_jaxpr(jax.numpy.sin)(1.0).eqns
    >>> record = RewriteRecord(
    ...     equation, RewriteAction((None,), (Value(None),), "follows its operand")
    ... )
    >>> f"{record.equation.primitive}: {record.action.note}"
    'sin: follows its operand'
    """

    equation: JaxprEqn
    action: RewriteAction
    functions: tuple[Rewritten, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A rewritten function.

    Args:
        function: the function, with constants if it had some.
        results: what is known about its results.
        record: the record of each equation, in order.

    >>> import jax, jax.numpy as jnp
    >>> from supremum.jaxprs import Rewriter
    >>> class Following(RewriteRule):
    ...     def action_for(self, equation, values, context):
    ...         return RewriteAction(
    ...             (None,), (Value(values[0].dtype),), "follows its operand"
    ...         )
    >>> rewritten = Rewriter(Following()).rewrite(
    ...     jax.make_jaxpr(jnp.sin)(1.0), [Value(jnp.dtype("bfloat16"))], None
    ... )
    >>> rewritten.results[0].dtype, [each.action.note for each in rewritten.record]
    (dtype(bfloat16), ['follows its operand'])
    """

    function: Jaxpr | ClosedJaxpr
    results: tuple[Value, ...]
    record: tuple[RewriteRecord, ...]
