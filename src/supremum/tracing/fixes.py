"""What to write instead of an expression that mixes dtypes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from supremum.decisions import Decision
from supremum.formats import DType, as_format

# Expressions that need no parentheses before a method call.
_PLAIN = re.compile(r"[A-Za-z_][\w.]*(\([^()]*\)|\[[^\[\]]*\])*")


def fix_of(decision: Decision | None, texts: Sequence[str], source: DType, target: DType) -> str:
    """What to write instead of a promotion: an explicit cast, or casts of the other operands to the narrower dtype.

    Args:
        decision: what the rules decide about the operands; None if they do not explain the cast.
        texts: the source text of each operand; a different number of texts means that they are unknown.
        source: the dtype that is promoted.
        target: the dtype that it is promoted to.

    >>> from supremum import explain
    >>> decided = explain("bfloat16", "float32", rules="jax")
    >>> fix_of(decided, ("x", "w + 1"), *(operand.dtype for operand in decided.operands))
    "x.astype('float32') to compute in float32, or (w + 1).astype('bfloat16') to stay in bfloat16"
    """
    operands = () if decision is None else decision.operands
    pairs = list(zip(texts if len(texts) == len(operands) else [""] * len(operands), operands, strict=True))
    widened = [_cast(text, source, target) for text, operand in pairs if operand.dtype == source]
    narrow = [
        _cast(text, operand.dtype, source)
        for text, operand in pairs
        if operand.dtype not in (None, source) and not operand.is_python_scalar
    ]
    # A cast to another category would drop fractions.
    same_category = all(operand.category == as_format(source).category for operand in operands)
    stay = f", or {' and '.join(narrow)} to stay in {source}" if narrow and same_category else ""
    return f"{' and '.join(widened) or _cast('', source, target)} to compute in {target}{stay}"


def _cast(text: str, source: DType | None, target: DType) -> str:
    if not text:
        return f".astype('{target}') on the {source} operand"
    return f"{text if _PLAIN.fullmatch(text) else f'({text})'}.astype('{target}')"
