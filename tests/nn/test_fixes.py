"""Run the code that errors suggest, and check that the call then works."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from supremum import mixed_precision, nn, optimizers, training
from supremum.errors import SupremumError
from supremum.mixed_precision import loss_scaled
from supremum.nn import functional

pytestmark = pytest.mark.filterwarnings("error")
C, N, X = jnp.ones((2, 4), "complex64"), jnp.ones((2, 4), "int32"), jnp.ones((2, 4))
KEY = jax.random.key(0)
CELLS = {
    "x of maximum": ("x", C, lambda x: nn.Maximum()([x, x])),
    "x of relu": ("x", C, functional.relu),
    "x of max_pool": ("x", jnp.ones((1, 4, 1), "complex64"), lambda x: functional.max_pool(x, (2,))),
    "x of dropout": ("x", N, lambda x: functional.dropout(KEY, x, 0.5)),
    "x of bools": ("x", N > 0, lambda x: nn.Add()([x, x])),
    "x of softmax": ("x", C, functional.softmax),
    "indices of embedding": ("indices", jnp.ones(2), lambda x: functional.embedding(x, X)),
    "mask of softmax": ("mask", N, lambda mask: functional.softmax(X, mask=mask)),
    "mask to combine": ("mask", N, functional.combine_masks),
    "loss to scale": ("loss", jnp.ones((), "complex64"), lambda loss: _scaled(loss)),
    "loss of integers to scale": ("loss", jnp.ones((), "int32"), lambda loss: _scaled(loss)),
    "loss that is a Python number": ("loss", 3, lambda loss: _scaled(loss)),
    "loss of an optimizer": ("loss", jnp.ones((), "complex64"), lambda loss: _optimizer().get_scaled_loss(loss)),
    "integers of an optimizer": ("loss", jnp.ones((), "int32"), lambda loss: _optimizer().get_scaled_loss(loss)),
    "labels": ("y_true", jnp.ones(2), lambda y_true: training.SparseCategoricalCrossentropy()(y_true, X)),
    "complex predictions": ("y_pred", C, lambda y_pred: training.MeanSquaredError()(X, y_pred)),
}


def _scaled(loss):
    return mixed_precision.scale_loss(loss, loss_scaled(optax.sgd(0.1)).init(jnp.ones(2)))


def _optimizer():
    return optimizers.LossScaleOptimizer(optimizers.SGD(0.1))


@pytest.mark.parametrize("cell", CELLS)
def test_code_suggested_by_an_error_works(cell):
    name, value, call = CELLS[cell]
    with pytest.raises((SupremumError, TypeError)) as caught:
        call(value)
    text = str(caught.value)
    words = re.findall(r"[\w.]+(?:\([^)]*\))?", text.rpartition(": ")[2])
    codes = [word for word in words if re.search(rf"\b{name}\.|\({name}\b", word)]
    assert codes, text
    for code in codes:
        assert call(eval(code, {"jnp": jnp, "np": np, name: value})) is not None
