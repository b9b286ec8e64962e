"""Answers for two arrays, remembered by as little as they depend on: dtypes, weakness, and whether each is 0-d."""

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
"""Per rules asked for, answers by both dtypes and, for JAX arrays, both weak flags; where it matters whether they are
0-d, by that as well."""
JAX_ARRAYS: set[type] = set()
"""The types of JAX's arrays, tracers left out, as they are met."""


def remember(rules: str | RuleSet, a: Any, b: Any) -> None:
    """Keep the answer for two arrays; what are not two NumPy or two JAX arrays is passed over.

    Under the name `"jax"`, which may mean another rule set at the next call, an answer is kept only if both agree.

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
        JAX_ARRAYS.add(kind)
        key = (a.aval.dtype, b.aval.dtype, a.aval.weak_type, b.aval.weak_type)
    else:
        return
    names = ("jax-x64", "jax-x32") if rules == FOLLOWS_JAX else (rules,)
    answers = {_answers(get_rules(name), as_operand(a), as_operand(b)) for name in names}
    if len(answers) > 1:
        return
    known = PAIRS.setdefault(rules, {})
    by_shape = dict(zip(_SHAPES, answers.pop(), strict=True))
    if len(set(by_shape.values())) == 1 and (answer := by_shape[False, False]) is not None:
        known[key] = answer
        return
    known |= {(*key, *shape): answer for shape, answer in by_shape.items() if answer is not None}


_SHAPES = ((False, False), (False, True), (True, False), (True, True))
"""Whether the first and the second array are 0-d."""


def _answers(rules: RuleSet, a: Operand, b: Operand) -> tuple[DType | None, ...]:
    decisions = [
        rules.decide(None, (replace(a, ndim=int(not left)), replace(b, ndim=int(not right)))) for left, right in _SHAPES
    ]
    return tuple(decision.dtype if decision else None for decision in decisions)


def _is_jax_array(value: Any) -> bool:
    """Whether it is one of JAX's arrays and not a tracer; JAX is not imported to ask."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
