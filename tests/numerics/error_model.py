"""How well the first-order error model predicts the errors of random programs.

The errors of the operations are only added up forwards here, which gives the same sum as the shares of the backward
pass; a test compares them.
"""

import warnings
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

from numerics.programs import program
from supremum.formats import as_format
from supremum.jaxprs import interpret, plan_of, traced_call
from supremum.mixed_precision import as_settings, autocasted
from supremum.numerics.error_flow import ErrorFlow
from supremum.numerics.error_tallies import Fact
from supremum.numerics.paired_values import Pair, full
from supremum.numerics.plain_runs import PlainRun, in_float64
from supremum.numerics.widening import FLOAT64, in_dtype, is_floating

SUMMARIES = "scalar", "mean", "norm"
NARROW = as_format("bfloat16")
UNITS = 8
"""Errors of at most so many units in the last place of the narrow format are not judged."""


def plan_of_seed(seed, policy):
    """The plan of a random program: as it is declared, in bfloat16, or in float32 under a policy."""
    made = program(seed, "bfloat16" if policy == "declared" else "float32")
    call = traced_call(made.function, made.arguments, {}, "attribute")
    narrow = call.program if policy == "declared" else autocasted(call.program, as_settings(policy, None, True))
    return plan_of(narrow), call


def _only_jumps(step, operands, narrow, exact, own, jumps, results):
    found = [jnp.any(jump & (each != 0)) for jump, each in zip(jumps or (), own, strict=False) if jump is not None]
    return {step.number: jnp.zeros(len(Fact)).at[Fact.JUMPS].set(sum(found, 0.0))}


def results_of(plan, arrays):
    """The results of a plan, operation by operation without compiling the program, and which of its steps jumped."""
    with (
        patch("supremum.numerics.error_tallies.facts_of", _only_jumps),
        warnings.catch_warnings(),
        jax.enable_x64(True),
        jax.disable_jit(),
    ):
        warnings.simplefilter("ignore")
        pairs, facts = interpret(plan, [Pair(each) for each in arrays], ErrorFlow({}))
        pairs = [full(each) for each in pairs if is_floating(each.narrow)]
        found = [tuple(np.asarray(part, "float64") for part in (p.narrow, p.wide, p.error)) for p in pairs]
    return found, {number: np.asarray(each) for number, each in facts.items()}


def errors_of(plan, arrays):
    """The narrow and the wide results of a plan, with zero as the prediction, to see whether their errors are judged.

    This takes a second where the prediction takes up to a minute, and most programs have no error to judge.
    """

    def both(operands):
        wide = [in_dtype(each, FLOAT64) if is_floating(each) else each for each in operands]
        narrow, _ = interpret(plan, operands, PlainRun(lambda step: None))
        exact, _ = interpret(plan, wide, PlainRun(in_float64))
        pairs = zip(narrow, exact, strict=True)
        return [(in_dtype(one, FLOAT64), other) for one, other in pairs if is_floating(one)]

    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter("ignore")
        pairs = jax.jit(both)(arrays)
    return [(np.asarray(narrow), np.asarray(wide), np.zeros(np.shape(wide))) for narrow, wide in pairs]


def summaries(results):
    """The measured, the predicted and the reference value of the first number, the mean and the norm of results."""
    narrow, wide, error = (np.concatenate([np.ravel(each) for each in parts]) for parts in zip(*results, strict=True))
    gap, size = narrow - wide, np.linalg.norm(wide)
    length = np.linalg.norm(gap)
    return {
        "scalar": (gap[0], error[0], wide[0]),
        "mean": (gap.mean(), error.mean(), wide.mean()),
        "norm": (length / size, gap @ error / (length * size), 1.0),
    }


def judged(seed, policy):
    """For each summary: None if the error is not judged, else the ratio of the predicted and the measured error.

    Returns:
        The summaries, and whether errors met a loop or a decision that has no derivative.
    """
    plan, call = plan_of_seed(seed, policy)
    if not any(each is not None for each in ratios_of(errors_of(plan, call.arrays)).values()):
        return dict.fromkeys(SUMMARIES), False
    results, facts = results_of(plan, call.arrays)
    return ratios_of(results), any(each[Fact.JUMPS] for each in facts.values())


def ratios_of(results):
    """For each summary of results, the ratio of the predicted and the measured error, or None if it is not judged."""
    found = {}
    with np.errstate(all="ignore"):
        for name, (measured, predicted, size) in summaries(results).items():
            unit = 2.0 ** (np.floor(np.log2(abs(size))) - NARROW.mantissa)
            is_judged = np.isfinite(measured) and np.isfinite(size) and abs(measured) > UNITS * unit
            found[name] = float(predicted / measured) if is_judged else None
    return found


def is_close(ratio):
    """Whether a prediction is within a factor of two."""
    return 0.5 <= ratio <= 2
