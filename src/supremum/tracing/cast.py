"""One cast of a program: what it converts, how often, and who caused it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from supremum import decisions
from supremum.decisions import Decision
from supremum.formats import DType, as_format
from supremum.jaxprs import Position, plain
from supremum.tracing.classify import CastClass


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion of a value from one dtype to another.

    Args:
        source: the dtype before.
        target: the dtype after.
        shape: the shape of the value; expressions for sizes that are symbolic.
        weak: whether the value before had no dtype of its own, as numbers of Python have none.
        times: how often it runs when the program runs once: 0 where nothing depends on it, for JAX drops it then; None
            where only the run can say.
        kind: `"promotion"`, where the user's expression mixed dtypes; `"explicit"`, where it asks for the cast;
            `"library"`, inside JAX or an installed package; `"autocast"`, put there by `autocast`; `"unknown"`.
        reason: why it is of that class.
        file: the file of the user's expression; a library's where no line of the user's led there, or empty.
        line: its line.
        expression: what is written there, on one line.
        path: the user's calls that led there, outermost first, each with its text; the expression itself is the last.
        operands: what met in the expression, with its dtype and shape.
        scope: the `jax.named_scope` blocks around it, such as `"encoder/norm"`.
        operation: the primitive: a cast of its own, or a product that takes operands of two dtypes.
        fix: for a promotion, what to write instead.
        decision: for a promotion, what the rules say about those operands; None where they do not say it.
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
        size = 1
        for length in self.shape:
            size *= length
        return size * (self.source.itemsize + self.target.itemsize)

    @property
    def total_bytes(self) -> int:
        """Bytes of all runs; of one where only the run can say how many there are."""
        return self.bytes * (1 if self.times is None else self.times)

    @property
    def widening(self) -> bool:
        """Whether the dtype after has more bits."""
        return as_format(self.target).bits > as_format(self.source).bits

    @property
    def lossy(self) -> bool:
        """Whether some value of the dtype before is none of the dtype after."""
        return decisions.OperandCast(self.source, self.target).lossy

    @property
    def where(self) -> str:
        """The user's line, as `file:line`; `"-"` where there is none."""
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
