"""`on` works inside and around all transformations, with autocast in both orders, and says what it cannot do."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from slowly import slow
from supremum import mixed_precision, numerics
from supremum.errors import ArgumentError, UnknownNameError
from supremum.numerics import DEVICES, on, profile
from supremum.numerics.devices import ALGORITHMS, as_device

MODES = pytest.mark.parametrize("mode", [lambda function: function, jax.jit], ids=["eager", "jitted"])
DEVICE = pytest.mark.parametrize("device", ["tpu", pytest.param("h100", marks=pytest.mark.slow)])
W = jax.random.normal(jax.random.key(0), (4, 4)) / 2
X = jax.random.normal(jax.random.key(1), (3, 4))


def same(found, expected):
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def differs(found, expected):
    return any(bool((a != b).any()) for a, b in zip(*map(jax.tree.leaves, (found, expected)), strict=True))


@jax.custom_jvp
def with_jvp(w, x):
    return x @ w @ w.T


@with_jvp.defjvp
def _(operands, tangents):
    (w, x), (dw, dx) = operands, tangents
    return with_jvp(w, x), dx @ w @ w.T + x @ dw @ w.T + x @ w @ dw.T


@jax.custom_vjp
def with_vjp(w, x):
    return x @ w


with_vjp.defvjp(lambda w, x: (x @ w, (w, x)), lambda saved, g: (saved[1].T @ g, g @ saved[0].T))


def plain(w, x):
    return jnp.tanh(x @ w) @ w


def looped(w, x):
    carry, rows = lax.scan(
        jax.checkpoint(lambda c, t: (jnp.tanh(c @ w) + t, (c @ w).sum(1))), x, jnp.ones((3, *x.shape))
    )
    return carry * rows.sum()


def branched(w, x):
    return lax.cond(x.sum() > 0, lambda x: x @ w, lambda x: -(x @ w), x)


def repeated(w, x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.tanh(s[1] @ w)), (0, x))[1]


def convolved(w, x):
    return lax.conv_general_dilated(x[None, None], w[None, None], (1, 1), "SAME", feature_group_count=1)[0, 0]


FUNCTIONS = [plain, looped, branched, convolved, jax.jit(plain), with_jvp, with_vjp]
FUNCTION = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: getattr(f, "__name__", str(f)))


def loss_of(function):
    return lambda w, x: (function(w, x) ** 2).sum()


@DEVICE
@FUNCTION
def test_gradients_round_the_backward_products_inside_and_outside(device, function):
    loss = loss_of(function)
    inside = on(device, jax.grad(loss, (0, 1)))(W, X)
    same(jax.grad(on(device, loss), (0, 1))(W, X), inside)
    assert differs(inside, jax.grad(loss, (0, 1))(W, X))


@MODES
@pytest.mark.parametrize("function", [plain, looped, repeated], ids=lambda f: f.__name__)
def test_vmap_inside_and_outside(function, mode):
    batch = jnp.stack([X, 2 * X])
    inside = mode(on("tpu", jax.vmap(function, (None, 0))))(W, batch)
    same(mode(jax.vmap(on("tpu", function), (None, 0)))(W, batch), inside)


def test_vmap_of_a_product_with_a_vector_is_one_of_matrices():
    # jax#15362
    multiply = on("tpu", lambda w, v: w @ v)
    same(multiply(W, X[0]), W @ X[0])
    rows = jax.vmap(multiply, (None, 0))(W, X)
    same(rows, on("tpu", jax.vmap(lambda w, v: w @ v, (None, 0)))(W, X))
    assert differs(rows, X @ W.T)


@pytest.mark.slow
def test_second_derivatives_and_forward_mode():
    for transformation in (jax.hessian, jax.jacfwd, jax.jacrev):
        same(transformation(on("h100", loss_of(plain)))(W, X), on("h100", transformation(loss_of(plain)))(W, X))
    _, tangent = jax.jvp(on("h100", plain), (W, X), (W, X))
    same(tangent, on("h100", lambda w, x: jax.jvp(plain, (w, x), (w, x))[1])(W, X))


def test_derivative_of_a_product_that_does_not_depend_on_the_argument():
    same(
        jax.grad(on("tpu", lambda w, x: (X @ X.T).sum() * w.sum()))(W, X),
        jnp.full_like(W, on("tpu", jnp.dot)(X, X.T).sum()),
    )


def mapped(function):
    mesh = Mesh(np.array(jax.devices()[:1]), ("i",))
    rows, whole = PartitionSpec("i"), PartitionSpec()
    return jax.shard_map(function, mesh=mesh, in_specs=(whole, rows), out_specs=rows)


@pytest.mark.parametrize("mode", [pytest.param(lambda f: f, marks=pytest.mark.slow), jax.jit], ids=["eager", "jitted"])
def test_shard_map_inside_and_outside(mode):
    expected = on("tpu", plain)(W, X)
    same(mode(on("tpu", mapped(plain)))(W, X), expected)
    same(mode(mapped(on("tpu", plain)))(W, X), expected)


@pytest.mark.slow
def test_gradients_of_shard_map_inside_and_outside():
    gradient = on("tpu", jax.grad(loss_of(plain)))(W, X)
    same(jax.grad(loss_of(on("tpu", mapped(plain))))(W, X), gradient)
    same(jax.grad(loss_of(mapped(on("tpu", plain))))(W, X), gradient)


@pytest.mark.parametrize(("device", "policy"), [
    ("tpu", "mixed_bfloat16"), slow("h100", "mixed_bfloat16"), slow("h100", "mixed_float16"), ("v100", "mixed_float16"),
])  # fmt: skip
def test_autocast_in_both_orders(device, policy):
    def loss(w, b, x):
        return jnp.mean(jnp.tanh(x @ w + b) ** 2)

    operands = W, jnp.arange(4.0) / 7, X
    cast = jax.grad(mixed_precision.autocast(loss, policy), (0, 1))(*operands)
    same(jax.grad(mixed_precision.autocast(on(device, loss), policy), (0, 1))(*operands), cast)
    same(jax.grad(on(device, mixed_precision.autocast(loss, policy)), (0, 1))(*operands), cast)


def test_products_that_autocast_leaves_in_float32_are_rounded_in_both_orders():
    def layer(w, x):
        with mixed_precision.autocast.disabled():
            return x @ w

    expected = on("h100", lambda w, x: x @ w)(W, X)
    same(mixed_precision.autocast(on("h100", layer), "mixed_bfloat16")(W, X), expected)
    same(on("h100", mixed_precision.autocast(layer, "mixed_bfloat16"))(W, X), expected)


def test_an_inner_device_stays():
    same(on("h100", on("tpu", plain))(W, X), on("tpu", plain)(W, X))
    same(on("cpu", plain)(W, X), plain(W, X))


def test_a_profile_counts_the_products_of_a_device():
    found = profile(on("tpu", plain), formats=["float16"])(W, X)
    same(found.outputs, on("tpu", plain)(W, X))
    assert sum(row.primitive.startswith("dot_general") for row in found.rows) == 2


def test_arguments_that_are_not_arrays_are_passed_on():
    found = on("tpu", lambda x, name, scale: {name: scale * (x @ x.T)})(X, "y", 2)
    same(found, {"y": 2 * on("tpu", lambda x: x @ x.T)(X)})


def test_debug_nans_names_the_line():
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"test_devices.py.*under on\('tpu'\)"):
        on("tpu", lambda x: jnp.log(x @ x.T))(-jnp.ones((2, 2)) * jnp.array([[1], [-1]]))
    assert not jax.config.jax_debug_nans


def test_nothing_is_left_switched_on_after_an_exception():
    def fails(x):
        x @ x.T
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        on("tpu", fails)(X)
    same(plain(W, X), jax.jit(lambda w, x: plain(w, x))(W, X))


def test_names_of_devices():
    assert as_device("H100") is DEVICES["h100"]
    assert as_device("rtx3090") is DEVICES["a100"]
    assert list(DEVICES) == [row.name for row in DEVICES.values()]
    names = [name for row in DEVICES.values() for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)


def test_every_row_names_its_sources_and_known_algorithms():
    for row in DEVICES.values():
        assert len(row.sources) > 0 < min(map(len, row.sources)), row
        assert row.algorithms is None or row.algorithms <= set(ALGORITHMS), row
        assert hash(row) == hash(dataclasses.replace(row))


def test_unknown_devices():
    with pytest.raises(UnknownNameError, match="unknown device 'h1000': did you mean 'h100'"):
        on("h1000", plain)
    with pytest.raises(UnknownNameError, match="choose from cpu, p100, v100, t4, a100, rtx3090, h100, tpu"):
        numerics.products(plain, device="gpu-of-tomorrow")
    with pytest.raises(UnknownNameError, match="unknown device"):
        on(None, plain)


ODD = lax.DotAlgorithm(np.dtype("float16"), np.dtype("float32"), np.dtype("float32"))
REFUSED = [
    (
        "v100",
        "TF32_TF32_F32",
        1,
        r"TF32_TF32_F32 is not supported by the v100 \(dot_general at .*test_devices.py:\d+\)",
    ),
    ("h100", ODD, 1, "a DotAlgorithm that is not one of JAX's presets is not supported"),
    ("h100", "ANY_F8_ANY_F8_F32", 1, "ANY_F8_ANY_F8_F32 with float32 is not supported"),
    ("h100", "F32_F32_F32", 1j, "F32_F32_F32 with complex64 is not supported"),
]


@MODES
@pytest.mark.parametrize(("device", "precision", "factor", "message"), REFUSED)
def test_algorithms_that_a_device_refuses(device, precision, factor, message, mode):
    def multiply(x, y):
        return jnp.matmul(x, y, precision=precision)

    with pytest.raises(ArgumentError, match=message):
        mode(on(device, multiply))(factor * X, factor * W)


def test_an_algorithm_that_is_refused_can_be_replaced_as_the_message_says():
    on("v100", lambda x, y: jnp.matmul(x, y, precision="highest"))(X, W)
