"""The time of an optimizer's step with bfloat16 weights, compared with float32 Adam; a million parameters.

make bench
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax

from supremum.mixed_precision import narrow_weights
from test_autocast import interleaved

SHAPES = (1000, 500), (500, 1000)
MOMENTS = {"bfloat16 moments": "bfloat16", "dynamic8 moments": "dynamic8"}


def arrays(dtype, seed):
    keys = jax.random.split(jax.random.key(seed), len(SHAPES))
    return {str(shape): jax.random.normal(key, shape, dtype) for key, shape in zip(keys, SHAPES, strict=True)}


def float32_adam():
    optimizer = optax.adam(1e-3)

    def step(gradients, state, params):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    params = arrays("float32", 0)
    return step, optimizer.init(params), params, arrays("float32", 1)


def narrow_adam(weights, moments):
    optimizer = narrow_weights(optax.adam(1e-3), weights, moments)
    params = arrays("bfloat16", 0)
    return optimizer.step, optimizer.init(params), params, arrays("bfloat16", 1)


class Run:
    """A compiled step that reuses the memory of its state and parameters."""

    def __init__(self, step, state, params, gradients):
        self.state, self.params, self.gradients = state, params, gradients
        self.step = jax.jit(step, donate_argnums=(1, 2)).lower(gradients, state, params).compile()

    def __call__(self):
        self.params, self.state = self.step(self.gradients, self.state, self.params)
        return self.params


def test_a_step_of_a_million_parameters(benchmark, figures):
    made = {"float32": float32_adam, "float32 again": float32_adam}
    made |= {weights: partial(narrow_adam, weights, {}) for weights in ("stochastic", "kahan", "master")}
    made |= {
        f"stochastic, {name}": partial(narrow_adam, "stochastic", {"mu": stored, "nu": stored})
        for name, stored in MOMENTS.items()
    }
    calls = {name: Run(*make()) for name, make in made.items()}
    taken = {name: [] for name in calls}

    def measure():
        for name, seconds in interleaved(calls, 1).items():
            taken[name].extend(seconds)

    benchmark.pedantic(measure, rounds=51, warmup_rounds=2)
    for name in calls:
        if name != "float32":
            figures.compare(f"Adam, 1,000,000 bfloat16 weights, {name}", taken[name], taken["float32"], "float32 Adam")
    assert jnp.isfinite(calls["kahan"].params[str(SHAPES[0])]).all()
