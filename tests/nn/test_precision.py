"""`precision=` reaches every product of a layer, forward and backward."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.jaxprs import walk

X = np.random.default_rng(0).normal(size=(2, 6, 4)).astype("float32")
IMAGES = np.random.default_rng(1).normal(size=(2, 6, 6, 4)).astype("float32")


class Attending(nn.Layer):
    def __init__(self, precision):
        super().__init__()
        self.embedding = nn.Embedding(5, 4, precision=precision)

    def call(self, x):
        self.embedding(jnp.arange(2))
        return self.embedding.attend(x)


LAYERS = {
    "dense": (lambda p: nn.Dense(3, precision=p), X, 2),
    "general": (lambda p: nn.DenseGeneral((2, 3), axis=(-2, -1), precision=p), X, 2),
    "einsum": (lambda p: nn.Einsum("...i,io->...o", (4, 3), precision=p), X, 2),
    "conv": (lambda p: nn.Conv(3, (3, 3), precision=p), IMAGES, 2),
    "transposed": (lambda p: nn.ConvTranspose(3, (3, 3), strides=2, precision=p), IMAGES, 2),
    "embedding": (Attending, X, 2),
    # Four projections and two products; the gradients of four kernels, and of the operands of three products.
    "attention": (lambda p: nn.MultiHeadAttention(2, precision=p), X, 6 + 4 + 5),
    "simple rnn": (lambda p: nn.SimpleRNN(3, precision=p), X, 4),
    "lstm": (lambda p: nn.LSTM(3, precision=p), X, 4),
    "gru": (lambda p: nn.GRU(3, precision=p), X, 4),
}


def precisions(layer, inputs):
    nn.initialize(layer, inputs)
    trainable, other = nn.split_variables(layer)

    def loss(values):
        return jnp.sum(nn.functional_call(layer, values | other, inputs)[0])

    jaxpr = jax.make_jaxpr(jax.grad(loss))(trainable)
    products = [site.equation for site in walk(jaxpr) if site.equation.primitive.name in PRODUCTS]
    return [equation.params["precision"] for equation in products]


PRODUCTS = ("dot_general", "conv_general_dilated")


@pytest.mark.parametrize("name", LAYERS)
def test_precision_reaches_every_product(name):
    make, inputs, least = LAYERS[name]
    highest = precisions(make("highest"), inputs)
    assert len(highest) >= least
    assert set(highest) == {(jax.lax.Precision.HIGHEST, jax.lax.Precision.HIGHEST)}
    assert set(precisions(make(None), inputs)) == {None}


def test_operands_may_have_two_precisions():
    pair = nn.functional.dense(jnp.ones((2, 2)), jnp.ones((2, 2)), precision=("high", jax.lax.Precision.HIGHEST))
    np.testing.assert_array_equal(pair, np.full((2, 2), 2.0))
