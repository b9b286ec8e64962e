"""Programs lowered for GPUs and TPUs on a CPU: products in the policy's dtypes, no float64 and no callbacks."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import supremum
from slowly import mostly_slow
from supremum import nn
from supremum.mixed_precision import (
    DynamicLossScale,
    Policy,
    all_reduce_gradients,
    autocast,
    scaled_value_and_grad,
    use_policy,
)
from supremum.optimizers import Adam, LossScaleOptimizer
from supremum.training import Batch, DataParallel, MeanSquaredError, init_state, train_step

PLATFORMS = ("cuda", "rocm", "tpu")
ELEMENT_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}
_PRODUCT = re.compile(r"stablehlo\.(?:dot_general|dot|convolution)\b[^\n]*: \(tensor<([^>]*)>, tensor<([^>]*)>\)")
_CUSTOM_CALL = re.compile(r"stablehlo\.custom_call @([\w.]+)")
# Sharding and GPU kernels; a callback to Python has a different name.
_CALLS = re.compile(
    r"Sharding|SPMD|cu_threefry|hip_threefry|shard_map|mhlo\.|xla\.sdy|cudnn|cublas|tpu_custom_call|annotate"
)


def lowered(function, *args, platform):
    """Return the StableHLO of a function for a platform."""
    (text,) = lowered_for(function, *args, platforms=(platform,))
    return text


def lowered_for(function, *args, platforms=PLATFORMS):
    """Trace a function once, and return its StableHLO for each platform."""
    traced = jax.jit(function).trace(*args)
    return [traced.lower(lowering_platforms=(platform,)).as_text() for platform in platforms]


def products(text):
    """Return the element types of the operands of every product and convolution."""
    return {part.rpartition("x")[2] for pair in _PRODUCT.findall(text) for part in pair}


def assert_program_valid(text, dtypes):
    """Assert what must hold for every lowered program."""
    assert products(text) <= dtypes, products(text)
    assert not re.search(r"tensor<(?:[\dx?]*x)?(?:f64|complex<f64>)>", text)
    assert "callback" not in text
    assert [name for name in _CUSTOM_CALL.findall(text) if not _CALLS.search(name)] == []


def test_the_check_of_lowered_programs_rejects_other_custom_calls_and_dtypes():
    eye = jnp.eye(3)
    with pytest.raises(AssertionError, match="cusolver"):
        assert_program_valid(lowered(jnp.linalg.cholesky, eye, platform="cuda"), set())
    with pytest.raises(AssertionError, match="f32"):
        assert_program_valid(lowered(jnp.matmul, eye, eye, platform="cuda"), {"f16"})


def data(*shape, dtype="float32"):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), dtype)


LAYERS = {
    "dense": (lambda: nn.Dense(5), (4, 3)),
    "dense general": (lambda: nn.DenseGeneral((2, 5)), (4, 3)),
    "einsum": (lambda: nn.Einsum("...i,io->...o", (3, 5)), (4, 3)),
    "conv": (lambda: nn.Conv(5, (3, 3)), (2, 8, 8, 3)),
    "conv transpose": (lambda: nn.ConvTranspose(5, (3, 3)), (2, 8, 8, 3)),
    "attention": (lambda: nn.MultiHeadAttention(2), (2, 6, 8)),
    "lstm": (lambda: nn.RNN(nn.LSTMCell(4)), (2, 6, 3)),
    "gru": (lambda: nn.RNN(nn.GRUCell(4)), (2, 6, 3)),
    "batch norm": (lambda: nn.BatchNorm(), (6, 4, 3)),
    "layer norm": (lambda: nn.LayerNorm(), (6, 4)),
    "rms norm": (lambda: nn.RMSNorm(), (6, 4)),
    "group norm": (lambda: nn.GroupNorm(2), (2, 4, 4, 4)),
    "dropout": (lambda: nn.Dropout(0.5), (4, 3)),
    "pooling": (lambda: nn.MaxPool((2, 2)), (2, 4, 4, 3)),
    "softmax": (lambda: nn.Softmax(), (4, 3)),
}


@pytest.mark.parametrize("platform", mostly_slow(PLATFORMS, "cuda"))
@pytest.mark.parametrize(
    "policy", mostly_slow(("float32", "mixed_float16", "mixed_bfloat16", "infer"), "mixed_float16")
)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_and_gradients_multiply_in_the_compute_dtype(name, policy, platform):
    make, shape = LAYERS[name]
    with use_policy(policy):
        layer = make()
    x = data(*shape)
    nn.initialize(layer, x, seed=0)
    trainable, other = nn.split_variables(layer)

    def loss(trainable, x, key):
        values = nn.functional_call(layer, trainable | other, x, training=True, random_key=key)[0]
        return values.astype("float32").sum()

    text = lowered(jax.value_and_grad(loss, (0, 1)), trainable, x, jax.random.key(0), platform=platform)
    compute = Policy(policy).compute_dtype
    # `dot_product_attention` multiplies probabilities in float32: in float16 the small ones would be 0.
    assert_program_valid(
        text,
        {ELEMENT_TYPES["float32" if compute is None else str(compute)]} | ({"f32"} if name == "attention" else set()),
    )
    has_product = not name.endswith(("norm", "dropout", "pooling", "softmax"))
    assert bool(products(text)) == has_product


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("transformation", [lambda f: f, jax.value_and_grad, lambda f: jax.grad(jax.checkpoint(f))])
def test_autocast_functions_multiply_in_the_compute_dtype(transformation, policy):
    def program(w, x):
        x, _ = jax.lax.scan(lambda carry, _: (jnp.tanh(carry @ w), None), x, length=3)
        return jax.nn.logsumexp(x @ w.T, axis=-1).mean()

    function = transformation(autocast(program, policy))
    for text in lowered_for(function, data(4, 4), data(2, 4)):
        assert_program_valid(text, {ELEMENT_TYPES[str(Policy(policy).compute_dtype)]})


@pytest.mark.parametrize("policy", mostly_slow(("float32", "mixed_float16", "mixed_bfloat16"), "mixed_float16"))
def test_training_steps_multiply_in_the_compute_dtype(policy):
    model = nn.SequentialNetwork(
        [nn.Conv(4, (3, 3)), nn.BatchNorm(), nn.ReLU(), nn.Flatten(), nn.Dense(2)], dtype=policy
    )
    x, y = data(4, 6, 6, 1), data(4, 2)
    nn.initialize(model, x, seed=0)
    optimizer = LossScaleOptimizer(Adam()) if Policy(policy).loss_scale else Adam()
    step = train_step(model, MeanSquaredError(), optimizer)
    for text in lowered_for(step, init_state(model, optimizer), Batch(x, y)):
        assert_program_valid(text, {ELEMENT_TYPES[str(Policy(policy).compute_dtype)]})
        assert products(text)


def test_data_parallel_steps_reduce_float16_gradients():
    model = nn.SequentialNetwork([nn.Dense(8), nn.ReLU(), nn.Dense(2)], dtype="mixed_float16")
    x, y = data(4, 3), data(4, 2)
    nn.initialize(model, x, seed=0)
    optimizer = LossScaleOptimizer(Adam())
    distribution = DataParallel(jax.make_mesh((2,), ("data",), devices=jax.devices()[:2]))
    step = train_step(model, MeanSquaredError(), optimizer, distribution=distribution)
    for text in lowered_for(step, init_state(model, optimizer), Batch(x, y)):
        assert_program_valid(text, {"f16"})
        assert re.search(r"stablehlo\.all_reduce.*?tensor<(?:\d+x)*f16>", text, re.DOTALL)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_all_reduce_gradients_uses_the_given_dtype(dtype):
    mesh = jax.make_mesh((2,), ("data",), devices=jax.devices()[:2])

    def reduce(gradients):
        return all_reduce_gradients(gradients, "data", dtype)

    spec = PartitionSpec()
    function = jax.shard_map(reduce, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    for text in lowered_for(function, {"w": data(4)}):
        assert_program_valid(text, set())
        assert set(re.findall(r"\(tensor<4x(\w+)>\) -> tensor<4x\w+>", text)) >= {ELEMENT_TYPES[dtype]}


def test_scaled_gradients_and_arrays_need_no_float64_or_callback():
    def loss(w, x):
        return ((x @ w).astype("float32") ** 2).mean()

    loss_scale = DynamicLossScale()
    scaled_loss = scaled_value_and_grad(loss, loss_scale)
    operands = data(3, 2, dtype="float16"), data(4, 3, dtype="float16")
    for text in lowered_for(scaled_loss, loss_scale.init(), *operands):
        assert_program_valid(text, {"f16"})

    def arrays(a, b):
        with supremum.use_rules("torch"):
            return (supremum.Array(a) * supremum.Array(b) + 1.5).unwrap()

    for text in lowered_for(arrays, data(3, dtype="float16"), jnp.ones(3, "int8")):
        assert_program_valid(text, set())


def test_the_program_check_detects_float64_and_wrong_products():
    def in_float64(x):
        return x.astype("float64") * 2

    def with_a_callback(x):
        return jax.pure_callback(np.sin, x, x)

    with jax.enable_x64(True):
        wide = lowered(in_float64, jnp.ones(2, "float32"), platform="cuda")
    for text, dtypes in (
        (wide, set()),
        (lowered(lambda x: x @ x, jnp.ones((2, 2)), platform="cuda"), {"f16"}),
    ):
        with pytest.raises(AssertionError):
            assert_program_valid(text, dtypes)
    with pytest.raises(ValueError, match="different from the lowering platform"):  # JAX itself rejects a callback
        lowered(with_a_callback, jnp.ones(2), platform="cuda")
