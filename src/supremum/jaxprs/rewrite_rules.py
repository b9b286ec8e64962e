"""What is known of values, what becomes of equations, and who decides it: the words of rewriting."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from supremum.formats import DType


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value while its program is rewritten.

    Args:
        dtype: the dtype it has now; None for a value that is never cast.
        fits: for a number written in the program, the dtypes that hold it: it takes the dtype of the others there, as
            Python numbers do. None for values that are computed.
        held: whether the program cast it by hand.
        given: whether it is an operand of the whole program, at most moved.
        sides: of a product with operands that are given: for each of those the axes that come from it.
    """

    dtype: DType | None
    fits: frozenset[DType] | None = None
    held: bool = False
    given: bool = False
    sides: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteAction:
    """What becomes of an equation.

    Args:
        operands: the dtype each operand is cast to first; None leaves it.
        results: what is then known of each result.
        note: why, for whoever reads the record.
        params: parameters of the equation that change with the dtypes.
        vanishes: the result is the operand, cast, and the equation goes.
        spread: the operand that is brought to the shape of the result before it is cast, so that its gradient is summed
            in the dtype it had; None for none.
        inside: for an equation that calls functions: the context they are rewritten in; None leaves them alone.
    """

    operands: tuple[DType | None, ...]
    results: tuple[Value, ...]
    note: Any
    params: dict[str, Any] | None = None
    vanishes: bool = False
    spread: int | None = None
    inside: Hashable = None


class RewriteRule(Protocol):
    """Decides what becomes of equations; pure, and hashable by what it depends on."""

    def value(self, aval: Any) -> Value:
        """What is known of an input or a constant of a function."""
        ...

    def literal(self, literal: Literal) -> Value:
        """What is known of a number written in the program."""
        ...

    def action_for(self, equation: JaxprEqn, values: Sequence[Value], context: Any) -> RewriteAction:
        """What becomes of an equation whose operands are known; `context` is that of the function it stands in."""
        ...

    def join(self, dtypes: Sequence[DType]) -> DType:
        """The dtype in which the results of branches meet."""
        ...


class Rewrites(Protocol):
    """Rewrites functions by a rule."""

    rule: RewriteRule

    def rewrite(
        self,
        function: Jaxpr | ClosedJaxpr,
        values: Sequence[Value],
        context: Hashable,
        results: Sequence[DType | None] | None = None,
    ) -> Rewritten:
        """A function with its equations in the dtypes that the rule says; see `Rewriter.rewrite`."""
        ...


@dataclass(frozen=True, slots=True)
class RewriteRecord:
    """What became of one equation.

    Args:
        equation: the equation as it was.
        treatment: what the rule decided.
        functions: what became of the functions it calls.
    """

    equation: JaxprEqn
    action: RewriteAction
    functions: tuple[Rewritten, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A rewritten function.

    Args:
        function: the function, with constants where it had some.
        results: what is known of its results.
        record: what became of each of its equations, in order.
    """

    function: Jaxpr | ClosedJaxpr
    results: tuple[Value, ...]
    record: tuple[RewriteRecord, ...]
