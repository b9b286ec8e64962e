"""Tests of normalization layers: stored values, averages and results under each policy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn import arrays
from nn.arrays import built, call
from supremum import nn
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format
from supremum.nn.layers.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm

LAYERS = {
    "layer_norm": lambda **o: LayerNorm(axes=(1, -1), **o),
    "rms_norm": RMSNorm,
    "rms_norm with an offset": lambda **o: RMSNorm(**{"use_offset": True} | o),
    "group_norm": lambda **o: GroupNorm(2, **o),
    "instance_norm": InstanceNorm,
    "batch_norm": BatchNorm,
}
every_layer = pytest.mark.parametrize("name", LAYERS)
either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
SHAPE = (3, 5, 4)


def data(shape=SHAPE, **options):
    return arrays.data(*shape, **options)


@pytest.mark.one_in(11)
@every_layer
@either_mode
@pytest.mark.parametrize("policy", ["float32", "float16", "mixed_float16", "mixed_bfloat16"])
def test_policy_decides_the_result_and_statistics_are_float32(name, policy, jitted):
    x = data()
    layer = built(LAYERS[name](dtype=policy, epsilon=1e-5), x)
    wide = built(LAYERS[name](dtype="float32", epsilon=1e-5), x)
    seen = jax.device_put(np.asarray(x).astype(layer.compute_dtype).astype("float32"))
    for training in (False, True):
        out, values = call(layer, x, jitted, training=training)
        assert out.dtype == layer.compute_dtype
        assert {value.dtype.name for value in values.values()} <= {"float32"}
        eps = as_format(layer.compute_dtype).eps
        want = call(wide, seen, training=training)[0]
        np.testing.assert_allclose(
            np.asarray(out, "float32"), np.asarray(want), rtol=0.51 * eps, atol=8 * np.finfo("float32").eps
        )


@pytest.mark.one_in(44)
@every_layer
@pytest.mark.parametrize(
    ("given", "param_dtype", "want"),
    [
        ("float16", None, "float32"),
        ("bfloat16", "bfloat16", "bfloat16"),
        ("float64", None, "float64"),
        ("float32", "float64", "float64"),
        ("complex64", None, "complex64"),
        ("int8", None, "float32"),
    ],
)
def test_infer_follows_inputs_and_parameters(name, given, param_dtype, want):
    with jax.enable_x64(True):
        x = data(dtype=given) if given != "int8" else jnp.arange(60, dtype="int8").reshape(SHAPE)
        layer = built(LAYERS[name](dtype="infer", param_dtype=param_dtype), x)
        out, values = call(layer, x, training=True)
        assert out.dtype == want
        assert values["gamma"].dtype == (param_dtype or "float32")
        averages = {
            "float64": ("float64", "float64"),
            "complex64": ("complex64", "float32"),
        }.get(given, ("float32", "float32"))
        if name == "batch_norm":
            assert (values["moving_mean"].dtype, values["moving_variance"].dtype) == averages
            wide = np.asarray(x).astype("complex128" if given == "complex64" else "float64")
            np.testing.assert_allclose(values["moving_mean"], 0.01 * wide.mean((0, 1)), rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(values["moving_variance"], 0.99 + 0.01 * wide.var((0, 1)), rtol=1e-6)


@every_layer
def test_a_fixed_policy_leaves_complex_inputs_complex(name):
    x = data(dtype="complex64")
    layer = built(LAYERS[name](dtype="mixed_float16"), x)
    assert call(layer, x, training=True)[0].dtype == "complex64"


@pytest.mark.one_in(6)
@every_layer
def test_scale_and_offset_are_trainable_and_optional(name):
    x = data()
    layer = built(LAYERS[name](scale_initializer=lambda k, s, d: jnp.full(s, 3, d)), x)
    plain = built(LAYERS[name](use_scale=False, use_offset=False), x)
    trainable, other = nn.split_variables(layer)
    assert list(trainable) == (["gamma"] if name == "rms_norm" else ["gamma", "beta"])
    assert nn.split_variables(plain)[0] == {}
    want = 3 * call(plain, x, training=True)[0]
    np.testing.assert_allclose(call(layer, x, training=True)[0], want, rtol=1e-5, atol=1e-6)
    weights = data(seed=1)
    slopes = jax.jit(
        jax.grad(lambda t: jnp.sum(nn.functional_call(layer, t | other, x, training=True)[0] * weights).real)
    )(trainable)
    assert all(np.any(slope) for slope in slopes.values())


class TestBatchNorm:
    def test_channels_may_be_any_axis(self):
        x = data()
        last = built(BatchNorm(), x)
        for axis in (1, -2):
            middle = built(BatchNorm(axis=axis), jnp.moveaxis(x, -1, 1))
            out, values = call(middle, jnp.moveaxis(x, -1, 1), training=True)
            want, averages = call(last, x, training=True)
            np.testing.assert_allclose(jnp.moveaxis(out, 1, -1), want, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(values["moving_mean"], averages["moving_mean"], rtol=1e-6)

    @pytest.mark.parametrize("shape", [(3, 5), (3, 5, 1), (3, 5, 4)])
    def test_masked_positions_do_not_count(self, shape):
        x = data()
        layer = built(BatchNorm(momentum=0), x)
        mask = jnp.zeros((3, 5), bool).at[:2, :3].set(True).reshape(3, 5, 1)
        mask = mask[..., 0] if len(shape) == 2 else jnp.broadcast_to(mask, shape)
        out, values = call(layer, x.at[:, 3:].set(1e9), training=True, mask=mask)
        real = np.asarray(x[:2, :3], "float64").reshape(6, 4)
        np.testing.assert_allclose(values["moving_mean"], real.mean(0), rtol=1e-5)
        np.testing.assert_allclose(values["moving_variance"], real.var(0), rtol=1e-5)
        want = (real - real.mean(0)) / np.sqrt(real.var(0) + 1e-3)
        np.testing.assert_allclose(out[:2, :3].reshape(6, 4), want, rtol=1e-4, atol=1e-6)

    def test_empty_batch_does_not_change_averages(self):
        layer = built(BatchNorm(), data())
        for x, mask in ((data((0, 5, 4)), None), (data(), jnp.zeros((3, 5), bool))):
            out, values = call(layer, x, training=True, mask=mask)
            assert jnp.all(jnp.isfinite(out))
            assert values["moving_mean"].tolist() == [0] * 4
            assert values["moving_variance"].tolist() == [1] * 4

    def test_averages_of_float64_inputs_are_float64(self):
        with jax.enable_x64(True):
            x = data(dtype="float64")
            layer = built(BatchNorm(dtype="infer", momentum=0.9), x)
            _, values = call(layer, x, training=True)
            np.testing.assert_allclose(values["moving_mean"], 0.1 * np.asarray(x).mean((0, 1)), rtol=1e-12)

    def test_averages_of_integers_have_the_wide_compute_dtype(self):
        with jax.enable_x64(True):
            x = jnp.asarray([[2**24 + 1], [2**24 + 1]], "int32")
            layer = built(BatchNorm(dtype="float64", momentum=0), x)
            assert call(layer, x, training=True)[1]["moving_mean"].tolist() == [2**24 + 1]

    def test_complex_inputs_raise_with_real_averages(self):
        layer = built(BatchNorm(dtype="infer"), data())
        with pytest.raises(
            OperandError,
            match=r"inputs must be real for a layer that was.*, got a complex64 mean for the float32 moving_mean",
        ):
            call(layer, data(dtype="complex64"), training=True)
        assert call(layer, data(dtype="complex64"))[0].dtype == "complex64"

    def test_complex_averages_make_results_of_real_inputs_complex(self):
        layer = built(BatchNorm(dtype="infer"), data(dtype="complex64"))
        assert call(layer, data())[0].dtype == "complex64"


@pytest.mark.slow
@every_layer
def test_inputs_of_a_different_shape_than_at_build_raise(name):
    layer = built(LAYERS[name](), data())
    with pytest.raises(ArgumentError, match="input 0 must have length 4 along axis -1, got 3"):
        layer(data((3, 5, 3)))
    assert layer(data((0, 5, 4))).shape == (0, 5, 4)
