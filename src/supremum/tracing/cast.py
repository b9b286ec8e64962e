"""One cast: its dtypes, its class, the line that caused it, and the cast that it follows from."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from supremum.decisions import Decision, OperandCast
from supremum.formats import CATEGORIES, DType, as_format
from supremum.jaxprs import Position
from supremum.reports import SourceLine, plain_fields
from supremum.tracing.sizes import plain

CastClass: TypeAlias = Literal["promotion", "conversion", "explicit", "library", "autocast", "unknown"]
CLASSES: tuple[CastClass, ...] = get_args(CastClass)
"""The user's expression mixes dtypes; it mixes bools or integers with floats; the user asks for the cast; JAX or a
library casts; autocast inserted it; none of these is known."""
OR = ", or "
"""Between the choices of a fix."""
DELIBERATE: frozenset[CastClass] = frozenset({"explicit", "autocast"})
"""The classes of casts that the program asks for."""


@dataclass(frozen=True, slots=True)
class HiddenPromotion:
    """An expression that would promote if its operand had not been widened before.

    Args:
        at: the position of the expression.
        expression: its source text, on one line.
        fix: what to write instead.

    >>> import jax.numpy as jnp
    >>> from supremum.tracing import casts
    >>> report = casts(lambda x, w, b: x * w + b)(
    ...     jnp.ones(4, "bfloat16"), jnp.ones(4), jnp.ones(4)
    ... )
    >>> (
    ...     [cast.expression for cast in report],
    ...     [hidden.expression for hidden in report[0].hides],
    ... )
    (['x * w'], ['x * w + b'])
    """

    at: Position
    expression: str
    fix: str

    @property
    def where(self) -> str:
        """The line, as `file:line`."""
        return str(self.at)

    def to_dict(self) -> dict[str, Any]:
        """The promotion as plain data for JSON."""
        return {"file": self.at.file, "line": self.at.line, "expression": self.expression, "fix": self.fix}


@dataclass(frozen=True, slots=True)
class ErrorChange:
    """The relative error of a program's result, against float64, as the program is and with a promotion undone.

    Args:
        before: the error of the program as it is.
        alone: the error with only the expression that promotes in the narrower dtype.
        after: the error with all values that are wider because of it in the narrower dtype.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import promotion_costs
    >>> report = promotion_costs(lambda x, w: x * w)(
    ...     jnp.ones(4, "bfloat16"), jnp.full(4, 1.001, "float32")
    ... )
    >>> change = report[0].narrow_error
    >>> change.before < 1e-7, round(change.after, 6)  # 1.001 is 1 in bfloat16
    (True, 0.000999)
    """

    before: float
    alone: float
    after: float

    def to_dict(self) -> dict[str, float | None]:
        """The errors as plain data for JSON; None if one is not finite."""
        return plain_fields(self)

    def __str__(self) -> str:
        text = f"the relative error of the result is {_error(self.after)} instead of {_error(self.before)}"
        if _error(self.alone) == _error(self.after):
            return text
        return f"{text}, or {_error(self.alone)} if only this expression is undone"


def _error(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "not finite"


@dataclass(frozen=True, slots=True)
class Cast(SourceLine):
    """A conversion of a value from one dtype to another.

    Args:
        source: the dtype before.
        target: the dtype after.
        shape: the shape of the value; symbolic sizes are expressions.
        weak: whether the value before was weak, like a Python number.
        times: how often the cast runs when the program runs once: 0 if nothing depends on it (JAX then drops it); None
            if only the run can tell.
        kind: `"promotion"` if the user's expression mixes dtypes, or hands a library floats of two dtypes,
            `"conversion"` if it makes numbers of another kind of bools or integers, `"explicit"` if it asks for the
            cast, `"library"` inside JAX or an installed package, `"autocast"` if `autocast` inserted it, or
            `"unknown"`.
        reason: why the cast is in that class.
        file: the file of the user's expression. If no user code led there, a library's file, or empty.
        line: the line in that file.
        expression: the source text, on one line.
        path: the user's calls that led to the cast, outermost first, each with its text. The last one is the
            expression.
        operands: the operands of the expression, with dtype and shape.
        scope: the enclosing `jax.named_scope` blocks, such as `"encoder/norm"`.
        operation: the primitive: `convert_element_type`, or one that takes operands of two dtypes and casts them.
        fix: for a promotion or a conversion, what to write instead.
        decision: for these, and for a cast of an unknown class that may be a promotion, what the rules decide about the
            operands; None if they do not explain the cast.
        library: the package whose line casts, such as `"flax"` or `"jax"`; empty if the line is the user's.
        cause: the cast that widened first, from which this one follows; None if it follows from none.
        asked_for: the cast with which the user made an operand wider on purpose, so that this cast was needed.
        hides: the promotions that would be left if this cast and those that follow from it were gone.
        extra_bytes: for a cast that widened first, in a report with `cost=True`: the bytes by which the values of the
            forward pass that are wider because of it exceed the same values in the narrower dtype, each counted once
            whenever it is computed. None if unknown.
        narrow_error: for a promotion that widened first, in a report of `numerics.promotion_costs`: the error of the
            result as it is, and with the promotion undone. None if unknown.

    >>> import jax.numpy as jnp
    >>> from supremum.tracing import casts
    >>> cast = casts(lambda x, w: x * w)(jnp.ones(4, "bfloat16"), jnp.ones(4))[0]
    >>> cast.kind, cast.source, cast.target, cast.bytes, cast.expression
    ('promotion', dtype(bfloat16), dtype('float32'), 24, 'x * w')
    """

    source: DType
    target: DType
    shape: tuple[int, ...]
    weak: bool
    times: int | None
    kind: CastClass
    reason: str
    path: tuple[tuple[Position, str], ...]
    operands: tuple[str, ...]
    scope: str
    operation: str
    fix: str
    decision: Decision | None = field(repr=False, compare=False)
    library: str = ""
    cause: Cast | None = field(default=None, repr=False, compare=False)
    asked_for: Cast | None = field(default=None, repr=False, compare=False)
    hides: tuple[HiddenPromotion, ...] = field(default=(), repr=False, compare=False)
    extra_bytes: int | None = field(default=None, repr=False, compare=False)
    narrow_error: ErrorChange | None = field(default=None, repr=False, compare=False)

    @property
    def bytes(self) -> int:
        """Bytes read and written by one run."""
        return math.prod(self.shape) * (self.source.itemsize + self.target.itemsize)

    @property
    def total_bytes(self) -> int:
        """Bytes of all runs; an unknown number of runs counts as one."""
        return self.bytes * (1 if self.times is None else self.times)

    @property
    def converts(self) -> bool:
        """Whether a bool or an integer becomes a number of a higher category, which needs no fix as a rule."""
        return converts(self.source, self.target)

    @property
    def may_be_promotion(self) -> bool:
        """Whether the class is unknown, although the operands explain the cast."""
        return self.kind == "unknown" and self.decision is not None and not self.converts

    @property
    def widening(self) -> bool:
        """Whether the target dtype has more bits."""
        return as_format(self.target).bits > as_format(self.source).bits

    @property
    def lossy(self) -> bool:
        """Whether the target dtype cannot represent every value of the source dtype."""
        return OperandCast(self.source, self.target).lossy

    @property
    def function(self) -> str:
        """The qualified name of the user's function; empty if no user code led there."""
        return self.path[-1][0].function if self.path else ""

    @property
    def category(self) -> str:
        """The class, and the name of the library if one casts, such as `"library of flax"`."""
        return f"{self.kind} of {self.library}" if self.library else self.kind

    @property
    def place(self) -> Hashable:
        """What casts of one expression of the user have in common, to compare them."""
        return self.path[-1][0] if self.path else (self.file, self.line, self.expression)

    def to_dict(self) -> dict[str, Any]:
        """The cast as plain data for JSON."""
        return {
            "from": str(self.source),
            "to": str(self.target),
            "shape": [plain(length) for length in self.shape],
            "weak": self.weak,
            "bytes": plain(self.bytes),
            "times": None if self.times is None else plain(self.times),
            "class": self.kind,
            "reason": self.reason,
            "file": self.file,
            "line": self.line,
            "expression": self.expression,
            "path": [
                {"file": at.file, "line": at.line, "function": at.function, "expression": text}
                for at, text in self.path
            ],
            "operands": list(self.operands),
            "scope": self.scope,
            "operation": self.operation,
            "fix": self.fix,
            "library": self.library,
            "hides": [each.to_dict() for each in self.hides],
        }


def converts(source: DType, target: DType) -> bool:
    """Whether a cast makes a number of a higher category of a bool or an integer.

    Args:
        source: the dtype before.
        target: the dtype after.

    >>> from supremum.formats import as_format
    >>> dtypes = [
    ...     as_format(name).dtype for name in ("bool", "int32", "bfloat16", "float32")
    ... ]
    >>> [[converts(source, target) for target in dtypes] for source in dtypes[:3]]
    [[False, True, True, True], [False, False, True, True], [False, False, False, False]]
    """
    before, after = as_format(source), as_format(target)
    return not before.is_inexact and CATEGORIES.index(after.category) > CATEGORIES.index(before.category)
