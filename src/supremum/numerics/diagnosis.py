"""What an operation does to the digits, in words, and which operations to look at first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from supremum.formats import DType, as_format
from supremum.jaxprs import Plan, Step
from supremum.numerics.attributing import ErrorShares
from supremum.numerics.dataflow import Dataflow
from supremum.numerics.error_tallies import ADDITIONS, Fact, Share, has_row
from supremum.numerics.widening import KERNELS, component, floating_avals

_AMPLIFIES = 8.0
"""From this factor on, an operation is blamed for the errors of its operands too: three bits are lost."""
_LONG = 16
"""From so many additions on, a sum in a loop is long."""
_SUMS = frozenset({"cumsum", "dot_general", "reduce_sum", "reduce_window_sum", "scatter-add"})


class Effect(StrEnum):
    """What an operation does to the digits."""

    OVERFLOW = "overflow"
    ABSORBED = "absorbed addition"
    CANCELLATION = "cancellation"
    AMPLIFICATION = "amplification"
    LONG_SUM = "long sum"
    FLUSHED = "flushed to zero"
    DECISION = "decision"
    LOOP = "loop"
    KERNEL = "kernel"
    ROUNDING = "rounding"


AMPLIFYING = frozenset({Effect.CANCELLATION, Effect.AMPLIFICATION})
"""The effects of operations that make errors of their operands larger."""
_WEIGHTS: Mapping[Effect, float] = {
    Effect.OVERFLOW: 8.0,
    Effect.ABSORBED: 8.0,
    Effect.LONG_SUM: 8.0,
    Effect.FLUSHED: 4.0,
    Effect.CANCELLATION: 4.0,
    Effect.AMPLIFICATION: 2.0,
}
"""How much more an effect counts than plain rounding, which comes from the dtype rather than from the line."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a step does to the digits.

    Args:
        step: the step.
        effect: the effect.
        relative_in: the largest relative error of the operands.
        relative_out: the relative error of the result.
        blame: how much the operation is to blame: its own errors, or those that it amplifies, with the weight of the
            effect.
        dtype: the dtype of the result.
    """

    step: Step
    effect: Effect
    relative_in: float
    relative_out: float
    blame: float
    dtype: DType


def diagnose(plan: Plan, run: ErrorShares, flow: Dataflow) -> list[Diagnosis]:
    """Diagnose the steps that have errors of their own, those that are most to blame first.

    Args:
        plan: the program.
        run: its error, and the shares in it.
        flow: the makers of its values.
    """
    errors = _relative_errors(run.facts)
    steps = [step for step in plan.every_step() if has_row(step) and step.number in run.facts]
    # The sort is stable: the first of several overflows in a row comes first.
    return sorted((_diagnosis(step, run, errors, flow) for step in steps), key=lambda each: each.blame, reverse=True)


def _relative_errors(facts: Mapping[int, np.ndarray]) -> dict[int, float]:
    """The relative error of the results of each step that has facts."""
    errors: dict[int, float] = {}
    with np.errstate(all="ignore"):
        for number, each in facts.items():
            if each[Fact.REFERENCE_SQUARED] > 0:
                errors[number] = float(np.sqrt(each[Fact.ERROR_SQUARED] / each[Fact.REFERENCE_SQUARED]))
            elif each[Fact.ERROR_SQUARED] > 0:
                errors[number] = math.inf
    return errors


def _diagnosis(step: Step, run: ErrorShares, errors: Mapping[int, float], flow: Dataflow) -> Diagnosis:
    facts, shares = run.facts[step.number], run.shares[step.number]
    relative_in, relative_out = flow.relative_error(step, errors), errors.get(step.number, 0.0)
    effect = _effect(step, facts, shares, relative_in, relative_out, flow)
    own, through = abs(float(shares[Share.SIGNED])), abs(float(shares[Share.THROUGH]))
    if effect in AMPLIFYING:  # errors of the operands may cancel each other by chance
        fed = (run.shares[number][Share.SIGNED] for number in flow.feeding(step) if number in run.shares)
        own = max(own, through, *map(abs, map(float, fed)))
    blame = own * _WEIGHTS.get(effect, 1.0)
    if effect is Effect.OVERFLOW and not math.isfinite(run.error):
        blame = math.inf
    dtype = component(floating_avals(step.equation.outvars)[0].dtype)
    return Diagnosis(step, effect, relative_in, relative_out, blame, dtype)


def _effect(
    step: Step, facts: np.ndarray, shares: np.ndarray, relative_in: float, relative_out: float, flow: Dataflow
) -> Effect:
    if facts[Fact.OVERFLOWS]:
        return Effect.OVERFLOW
    if step.name == "while":
        return Effect.LOOP
    if step.name in KERNELS:
        return Effect.KERNEL
    if facts[Fact.JUMPS]:
        return Effect.DECISION
    is_looped = step.name in ADDITIONS and facts[Fact.RUNS] >= _LONG and flow.accumulates(step)
    absorbs = shares[Share.ABSORBED] > 0.5 * shares[Share.ABSOLUTE] > 0
    grows = relative_in > 0 and relative_out >= _AMPLIFIES * relative_in
    if is_looped and not grows:
        return Effect.LONG_SUM
    if absorbs:
        return Effect.ABSORBED
    if grows:
        return Effect.CANCELLATION if step.name in ADDITIONS or step.name in _SUMS else Effect.AMPLIFICATION
    if facts[Fact.FLUSHED] and facts[Fact.FLUSHED] >= 0.5 * facts[Fact.VALUES]:
        return Effect.FLUSHED
    return Effect.ROUNDING


def power(value: float) -> str:
    """A magnitude as a power of two, such as `"2^-8"`."""
    if value == 0:
        return "0"
    return f"2^{round(math.log2(value))}" if math.isfinite(value) else "infinite"


_NAMED = {"exp": "an exponential of large numbers", "exp2": "an exponential of large numbers",
          "log": "a logarithm of numbers near one", "sin": "a sine of large numbers",
          "cos": "a cosine of large numbers", "tan": "a tangent near its poles", "pow": "a high power"}  # fmt: skip


def in_words(diagnosis: Diagnosis, facts: np.ndarray) -> str:
    """A diagnosis as the rest of a sentence whose subject is the expression of the step."""
    errors = f"{power(diagnosis.relative_in)} relative error in, {power(diagnosis.relative_out)} out"
    name = diagnosis.step.name
    match diagnosis.effect:
        case Effect.CANCELLATION:
            what = "a sum of terms that cancel" if name in _SUMS else "a difference of nearly equal numbers"
            return f"{what}: {errors}"
        case Effect.AMPLIFICATION:
            return f"{_NAMED.get(name, 'an operation that amplifies the errors of its operands')}: {errors}"
        case Effect.LOOP:
            return "a loop without a derivative, whose results differ by what was measured"
        case Effect.KERNEL:
            return "a kernel that runs in the dtypes that it declares, also in the reference"
        case _:
            return _counts_in_words(diagnosis, facts)


def _counts_in_words(diagnosis: Diagnosis, facts: np.ndarray) -> str:
    """What a step does to the digits of how many values, or in how many runs."""
    dtype, runs = diagnosis.dtype, int(facts[Fact.RUNS])
    count, total = int(facts[Fact.ABSORBED]), int(facts[Fact.VALUES])
    match diagnosis.effect:
        case Effect.OVERFLOW:
            most = f"{as_format(dtype).max:.3g}, the most that {dtype} holds"
            return f"an overflow: {int(facts[Fact.OVERFLOWS]):,} of {total:,} values are beyond {most}"
        case Effect.ABSORBED:
            lost = f"{count:,} of {total:,} lose half of it or more in {dtype}"
            return f"an addition that absorbs the smaller number: {lost}"
        case Effect.LONG_SUM:
            lost = f", {count:,} of which lose half of the smaller number or more" if count else ""
            return f"a long sum: {runs:,} additions one after the other in {dtype}{lost}"
        case Effect.FLUSHED:
            return f"values too small for {dtype}: {int(facts[Fact.FLUSHED]):,} of {total:,} become zero"
        case Effect.DECISION:
            return f"a decision that falls differently: {int(facts[Fact.JUMPS]):,} of {total:,} values jump"
        case _:
            times = f", {runs:,} times" if runs > 1 else ""
            return f"a rounding to {dtype}{times}"
