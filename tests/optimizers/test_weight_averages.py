"""`use_ema=True`: the average of the weights over the steps."""

import numpy as np
import pytest

from optimizers.problems import GRADIENTS, SCALE, START, assert_equal, leaves_of, pairs_of, values_of, variables_of
from supremum.optimizers import SGD, LossScaleOptimizer

AVERAGED = {"use_ema": True, "ema_momentum": 0.75}


def averages_of(optimizer):
    return {key: leaves_of(optimizer)[f"average/{key}"] for key in START}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
def test_the_average_follows_applied_steps_only(scaled):
    optimizer, variables = SGD(0.1, **AVERAGED), variables_of()
    optimizer = LossScaleOptimizer(optimizer, SCALE) if scaled else optimizer
    optimizer.build(variables)
    expected = None
    for number, gradients in enumerate(GRADIENTS[:6]):
        before = averages_of(optimizer)
        if scaled and number == 3:
            optimizer.apply_gradients(pairs_of(variables, {key: g * np.inf for key, g in gradients.items()}))
            assert_equal(averages_of(optimizer), before)
            continue
        optimizer.apply_gradients(pairs_of(variables, gradients))
        values = values_of(variables)
        if expected is None:
            expected = {key: value.astype(np.float64) for key, value in values.items()}
        else:
            expected = {key: 0.75 * each + 0.25 * values[key] for key, each in expected.items()}
    for key, average in averages_of(optimizer).items():
        assert average.dtype == np.float32
        np.testing.assert_allclose(average, expected[key], rtol=1e-5, atol=1e-6)
