"""What an operation does to the digits, in words, and which operations to look at first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from supremum.formats import DType, as_format
from supremum.jaxprs import Step, aval_of
from supremum.numerics.attributing import Found
from supremum.numerics.dataflow import Dataflow
from supremum.numerics.error_tallies import ADDITIONS, Fact, Share
from supremum.numerics.widening import KERNELS, component, is_floating

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
class Digits:
    """What an operation does to the digits.

    Args:
        effect: the effect.
        relative_in: the largest relative error of the operands.
        relative_out: the relative error of the result.
        blame: how much the operation is to blame: its own errors, or those that it amplifies, with the weight of the
            effect.
        dtype: the dtype of the result.
    """

    effect: Effect
    relative_in: float
    relative_out: float
    blame: float
    dtype: DType


def relative_errors(found: Found) -> dict[int, float]:
    """The relative error of the results of each step that has facts."""
    errors: dict[int, float] = {}
    with np.errstate(all="ignore"):
        for number, facts in found.facts.items():
            if facts[Fact.REFERENCE_SQUARED] > 0:
                errors[number] = float(np.sqrt(facts[Fact.ERROR_SQUARED] / facts[Fact.REFERENCE_SQUARED]))
            elif facts[Fact.ERROR_SQUARED] > 0:
                errors[number] = math.inf
    return errors


def digits_of(step: Step, found: Found, errors: Mapping[int, float], flow: Dataflow) -> Digits:
    """Tell what a step does to the digits.

    Args:
        step: the step.
        found: what a run found.
        errors: the relative errors of the results of steps.
        flow: the makers of the operands.
    """
    facts, shares = found.facts[step.number], found.shares[step.number]
    coming, going = flow.relative_error(step, errors), errors.get(step.number, 0.0)
    effect = _effect(step, facts, shares, coming, going, flow)
    own, through = abs(float(shares[Share.SIGNED])), abs(float(shares[Share.THROUGH]))
    amplifies = effect in (Effect.CANCELLATION, Effect.AMPLIFICATION)
    if amplifies:  # errors of the operands may cancel each other by chance
        fed = (found.shares[number][Share.SIGNED] for number in flow.feeding(step) if number in found.shares)
        own = max(own, through, *map(abs, map(float, fed)))
    blame = own * _WEIGHTS.get(effect, 1.0)
    if effect is Effect.OVERFLOW and not math.isfinite(found.measured.error):
        blame = math.inf
    dtype = next(aval_of(var).dtype for var in step.equation.outvars if is_floating(aval_of(var)))
    return Digits(effect, coming, going, blame, component(dtype))


def _effect(step: Step, facts: np.ndarray, shares: np.ndarray, coming: float, going: float, flow: Dataflow) -> Effect:
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
    grows = coming > 0 and going >= _AMPLIFIES * coming
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


def in_words(step: Step, digits: Digits, found: Found) -> str:
    """What a step does to the digits, as the rest of a sentence whose subject is its expression."""
    errors = f"{power(digits.relative_in)} relative error in, {power(digits.relative_out)} out"
    match digits.effect:
        case Effect.CANCELLATION:
            what = "a sum of terms that cancel" if step.name in _SUMS else "a difference of nearly equal numbers"
            return f"{what}: {errors}"
        case Effect.AMPLIFICATION:
            return f"{_NAMED.get(step.name, 'an operation that amplifies the errors of its operands')}: {errors}"
        case Effect.LOOP:
            return "a loop without a derivative, whose results differ by what was measured"
        case Effect.KERNEL:
            return "a kernel that runs in the dtypes that it declares, also in the reference"
        case _:
            return _counts_in_words(digits, found.facts[step.number])


def _counts_in_words(digits: Digits, facts: np.ndarray) -> str:
    """What a step does to the digits of how many values, or in how many runs."""
    dtype, runs = digits.dtype, int(facts[Fact.RUNS])
    count, total = int(facts[Fact.ABSORBED]), int(facts[Fact.VALUES])
    match digits.effect:
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
