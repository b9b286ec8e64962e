import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.formats import as_format
from supremum.nn.functional.activations import log_softmax, softmax

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
both = pytest.mark.parametrize("function", [softmax, log_softmax])


def exact(function, x, axis=-1):
    """Return the values and the vector-Jacobian product of a function in float64."""
    x = np.asarray(x, np.float64)
    shifted = x - x.max(axis, keepdims=True)
    weights = np.exp(shifted)
    total = weights.sum(axis, keepdims=True)
    p = weights / total
    if function is softmax:
        return p, lambda g: p * (g - (p * g).sum(axis, keepdims=True))
    return shifted - np.log(total), lambda g: g - p * g.sum(axis, keepdims=True)


def error(got, want):
    """Return the error in units of the last place of each value, or of the smallest normal number."""
    row = as_format(got.dtype)
    got = np.asarray(got, np.float64)
    return (np.abs(got - want) / (np.maximum(np.abs(want), row.smallest_normal) * row.eps)).max(initial=0)


@pytest.mark.slow
@both
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("axis", [-1, 0, (0, 2)])
@either_mode
def test_values_and_gradients_agree_with_float64(function, dtype, axis, jitted):
    rng = np.random.default_rng(0)
    x, cotangent = (jnp.asarray(3 * rng.normal(size=(4, 5, 6)), dtype) for _ in range(2))

    def run(x, cotangent):
        outputs, pull = jax.vjp(lambda x: function(x, axis), x)
        return outputs, *pull(cotangent)

    outputs, gradient = (jax.jit(run) if jitted else run)(x, cotangent)
    want, slope = exact(function, x, axis)
    assert outputs.dtype == gradient.dtype == x.dtype
    limit = 0.51 if dtype != "float32" else 16
    if dtype != "float32":
        assert error(outputs, want) <= limit
    # Differences cancel, so the error is relative to the largest.
    for got, wanted in ((outputs, want), (gradient, slope(np.asarray(cotangent, np.float64)))):
        assert np.abs(np.asarray(got, np.float64) - wanted).max() <= limit * as_format(dtype).eps * np.abs(wanted).max()


@pytest.mark.slow
@both
@pytest.mark.parametrize("length", [8192, 65536])
@pytest.mark.parametrize("spread", [1.0, 6e4], ids=["close", "apart"])
def test_long_rows_of_large_float16_are_finite_and_accurate(function, length, spread):
    """JAX's gradient of log_softmax is not finite here, because it sums the cotangents in float16."""
    rng = np.random.default_rng(1)
    x = jnp.asarray(6e4 - spread * rng.random(size=(2, length)), "float16")
    cotangent = jnp.asarray(rng.random(size=x.shape) + 0.5, "float16")
    outputs, pull = jax.vjp(function, x)
    (gradient,) = pull(cotangent)
    want, slope = exact(function, x)
    assert np.isfinite(np.asarray(outputs)).all()
    assert error(outputs, want) <= 2
    wanted = slope(np.asarray(cotangent, np.float64))
    inside = np.abs(wanted) < as_format("float16").max
    assert np.isfinite(np.asarray(gradient)[inside]).all()
    assert error(gradient[inside], wanted[inside]) <= 4
    assert inside.mean() > 0.99


def test_requested_float32_avoids_infinity():
    x = jnp.asarray([6e4, -6e4], "float16")
    assert np.asarray(log_softmax(x)).tolist() == [0, -np.inf]
    wide = log_softmax(x, dtype="float32")
    assert (wide.dtype, wide.tolist()) == ("float32", [0, -119936.0 if float(x[0]) == 59968 else -2 * float(x[0])])


@pytest.mark.slow
@both
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@either_mode
def test_fully_masked_rows_and_their_gradients_are_zero(function, dtype, jitted):
    mask = jnp.asarray([[True, False, True], [False, False, False]])
    x = jnp.asarray([[1, np.inf, 2], [3, 4, np.nan]], dtype)

    def run(x):
        outputs, pull = jax.vjp(lambda x: function(x, mask=mask), x)
        return outputs, *pull(jnp.ones_like(outputs) * jnp.arange(1, 4, dtype=x.dtype))

    outputs, gradient = (jax.jit(run) if jitted else run)(x)
    assert outputs[1].tolist() == gradient[1].tolist() == [0, 0, 0]
    assert float(gradient[0, 1]) == 0
    left = 0 if function is softmax else as_format(dtype).min
    assert float(outputs[0, 1]) == left
    want, _ = exact(function, [[1.0, 2.0]])
    assert error(outputs[0, ::2], want[0]) < 2


@pytest.mark.slow
def test_rows_of_minus_infinity_are_zero_and_nan_stays_nan():
    x = jnp.asarray([[-jnp.inf, -jnp.inf], [0, -jnp.inf], [jnp.nan, 0]])
    assert softmax(x)[:2].tolist() == [[0, 0], [1, 0]]
    assert jax.grad(lambda x: (softmax(x) * jnp.asarray([1.0, 2.0])).sum())(x)[:2].tolist() == [[0, 0], [0, 0]]
    assert np.isnan(np.asarray(softmax(x)[2])).all()


@pytest.mark.slow
@both
def test_every_real_dtype_and_size_works(function):
    assert function(jnp.arange(3)).dtype == "float32"
    assert function(np.asarray([True, False])).dtype == "float32"
    assert function(jnp.arange(3), dtype="bfloat16").dtype == "bfloat16"
    assert function(jnp.ones((0, 3))).shape == (0, 3)
    assert function(jnp.ones((3, 0))).shape == (3, 0)
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(2).normal(size=(3, 5)))
        assert error(function(x), exact(function, x)[0]) < 16
