"""Tests of layers in alternating tasks: collected losses, random keys and compute dtypes."""

import jax
import jax.numpy as jnp
import pytest

from nn.arrays import built
from supremum import nn
from supremum.errors import ScopeError
from supremum.mixed_precision import autocast, use_policy
from supremum.nn.call_stack import running_layers
from supremum.nn.losses import current_collector
from supremum.nn.scopes import current_autocast_dtype
from turns import ORDERS, take_turns


class LossLayer(nn.Layer):
    def call(self, x):
        self.add_loss(x.sum())
        return x


@pytest.mark.slow
def test_each_task_collects_its_own_losses_in_any_order():
    layer = LossLayer()
    layer(jnp.ones(2))

    @jax.jit
    def total(x):
        if current_collector() is None:
            return 0 * x.sum()
        with nn.collected_losses() as losses:
            layer(x)
        return sum(losses)

    for order in ORDERS[::3]:

        def task(number):
            async def run(step):
                with nn.collected_losses() as losses:
                    layer(number * jnp.ones(2))
                    assert total(jnp.ones(2)) == 2
                    await step()
                    layer(number * jnp.ones(2))
                    await step()
                    layer(number * jnp.ones(2))
                    await step()
                assert [float(each) for each in losses] == [2 * number] * 3
                assert current_collector() is None
                assert total(jnp.ones(2)) == 0

            return run

        take_turns(order, [task(1), task(2)])
        assert total(jnp.ones(2)) == 0


def test_tracing_while_a_different_task_collects_losses_raises():
    layer = LossLayer()
    layer(jnp.ones(2))

    async def collects(step):
        with nn.collected_losses():
            await step()

    async def asks(step):
        with pytest.raises(
            ScopeError,
            match="JAX traces this function for another scope, which a task entered in this thread",
        ):
            jax.jit(layer)(jnp.ones(2))
        await step()

    take_turns((0, 1, 0, 1), [collects, asks])
    jax.jit(layer)(jnp.ones(2))


def test_each_task_draws_from_its_own_random_key_in_any_order():
    def draw_keys(key):
        with nn.random_key(key):
            return [jax.random.key_data(nn.scopes.next_random_key()).tolist() for _ in range(3)]

    wanted = [draw_keys(jax.random.key(seed)) for seed in (0, 1)]
    for order in ORDERS[::3]:

        def task(seed):
            async def run(step):
                found = []
                with nn.random_key(jax.random.key(seed)):
                    for _ in range(3):
                        found.append(jax.random.key_data(nn.scopes.next_random_key()).tolist())
                        await step()
                assert found == wanted[seed]

            return run

        take_turns(order, [task(0), task(1)])

    def keyed(seed):
        with nn.random_key(jax.random.key(seed)):
            yield

    generators = [keyed(0), keyed(1)]
    for generator in generators:
        next(generator)
    generators[0].close()
    assert jax.random.key_data(nn.scopes.next_random_key()).tolist() == wanted[1][0]
    generators[1].close()
    with pytest.raises(
        ValueError,
        match=r"the layer needs random numbers but.*; use nn.functional_call\(model, variables, x, random_key=",
    ):
        nn.scopes.next_random_key()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_tasks_waiting_in_scopes_do_not_affect_layers_or_autocast(dtype):
    layer = built(nn.Dense(2, dtype=f"mixed_{dtype}"), jnp.ones((1, 2)))
    jitted, x = jax.jit(layer), jnp.ones((1, 2))
    cast = jax.jit(autocast(lambda x: x @ x.T, f"mixed_{dtype}"))
    for order in ORDERS[::5]:

        def task(policy):
            async def run(step):
                with use_policy(policy):
                    for _ in range(3):
                        assert layer(x).dtype == jitted(x).dtype == dtype
                        with autocast.disabled():
                            assert cast(x).dtype == "float32"
                            await step()
                        assert current_autocast_dtype() is None
                        assert running_layers() == ()

            return run

        take_turns(order, [task("float32"), task("mixed_float16")])
    assert f"{dtype}  1 x dot_general" in autocast(lambda x: x @ x.T, f"mixed_{dtype}").report(x).summary()
