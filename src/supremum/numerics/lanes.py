"""Two copies of a program side by side: each value is computed once in each lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from jax.extend.core import Literal

from supremum.jaxprs import Instrument, Step

Lanes: TypeAlias = tuple[Any, Any]
"""A value of the program in both lanes."""


class TwoLanes(Instrument[Lanes]):
    """Runs a program in two lanes. The first decides which branches run, and how often loops do."""

    def literal(self, literal: Literal) -> Lanes:
        """The same number in both lanes."""
        return literal.val, literal.val

    def decider(self, value: Lanes) -> Any:
        """The value of the first lane."""
        return value[0]

    def compute(self, step: Step, operands: Sequence[Lanes]) -> list[Lanes]:
        """Compute a step in both lanes."""
        first, second = (step.evaluate([value[lane] for value in operands]) for lane in (0, 1))
        return list(zip(first, second, strict=True))
