"""What to write instead of an expression that mixes dtypes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from supremum.decisions import Decision
from supremum.formats import DType, as_format

# What a method can be called on as it stands.
_PLAIN = re.compile(r"[A-Za-z_][\w.]*(\([^()]*\)|\[[^\[\]]*\])*")


def fix_of(decision: Decision | None, texts: Sequence[str], source: DType, target: DType) -> str:
    """What to write so that nothing is promoted: the cast said out loud, or the others brought to the narrower dtype.

    Args:
        decision: what the rules say about the operands; None where they do not say it.
        texts: what is written for each of its operands; of another number where that is not known.
        source: the dtype that is promoted.
        target: the dtype it is promoted to.

    >>> from supremum import explain
    >>> decided = explain("bfloat16", "float32", rules="jax")
    >>> fix_of(decided, ("x", "w + 1"), *(operand.dtype for operand in decided.operands))
    "x.astype('float32') to compute in float32, or (w + 1).astype('bfloat16') to stay in bfloat16"
    """
    known = decision is not None and len(texts) == len(decision.operands)
    operands = () if decision is None else decision.operands
    source_intent = texts if known else ("",) * len(operands)
    pairs = list(zip(source_intent, operands, strict=True))
    loud = [_cast(text, source, target) for text, operand in pairs if operand.dtype == source]
    narrow = [
        _cast(text, operand.dtype, source)
        for text, operand in pairs
        if operand.dtype not in (None, source) and not operand.is_python_scalar
    ]
    # Nobody wants the fractions of the others cut off.
    if any(operand.category != as_format(source).category for operand in operands):
        narrow = []
    stay = f", or {' and '.join(narrow)} to stay in {source}" if narrow else ""
    return f"{' and '.join(loud) or _cast('', source, target)} to compute in {target}{stay}"


def _cast(text: str, source: DType | None, target: DType) -> str:
    if not text:
        return f".astype('{target}') on what is {source}"
    return f"{text if _PLAIN.fullmatch(text) else f'({text})'}.astype('{target}')"
