"""Meshes of forced CPU devices, and the all-reduces of compiled programs."""

import math
import re

import jax
import numpy as np
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P


def mesh(count, names=("data",)):
    shape = (count,) if isinstance(count, int) else count
    devices = np.asarray(jax.devices()[: math.prod(shape)]).reshape(shape)
    return Mesh(devices, names, axis_types=(AxisType.Auto,) * len(shape))


def on_replicas(function, count, *, jitted=True, check_vma=True):
    """Run a function on every replica. The first axis of inputs and results goes along the replicas."""

    def local(tree):
        out = function(jax.tree.map(lambda leaf: leaf[0], tree))
        return jax.tree.map(lambda leaf: leaf[None], out)

    mapped = jax.shard_map(local, mesh=mesh(count), in_specs=P("data"), out_specs=P("data"), check_vma=check_vma)
    return jax.jit(mapped) if jitted else mapped


def compiled_sums(function, *args):
    """Return element type and size of each array that the optimised program sums. XLA may sum several at once."""
    text = jax.jit(function).lower(*args).compile().as_text()
    arrays = " ".join(re.findall(r"= (.*) all-reduce(?:-start)?\(", text))
    return [_kind_and_size(kind, shape, ",") for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", arrays)]


def all_reduces(function, *args):
    """Return element type and size of each all-reduce in the program before XLA optimises it, in order."""
    text = jax.jit(function).lower(*args).as_text()
    arrays = re.findall(r'stablehlo\.all_reduce"?\(.*?\}\) : \(tensor<((?:\d+x)*)(\w+)>\)', text, re.DOTALL)
    return [_kind_and_size(kind, shape, "x") for shape, kind in arrays]


def _kind_and_size(kind, shape, between):
    return kind, math.prod(map(int, filter(None, shape.split(between))))
