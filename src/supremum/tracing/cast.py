"""One cast of a program: what it converts, how often it runs, and what caused it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from supremum import decisions
from supremum.decisions import Decision
from supremum.formats import DType, as_format
from supremum.jaxprs import Position, plain

CastClass: TypeAlias = Literal["promotion", "explicit", "library", "autocast", "unknown"]
CLASSES: tuple[CastClass, ...] = get_args(CastClass)
"""The user's expression mixes dtypes; the user asks for the cast; JAX or a library casts; autocast inserted it; none of
these is known."""


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion of a value from one dtype to another.

    Args:
        source: the dtype before.
        target: the dtype after.
        shape: the shape of the value; symbolic sizes are expressions.
        weak: whether the value before was weak, like a Python number.
        times: how often the cast runs when the program runs once: 0 if nothing depends on it (JAX then drops it); None
            if only the run can tell.
        kind: `"promotion"` if the user's expression mixes dtypes, `"explicit"` if it asks for the cast, `"library"`
            inside JAX or an installed package, `"autocast"` if `autocast` inserted it, or `"unknown"`.
        reason: why the cast is in that class.
        file: the file of the user's expression. If no user code led there, a library's file, or empty.
        line: the line in that file.
        expression: the source text, on one line.
        path: the user's calls that led to the cast, outermost first, each with its text. The last one is the
            expression.
        operands: the operands of the expression, with dtype and shape.
        scope: the enclosing `jax.named_scope` blocks, such as `"encoder/norm"`.
        operation: the primitive: `convert_element_type`, or one that takes operands of two dtypes and casts them.
        fix: for a promotion, what to write instead.
        decision: for a promotion, what the rules decide about the operands; None if they do not explain the cast.
    """

    source: DType
    target: DType
    shape: tuple[int, ...]
    weak: bool
    times: int | None
    kind: CastClass
    reason: str
    file: str
    line: int
    expression: str
    path: tuple[tuple[Position, str], ...]
    operands: tuple[str, ...]
    scope: str
    operation: str
    fix: str
    decision: Decision | None = field(repr=False, compare=False)

    @property
    def bytes(self) -> int:
        """Bytes read and written by one run."""
        return math.prod(self.shape) * (self.source.itemsize + self.target.itemsize)

    @property
    def total_bytes(self) -> int:
        """Bytes of all runs; an unknown number of runs counts as one."""
        return self.bytes * (1 if self.times is None else self.times)

    @property
    def widening(self) -> bool:
        """Whether the target dtype has more bits."""
        return as_format(self.target).bits > as_format(self.source).bits

    @property
    def lossy(self) -> bool:
        """Whether the target dtype cannot represent every value of the source dtype."""
        return decisions.OperandCast(self.source, self.target).lossy

    @property
    def where(self) -> str:
        """The user's line, as `file:line`; `"-"` if there is none."""
        return f"{self.file}:{self.line}" if self.file else "-"

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
        }
