"""The predicted errors of random programs."""

import jax.numpy as jnp
import pytest

from numerics.error_model import SUMMARIES, is_close, judged
from numerics.programs import program
from supremum import numerics


def mean(results):
    return jnp.mean(jnp.concatenate([jnp.ravel(each) for each in results]))


@pytest.mark.slow
def test_the_shares_of_the_backward_pass_add_up_to_the_prediction():
    made = program(25, "bfloat16")
    found = numerics.attribute(made.function, "declared", output=mean)(*made.arguments)
    assert found.predicted / found.error == pytest.approx(judged(25, "declared")[0]["mean"], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [28, 62])
def test_predictions_are_within_a_factor_of_two(seed):
    ratios, _ = judged(seed, "declared")
    assert ratios["mean"] is not None
    assert all(is_close(ratio) for ratio in ratios.values() if ratio is not None)


def test_programs_without_an_error_are_not_judged():
    assert judged(0, "declared") == (dict.fromkeys(SUMMARIES), False)
