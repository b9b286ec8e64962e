"""Small variables to train, with gradients and data for them."""

import jax.numpy as jnp
import numpy as np

from supremum import nn
from supremum.mixed_precision import DynamicLossScale
from supremum.optimizers import LossScaleOptimizer, optimizers_within

RANDOM = np.random.default_rng(0)
START = {"dense/kernel": RANDOM.normal(size=(3, 2)).astype(np.float32), "dense/bias": np.zeros(2, np.float32)}
GRADIENTS = [
    {key: (RANDOM.normal(size=value.shape) * 10.0 ** RANDOM.integers(-2, 2)).astype(np.float32)
     for key, value in START.items()}
    for _ in range(20)
]  # fmt: skip
X = jnp.asarray(RANDOM.normal(size=(8, 3)), jnp.float32)
Y = jnp.asarray(RANDOM.normal(size=(8, 2)), jnp.float32)
# Large enough that a drop is visible, with a period short enough to rise within a test.
SCALE = DynamicLossScale(2.0**10, increment_period=3)


def variables_of(dtype="float32"):
    return {key: nn.Variable(jnp.asarray(value, dtype), key.split("/")[1]) for key, value in START.items()}


def pairs_of(variables, gradients):
    return [(jnp.asarray(gradients[key], each.true_dtype), each) for key, each in variables.items()]


def values_of(variables):
    return {key: np.asarray(each.read_stored()) for key, each in variables.items()}


def leaves_of(optimizer):
    return {name: np.asarray(each) for name, each in optimizer.variables.items()}


def assert_equal(one, other):
    assert one.keys() == other.keys()
    assert one
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def scale_of(optimizer):
    return next(each.loss_scale for each in optimizers_within(optimizer) if isinstance(each, LossScaleOptimizer))
