"""Answers for two arrays, remembered by as little as they depend on: dtypes and weakness.

Answers that depend on more, such as PyTorch's for arrays of which one may be 0-d, are not kept here; the verdicts that
every rule set keeps for itself are the next best thing.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, cast

import numpy as np

from supremum.formats import DType
from supremum.operands import Operand, as_operand
from supremum.rules.registry import FOLLOWS_JAX
from supremum.rules.rule_set import RuleSet
from supremum.rules.scope import get_rules

PAIRS: dict[str | RuleSet, dict[tuple[Any, ...], DType]] = {}
"""Per rules asked for, answers by both dtypes (NumPy arrays), or by both dtypes and both weak flags (JAX arrays)."""


def remember(rules: str | RuleSet, a: Any, b: Any) -> None:
    """Keep the answer for two arrays; what are not two NumPy or two JAX arrays is passed over.

    Under the name `"jax"`, which may mean another rule set at the next call, an answer is kept only if all agree.

    Args:
        rules: what was asked for.
        a: the one operand, of any type.
        b: the other.
    """
    key: tuple[Any, ...]
    kind = cast("type[object]", type(a))
    if kind is not type(b):
        return
    if kind is np.ndarray:
        key = (a.dtype, b.dtype)
    elif _is_jax_array(a):
        key = (a.aval.dtype, b.aval.dtype, a.aval.weak_type, b.aval.weak_type)
    else:
        return
    names = ("jax-x64", "jax-x32", "jax-explicit-x64") if rules == FOLLOWS_JAX else (rules,)
    answers = {_answer(get_rules(name), as_operand(a), as_operand(b)) for name in names}
    if len(answers) > 1:
        return
    answer = answers.pop()
    if answer is not None:
        PAIRS.setdefault(rules, {})[key] = answer


def _answer(rules: RuleSet, a: Operand, b: Operand) -> DType | None:
    """The result dtype, if it is the same whichever of the two is 0-d."""
    shapes = ((1, 1), (1, 0), (0, 1), (0, 0))
    decisions = [
        rules.decide(None, (replace(a, ndim=left, held=None), replace(b, ndim=right, held=None)))
        for left, right in shapes
    ]
    dtypes = {decision.dtype if decision else None for decision in decisions}
    return dtypes.pop() if len(dtypes) == 1 else None


def _is_jax_array(value: Any) -> bool:
    """Whether it is one of JAX's arrays and not a tracer; JAX is not imported to ask."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
