"""Tests of normalization functions: values, extremes and errors."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn import arrays
from supremum.formats import as_format
from supremum.nn.functional.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    moments,
    rms_norm,
)

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


def data(shape, dtype="float32", seed=0):
    return arrays.data(*shape, dtype=dtype, seed=seed)


def normed(x, axes, epsilon, *, centred=True):
    """Compute the norm in float64 NumPy."""
    x = np.asarray(x).astype("complex128" if np.iscomplexobj(x) else "float64")
    distance = x - x.mean(axes, keepdims=True) if centred else x
    return distance / np.sqrt((np.abs(distance) ** 2).mean(axes, keepdims=True) + epsilon)


EXTREMES = {
    "largest": [[6e4, -6e4, 6e4, 5e4], [65504, 65504, 65504, 65503]],
    "equal": [[6e4] * 4, [-65504] * 4],
    "seven equal": [[6e4] * 7],
    "many equal": [[5e4] * 1000],
    "zeros": [[0, 0, 0], [-0.0, 0, -0.0]],
    "tiny": [[6e-8, -6e-8, 1.2e-7], [6e-8, 6e-8, 6e-8]],
    "mixed": [[6e4, 6e-8, 0, -1], [1e-3, 2e-3, 3e-3, 4e-3]],
}


class TestMoments:
    @pytest.mark.one_in(28)
    @either_mode
    @pytest.mark.parametrize("axes", [-1, (0, 2), (-3, 1, -1), ()])
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int8"])
    def test_moments_match_numpy_in_at_least_float32(self, dtype, axes, jitted):
        x = data((3, 4, 5), dtype) if dtype != "int8" else jnp.arange(60, dtype="int8").reshape(3, 4, 5)
        form = jax.jit(moments, static_argnums=1) if jitted else moments
        mean, variance = form(x, axes)
        wide = np.asarray(x).astype("complex128" if dtype == "complex64" else "float64")
        axes = axes if isinstance(axes, tuple) else (axes,)
        np.testing.assert_allclose(mean, wide.mean(axes), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(variance, wide.var(axes), rtol=1e-6)
        assert mean.dtype == ("complex64" if dtype == "complex64" else "float32")
        assert variance.dtype == "float32"
        kept = jax.eval_shape(lambda x: moments(x, axes, keepdims=True), x)
        assert {each.shape for each in kept} == {np.mean(wide, axes, keepdims=True).shape}

    def test_float64_moments_stay_float64(self):
        with jax.enable_x64(True):
            found = jax.eval_shape(lambda x: moments(x, 0), data((3, 4), "complex128"))
            assert [each.dtype for each in found] == ["complex128", "float64"]

    @pytest.mark.slow
    @either_mode
    def test_a_variance_far_from_zero_does_not_cancel(self, jitted):
        x = 4096 + data((2, 1000))
        form = jax.jit(moments, static_argnums=1) if jitted else moments
        want = np.asarray(x, "float64")
        mean, variance = form(x, -1)
        np.testing.assert_allclose(variance, want.var(-1), rtol=1e-6)
        np.testing.assert_allclose(mean, want.mean(-1), rtol=1e-7)
        slope = jax.grad(lambda x: form(x, -1)[1].sum())(x)
        np.testing.assert_allclose(slope, 2 * (want - want.mean(-1, keepdims=True)) / 1000, rtol=1e-4, atol=1e-6)

    @pytest.mark.compiled
    @pytest.mark.parametrize("form", [lambda x: moments(x, -1)[0].sum(), lambda x: moments(x, -1)[1].sum()])
    def test_largest_float16_values_have_finite_moments_and_gradients(self, form):
        value, slope = jax.jit(jax.value_and_grad(form))(np.float16([[6e4, -6e4, 5.9e4]] * 2))
        assert np.isfinite(value)
        assert slope.dtype == np.float16
        assert np.all(np.isfinite(slope))

    @pytest.mark.slow
    @either_mode
    def test_masked_values_never_count(self, jitted):
        x = data((4, 3)).at[2:].set(jnp.nan)
        mask = jnp.asarray([True, True, False, False])[:, None]

        def form(x):
            return moments(x, 0, mask=mask)

        mean, variance = (jax.jit(form) if jitted else form)(x)
        np.testing.assert_allclose(mean, np.asarray(x[:2]).mean(0), rtol=1e-6)
        np.testing.assert_allclose(variance, np.asarray(x[:2]).var(0), rtol=1e-6)
        slope = jax.grad(lambda x: sum(each.sum() for each in form(x)))(x)
        assert jnp.all(jnp.isfinite(slope))
        assert not jnp.any(slope[2:])

    @pytest.mark.slow
    def test_moments_are_zero_if_no_value_counts(self):
        for mean, variance in (
            moments(jnp.ones((0, 3)), 0),
            moments(jnp.full((2, 3), jnp.nan), 0, mask=jnp.zeros((2, 1), bool)),
        ):
            assert mean.tolist() == variance.tolist() == [0, 0, 0]


FORMS = {
    "layer_norm": (lambda x, **o: layer_norm(x, **o), -1, True),
    "layer_norm over all": (lambda x, **o: layer_norm(x, axes=(0, -1), **o), (0, 1), True),
    "rms_norm": (lambda x, **o: rms_norm(x, **o), -1, False),
    "group_norm": (lambda x, **o: group_norm(x, groups=1, **o), -1, True),
    "instance_norm": (lambda x, **o: instance_norm(x[..., None], **o)[..., 0], -1, True),
    "batch_norm": (lambda x, **o: batch_norm(x, *moments(x, 1), axis=0, **o), -1, True),
}
every_form = pytest.mark.parametrize("name", FORMS)


@pytest.mark.slow
@every_form
@either_mode
@pytest.mark.parametrize("values", EXTREMES)
def test_float16_is_a_few_ulp_from_float64_at_its_extremes(name, values, jitted):
    form, axes, centred = FORMS[name]
    x = jnp.asarray(EXTREMES[values], jnp.float16)

    def run(x):
        return form(x, epsilon=1e-6)

    got = (jax.jit(run) if jitted else run)(x)
    assert got.dtype == jnp.float16
    want = normed(x, axes, 1e-6, centred=centred)
    np.testing.assert_allclose(np.asarray(got, "float64"), want, rtol=2**-10, atol=2**-10)
    # The slope at equal values is 1 / sqrt(epsilon), a thousand times the cotangent, so a cotangent of 15 is in range.
    cotangent = jnp.linspace(0, 15, x.size).reshape(x.shape)
    slope = jax.grad(lambda x: jnp.sum(run(x).astype("float32") * cotangent))(x)
    assert slope.dtype == jnp.float16
    assert jnp.all(jnp.isfinite(slope))


@pytest.mark.compiled
@pytest.mark.one_in(4)
@every_form
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "complex64"])
def test_norms_match_numpy(name, dtype):
    form, axes, centred = FORMS[name]
    x = data((4, 6), dtype)
    got = jax.jit(lambda x: form(x, epsilon=1e-3))(x)
    assert got.dtype == dtype
    want = normed(x, axes, 1e-3, centred=centred)
    # A float32 result that is rounded once is off by at most half a unit of bfloat16.
    np.testing.assert_allclose(np.asarray(got).astype("complex128"), want, rtol=as_format(dtype).eps * 0.51, atol=1e-6)


@pytest.mark.one_in(8)
@every_form
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_all_derivatives_match_the_plain_formula(name, dtype):
    form, axes, centred = FORMS[name]
    with jax.enable_x64(True):
        x, change, weights = (data((3, 4), dtype, seed) for seed in range(3))

        def plain(x):
            distance = x - x.mean(axes, keepdims=True) if centred else x
            return distance / jnp.sqrt((distance * distance.conj()).real.mean(axes, keepdims=True) + 0.1)

        @partial(jax.jit, static_argnums=0)
        def derivatives(form):
            value, slope = jax.jvp(form, (x,), (change,))
            gradient = jax.grad(lambda x: (form(x) * weights).real.sum())
            along = jax.grad(lambda x: (jax.jvp(form, (x,), (change,))[1] * weights).real.sum())
            return value, slope, gradient(x), jax.jvp(gradient, (x,), (change,))[1], along(x)

        for got, want in zip(derivatives(lambda x: form(x, epsilon=0.1)), derivatives(plain), strict=True):
            assert got.dtype == dtype
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_groups_consist_of_neighboring_channels_and_all_of_space(dtype):
    x = data((2, 3, 5, 6), dtype)
    wide = np.asarray(x, "float64")
    scale, offset = data((6,), dtype, 1), data((6,), dtype, 2)
    groups = np.concatenate([normed(part, (1, 2, 3), 1e-6) for part in np.split(wide, 3, -1)], -1)
    want = groups * np.asarray(scale, "float64") + np.asarray(offset, "float64")
    got = group_norm(x, scale, offset, groups=3)
    np.testing.assert_allclose(np.asarray(got, "float64"), want, rtol=as_format(dtype).eps, atol=4e-6)
    want = normed(wide, (1, 2), 1e-6) * np.asarray(scale, "float64") + np.asarray(offset, "float64")
    got = instance_norm(x, scale, offset)
    np.testing.assert_allclose(np.asarray(got, "float64"), want, rtol=as_format(dtype).eps, atol=4e-6)


@pytest.mark.slow
def test_scale_and_offset_run_over_the_axes_in_the_order_of_x():
    x, scale = data((2, 3, 4)), data((3, 4), seed=1)
    got = layer_norm(x, scale, scale, axes=(-1, 1))
    np.testing.assert_allclose(got, (normed(x, (1, 2), 1e-6) + 1) * np.asarray(scale), rtol=1e-5, atol=1e-6)
    channels = data((3,), seed=2)
    got = batch_norm(x, *moments(x, (0, 2)), channels, channels, axis=1, epsilon=1e-6)
    np.testing.assert_allclose(got, (normed(x, (0, 2), 1e-6) + 1) * np.asarray(channels)[:, None], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("x", "scale", "asked", "want"),
    [
        ("float16", "float16", None, "float16"),
        ("float16", "float32", None, "float32"),
        ("bfloat16", "float16", None, "float32"),
        ("int32", None, None, "float32"),
        ("bool", "bfloat16", None, "bfloat16"),
        ("float32", "float32", "float16", "float16"),
        ("float32", "complex64", None, "complex64"),
        ("complex64", "float32", "float16", "complex64"),
    ],
)
@either_mode
def test_result_has_the_result_type_or_the_requested_dtype(x, scale, asked, want, jitted):
    x = jnp.ones((2, 1, 4), x)
    scale = None if scale is None else jnp.ones(4, scale)
    for form in (layer_norm, rms_norm, instance_norm):
        run = lambda x, s, form=form: form(x, s, dtype=asked)  # noqa: E731
        assert (jax.jit(run) if jitted else run)(x, scale).dtype == want


def test_running_statistics_change_precision_but_not_dtype_unless_complex():
    with jax.enable_x64(True):
        x = data((64, 1), "float32")
        mean, variance = jnp.full(1, 1e-9, "float64"), jnp.ones(1, "float64")
        got = batch_norm(x, mean, variance, epsilon=1e-12)
        assert got.dtype == jnp.float32
        want = (np.asarray(x, "float64") - 1e-9) / np.sqrt(1 + 1e-12)
        np.testing.assert_array_equal(got, want.astype("float32"))
        assert batch_norm(x, mean + 0j, variance).dtype == jnp.complex128


@pytest.mark.slow
@every_form
def test_an_empty_batch_gives_an_empty_result(name):
    form, _, _ = FORMS[name]
    x = jnp.zeros((0, 4), jnp.bfloat16)
    assert form(x, epsilon=1e-6).shape == (0, 4)
    assert form(jnp.zeros((2, 0)), epsilon=1e-6).shape == (2, 0)


@pytest.mark.compiled
@pytest.mark.parametrize("epsilon", [2.1e-26, 1e-6, 1e30])
def test_every_accepted_epsilon_keeps_equal_values_finite(epsilon):
    x = np.full((2, 7), 6e4, np.float32)
    summed = jax.value_and_grad(lambda x: jnp.sum(layer_norm(x, epsilon=epsilon) * jnp.arange(7.0)))
    out, slope = jax.jit(summed)(x)
    assert float(out) == 0
    assert np.all(np.isfinite(slope))
