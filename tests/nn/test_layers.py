from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn import arrays
from nn.arrays import built, call
from supremum import nn
from supremum.errors import ArgumentError, OperandError, SupremumError
from supremum.formats import as_format
from supremum.mixed_precision import Policy, PolicyWarning
from supremum.nn import functional

POLICIES = ["float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16", "infer"]
every_policy = pytest.mark.parametrize("policy", POLICIES)
either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


def data(shape, dtype="float32", seed=0):
    return arrays.data(*shape, dtype=dtype, seed=seed)


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


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "float16"])
def test_array_helpers_make_arrays_in_the_compute_dtype(policy):
    layer = nn.Dense(1, dtype=policy)
    expected = {
        "full": np.full((2, 3), 1.5), "zeros": np.zeros((2, 3)), "ones": np.ones((2, 3)), "eye": np.eye(2, 3),
        "arange": np.arange(1, 9, 3), "constant": np.array([[1.0, 2.0]]),
    }  # fmt: skip
    arguments = {"full": ((2, 3), 1.5), "eye": (2, 3), "arange": (1, 9, 3), "constant": ([[1.0, 2.0]],)}
    for name, values in expected.items():
        array = getattr(layer, name)(*arguments.get(name, ((2, 3),)))
        assert (array.dtype, array.tolist()) == (layer.compute_dtype, values.tolist()), name
        assert getattr(layer, name)(*arguments.get(name, ((2, 3),)), dtype="float32").dtype == "float32"


ACTIVATIONS = {
    "leaky_relu": (nn.LeakyReLU, functional.leaky_relu),
    "elu": (nn.ELU, functional.elu),
    "gelu": (nn.GELU, functional.gelu),
    "silu": (nn.SiLU, functional.silu),
    "sigmoid": (nn.Sigmoid, functional.sigmoid),
    "tanh": (nn.Tanh, functional.tanh),
    "softmax": (nn.Softmax, functional.softmax),
    "activation": (lambda **o: nn.Activation("softsign", **o), jax.nn.soft_sign),
}
CONV, WIDE = {"padding": 1, "kernel_dilation": (1, 2)}, {"strides": (2, 1), "kernel_dilation": 2}
# The layer, the shapes of its input, its weights and its output, and its function if there are no weights.
LAYERS = {
    "dense": (lambda **o: nn.Dense(4, **o), (2, 3), {"kernel": (3, 4), "bias": (4,)}, (2, 4), None),
    "dense_general": (lambda **o: nn.DenseGeneral((4, 5), axis=(-1, 1), batch_axis=(0,), **o), (2, 3, 6, 7),
                      {"kernel": (2, 7, 3, 4, 5), "bias": (2, 4, 5)}, (2, 6, 4, 5), None),
    "einsum": (lambda **o: nn.Einsum("bti,hio->bhto", (2, 3, 4), bias_shape=(2, 4), **o), (5, 6, 3),
               {"kernel": (2, 3, 4), "bias": (2, 4)}, (5, 2, 6, 4), None),
    "conv": (lambda **o: nn.Conv(4, (3, 2), strides=2, groups=2, **CONV, **o), (2, 5, 6, 4),
             {"kernel": (3, 2, 2, 4), "bias": (4,)}, (2, 3, 3, 4), None),
    "conv 1d": (lambda **o: nn.Conv(4, (3,), input_dilation=2, **o), (2, 5, 3),
                {"kernel": (3, 3, 4), "bias": (4,)}, (2, 9, 4), None),
    "conv 3d": (lambda **o: nn.Conv(5, (2, 2, 2), use_bias=False, **o), (2, 4, 4, 4, 3),
                {"kernel": (2, 2, 2, 3, 5)}, (2, 4, 4, 4, 5), None),
    "conv_transpose": (lambda **o: nn.ConvTranspose(5, (3, 3), **WIDE, **o), (2, 3, 4, 2),
                       {"kernel": (3, 3, 2, 5), "bias": (5,)}, (2, 6, 4, 5), None),
    "conv_transpose of the transposed": (
        lambda **o: nn.ConvTranspose(5, (3,), padding="VALID", transpose_kernel=True, use_bias=False, **o), (2, 3, 2),
        {"kernel": (3, 5, 2)}, (2, 5, 5), None),
    "batch_norm": (nn.BatchNorm, (6, 4, 3), dict.fromkeys(["gamma", "beta", "moving_mean", "moving_variance"], (3,)),
                   (6, 4, 3), None),
    "relu": (nn.ReLU, (4, 3), {}, (4, 3), functional.relu),
    "max_pool": (lambda **o: nn.MaxPool((2, 2), **o), (2, 4, 4, 3), {}, (2, 2, 2, 3),
                 lambda x: functional.max_pool(x, (2, 2))),
    "avg_pool": (lambda **o: nn.AvgPool((2, 2), **o), (2, 4, 4, 3), {}, (2, 2, 2, 3),
                 lambda x: functional.avg_pool(x, (2, 2))),
    "global max": (nn.GlobalMaxPool, (2, 4, 4, 3), {}, (2, 3), functional.global_max_pool),
    "global average": (nn.GlobalAveragePool, (2, 4, 4, 3), {}, (2, 3), functional.global_average_pool),
    "flatten": (nn.Flatten, (2, 3, 4), {}, (2, 12), lambda x: x.reshape(len(x), 12)),
    "reshape": (lambda **o: nn.Reshape([-1, 2, 2], **o), (2, 3, 4), {}, (2, 3, 2, 2), lambda x: x.reshape(2, 3, 2, 2)),
    "permute": (lambda **o: nn.Permute((2, 1), **o), (2, 3, 4), {}, (2, 4, 3), lambda x: x.transpose(0, 2, 1)),
    **{name: (make, (3, 4), {}, (3, 4), function) for name, (make, function) in ACTIVATIONS.items()},
}  # fmt: skip
KEEP_INTEGERS = {"relu", "max_pool", "global max", "flatten", "reshape", "permute"}
REAL = {"relu", "leaky_relu", "elu", "gelu", "softmax", "max_pool", "global max"}


@pytest.mark.one_in(31)
@pytest.mark.parametrize("name", LAYERS)
@every_policy
@either_mode
def test_every_layer_has_the_dtypes_of_its_policy(name, policy, jitted):
    make, shape, weights, out_shape, function = LAYERS[name]
    layer = built(make(dtype=policy, name="mine"), data(shape))
    run = jax.jit(layer) if jitted else layer
    assert layer.name == "mine"
    assert {path: v.shape for path, v in layer.variables.items()} == weights
    # The statistics and parameters of a norm are in at least float32 under every policy.
    stored = np.dtype("float32") if name == "batch_norm" else layer.variable_dtype
    assert {v.read_stored().dtype for v in layer.variables.values()} <= {stored}
    for given in ("float32", "bfloat16"):
        got = run(data(shape, given))
        inferred = given if function else "float32"
        assert (got.shape, got.dtype) == (out_shape, layer.compute_dtype or inferred)
        if function:
            want = np.asarray(function(data(shape, given).astype(got.dtype)), "float32")
            eps = as_format(got.dtype).eps
            np.testing.assert_allclose(np.asarray(got, "float32"), want, rtol=2 * eps, atol=1e-6)
    integers = jax.eval_shape(layer, jnp.ones(shape, "int8")).dtype
    assert integers == ("int8" if name in KEEP_INTEGERS else layer.compute_dtype or "float32")
    if name not in REAL:
        assert run(data(shape) + 0j).dtype == "complex64"
    if name != "dense_general":  # there axis 0 has separate matrices
        assert run(jnp.zeros((0, *shape[1:]))).shape[1:] == out_shape[1:]
    narrow = built(make(dtype=policy, param_dtype="bfloat16"), data(shape))
    assert {v.read_stored().dtype for path, v in narrow.variables.items() if "moving" not in path} <= {
        jnp.dtype("bfloat16")
    }


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_works_in_functional_models(name):
    make, shape, _, out_shape, _ = LAYERS[name]
    x = nn.Input(shape[1:], batch_size=shape[0] if name == "dense_general" else None)
    y = make()(x)
    assert y.shape == (x.shape[0], *out_shape[1:])
    assert nn.Network(x, y).output_spec.shape == y.shape


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("name", ["dense", "conv", "conv 1d", "conv 3d", "batch_norm"])
def test_values_and_gradients_agree_with_float64(name, policy):
    make, shape, *_ = LAYERS[name]
    x = data(shape)
    layer = built(make(dtype=policy), x)
    trainable, _ = nn.split_variables(layer)

    def loss(variables, x, layer):
        return (
            nn.functional_call(layer, variables | other_of(layer), x, training=True)[0].astype("float32") ** 2
        ).mean()

    def other_of(layer):
        return nn.split_variables(layer)[1]

    value, grads = jax.value_and_grad(loss)(trainable, x, layer)
    with jax.enable_x64(True):
        wide = built(make(dtype="float64"), x.astype("float64"))
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
@every_policy
def test_batch_norm_normalizes_and_updates_its_averages(policy):
    x = data((64, 5)) * 3 + 7
    layer = built(nn.BatchNorm(momentum=0.9, epsilon=1e-5, dtype=policy), x)
    out, values = call(layer, x, jitted=True, training=True)
    dtype = layer.compute_dtype or x.dtype  # the inferred one is that of the input
    seen = np.asarray(x.astype(dtype), np.float64)
    tolerance = 8 * as_format(dtype).eps
    np.testing.assert_allclose(np.asarray(out, np.float64).mean(0), 0, atol=tolerance)
    np.testing.assert_allclose(np.asarray(out, np.float64).std(0), 1, atol=tolerance)
    np.testing.assert_allclose(values["moving_mean"], 0.1 * seen.mean(0), rtol=1e-5)
    np.testing.assert_allclose(values["moving_variance"], 0.9 + 0.1 * seen.var(0), rtol=1e-5)
    outside, unchanged = call(layer, x, jitted=True, training=False)
    np.testing.assert_allclose(np.asarray(outside, np.float64), seen / np.sqrt(1 + 1e-5), rtol=tolerance)
    assert all(np.all(np.asarray(unchanged[path]) == v.read_stored()) for path, v in layer.variables.items())


def test_sequential_does_not_cast():
    assert nn.SequentialNetwork([])(data((2,), "float16")).dtype == jnp.float16
    net = built(nn.SequentialNetwork([nn.Dense(3, dtype="float32")], dtype="float16"), data((2, 2)))
    assert net(data((2, 2))).dtype == jnp.float32


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


def test_assigning_inside_call_never_casts():
    """Keras 3 casts the assigned value too, and loses 1e-4 that is added to a float32 weight of a float16 layer."""
    layer = DtypeRecorder(dtype="mixed_float16")
    nn.initialize(layer, data((2,)))
    layer(data((2,)), training=True)
    np.testing.assert_array_equal(np.asarray(layer.w.value), np.float32(1) + np.float32(1e-4))


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


def test_a_jitted_function_is_traced_again_in_each_layer():
    layer = built(DtypeRecorder(dtype="mixed_float16"), data((2,)))
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


class Scaling(nn.Layer):
    """Returns the inputs times each of several numbers, and refuses five features."""

    def __init__(self, *factors):
        super().__init__(dtype="infer")
        self.factors = factors

    def call(self, x):
        if x.shape[-1] == 5:
            raise ArgumentError("five features")
        return [x * factor for factor in self.factors]


class TestOutputSpec:
    @pytest.mark.parametrize("shape", [(2, 3), (4, 3)])
    def test_numbers_of_different_types_give_different_dtypes(self, shape):
        layer, integers = Scaling(1, 1.0, True, jnp.ones(())), jax.ShapeDtypeStruct(shape, "int32")
        specs = nn.output_spec(layer, integers)
        assert [str(spec.dtype) for spec in specs] == ["int32", "float32", "int32", "float32"]
        assert all(spec.shape == shape for spec in specs)
        with jax.numpy_dtype_promotion("strict"), pytest.raises(Exception, match="implicit dtype promotion path"):
            nn.output_spec(layer, integers)

    def test_errors_are_those_of_the_call(self):
        with pytest.raises(ArgumentError, match="five features") as caught:
            nn.output_spec(Scaling(1), np.ones((2, 5), "float32"))
        assert not getattr(caught.value, "__notes__", [])


def _flax(*xs, dtype=None):
    """The sample of the FLIP."""
    if dtype is None:
        dtype = jnp.result_type(*jax.tree.leaves(xs))
    return jax.tree.map(lambda x: jnp.asarray(x, dtype), xs)


@either_mode
@pytest.mark.parametrize("trees", [
    ({"kernel": jnp.ones((2, 3), "bfloat16"), "bias": None}, jnp.ones(2, "int8")),
    (jnp.ones(2, "float16"), [jnp.ones(2, "bfloat16"), (2.0, jnp.ones(3, "complex64"))]),
    ({"a": {"b": np.ones(2, "float16")}},),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [None, "complex64"])
def test_promote_dtype_takes_trees_as_in_the_flip(trees, dtype, jitted):
    promote = partial(nn.promote_dtype, dtype=dtype)
    result, expected = (jax.jit(promote) if jitted else promote)(*trees), _flax(*trees, dtype=dtype)
    assert jax.tree.structure(result) == jax.tree.structure(expected)
    assert [leaf.dtype for leaf in jax.tree.leaves(result)] == [leaf.dtype for leaf in jax.tree.leaves(expected)]


def test_promote_dtype_takes_variables_and_refuses_caches():
    x, scale = nn.promote_dtype(jnp.ones(2, "float16"), {"scale": nn.Variable(jnp.ones(2))})
    assert (x.dtype, scale["scale"].dtype) == (jnp.float32, jnp.float32)
    with pytest.raises(OperandError, match="got KeyValueCache"):
        nn.promote_dtype(nn.KeyValueCache.empty(2, 3, 4, 5, dtype="float16"))


def test_an_error_of_build_is_about_the_first_input_only_if_that_is_none():
    class Failing(nn.Layer):
        def build(self, input_shape):
            raise TypeError("of its own")

        def call(self, x):
            return x

    for first, error, message in (
        (None, OperandError, "got None, and failed: of its own"),
        (1.0, TypeError, "^of its"),
    ):
        with pytest.raises(error, match=message):
            Failing()(first)


def test_inputs_that_are_not_arrays_raise_errors_of_this_library():
    makers = [make for make, *_ in LAYERS.values()]
    makers += [nn.LayerNorm, nn.RMSNorm, nn.InstanceNorm, lambda: nn.GroupNorm(3), lambda: nn.LSTMCell(2)]
    makers += [lambda: nn.GRU(2), lambda: nn.Embedding(3, 2), lambda: nn.MultiHeadAttention(2)]
    foreign = []
    for make in makers:
        layer = make()
        for junk in (None, "a", [None], [1, "a"], np.array(["a"]), {"a": 1}, object()):
            try:
                layer(junk)
            except SupremumError:
                continue
            except Exception as error:
                foreign.append((layer, junk, error))
    assert foreign == []
