"""Points around the corners of a triangle, and networks that tell them apart."""

import jax
import numpy as np

from supremum import nn
from supremum.training import Sequential


def blobs(count=128, seed=0):
    """Points of shape (count, 2), float32, and which corner each is at, int32; far enough apart to be told apart."""
    random = np.random.default_rng(seed)
    y = random.integers(3, size=count).astype(np.int32)
    corners = np.stack([f(2 * np.pi * np.arange(3) / 3) for f in (np.cos, np.sin)], 1)
    return (2 * corners[y] + random.normal(scale=0.3, size=(count, 2))).astype(np.float32), y


def network(policy="float32", *, units=8):
    """A perceptron with batch statistics."""
    return Sequential([nn.Dense(units), nn.BatchNorm(momentum=0.5), nn.ReLU(), nn.Dense(3)], dtype=policy)


def values(model):
    """Its stored values by path, on the host."""
    return {path: np.asarray(variable.read_stored()) for path, variable in model.variables.items()}


def equal(a, b):
    """Whether two trees have the same bits."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)
