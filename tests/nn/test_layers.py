import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn import arrays
from nn.arrays import built
from supremum import nn
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.mixed_precision import Policy, PolicyWarning

POLICIES = ["float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]
every_policy = pytest.mark.parametrize("policy", POLICIES)
either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


def data(shape, dtype="float32", seed=0):
    return arrays.data(*shape, dtype=dtype, seed=seed)


def call(layer, x, jitted, **kwargs):
    def run(variables, x):
        return nn.functional_call(layer, variables, x, **kwargs)

    trainable, other = nn.split_variables(layer)
    return (jax.jit(run) if jitted else run)(trainable | other, x)


LAYERS = {
    "dense": (lambda p: nn.Dense(5, dtype=p), (4, 3)),
    "conv1": (lambda p: nn.Conv(5, (3,), dtype=p), (2, 8, 3)),
    "conv2": (lambda p: nn.Conv(5, (3, 2), strides=(2, 1), padding="VALID", dtype=p), (2, 8, 8, 3)),
    "conv3": (lambda p: nn.Conv(5, (2, 2, 2), use_bias=False, dtype=p), (2, 4, 4, 4, 3)),
    "batch_norm": (lambda p: nn.BatchNorm(dtype=p), (6, 4, 3)),
    "relu": (lambda p: nn.ReLU(dtype=p), (4, 3)),
    "activation": (lambda p: nn.Activation(jax.nn.gelu, dtype=p), (4, 3)),
    "max_pool": (lambda p: nn.MaxPool((2, 2), dtype=p), (2, 4, 4, 3)),
    "flatten": (lambda p: nn.Flatten(dtype=p), (2, 4, 4, 3)),
}


@pytest.mark.parametrize("named", [
    lambda dtype: nn.Input(2, dtype), lambda dtype: nn.InputSpec(dtype=dtype), lambda dtype: nn.Dense(1, dtype=dtype),
    lambda dtype: nn.Dense(1, param_dtype=dtype), lambda dtype: nn.Dense(1).add_weight("w", (1,), dtype=dtype),
    lambda dtype: nn.Dense(1).full((1,), 1000, dtype), lambda dtype: nn.Dense(1).arange(3, dtype=dtype),
    lambda dtype: nn.Variable(1000, dtype=dtype), lambda dtype: nn.SequentialNetwork([], dtype=dtype),
    lambda dtype: nn.functional.dense(jnp.ones((1, 1)), jnp.ones((1, 1)), dtype=dtype),
    lambda dtype: nn.KeyValueCache.empty(1, 1, 1, 1, dtype=dtype),
    Policy,
])  # fmt: skip
@pytest.mark.parametrize(("dtype", "here", "there"), [("i8", "int8", "int64"), ("f16", "float16", "float128")])
def test_short_names_that_numpy_reads_otherwise_are_refused(named, dtype, here, there):
    with pytest.raises(ArgumentError, match=f"'{dtype}', which is {here} here and {there} in NumPy; use '{here}'"):
        named(dtype)


@pytest.mark.one_in(31)
@pytest.mark.parametrize("name", LAYERS)
@every_policy
@either_mode
@pytest.mark.parametrize("given", ["float32", "bfloat16"])
def test_every_layer_stores_and_returns_the_dtypes_of_its_policy(name, policy, jitted, given):
    make, shape = LAYERS[name]
    x = data(shape, given)
    layer = built(make(policy), x)
    assert bool(layer.variables) == name.startswith(("dense", "conv", "batch_norm"))
    for training in (False, True):
        out, values = call(layer, x, jitted, training=training)
        assert out.dtype == layer.compute_dtype == Policy(policy).compute_dtype
        for path, variable in layer.variables.items():
            stored = variable.read_stored().dtype
            # The statistics and parameters of a norm are in at least float32 under every policy.
            want = np.dtype("float32") if name == "batch_norm" else layer.variable_dtype
            assert stored == values[path].dtype == want


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("name", ["dense", "conv1", "conv2", "conv3", "batch_norm"])
def test_values_and_gradients_agree_with_float64(name, policy):
    make, shape = LAYERS[name]
    x = data(shape)
    layer = built(make(policy), x)
    trainable, _ = nn.split_variables(layer)

    def loss(variables, x, layer):
        return (
            nn.functional_call(layer, variables | other_of(layer), x, training=True)[0].astype("float32") ** 2
        ).mean()

    def other_of(layer):
        return nn.split_variables(layer)[1]

    value, grads = jax.value_and_grad(loss)(trainable, x, layer)
    with jax.enable_x64(True):
        wide = built(make("float64"), x.astype("float64"))
        double = {path: jnp.asarray(np.asarray(leaf), "float64") for path, leaf in trainable.items()}
        want_value, want = jax.value_and_grad(loss)(double, jnp.asarray(np.asarray(x), "float64"), wide)
    eps = as_format(Policy(policy).compute_dtype).eps
    np.testing.assert_allclose(float(value), float(want_value), rtol=20 * eps)
    assert grads.keys() == want.keys() != set()
    for path, gradient in grads.items():
        assert gradient.dtype == np.float32
        scale = np.abs(np.asarray(want[path])).max()
        np.testing.assert_allclose(np.asarray(gradient), np.asarray(want[path]), atol=20 * eps * scale + 4 * eps)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["dense", "conv"])
def test_products_accumulate_in_float32_and_round_once(dtype, kind):
    x, kernel = (jnp.abs(data(shape, dtype, seed)) for shape, seed in (((8, 4096), 1), ((4096, 16), 2)))
    want = np.asarray(x, np.float64) @ np.asarray(kernel, np.float64)
    if kind == "dense":
        got = nn.functional.dense(x, kernel)
    else:
        got = nn.functional.conv(x[:, None], kernel[None], strides=(1,), padding="SAME")[:, 0]
    error = np.abs(np.asarray(got, np.float64) - want) / want
    assert error.max() <= 0.51 * as_format(dtype).eps


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["dense", "conv"])
def test_products_of_the_backward_pass_stay_in_the_compute_dtype(dtype, kind):
    make, shape = LAYERS["dense" if kind == "dense" else "conv2"]
    x = data(shape)
    layer = built(make(f"mixed_{dtype}"), x)
    trainable, _ = nn.split_variables(layer)

    def loss(variables, x):
        return nn.functional_call(layer, variables, x)[0].astype("float32").sum()

    products = [
        equation
        for equation in jax.make_jaxpr(jax.grad(loss, (0, 1)))(trainable, x).eqns
        if equation.primitive.name in ("dot_general", "conv_general_dilated")
    ]
    assert len(products) == 3
    for equation in products:
        assert {str(v.aval.dtype) for v in (*equation.invars, *equation.outvars)} == {dtype}


@pytest.mark.slow
@every_policy
def test_batch_norm_normalizes_and_updates_its_averages(policy):
    x = data((64, 5)) * 3 + 7
    layer = built(nn.BatchNorm(momentum=0.9, epsilon=1e-5, dtype=policy), x)
    out, values = call(layer, x, jitted=True, training=True)
    seen = np.asarray(x.astype(layer.compute_dtype), np.float64)
    tolerance = 8 * as_format(layer.compute_dtype).eps
    np.testing.assert_allclose(np.asarray(out, np.float64).mean(0), 0, atol=tolerance)
    np.testing.assert_allclose(np.asarray(out, np.float64).std(0), 1, atol=tolerance)
    np.testing.assert_allclose(values["moving_mean"], 0.1 * seen.mean(0), rtol=1e-5)
    np.testing.assert_allclose(values["moving_variance"], 0.9 + 0.1 * seen.var(0), rtol=1e-5)
    outside, unchanged = call(layer, x, jitted=True, training=False)
    np.testing.assert_allclose(np.asarray(outside, np.float64), seen / np.sqrt(1 + 1e-5), rtol=tolerance)
    assert all(np.all(np.asarray(unchanged[path]) == v.read_stored()) for path, v in layer.variables.items())


def test_float16_statistics_do_not_overflow_in_squares():
    x = jnp.tile(jnp.asarray([[-6e4], [6e4]], jnp.float16), (32, 3))
    layer = built(nn.BatchNorm(dtype="mixed_float16"), x)
    out, _ = call(layer, x, jitted=True, training=True)
    assert np.all(np.isfinite(np.asarray(out, np.float32)))
    np.testing.assert_allclose(np.abs(np.asarray(out, np.float32)).max(), 1, atol=1e-3)


def test_max_pool_returns_maxima_and_their_gradients():
    x = jnp.arange(16.0).reshape(1, 4, 4, 1)
    pool = nn.MaxPool((2, 2))
    assert np.asarray(pool(x)).ravel().tolist() == [5, 7, 13, 15]
    assert float(jax.grad(lambda x: pool(x).sum())(x).sum()) == 4


class TestSequential:
    def net(self, policy="mixed_float16"):
        layers = [
            nn.Conv(2, (3, 3), dtype=policy),
            nn.ReLU(dtype=policy),
            nn.Conv(2, (3, 3), dtype="float32"),
            nn.Flatten(),
        ]
        return nn.SequentialNetwork([*layers, nn.Dense(3, dtype=policy)])

    @pytest.mark.slow
    def test_paths_name_every_variable_once(self):
        net = built(self.net(), data((1, 4, 4, 1)))
        assert list(net.variables) == [
            "conv/kernel", "conv/bias", "conv_1/kernel", "conv_1/bias", "dense/kernel", "dense/bias",
        ]  # fmt: skip

    def test_sequential_does_not_cast(self):
        assert nn.SequentialNetwork([])(data((2,), "float16")).dtype == jnp.float16
        net = built(nn.SequentialNetwork([nn.Dense(3, dtype="float32")], dtype="float16"), data((2, 2)))
        assert net(data((2, 2))).dtype == jnp.float32

    def test_sequential_has_the_global_policy_by_default(self):
        assert self.net().dtype_policy == Policy("float32")
        assert nn.SequentialNetwork([nn.Dense(1)], dtype="bfloat16").dtype_policy == Policy("bfloat16")

    def test_equal_seeds_give_equal_weights_and_layers_differ(self):
        x = data((1, 4, 4, 2))
        nets = [built(self.net(), x, seed=seed) for seed in (0, 0, 1)]
        kernels = [[np.asarray(v.read_stored()) for p, v in n.variables.items() if "kernel" in p] for n in nets]
        assert all(np.array_equal(a, b) for a, b in zip(kernels[0], kernels[1], strict=True))
        assert not np.array_equal(kernels[0][0], kernels[2][0])
        assert not np.array_equal(kernels[0][0], kernels[0][1])


class DtypeRecorder(nn.Layer):
    """A layer that records the dtypes that `call` sees."""

    def build(self, input_shape):
        self.w = self.add_weight("w", (2,), jax.nn.initializers.ones)
        self.plain = self.add_weight("plain", (2,), jax.nn.initializers.ones, autocast=False)
        self.count = self.add_weight("count", (), lambda key, shape, dtype: jnp.zeros(shape, dtype), dtype="int32")

    def call(self, x, extra=None, *, training=False):
        self.seen = {"x": x.dtype, "w": self.w.value.dtype, "w.dtype": self.w.dtype, "plain": self.plain.value.dtype}
        self.seen |= {"count": self.count.value.dtype, "extra": jax.tree.map(lambda leaf: leaf.dtype, extra)}
        if training:
            self.w.assign(self.w.read_stored() + jnp.float32(1e-4))
        return x


def test_inputs_and_autocast_variables_are_cast_only_inside_call():
    layer = DtypeRecorder(dtype="mixed_float16")
    extra = {"f": np.ones(1, np.float64), "i": np.arange(2, dtype=np.int8), "c": jnp.ones(1, jnp.complex64)}
    nn.initialize(layer, data((2,)))
    with pytest.warns(PolicyWarning, match="narrows its float64 inputs to float16: use dtype='infer'"):
        layer(data((2,)), extra=extra)
    layer(data((2,)), extra=extra)  # no second warning
    f16, f32 = np.dtype("float16"), np.dtype("float32")
    assert layer.seen == {
        "x": f16, "w": f16, "w.dtype": f16, "plain": f32, "count": np.dtype("int32"),
        "extra": {"f": f16, "i": np.dtype("int8"), "c": np.dtype("complex64")},
    }  # fmt: skip
    assert extra["f"].dtype == np.float64
    assert (layer.w.dtype, layer.w.value.dtype, layer.w.true_dtype) == (f32, f32, f32)
    assert isinstance(layer.w, nn.AutoCastVariable)
    assert not isinstance(layer.plain, nn.AutoCastVariable)
    assert not isinstance(layer.count, nn.AutoCastVariable)


def test_outputs_have_the_output_dtype_of_the_policy():
    x = data((2,))
    layer = built(DtypeRecorder(dtype="variable=float32,compute=bfloat16,output=float16"), x)
    for jitted in (False, True):
        assert call(layer, x, jitted)[0].dtype == "float16"
    assert (layer.seen["x"], layer.compute_dtype) == ("bfloat16", "bfloat16")
    chain = built(
        nn.SequentialNetwork([DtypeRecorder(dtype="variable=float32,compute=bfloat16,output=float16"), nn.ReLU()]), x
    )
    assert chain(x).dtype == "float32"


def test_float64_outputs_of_a_layer_that_infers_its_compute_dtype():
    with jax.enable_x64(True):
        layer = built(nn.Dense(3, dtype="variable=float32,compute=infer,output=float64"), data((2,)))
        for jitted in (False, True):
            assert call(layer, data((2,)), jitted)[0].dtype == "float64"


def test_integer_policy_does_not_cast_floats():
    layer = built(DtypeRecorder(dtype="int32"), jnp.asarray([1, 2]))
    assert layer(jnp.asarray([1.5, 2.5])).tolist() == [1.5, 2.5]
    assert layer.w.dtype == "int32"


def test_assigning_inside_call_never_casts():
    """Keras 3 casts the assigned value too, and loses 1e-4 that is added to a float32 weight of a float16 layer."""
    layer = DtypeRecorder(dtype="mixed_float16")
    nn.initialize(layer, data((2,)))
    layer(data((2,)), training=True)
    np.testing.assert_array_equal(np.asarray(layer.w.value), np.float32(1) + np.float32(1e-4))


def test_the_autocast_scope_ends_with_an_error():
    class Failing(nn.Layer):
        def call(self, x):
            raise RuntimeError("on purpose")

    layer = DtypeRecorder(dtype="mixed_float16")
    nn.initialize(layer, data((2,)))
    with pytest.raises(RuntimeError, match="on purpose"):
        Failing(dtype="float16")(data((2,)))
    assert layer.w.dtype == np.float32


def test_a_jitted_function_is_traced_again_in_each_layer():
    layer = DtypeRecorder(dtype="mixed_float16")
    nn.initialize(layer, data((2,)))
    reader = jax.jit(lambda: layer.w.value)

    class Reading(nn.Layer):
        def call(self, x):
            return reader()

    dtypes = [Reading(dtype=dtype)(data((2,))).dtype for dtype in ("float16", "bfloat16", "float16")]
    assert dtypes == [np.dtype("float16"), jnp.bfloat16, np.dtype("float16")]
    assert reader().dtype == np.float32


class TestFunctionalCall:
    def test_functional_call_returns_new_values_and_keeps_variables(self):
        x = data((8, 3))
        layer = built(nn.BatchNorm(dtype="mixed_float16"), x)
        before = {path: np.asarray(v.value) for path, v in layer.variables.items()}
        with jax.checking_leaks():
            _, values = call(layer, x, jitted=True, training=True)
        assert list(before) == ["gamma", "beta", "moving_mean", "moving_variance"]
        assert all(np.array_equal(v.value, before[path]) for path, v in layer.variables.items())
        changed = {path for path in values if not np.array_equal(values[path], before[path])}
        assert changed == {"moving_mean", "moving_variance"}

    def test_functional_call_uses_given_values_and_keeps_others(self):
        layer = built(nn.Dense(2), jnp.ones((1, 2)))
        kernel = layer.kernel.value
        out, values = nn.functional_call(layer, {"bias": jnp.full(2, 5.0)}, jnp.ones((1, 2)))
        np.testing.assert_allclose(out, jnp.ones((1, 2)) @ kernel + 5)
        assert list(values) == ["bias"]

    def test_unknown_path_raises_with_its_name(self):
        layer = built(nn.Dense(2), jnp.ones((1, 2)))
        with pytest.raises(ValueError, match="unknown variable 'kernle': did you mean 'kernel'"):
            nn.functional_call(layer, {"kernle": 0}, jnp.ones((1, 2)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: nn.functional_call(nn.Dense(2), {}, jnp.ones((1, 2))),
            RuntimeError,
            "the layer has no weights yet",
        ),
        (
            lambda: built(nn.Conv(2, (3, 3)), jnp.ones((1, 2))),
            ValueError,
            r"inputs must have shape \(batch, 2 spatial dimensions, channels\) for kernel_size=\(3, 3\), got \(1, 2\)",
        ),
        (lambda: nn.Dense(2, dtype="flaot16"), ValueError, "did you mean 'float16'"),
        (
            lambda: built(nn.Dense(2), jnp.ones((1, 2))).bias.assign(jnp.ones(2, "complex64")),
            ValueError,
            "complex64 cannot be stored in float32",
        ),
        (
            lambda: built(nn.Dense(2), jnp.ones((1, 2))).bias.assign(jnp.ones(3)),
            ValueError,
            r"the new value of variable 'bias' must have shape \(2,\), got \(3,\)",
        ),
    ],
)
def test_mistakes_get_a_clear_error(make, error, message):
    with pytest.raises(error, match=message):
        make()
