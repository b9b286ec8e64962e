"""Steps compared with torchao's optimizers, whose published algorithm (torchao 0.18, optim/adam.py) is written here
in NumPy: the same bits wherever no random number is drawn, and where both get the same random numbers."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest

from supremum.formats import as_format
from supremum.mixed_precision import narrow_weights
from supremum.mixed_precision.weight_storage.counter_hash import random_bits, step_key
from supremum.mixed_precision.weight_storage.moments import dynamic_map, store_array
from supremum.mixed_precision.weight_storage.rounding import round_to_format

F = np.float32
RANDOM = np.random.default_rng(0)
SHAPE = (32, 256)
RATE, B1, B2, EPS = F(1e-3), F(0.9), F(0.999), F(1e-8)


def stochastic(values, noise):
    """Round towards zero, or away from zero with the probability of the lower 16 bits."""
    bits = values.view(np.uint32)
    away = noise < (bits & np.uint32(0xFFFF))
    kept = np.where(away, (bits & np.uint32(0xFFFF0000)) + np.uint32(0x10000), bits & np.uint32(0xFFFF0000))
    return kept.view(F).astype(ml_dtypes.bfloat16)


def quantized(values, numbers):
    """Scale each block of 256 to 1, and find the nearest number, the upper one if it is halfway."""
    blocks = values.reshape(-1, 256)
    scale = np.maximum(np.abs(blocks).max(1), F(1e-12))
    shares = (blocks / scale[:, None]).reshape(values.shape)
    code = np.clip(np.searchsorted(numbers, shares, side="right") - 1, 0, 255)
    above = np.minimum(code + 1, 255)
    code = np.where(shares - numbers[code] >= (numbers[above] - numbers[code]) * F(0.5), above, code)
    return code.astype(np.uint8), scale


def quantized_float8(values):
    blocks = values.reshape(-1, 256)
    # XLA multiplies by the reciprocal instead of dividing by a constant.
    scale = np.maximum(np.abs(blocks).max(1), F(1e-12)) * (F(1) / F(448))
    return (blocks / scale[:, None]).astype(ml_dtypes.float8_e4m3fn).reshape(values.shape), scale


def store(values, name, signed):
    """Store a moment as codes and the scale of each block, or as numbers and None."""
    if name == "dynamic8":
        return quantized(values, dynamic_map(signed))
    return quantized_float8(values) if name == "float8_e4m3fn" else (values.astype(as_format(name).dtype), None)


def read(codes, scale, name, signed):
    values = dynamic_map(signed)[codes] if name == "dynamic8" else codes.astype(F)
    return values if scale is None else (values.reshape(-1, 256) * scale[:, None]).reshape(codes.shape)


def torchao_step(p, g, step, moments, names, round_weights):
    """`single_param_adam` without weight decay and amsgrad."""
    (mu, nu), (first, second) = moments, names
    p, m, v = p.astype(F), read(*mu, first, signed=True), read(*nu, second, signed=False)
    correction1, correction2 = F(1) - B1**step, F(1) - B2**step
    m = m + (F(1) - B1) * (g - m)
    v = v + (F(1) - B2) * (g * g - v)
    denominator = np.sqrt(v) / np.sqrt(correction2) + EPS
    p = p - RATE * (m / correction1) / denominator
    return round_weights(p), (store(m, first, signed=True), store(v, second, signed=False))


def torchao_adam():
    """The same order of operations as an optax transformation; the powers are those of NumPy."""

    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return optax.ScaleByAdamState(jnp.zeros((), jnp.int32), zeros, zeros)

    def update(updates, state, params=None):
        step = int(state.count) + 1
        correction1, correction2 = F(1) - B1**step, F(1) - B2**step
        mu = jax.tree.map(lambda m, g: m + (F(1) - B1) * (g - m), state.mu, updates)
        nu = jax.tree.map(lambda v, g: v + (F(1) - B2) * (g * g - v), state.nu, updates)
        steps = jax.tree.map(
            lambda m, v: -(RATE * (m / correction1) / (jnp.sqrt(v) / np.sqrt(correction2) + EPS)), mu, nu
        )
        return steps, optax.ScaleByAdamState(state.count + 1, mu, nu)

    return optax.GradientTransformation(init, update)


@pytest.mark.slow
@pytest.mark.parametrize("mu", ["float32", "bfloat16", "dynamic8", "float8_e4m3fn"])
def test_steps_have_the_bits_of_torchao(mu):
    """Op by op: compiled programs may fuse a multiplication and an addition, and round once."""
    names = mu, "dynamic8" if mu == "dynamic8" else "float32"
    optimizer = narrow_weights(torchao_adam(), moments=dict(zip(("mu", "nu"), names, strict=True)))
    expected = RANDOM.normal(size=SHAPE).astype(ml_dtypes.bfloat16)
    params = {"w": jnp.asarray(expected)}
    state = optimizer.init(params)
    moments = [store(np.zeros(SHAPE, F), name, signed) for name, signed in zip(names, (True, False), strict=True)]
    for count in range(6):
        # Quotients of two numbers of bfloat16 are often halfway between two numbers of the map, where the last bit of
        # the arithmetic decides.
        gradient = F(RANDOM.normal(size=SHAPE))
        # Torchao rounds up where its number is small, this library where its bits are large.
        noise = ~np.asarray(random_bits(step_key(0, "w", jnp.int32(count)), SHAPE)) >> np.uint32(16)
        expected, moments = torchao_step(
            expected, gradient, count + 1, moments, names, lambda p, noise=noise: stochastic(p, noise)
        )
        params, state = optimizer.step({"w": jnp.asarray(gradient)}, state, params)
        np.testing.assert_array_equal(np.float32(params["w"]), expected.astype(F))
        for made, (codes, scale), name in zip((state.inner.mu["w"], state.inner.nu["w"]), moments, names, strict=True):
            found = made if scale is None else made.codes
            lowest = np.iinfo(found.dtype).min if name == "dynamic8" else 0
            np.testing.assert_array_equal(np.float32(found) - lowest, codes.astype(F))
            if scale is not None:
                np.testing.assert_array_equal(made.scales, scale)


@pytest.mark.compiled
def test_stochastic_rounding_has_the_bits_of_torchao():
    with np.errstate(over="ignore"):
        values = F(RANDOM.normal(size=100_000) * 10.0 ** RANDOM.uniform(-38, 37, 100_000))
    noise = RANDOM.integers(0, 2**16, values.shape, np.uint32)
    found = round_to_format(jnp.asarray(values), as_format("bfloat16"), jnp.asarray(~(noise << np.uint32(16))))
    np.testing.assert_array_equal(np.float32(found), stochastic(values, noise).astype(F))


@pytest.mark.compiled
def test_a_stored_moment_has_the_codes_of_torchao():
    values = F(RANDOM.normal(size=(64, 256)) * 10.0 ** RANDOM.uniform(-6, 0, (64, 256)))
    for signed in (True, False):
        given = values if signed else values**2
        made = jax.jit(lambda x, signed=signed: store_array(x, "dynamic8", signed=signed))(given)
        code, scale = quantized(given, dynamic_map(signed))
        np.testing.assert_array_equal(np.asarray(made.codes).astype(int) - np.iinfo(made.codes.dtype).min, code)
        np.testing.assert_array_equal(made.scales, scale)
