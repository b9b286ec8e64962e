"""A cache of result dtypes for two arrays, by dtypes and weakness.

Answers that depend on more, such as PyTorch's if one of the arrays may be 0-d, are not stored here; every rule set
caches its verdicts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from supremum.formats import DType
from supremum.operands import Operand, as_operand
from supremum.rules.names import FOLLOWING, question
from supremum.rules.registry import memory_of
from supremum.rules.rule_set import RuleSet
from supremum.rules.scope import get_rules


class Following:
    """An answer that depends on JAX's flags.

    Args:
        ask: reads the flags.
        answers: the answer for each value that `ask` returns; None where the rules refuse.
    """

    __slots__ = ("answers", "ask")

    def __init__(self, ask: Callable[[], Hashable], answers: Mapping[Hashable, DType | None]) -> None:
        self.ask = ask
        self.answers = answers

    def __call__(self) -> DType:
        """The answer under the current flags.

        Raises:
            KeyError: if the rules refuse; the caller must ask them for the reason.
        """
        found = self.answers[self.ask()]
        if found is None:
            raise KeyError
        return found


def remember(rules: str | RuleSet, a: Any, b: Any) -> None:
    """Store the answer for two NumPy arrays by their dtypes, or for two JAX arrays by their dtypes and weak flags.

    Other operands are skipped.

    Args:
        rules: the rule set or name that the caller asked for.
        a: the first operand, of any type.
        b: the second operand.
    """
    key: tuple[Any, ...]
    kind = cast("type[object]", type(a))
    if kind is not type(b):
        return
    in_jax = kind is not np.ndarray
    if not in_jax:
        key = (a.dtype, b.dtype)
    elif _is_jax_array(a):
        key = (a.aval.dtype, b.aval.dtype, a.aval.weak_type, b.aval.weak_type)
    else:
        return
    answer: Any
    if isinstance(rules, str) and rules in FOLLOWING and in_jax:
        answer = _following({name: _answer(get_rules(name), as_operand(a), as_operand(b)) for name in FOLLOWING[rules]})
    else:
        answer = _answer(get_rules(rules, in_jax=in_jax), as_operand(a), as_operand(b))
    if answer is not None:
        memory_of(rules).pairs[key] = answer


def _following(answers: Mapping[str, DType | None]) -> Following | DType | None:
    """The answer for a name that may select a different rule set at each call, from the answers of all of them."""
    asked = question(answers)
    if asked is None:
        return next(iter(answers.values()))
    return Following(asked.ask, {asked.told(name): answer for name, answer in answers.items()})


def _answer(rules: RuleSet, a: Operand, b: Operand) -> DType | None:
    """The result dtype, or None if it depends on which of the two is 0-d."""
    shapes = ((1, 1), (1, 0), (0, 1), (0, 0))
    decisions = [
        rules.decide(None, (replace(a, ndim=left, held=None), replace(b, ndim=right, held=None)))
        for left, right in shapes
    ]
    dtypes = {decision.dtype if decision else None for decision in decisions}
    return dtypes.pop() if len(dtypes) == 1 else None


def _is_jax_array(value: Any) -> bool:
    """Whether a value is a JAX array and not a tracer; this does not import JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
