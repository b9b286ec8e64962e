"""`minimize`, `get_gradients` and `apply_gradients` on several devices."""

import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.errors import ArgumentError
from supremum.mixed_precision import use_policy
from supremum.optimizers import SGD, LossScaleOptimizer
from supremum.training import DataParallel
from training.many_devices import FEATURES, LOSS, X, Y, close, devices, network, shard_shapes, split, stored, values


def loss_of(model):
    def loss_fn(x, y):
        return LOSS(y, model(x, training=True))

    return loss_fn


@pytest.mark.slow
class TestOptimizersAcrossDevices:
    @pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
    @pytest.mark.parametrize("way", ["minimize", "get_gradients"])
    def test_custom_loops_match_training_on_one_device(self, way, policy):
        results = []
        for distribution in (None, DataParallel(devices(8)), split()):
            model = network(policy, lambda: nn.BatchNorm(axis_name="data"))
            nn.initialize(model, X[:1])
            optimizer = SGD(0.1) if policy == "float32" else LossScaleOptimizer(SGD(0.1))
            loss_fn, variables = loss_of(model), model.trainable_variables
            losses = []
            with distribution.scope() if distribution else use_policy(policy):
                for start in (0, 32):
                    args = X[start : start + 32], Y[start : start + 32]
                    if way == "minimize":
                        losses.append(float(optimizer.minimize(loss_fn, variables, *args)))
                    else:
                        gradients = optimizer.get_gradients(loss_fn, variables, *args)
                        optimizer.apply_gradients(zip(gradients, variables.values(), strict=True))
            results.append((values(model), losses))
        for found, losses_found in results[1:]:
            close(found, results[0][0], 1e-5 if policy == "float32" else 4e-3)
            np.testing.assert_allclose(losses_found, results[0][1], rtol=1e-6 if policy == "float32" else 2e-3)
        assert shard_shapes(stored(model))["dense/kernel"] == (FEATURES, 8)

    def test_gradients_stay_separate_per_device_until_they_are_applied(self):
        w = nn.Variable([1.0], "w")
        optimizer = LossScaleOptimizer(SGD(1.0), 1024)
        with DataParallel(devices(4)).scope():
            (per_device,) = optimizer.get_gradients(lambda x: (w.value * x).mean(), w, np.arange(8, dtype="float32"))
            np.testing.assert_allclose(per_device[:, 0], [0.5, 2.5, 4.5, 6.5])
            optimizer.apply_gradients([(per_device, w)])
            assert w.value == 1 - 3.5
            optimizer.apply_gradients([(jnp.ones(1), w)], aggregate_gradients=False)
            assert w.value == -3.5
            with pytest.raises(ArgumentError, match="aggregate_gradients=False"):
                optimizer.apply_gradients([(jnp.ones(1), w)])

    def test_unscaled_gradients_too_small_for_float16_survive_the_sum(self):
        w = nn.Variable([1.0], "w")
        tiny = np.full((4, 1), 2.0**-26, "float32")
        optimizer = LossScaleOptimizer(SGD(1.0), 2.0**14)
        with DataParallel(devices(4)).scope():
            optimizer.apply_gradients([(jnp.asarray(tiny), w)])
        assert 1 - w.value == 0  # below the last place of 1
        w.assign(np.zeros(1, "float32"))
        with DataParallel(devices(4)).scope():
            optimizer.apply_gradients([(jnp.asarray(tiny), w)])
        assert w.value == -(2.0**-26)

    def test_a_loss_without_arguments_raises(self):
        w = nn.Variable([1.0], "w")
        for method in ("minimize", "get_gradients"):
            with DataParallel(devices(2)).scope(), pytest.raises(ArgumentError, match="loss_fn"):
                getattr(SGD(1.0), method)(lambda: w.value.sum(), w)

    def test_scalar_arguments_are_replicated(self):
        w = nn.Variable([1.0], "w")
        with DataParallel(devices(2)).scope():
            SGD(1.0).minimize(lambda x, factor: (w.value * x * factor).mean(), w, np.ones(4, "float32"), 0.25)
        assert w.value == 0.75

    def test_arrays_of_unequal_batch_size_raise(self):
        """Splitting a table of weights along its first axis would change the result."""
        w, table = nn.Variable([1.0], "w"), np.arange(4, dtype="float32")
        with (
            DataParallel(devices(2)).scope(),
            pytest.raises(ArgumentError, match="the same number of examples, got 4, 8"),
        ):
            SGD(1.0).minimize(lambda x, table: (w.value * x).mean() * table.sum(), w, np.ones(8, "float32"), table)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_a_value_that_is_not_finite_on_one_device_skips_the_step(self, bad, dtype):
        w = nn.Variable([1.0], "w")
        x = np.ones(8, "float32")
        x[5] = bad
        optimizer = LossScaleOptimizer(SGD(1.0))
        with DataParallel(devices(4)).scope():
            optimizer.minimize(lambda x: (w.value.astype(dtype) * x.astype(dtype)).mean(), w, x)
            (per_device,) = optimizer.get_gradients(lambda x: (w.value * x).mean(), w, x)
            optimizer.apply_gradients([(per_device, w)])
        assert w.value == 1
        assert int(optimizer.loss_scale.num_skipped_steps) == 2
        assert float(optimizer.loss_scale()) == 2.0**13
