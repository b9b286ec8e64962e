"""Every optimizer matches the optax transformation of its name, computed in at least float32 and rounded once."""

from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optimizers.problems import GRADIENTS, START
from supremum.optimizers import SGD, Adagrad, Adam, AdamW, Lion, Optimizer, RMSprop

decayed = optax.add_decayed_weights


def f(number):
    """Round a number to float32, the dtype of hyperparameters."""
    return float(np.float32(number))


ALGORITHMS = {
    "sgd": (SGD(0.1), optax.sgd(f(0.1))),
    "momentum": (SGD(0.1, 0.7), optax.sgd(f(0.1), f(0.7))),
    "nesterov": (SGD(0.1, momentum=0.7, nesterov=True), optax.sgd(f(0.1), f(0.7), nesterov=True)),
    "sgd, decayed": (SGD(0.1, weight_decay=0.3), optax.chain(decayed(f(0.3)), optax.sgd(f(0.1)))),
    "adam": (Adam(0.05, 0.8, 0.95, 1e-3), optax.adam(f(0.05), f(0.8), f(0.95), f(1e-3))),
    "adamw": (AdamW(0.05), optax.adamw(f(0.05), f(0.9), f(0.999), eps=f(1e-7), weight_decay=f(0.004))),
    "rmsprop": (RMSprop(0.01, rho=0.8, epsilon=1e-3), optax.rmsprop(f(0.01), f(0.8), f(1e-3))),
    "rmsprop, all of it": (
        RMSprop(0.01, momentum=0.5, centered=True, epsilon=0.01, weight_decay=0.3),
        optax.chain(optax.rmsprop(f(0.01), f(0.9), f(0.01), centered=True, momentum=0.5), decayed(-f(0.01) * f(0.3))),
    ),
    "adagrad": (Adagrad(0.1, 0.2, 1e-3), optax.adagrad(f(0.1), 0.2, f(1e-3))),
    "lion": (Lion(0.01, 0.8, 0.9, weight_decay=0.5), optax.lion(f(0.01), f(0.8), f(0.9), weight_decay=0.5)),
    "any": (
        Optimizer(optax.chain(optax.clip(0.5), optax.adabelief(0.05))),
        optax.chain(optax.clip(0.5), optax.adabelief(0.05)),
    ),
}


def stacked(dtype):
    return {key: jnp.asarray(np.stack([each[key] for each in GRADIENTS]), dtype) for key in START}


def run_supremum(optimizer, values, gradients):
    def step(carry, gradient):
        updated = optimizer.update(gradient, carry[1], carry[0])
        return (updated.values, updated.state), None

    return jax.lax.scan(step, (values, optimizer.init(values)), gradients)[0]


def run_optax(transformation, values, gradients):
    def wide(tree):
        return jax.tree.map(lambda leaf: leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32)), tree)

    def step(carry, gradient):
        values, state = carry
        updates, state = transformation.update(wide(gradient), state, wide(values))
        changed = jax.tree.map(
            lambda value, wide, update: (wide + update).astype(value.dtype), values, wide(values), updates
        )
        return (changed, state), None

    return jax.lax.scan(step, (values, transformation.init(wide(values))), gradients)[0][0]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_every_optimizer_matches_optax(dtype):
    tolerance = {"float32": 2e-5, "bfloat16": 1e-2, "float64": 1e-11}[dtype]
    with jax.enable_x64(True) if dtype == "float64" else nullcontext():
        values = {key: jnp.asarray(value, dtype) for key, value in START.items()}

        @jax.jit
        def run(values, gradients):
            # One program for all optimizers compiles in a fraction of the time.
            return {
                name: (run_supremum(optimizer, values, gradients), run_optax(transformation, values, gradients))
                for name, (optimizer, transformation) in ALGORITHMS.items()
            }

        for name, ((found, state), expected) in run(values, stacked(dtype)).items():
            assert int(state.iterations) == 20
            for key in values:
                assert found[key].dtype == dtype
                a, b = (np.asarray(each[key], np.float64) for each in (found, expected))
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)
                assert np.abs(b - START[key]).max() > 0.01, name
            compute_dtype = jnp.promote_types(dtype, jnp.float32)
            slots = [leaf for leaf in jax.tree.leaves(state.slots) if leaf.ndim]
            assert {leaf.dtype for leaf in slots} == (set() if name.startswith("sgd") else {compute_dtype}), name


def test_steps_match_keras():
    """For steps that optax and Keras define alike, compare with Keras' update_step in NumPy float64."""
    gradients = np.random.default_rng(1).normal(size=(10, 4))
    start, stacked_gradients = {"w": jnp.ones(4, jnp.float32)}, {"w": jnp.asarray(gradients, jnp.float32)}
    nesterov, rmsprop = jax.jit(
        lambda: [run_supremum(each, start, stacked_gradients)[0]["w"] for each in (SGD(0.1, 0.9, True), RMSprop(0.01))]
    )()
    w, m = np.ones(4), np.zeros(4)
    for g in gradients:
        m = 0.9 * m - 0.1 * g
        w = w + (0.9 * m - 0.1 * g)
    np.testing.assert_allclose(nesterov, w, rtol=1e-4)
    w, v = np.ones(4), np.zeros(4)
    for g in gradients:
        v = 0.9 * v + 0.1 * g * g
        w = w - 0.01 * g / np.sqrt(v + 1e-7)
    np.testing.assert_allclose(rmsprop, w, rtol=1e-4)


def test_narrow_moments_of_optax_are_computed_in_float32():
    optimizer = Optimizer(optax.trace(0.7, accumulator_dtype="bfloat16"))
    values, stacked_gradients = {"w": jnp.zeros(16)}, np.random.default_rng(2).normal(size=(5, 16)).astype(np.float32)
    (_, state) = jax.jit(lambda: run_supremum(optimizer, values, {"w": jnp.asarray(stacked_gradients)}))()
    (found,) = [leaf for leaf in jax.tree.leaves(state.slots) if leaf.ndim]
    m = np.zeros(16, np.float32)
    for g in stacked_gradients:
        m = np.asarray(jnp.asarray(g + np.float32(0.7) * m, jnp.bfloat16), np.float32)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(found, np.float32), m)
