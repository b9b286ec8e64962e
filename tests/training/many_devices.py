"""A small network and its data, for tests of training on several devices."""

import jax
import numpy as np
from jax.sharding import Mesh

from supremum import nn
from supremum.mixed_precision import use_policy
from supremum.optimizers import SGD
from supremum.training import (
    DataParallel,
    FullyShardedDataParallel,
    Sequential,
    SparseCategoricalCrossentropy,
)

EXAMPLES, FEATURES, CLASSES = 72, 16, 4
LOSS = SparseCategoricalCrossentropy(from_logits=True)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(EXAMPLES, FEATURES)).astype("float32")
Y = RNG.integers(0, CLASSES, EXAMPLES)
WEIGHTS = RNG.uniform(0, 2, EXAMPLES).astype("float32")
KINDS = {
    "data parallel": DataParallel,
    "fully sharded": lambda mesh: FullyShardedDataParallel(mesh, smallest=16),
}


def devices(count):
    return Mesh(jax.devices()[:count], "data")


def network(policy="float32", *middle):
    with use_policy(policy):
        return Sequential([nn.Dense(32), *(make() for make in middle), nn.ReLU(), nn.Dense(CLASSES)])


def trained(distribution, policy="float32", middle=(), *, optimizer=None, epochs=2):
    model = network(policy, *middle)
    model.compile(optimizer or SGD(0.1), LOSS, ["accuracy"], distribution=distribution)
    model.fit(X, Y, batch_size=32, epochs=epochs, verbose=0)
    return model


def values(model):
    assert model.variables
    return {path: np.asarray(variable.value) for path, variable in model.variables.items()}


def close(ours, theirs, rtol):
    """Assert that each array is within `rtol` times its largest value (at least 0.05) of the expected one."""
    assert ours.keys() >= theirs.keys() != set()
    for path, value in theirs.items():
        np.testing.assert_allclose(ours[path], value, rtol=0, atol=rtol * max(np.abs(value).max(), 0.05), err_msg=path)


BASELINES = {}


def baseline(policy="float32"):
    """Return the values, losses and history of training on one device, computed once per policy."""
    if policy not in BASELINES:
        model = trained(None, policy)
        BASELINES[policy] = values(model), model.history.loss, model.history.history
    return BASELINES[policy]
