"""Under tensor parallelism, autocast keeps shardings, and its programs have the collectives of the plain function."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mixed_precision.replica_groups import collectives
from supremum.mixed_precision import autocast

RNG = np.random.default_rng(0)
PARAMETERS = {
    "up": (RNG.normal(size=(16, 32)).astype("float32") / 4, P(None, "model")),
    "bias": (RNG.normal(size=32).astype("float32"), P("model")),
    "down": (RNG.normal(size=(32, 16)).astype("float32") / 6, P("model", None)),
}
X = RNG.normal(size=(8, 16)).astype("float32"), P("data", None)
HEADS = RNG.normal(size=(4, 6, 8, 4)).astype("float32"), P("data", None, "model", None)


def mesh(kind):
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(kind,) * 2)


def put(tree, mesh):
    def one(pair):
        return jax.device_put(pair[0], NamedSharding(mesh, pair[1]))

    return jax.tree.map(one, tree, is_leaf=lambda node: isinstance(node, tuple) and isinstance(node[0], np.ndarray))


def is_explicit():
    return AxisType.Explicit in jax.sharding.get_abstract_mesh().axis_types


def laid(x, *spec):
    """Ask for a sharding, in the way that the axes of the mesh in force need."""
    return jax.sharding.reshard(x, P(*spec)) if is_explicit() else jax.lax.with_sharding_constraint(x, P(*spec))


def product(x, w, *spec):
    return jnp.dot(x, w, out_sharding=P(*spec)) if is_explicit() else laid(jnp.dot(x, w), *spec)


def perceptron(parameters, x):
    hidden = laid(jax.nn.relu(x @ parameters["up"] + parameters["bias"]), "data", "model")
    return product(hidden, parameters["down"], "data", None)


def loss(parameters, x):
    return jnp.mean(jnp.exp(perceptron(parameters, x)) ** 2)


def in_loops(parameters, x):
    @jax.checkpoint
    def body(x, _):
        return jax.lax.cond(x.sum() > 0, lambda x: perceptron(parameters, x), lambda x: -x, x), None

    return jax.lax.scan(body, x, length=2)[0]


def attention(heads):
    scores = jnp.einsum("bqhd,bkhd->bhqk", heads, heads)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), heads)


def gathered(parameters, x):
    """Gather a weight before the product, as fully sharded training does."""
    return x @ laid(parameters["up"], None, None)


CASES = {
    "perceptron": (perceptron, (PARAMETERS, X)),
    "gradient": (jax.value_and_grad(loss, (0, 1)), (PARAMETERS, X)),
    "loops": (in_loops, (PARAMETERS, X)),
    "gradient of loops": (jax.grad(lambda *args: in_loops(*args).sum()), (PARAMETERS, X)),
    "attention": (attention, (HEADS,)),
    "gathered": (gathered, (PARAMETERS, X)),
}


def counted(text):
    """Count collectives by name and groups of devices; autocast may change the element type."""
    return Counter((each.name, each.groups) for each in collectives(text))


@pytest.mark.compiled
@pytest.mark.one_in(7)
@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("case", CASES)
def test_autocast_keeps_shardings_and_adds_no_collectives(case, kind):
    function, args = CASES[case]
    mesh_in_force = mesh(kind)
    with jax.set_mesh(mesh_in_force):
        args = put(args, mesh_in_force)
        compiled = [jax.jit(each).lower(*args).compile() for each in (function, autocast(function, "mixed_bfloat16"))]
        plain, cast = (each.as_text() for each in compiled)
        assert "bf16" in cast
        assert "bf16" not in plain
        assert counted(cast) == counted(plain)
        assert (counted(plain) == Counter()) is (case == "attention")  # each head is on one device
        expected, found = (each(*args) for each in compiled)
        eager = autocast(function, "mixed_bfloat16")(*args)
    for wanted, jitted, alone in zip(*map(jax.tree.leaves, (expected, found, eager)), strict=True):
        assert jitted.sharding.is_equivalent_to(wanted.sharding, wanted.ndim)
        assert alone.sharding.is_equivalent_to(wanted.sharding, wanted.ndim)
        assert jitted.dtype == wanted.dtype == np.float32
        np.testing.assert_allclose(jitted, wanted, atol=0.05 * np.abs(wanted).max())
        np.testing.assert_allclose(alone, wanted, atol=0.05 * np.abs(wanted).max())


@pytest.mark.parametrize("case", CASES)
def test_types_of_autocast_functions_have_the_shardings_of_the_plain_functions(case):
    function, args = CASES[case]
    mesh_in_force = mesh(AxisType.Explicit)
    with jax.set_mesh(mesh_in_force):
        args = put(args, mesh_in_force)
        plain, cast = (jax.eval_shape(each, *args) for each in (function, autocast(function, "mixed_bfloat16")))
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.sharding), plain) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype, leaf.sharding), cast
    )
