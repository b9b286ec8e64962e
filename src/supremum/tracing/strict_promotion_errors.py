"""Messages for the promotions that JAX refuses under strict promotion."""

from __future__ import annotations

from collections import ChainMap
from types import FrameType, TracebackType
from typing import Any

import jax

from supremum.decisions import Decision
from supremum.errors import ArgumentError, OperandError, UnknownDtypeError
from supremum.jaxprs import BETWEEN, UNRESOLVED, USER, Position, Sources, position_of, value_of
from supremum.operands import as_operand
from supremum.rules import get_rules
from supremum.tracing.classify import fix_of
from supremum.tracing.source_intent import operand_nodes, source_intent


def promotion_in(error: BaseException) -> str | None:
    """The message for a promotion that JAX refused; None for any other error.

    Args:
        error: the error, with its traceback.
    """
    if not isinstance(error, jax.dtypes.TypePromotionError):
        return None
    frames = _frames(error.__traceback__)
    positions = [position for position, _ in frames]
    sources = Sources()
    lines = ["a promotion that is forbidden here:"]
    if not positions:
        return f"{lines[0]} {error}"
    of_user = [position for position in positions if position.owner == USER] or positions
    lines.append(f"  {of_user[-1]}: {sources.text(of_user[-1])}")
    if positions[-1] not in of_user:
        lines.append(f"    in {positions[-1].owner}, at {positions[-1]}: {sources.text(positions[-1])}")
    lines += [f"    called from {at} ({at.function}): {sources.text(at)}" for at in reversed(of_user[:-1])]
    texts, decision = _decision(sources, *frames[-1])
    if decision is None:
        return "\n".join([*lines, f"    {error}"])
    shown = [
        text if operand.value is not None and text == str(operand.value) else f"{text}: {operand}"
        for text, operand in zip(texts, decision.operands, strict=True)
    ]
    lines.append(f"    operands: {', '.join(shown)}")
    for cast in decision.casts:
        if cast.changes and cast.source is not None:
            lines.append(f"    fix: {fix_of(decision, texts, cast.source, cast.target)}")
            break
    return "\n".join(lines)


def _decision(sources: Sources, position: Position, frame: FrameType) -> tuple[tuple[str, ...], Decision | None]:
    """The source texts of the operands, and what JAX decides about them without strict promotion.

    Args:
        sources: the source files.
        position: the position of the expression.
        frame: the frame that raised there.

    Returns:
        The texts and the decision. There is no decision if the operands cannot be read or were not what JAX refused.
    """
    node, source = sources.node(position), sources.source(position.file)
    operation = source_intent(node, source).operation
    nodes = operand_nodes(node)[1 if operation == "where" else 0 :]  # the condition is not promoted
    names: Any = ChainMap(frame.f_locals, frame.f_globals, frame.f_builtins)
    values = [value_of(each, names, in_objects=True) for each in nodes]
    if not nodes or any(value is UNRESOLVED for value in values):
        return (), None
    try:
        operands = tuple(map(as_operand, values))
        refused = get_rules("jax-strict").decide(operation, operands)
        decision = get_rules("jax").decide(operation, operands)
    except (OperandError, UnknownDtypeError, ArgumentError):
        return (), None
    return tuple(map(source.text, nodes)), decision if decision and not refused else None


def _frames(traceback: TracebackType | None) -> list[tuple[Position, FrameType]]:
    """The calls in users' and libraries' code that led to an error, outermost first."""
    found: list[tuple[Position, FrameType]] = []
    while traceback is not None:
        position = position_of(traceback.tb_frame.f_code, traceback.tb_lasti)
        if position.owner != BETWEEN:
            found.append((position, traceback.tb_frame))
        traceback = traceback.tb_next
    return found
