"""The options of losses of arrays."""

import numpy as np
import pytest

import supremum
from arrays.libraries import NAMES, library
from supremum import ops


@pytest.mark.parametrize("name", NAMES)
def test_options_of_losses_reach_the_formula(name):
    with library(name) as xp:
        x, y = xp.asarray([0.0, 3.0], dtype="float32"), xp.zeros(2, dtype="float32")
        assert ops.huber_loss(x, y, delta=2.0, reduction="none").tolist() == [0, 2 * (3 - 2 / 2)]
        assert ops.huber_loss(x, y, reduction="none").tolist() == [0, 3 - 1 / 2]


def test_an_option_of_the_wrong_kind_is_named():
    x = supremum.asarray(np.ones(2, "float32"))
    with pytest.raises(supremum.OperandError, match="delta must be a number, got 'a'"):
        ops.huber_loss(x, x, delta="a")
