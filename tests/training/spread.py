"""A small model whose variables and optimizer state are sharded over a mesh."""

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from supremum import nn
from supremum.training import Sequential

X = np.random.default_rng(0).normal(size=(32, 8)).astype(np.float32)
Y = (np.arange(32) % 8).astype(np.int32)


def mesh_of(devices):
    return jax.make_mesh((devices,), ("data",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:devices])


def sharding_of(value, mesh):
    divides = value.ndim and value.shape[0] % mesh.size == 0
    return NamedSharding(mesh, PartitionSpec("data") if divides else PartitionSpec())


def spread(tree, mesh):
    """Shard each array along its first axis where the mesh size divides it; replicate it otherwise."""
    return jax.tree.map(lambda value: jax.device_put(value, sharding_of(value, mesh)), tree)


def compiled(policy="float32", seed=0, units=16, optimizer="adam"):
    """Return a compiled model whose variables are initialized and not yet trained."""
    layers = [nn.Dense(units, dtype=policy), nn.BatchNorm(momentum=0.5, dtype=policy), nn.ReLU(dtype=policy)]
    model = Sequential([*layers, nn.Dense(8, dtype=policy)])
    model.compile(optimizer, loss="sparse_categorical_crossentropy", seed=seed, steps_per_execution=1)
    nn.initialize(model, X, seed=seed)
    model.compiled().prepare()
    return model


def put_on(model, devices):
    """Shard the variables and optimizer state of the model over this many devices, and return the model."""
    mesh = mesh_of(devices)
    for variable in model.variables.values():
        variable.assign(spread(variable.read_stored(), mesh))
    optimizer = model.compiled().optimizer
    optimizer.state = spread(optimizer.state, mesh)
    return model


def state_of(model):
    """Return all arrays that a checkpoint saves, by path and as stored."""
    return {path: each.read_stored() for path, each in model.variables.items()} | {
        f"optimizer/{name}": value for name, value in model.compiled().optimizer.variables.items()
    }
