import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.errors import ArgumentError
from supremum.nn.layers.reshaping import Flatten, Permute, Reshape

X = jnp.arange(24.0).reshape(2, 3, 4)

LAYERS = {
    "flatten": (Flatten, lambda x: x.reshape(len(x), 12)),
    "reshape": (lambda **kw: Reshape((2, 6), **kw), lambda x: x.reshape(len(x), 2, 6)),
    "reshape to what is left": (lambda **kw: Reshape([-1, 2, 2], **kw), lambda x: x.reshape(len(x), 3, 2, 2)),
    "permute": (lambda **kw: Permute((2, 1), **kw), lambda x: x.transpose(0, 2, 1)),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16", "infer"])
def test_values_and_dtypes_are_kept(name, policy):
    make, want = LAYERS[name]
    layer = make(dtype=policy, name="mine")
    assert layer.name == "mine"
    for run in (layer, jax.jit(layer)):
        got = run(X)
        assert got.dtype == (layer.compute_dtype or "float32")
        np.testing.assert_array_equal(got, want(X))
        assert run(X.astype("int8")).dtype == "int8"
        assert run(jnp.zeros((0, 3, 4))).shape == want(jnp.zeros((0, 3, 4))).shape


def test_numpy_integers_keep_64_bits():
    x = np.full((1, 2), 2**40)
    assert Flatten()(x).tolist() == Reshape((2,))(x).tolist() == [[2**40] * 2]


@pytest.mark.parametrize("name", LAYERS)
def test_layers_work_in_functional_models(name):
    make, want = LAYERS[name]
    inputs = nn.Input((3, 4))
    model = nn.Network(inputs, make()(inputs))
    for batch in (1, 5):
        x = jnp.ones((batch, 3, 4))
        assert model(x).shape == want(x).shape


def test_empty_and_scalar_examples():
    assert Flatten()(jnp.ones(3)).shape == (3, 1)
    assert Flatten()(jnp.ones((2, 0, 3))).shape == (2, 0)
    assert Reshape(())(jnp.ones((3, 1))).shape == (3,)
    assert Reshape((-1, 3))(jnp.ones((2, 0, 3))).shape == (2, 0, 3)
    assert Permute(())(jnp.ones(3)).shape == (3,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Flatten()(jnp.ones(())), r"inputs must have a batch axis, got a number; use x\[None\]"),
        (
            lambda: Reshape((-1, -1)),
            r"target_shape must be a tuple of sizes, of which one may be -1, got \(-1, -1\); use target_shape=\(-1,\)",
        ),
        (lambda: Reshape((-2,)), "target_shape must be a tuple of sizes, of which one may be -1, got"),
        (lambda: Reshape(3), "target_shape must be a tuple of sizes, of which one may be -1, got"),
        (lambda: Reshape((5,))(X), r"target_shape must have the 12 values of the input shape \(3, 4\), got \(5,\)"),
        (
            lambda: Reshape((5, -1))(X),
            r"target_shape must have the 12 values of the input shape \(3, 4\), got \(5, -1\)",
        ),
        (
            lambda: Reshape((0, -1))(X),
            r"target_shape must have the 12 values of the input shape \(3, 4\), got \(0, -1\)",
        ),
        (
            lambda: Reshape((1, 3))(jnp.ones((3, 2, 1))),
            r"target_shape must have the 2 values of the input shape \(2, 1\), got \(1, 3\)",
        ),
        (lambda: Permute((0, 1)), r"dims must have each axis from 1 on exactly once, got \(0, 1\); use dims=\(2, 1\)"),
        (lambda: Permute((1, 1)), "dims must have each axis from 1 on exactly once, got"),
        (lambda: Permute(1), "dims must have each axis from 1 on exactly once, got"),
        (lambda: Permute((2, 1))(jnp.ones((2, 3))), r"inputs must have 3 axes for dims=\(2, 1\), got shape \(2, 3\)"),
    ],
)
def test_mistakes_get_a_clear_error(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
