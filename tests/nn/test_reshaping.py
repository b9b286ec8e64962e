import jax.numpy as jnp
import numpy as np

from supremum.nn.layers.reshaping import Flatten, Permute, Reshape


def test_numpy_integers_keep_64_bits():
    x = np.full((1, 2), 2**40)
    assert Flatten()(x).tolist() == Reshape((2,))(x).tolist() == [[2**40] * 2]


def test_empty_and_scalar_examples():
    assert Flatten()(jnp.ones(3)).shape == (3, 1)
    assert Flatten()(jnp.ones((2, 0, 3))).shape == (2, 0)
    assert Reshape(())(jnp.ones((3, 1))).shape == (3,)
    assert Reshape((-1, 3))(jnp.ones((2, 0, 3))).shape == (2, 0, 3)
    assert Permute(())(jnp.ones(3)).shape == (3,)
