"""What JAX itself refuses under strict promotion, in our words."""

from __future__ import annotations

import re
from types import TracebackType

import jax

from supremum.promotion import explain
from supremum.tracing.expressions import Sources
from supremum.tracing.fixes import fix_of
from supremum.tracing.owners import BETWEEN, USER
from supremum.tracing.positions import Position, position_of

_DTYPES = re.compile(r"'(\w+)'")


def promotion_in(error: BaseException) -> str | None:
    """The message about a promotion that JAX refused; None for any other error.

    Args:
        error: what was raised, with its traceback.
    """
    if not isinstance(error, jax.dtypes.TypePromotionError):
        return None
    positions = _positions(error.__traceback__)
    sources = Sources()
    lines = ["a promotion that is forbidden here:"]
    if not positions:
        return f"{lines[0]} {error}"
    mine = [position for position in positions if position.owner == USER] or positions
    lines.append(f"  {mine[-1]}: {sources.text(mine[-1])}")
    if positions[-1] not in mine:
        lines.append(f"    in {positions[-1].owner}, at {positions[-1]}: {sources.text(positions[-1])}")
    lines += [f"    called from {at} ({at.function}): {sources.text(at)}" for at in reversed(mine[:-1])]
    # JAX names the dtypes in no order: which operand has which is not known.
    dtypes = sorted(_DTYPES.findall(str(error).partition(")")[0]))
    lines.append(f"    operands: {', '.join(dtypes)}" if dtypes else f"    {error}")
    decision = explain(*dtypes, rules="jax") if dtypes else None
    if decision:
        promoted = next((cast.source for cast in decision.casts if cast.changes and cast.source is not None), None)
        if promoted is not None:
            lines.append(f"    fix: {fix_of(decision, (), promoted, decision.dtype)}")
    return "\n".join(lines)


def _positions(traceback: TracebackType | None) -> list[Position]:
    """The calls of users and libraries that led to an error, outermost first."""
    found: list[Position] = []
    while traceback is not None:
        position = position_of(traceback.tb_frame.f_code, traceback.tb_lasti)
        if position.owner != BETWEEN:
            found.append(position)
        traceback = traceback.tb_next
    return found
