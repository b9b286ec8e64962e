"""Layers, losses, metrics, optimizers, `fit` and files keep 64 bits if allowed explicitly while JAX's x64 is off."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn, optimizers, training
from supremum.arrays import RuntimeDtypeError
from supremum.mixed_precision import PolicyWarning
from supremum.mixed_precision.all_reduce import as_reduce_dtype

# float32 would round all of X to 1.
X = 1 + 1e-12 * np.arange(32.0).reshape(16, 2)
OUTPUTS, Y = X.sum(1, keepdims=True), (X - 1).sum(1, keepdims=True)


@pytest.fixture(autouse=True)
def _allow_64_bits():
    before = jax.config.jax_explicit_x64_dtypes
    jax.config.update("jax_explicit_x64_dtypes", "allow")
    with jax.enable_x64(False):
        yield
    jax.config.update("jax_explicit_x64_dtypes", before)


def _model(**options):
    layer = nn.Dense(
        1, use_bias=False, dtype="float64", kernel_initializer=lambda key, shape, dtype: jnp.ones(shape, dtype)
    )
    model = training.Sequential([layer])
    model.compile(
        optimizer=optimizers.SGD(0.125, momentum=0.5), loss=training.MeanSquaredError(dtype="float64"),
        metrics=["mae"], **options,
    )  # fmt: skip
    return model


def _kernel(model):
    (kernel,) = model.trainable_variables.values()
    return np.asarray(kernel.read_stored())


def test_layers_keep_64_bits_of_numpy_and_jax_inputs():
    for dtype in ("float64", "infer"):
        layer = nn.Dense(
            1, use_bias=False, dtype=dtype, kernel_initializer=lambda key, shape, dtype: jnp.ones(shape, dtype)
        )
        nn.initialize(layer, X, seed=0)
        for inputs in (X, jnp.asarray(X, X.dtype)):
            out = layer(inputs)
            assert out.dtype == "float64"
            np.testing.assert_array_equal(np.asarray(out), OUTPUTS)
    assert as_reduce_dtype("float64") == "float64"
    narrow = nn.Dense(1, dtype="float32")
    nn.initialize(narrow, jnp.ones((1, 2)), seed=0)
    with pytest.warns(PolicyWarning, match="narrows its float64 inputs to float32"):
        narrow(X)


def test_float64_layers_and_losses_raise_without_the_flag():
    jax.config.update("jax_explicit_x64_dtypes", "error")
    with pytest.raises(RuntimeDtypeError, match="x64"):
        nn.initialize(nn.Dense(1, dtype="float64"), X, seed=0)
    with pytest.raises(RuntimeDtypeError, match="x64"):
        training.MeanSquaredError(dtype="float64")(Y, Y)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["arrays", "iterable", "distributed"])
def test_fit_keeps_64_bits(how, tmp_path):
    model = _model(**({"distribution": training.DataParallel()} if how == "distributed" else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.predict(X, verbose=0).dtype == "float64"
        np.testing.assert_allclose(model.predict(X, verbose=0), OUTPUTS, rtol=1e-15)
        data = ([(X, Y)],) if how == "iterable" else (X, Y)
        model.fit(*data, epochs=2, verbose=0, **({} if how == "iterable" else {"batch_size": 16, "shuffle": False}))
    kernel, velocity = np.ones((2, 1)), 0
    for _ in range(2):
        gradient = X.T @ (X @ kernel - Y) * 2 / len(X)
        velocity = 0.5 * velocity + gradient
        kernel = kernel - 0.125 * velocity
    found = _kernel(model)
    assert found.dtype == "float64"
    np.testing.assert_allclose(found, kernel, atol=1e-15)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(model.optimizer.state) if leaf.shape} == {"float64"}
    model.save_weights(tmp_path / "weights.npz")
    other = _model()
    other.predict(X, verbose=0)
    other.load_weights(tmp_path / "weights.npz")
    np.testing.assert_array_equal(_kernel(other), found)
    assert other.evaluate(X, Y, verbose=0) is not None


def test_losses_keep_64_bits():
    truth, almost = np.ones((4, 1)), np.full((4, 1), 1 + 1e-10)
    exact = training.MeanSquaredError(dtype="float64")(truth, almost)
    assert exact.dtype == "float64"
    np.testing.assert_allclose(float(exact), 1e-20, rtol=1e-6)
