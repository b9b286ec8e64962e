import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.errors import OperandError
from supremum.formats import as_format
from supremum.nn.functional import activations as forms
from supremum.nn.functional.activations import softmax as softmax_form
from supremum.nn.layers import activations as layers


def softmax(x):
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


SMOOTH = {
    "leaky_relu": (forms.leaky_relu, layers.LeakyReLU, lambda x: np.where(x > 0, x, 0.01 * x)),
    "elu": (forms.elu, layers.ELU, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "gelu": (forms.gelu, layers.GELU, gelu),
    "silu": (forms.silu, layers.SiLU, lambda x: x / (1 + np.exp(-x))),
    "sigmoid": (forms.sigmoid, layers.Sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (forms.tanh, layers.Tanh, np.tanh),
    "softmax": (softmax_form, layers.Softmax, softmax),
}


@pytest.mark.compiled
@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_values_are_rounded_once(name, dtype, jitted):
    form, _, want = SMOOTH[name]
    # The range includes values where gelu's 1 + tanh(...) has lost all digits in float32 too.
    x = jnp.asarray(np.linspace(-2.5, 8, 400).reshape(4, 100), dtype)
    got = (jax.jit(form) if jitted else form)(x)
    expected = want(np.asarray(x, "float64"))
    row = as_format(dtype)
    assert got.dtype == dtype
    error = np.abs(np.asarray(got, "float64") - expected) / np.maximum(np.abs(expected), row.smallest_normal)
    assert error.max() <= 0.51 * row.eps


@pytest.mark.compiled
@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gradients_stay_finite_for_all_finite_values(name, dtype):
    """In float16, JAX's own gelu has NaN gradients from 300 on."""
    form, *_ = SMOOTH[name]
    largest = min(as_format(dtype).max, 6e4)
    x = np.asarray([0, 1, -1, 300, -300, largest, -largest], as_format(dtype).dtype)
    gradient = jax.jit(jax.grad(lambda x: form(x).astype("float32").sum()))(x)
    assert gradient.dtype == dtype
    assert np.all(np.isfinite(np.asarray(gradient, "float32")))


@pytest.mark.slow
def test_layers_pass_their_options_to_functions():
    x = jnp.asarray([[-2.0, 1.0], [3.0, -4.0]])
    np.testing.assert_allclose(layers.LeakyReLU(0.5)(x), [[-1, 1], [3, -2]])
    np.testing.assert_allclose(layers.ELU(2.0)(x)[0, 0], 2 * np.expm1(-2), rtol=1e-6)
    np.testing.assert_allclose(layers.Softmax(0)(x), softmax(np.asarray(x).T).T, rtol=1e-6)
    np.testing.assert_allclose(layers.GELU(approximate=False)(x), jax.nn.gelu(x, approximate=False), rtol=1e-6)
    assert not np.allclose(layers.GELU(approximate=False)(x), layers.GELU()(x), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "float16", "float32"])
def test_relu_keeps_the_dtype(dtype):
    x = jnp.asarray([0, 1, 1], dtype)
    for got in (forms.relu(x), jax.jit(forms.relu)(x)):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, x)
    if as_format(dtype).signed:
        np.testing.assert_array_equal(forms.relu(-x), jnp.zeros(3, dtype))


def test_complex_values_work_or_raise():
    x = jnp.asarray([1 + 2j, -1 + 0.5j])
    np.testing.assert_allclose(layers.Tanh()(x), np.tanh(np.asarray(x)), rtol=1e-6)
    for name in ("relu", "leaky_relu", "elu", "gelu"):
        with pytest.raises(OperandError, match=f"{name} is not defined for complex numbers; x must"):
            getattr(forms, name)(x)
    with pytest.raises(OperandError, match="softmax is not defined for complex numbers"):
        layers.Softmax()(x)


def test_softmax_is_along_the_last_axis_by_default():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_allclose(layers.Softmax()(x).sum(-1), np.ones((2, 3)), rtol=1e-6)
