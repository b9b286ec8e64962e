"""The time of a compute-bound step with dynamic loss scaling, compared with the same step without it.

make bench
"""

import jax
import jax.numpy as jnp
import optax
import pytest

from models import init, plain
from supremum.mixed_precision import DynamicLossScale, autocast, scaled_value_and_grad, select_tree
from test_autocast import interleaved

WIDTH = 1024


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_step_with_and_without_scaling(benchmark, figures, optimizer):
    """Compare the steps with an optimization barrier after the gradients.

    Without the barrier XLA fuses the update into the backward pass of the unscaled step, and only of that one.
    """
    function, scale = autocast(plain, "mixed_float16"), DynamicLossScale()
    update = {"sgd": optax.sgd(1e-3), "adam": optax.adam(1e-3)}[optimizer]
    layers = init(WIDTH, 4)
    args = jax.random.normal(jax.random.key(1), (WIDTH, WIDTH)), jnp.zeros(WIDTH, int)
    start = layers, update.init(layers), scale.init()

    def applied(state, gradients):
        layers, moments = state
        updates, moments = update.update(gradients, moments, layers)
        return optax.apply_updates(layers, updates), moments

    def unscaled(state, *args):
        layers, moments, scale_state = state
        gradients = jax.lax.optimization_barrier(jax.grad(function)(layers, *args))
        return *applied((layers, moments), gradients), scale_state

    def scaled(skip):
        def step(state, *args):
            layers, moments, scale_state = state
            _, gradients, finite, scale_state = scaled_value_and_grad(function, scale)(scale_state, layers, *args)
            gradients, finite = jax.lax.optimization_barrier((gradients, finite))
            return *skip(finite, (layers, moments), gradients), scale_state

        return step

    def with_cond(finite, state, gradients):
        return jax.lax.cond(finite, lambda: applied(state, gradients), lambda: state)

    def with_where(finite, state, gradients):
        return select_tree(finite, applied(state, gradients), state)

    steps = {"unscaled": unscaled, "scaled, cond": scaled(with_cond), "scaled, where": scaled(with_where)}
    compiled = {name: jax.jit(step).lower(start, *args).compile() for name, step in steps.items()}
    again = jax.jit(unscaled).lower(start, *args).compile()
    calls = {
        name: lambda step=step: step(start, *args) for name, step in (compiled | {"unscaled again": again}).items()
    }
    taken = {name: [] for name in calls}

    def measure():
        for name, seconds in interleaved(calls, 1).items():
            taken[name].extend(seconds)

    benchmark.pedantic(measure, rounds=31, warmup_rounds=2)
    for name in calls:
        if name != "unscaled":
            figures.compare(f"a step of width {WIDTH}, {optimizer}, {name}", taken[name], taken["unscaled"], "unscaled")
