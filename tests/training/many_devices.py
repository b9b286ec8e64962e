"""A small network, its data and meshes, for tests of training on several devices."""

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from supremum import nn
from supremum.mixed_precision import Policy, use_policy
from supremum.optimizers import SGD, LossScaleOptimizer
from supremum.training import (
    Batch,
    DataParallel,
    FullyShardedDataParallel,
    Sequential,
    SparseCategoricalCrossentropy,
    init_state,
    train_step,
)
from supremum.training.step import place_state
from training.blobs import values

EXAMPLES, FEATURES, CLASSES = 72, 16, 4
LOSS = SparseCategoricalCrossentropy(from_logits=True)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(EXAMPLES, FEATURES)).astype("float32")
Y = RNG.integers(0, CLASSES, EXAMPLES)
WEIGHTS = RNG.uniform(0, 2, EXAMPLES).astype("float32")
LAYOUT = {"dense/kernel": P(None, "model"), "dense/bias": ("model",), "dense_1/kernel": P("model", None)}


def devices(count):
    return Mesh(jax.devices()[:count], "data")


def mesh(*shape, names=("data", "model")):
    return Mesh(np.reshape(jax.devices(), shape or (2, 4)), names)


def split(layout=LAYOUT, **options):
    """Two replicas of four devices each."""
    return DataParallel(mesh(), data_axes="data", layout=layout, **options)


def split_and_sharded(**options):
    return FullyShardedDataParallel(mesh(), data_axes="data", layout=LAYOUT, smallest=16, **options)


def sharded(count):
    return FullyShardedDataParallel(devices(count), smallest=16)


KINDS = {
    "data parallel": lambda: DataParallel(devices(8)),
    "fully sharded": lambda: sharded(8),
    "split": split,
    "split and sharded": split_and_sharded,
}


def network(policy="float32", *middle):
    with use_policy(policy):
        return Sequential([nn.Dense(32), *(make() for make in middle), nn.ReLU(), nn.Dense(CLASSES)])


def trained(distribution, policy="float32", middle=(), *, optimizer=None, epochs=2):
    model = network(policy, *middle)
    model.compile(optimizer or SGD(0.1), LOSS, ["accuracy"], distribution=distribution)
    model.fit(X, Y, batch_size=32, epochs=epochs, verbose=0)
    return model


def lowered(policy, distribution, optimizer=None):
    """Return the lowered training step."""
    model = network(policy)
    nn.initialize(model, X[:1])
    optimizer = optimizer or (LossScaleOptimizer(SGD(0.1)) if Policy(policy).loss_scale else SGD(0.1))
    step = train_step(model, LOSS, optimizer, distribution=distribution)
    state = place_state(distribution, init_state(model, optimizer))
    return jax.jit(step).lower(state, distribution.batch(Batch(X[:32], Y[:32])))


def shard_shapes(tree):
    """Return the shapes of the parts of arrays on each device."""
    return {path: leaf.sharding.shard_shape(leaf.shape) for path, leaf in tree.items()}


def stored(model):
    return {path: variable.read_stored() for path, variable in model.variables.items()}


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
