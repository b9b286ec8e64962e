"""Points around the corners of a triangle, and a network that classifies them."""

import jax
import numpy as np

from supremum import nn
from supremum.training import Sequential


def blobs(count=128, seed=0):
    """Return points of shape (count, 2), float32, and the corner of each, int32; the classes are well separated."""
    random = np.random.default_rng(seed)
    y = random.integers(3, size=count).astype(np.int32)
    corners = np.stack([f(2 * np.pi * np.arange(3) / 3) for f in (np.cos, np.sin)], 1)
    return (2 * corners[y] + random.normal(scale=0.3, size=(count, 2))).astype(np.float32), y


def network(policy="float32", *, units=8):
    """Return a perceptron with batch normalization."""
    return Sequential([nn.Dense(units), nn.BatchNorm(momentum=0.5), nn.ReLU(), nn.Dense(3)], dtype=policy)


def values(model):
    """Return the stored values of a model, which must have variables, by path, as NumPy arrays."""
    assert model.variables
    return {path: np.asarray(variable.read_stored()) for path, variable in model.variables.items()}


def equal(a, b):
    """Return whether two trees, which must have leaves, have the same names, shapes and bits."""
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    pairs = list(zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    same_shapes = all(np.shape(x) == np.shape(y) for x, y in pairs)
    return bool(pairs) and same_shapes and all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)
