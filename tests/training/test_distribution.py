"""Training on several devices beside training on one, and what travels between them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from supremum import nn
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.mixed_precision import DynamicLossScale
from supremum.optimizers import SGD, Adam, LossScaleOptimizer
from supremum.training import (
    Callback,
    DataParallel,
    FullyShardedDataParallel,
    MeanSquaredError,
    Sequential,
    SparseCategoricalCrossentropy,
)
from training.many_devices import (
    CLASSES,
    EXAMPLES,
    FEATURES,
    KINDS,
    LOSS,
    RNG,
    WEIGHTS,
    X,
    Y,
    alone,
    close,
    devices,
    network,
    trained,
    values,
)


@pytest.mark.slow
class TestTheSameTraining:
    @pytest.mark.parametrize("count", [1, 2, 4, 8])
    @pytest.mark.parametrize("kind", KINDS)
    def test_float32_is_that_of_one_device_up_to_the_order_of_sums(self, kind, count):
        """72 examples in batches of 32: the last one, of 8, is cut too."""
        model = trained(KINDS[kind](devices(count)))
        theirs, losses, history = alone()
        close(values(model), theirs, 0 if count == 1 else 4e-6)
        np.testing.assert_allclose(model.history.loss, losses, rtol=2e-6)
        for name, numbers in history.items():
            np.testing.assert_allclose(model.history.history[name], numbers, rtol=2e-6, err_msg=name)

    @pytest.mark.parametrize(("policy", "within"), [("mixed_float16", 2e-3), ("mixed_bfloat16", 2e-2)])
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("count", [1, 8])
    def test_narrow_policies_are_within_the_rounding_of_their_dtypes(self, kind, policy, within, count):
        model = trained(KINDS[kind](devices(count)), policy)
        theirs, losses, history = alone(policy)
        close(values(model), theirs, 0 if count == 1 else within)
        np.testing.assert_allclose(model.history.loss, losses, rtol=0 if count == 1 else within)
        assert model.history.history.get("loss_scale") == history.get("loss_scale")

    @pytest.mark.parametrize(
        "loss", [LOSS, SparseCategoricalCrossentropy(from_logits=True, ignore_class=2, reduction="sum")]
    )
    def test_a_batch_that_does_not_divide_is_computed_whole(self, loss):
        """72 examples in batches of 25: of 25, 25 and 22."""
        made = []
        for distribution in (None, DataParallel(devices(8)), FullyShardedDataParallel(devices(8), smallest=16)):
            model = network()
            model.compile(SGD(0.1 if loss is LOSS else 0.002), loss, "accuracy", distribution=distribution)
            model.fit(X, Y, batch_size=25, epochs=2, verbose=0)
            made.append((values(model), model.history.history["accuracy"], model.history.loss))
        for mine, accuracy, losses in made[1:]:
            close(mine, made[0][0], 4e-6)
            assert accuracy == made[0][1]
            np.testing.assert_allclose(losses, made[0][2], rtol=2e-6)

    @pytest.mark.parametrize("case", ["sum", "weights", "ignored labels", "regularised", "batches", "three at once"])
    def test_losses_are_those_of_the_whole_batch(self, case):
        loss, rate, fit, steps, x, y = "mse", 0.1, {}, 1, X, X[:, :CLASSES]
        if case == "sum":
            loss, rate = MeanSquaredError(reduction="sum"), 1e-3
        elif case == "weights":
            fit = {"sample_weight": WEIGHTS}
        elif case == "ignored labels":
            loss, y = SparseCategoricalCrossentropy(from_logits=True, ignore_class=3), Y
        elif case == "three at once":
            steps = 3
        data = [(x[i : i + 24], y[i : i + 24]) for i in range(0, EXAMPLES, 24)] if case == "batches" else None
        made = []
        for distribution in (None, DataParallel(devices(8))):
            regularizer = {"kernel_regularizer": "l2", "activity_regularizer": "l2"} if case == "regularised" else {}
            model = Sequential([nn.Dense(32, **regularizer), nn.ReLU(), nn.Dense(CLASSES)])
            model.compile(SGD(rate), loss, distribution=distribution, steps_per_execution=steps)
            if data is None:
                model.fit(x, y, batch_size=24, epochs=2, verbose=0, shuffle=False, **fit)
            else:
                model.fit(data, epochs=2, verbose=0)
            made.append((values(model), model.history.loss))
        close(made[1][0], made[0][0], 4e-6)
        np.testing.assert_allclose(made[1][1], made[0][1], rtol=3e-6)

    def test_evaluate_and_predict_are_of_the_whole(self):
        one, many = trained(None), trained(FullyShardedDataParallel(devices(8), smallest=16))
        for model in (one, many):
            nn.load_variables(model, alone()[0])
        for size in (24, 30):
            mine, theirs = (model.evaluate(X, Y, batch_size=size, verbose=0) for model in (many, one))
            assert mine["accuracy"] == theirs["accuracy"]
            np.testing.assert_allclose(mine["loss"], theirs["loss"], rtol=2e-6)
            np.testing.assert_allclose(
                many.predict(X, batch_size=size, verbose=0), one.predict(X, batch_size=size, verbose=0), atol=2e-6
            )

    def test_what_is_random_differs_from_part_to_part(self):
        seen = []

        class Telling(nn.Layer):
            def call(self, x):
                jax.debug.callback(lambda x: seen.append(np.asarray(x)), x)
                return x

        model = Sequential([nn.Dropout(0.5), Telling(), nn.Dense(1)])
        model.compile("sgd", "mse", distribution=DataParallel(devices(8)))
        model.fit(np.ones((16, 64), "float32"), np.ones((16, 1), "float32"), batch_size=16, verbose=0)
        jax.effects_barrier()
        masks = {part.tobytes() for part in seen if part.shape == (2, 64) and (part == 0).any()}
        assert len(masks) == 8


@pytest.mark.slow
class TestNormalization:
    def test_common_statistics_are_those_of_the_whole_batch(self):
        made = []
        for distribution, axis in (
            (None, "data"),
            (DataParallel(devices(8)), "data"),
            (DataParallel(devices(8)), None),
        ):
            model = trained(distribution, middle=[lambda axis=axis: nn.BatchNorm(axis_name=axis, momentum=0.5)])
            made.append(values(model))
        close(made[1], made[0], 2e-5)
        with pytest.raises(AssertionError):
            close(made[2], made[0], 1e-2)

    def test_parts_without_common_statistics_leave_the_mean_of_theirs(self):
        model = Sequential([nn.BatchNorm(momentum=0.0), nn.Dense(1)])
        model.compile(SGD(0.0), "mse", distribution=DataParallel(devices(8)))
        model.fit(X[:32], X[:32, :1], batch_size=32, shuffle=False, verbose=0)
        found = {path.split("/")[-1]: variable.value for path, variable in model.variables.items()}
        parts = X[:32].reshape(8, 4, FEATURES)
        np.testing.assert_allclose(found["moving_mean"], parts.mean(1).mean(0), atol=1e-6)
        np.testing.assert_allclose(found["moving_variance"], parts.var(1).mean(0), rtol=1e-5)

    def test_masked_values_count_for_what_they_are(self):
        norm = nn.BatchNorm(axis_name="data", momentum=0.0)
        x, mask = RNG.normal(size=(16, 3)).astype("float32"), RNG.random(16) < 0.4
        nn.initialize(norm, x)
        weights = {path: each.value for path, each in norm.variables.items()}

        def normed(weights, x, mask):
            return nn.functional_call(norm, weights, x, mask=mask, training=True)

        cut = jax.shard_map(
            normed, mesh=devices(8), in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()), check_vma=False
        )
        for mine, theirs in zip(
            jax.tree.leaves(jax.jit(cut)(weights, x, mask)),
            jax.tree.leaves(jax.jit(normed)(weights, x, mask)),
            strict=True,
        ):
            np.testing.assert_allclose(mine, theirs, atol=2e-6)


class TestWhereThingsLie:
    @pytest.mark.slow
    def test_each_device_has_a_piece_of_variables_and_of_what_the_optimizer_keeps(self):
        model = trained(FullyShardedDataParallel(devices(8), smallest=16), optimizer=Adam(0.01))
        kernel = model.variables["dense/kernel"].value
        assert kernel.addressable_shards[0].data.size == kernel.size // 8
        slots = [leaf for leaf in jax.tree.leaves(model.optimizer.state.slots) if leaf.shape == kernel.shape]
        assert len(slots) == 2
        assert all(leaf.addressable_shards[0].data.size == kernel.size // 8 for leaf in slots)

    def test_the_longest_axis_that_divides_is_cut(self):
        distribution = FullyShardedDataParallel(devices(8), smallest=16)
        specs = {(64, 128): P(None, "data"), (8, 9): P("data"), (7, 9, 3): P(), (8,): P(), (): P(), (16,): P("data")}
        assert {shape: distribution.spec(shape) for shape in specs} == specs

    def test_on_one_device_nothing_is_cut_and_nothing_travels(self):
        distribution, third = FullyShardedDataParallel(devices(1), smallest=16), {"w": jnp.full(64, 1 / 3)}
        assert distribution.spec((64, 128)) == P()
        added = distribution.aggregate(np.dtype("float16"), {"w": (64,)})(third)
        np.testing.assert_array_equal(added["w"], third["w"])

    def test_values_that_were_assigned_go_where_they_belong(self):
        model = trained(FullyShardedDataParallel(devices(8), smallest=16), epochs=1)
        new = np.ones(model.variables["dense/kernel"].shape, "float32")
        model.variables["dense/kernel"].assign(jax.device_put(new, jax.devices()[3]))
        seen = []

        class Looking(Callback):
            def on_train_batch_end(self, batch, logs):
                seen.append(values(model))
                if batch == 1:  # beside variables that stay where they are
                    model.variables["dense/kernel"].assign(jax.device_put(new * 2, jax.devices()[5]))

        model.fit(X, Y, batch_size=32, verbose=0, callbacks=Looking())
        assert len(seen) == 3
        assert abs(seen[0]["dense/kernel"] - new).max() < 0.1
        assert abs(seen[2]["dense/kernel"] - 2).max() < 0.1

    def test_a_loss_that_is_jitted_by_the_user_is_traced_for_each_place(self):
        mse = MeanSquaredError(reduction="sum")
        jitted = jax.jit(lambda y, p: mse(y, p))
        y = jnp.ones((4, CLASSES))
        assert float(jitted(y, y * 0)) == 16 / CLASSES * 1
        model = network()
        model.compile(SGD(0.0), jitted, distribution=DataParallel(devices(8)))
        model.fit(X[:32], np.ones((32, CLASSES), "float32"), batch_size=32, verbose=0)
        one = network()
        one.compile(SGD(0.0), jitted)
        one.fit(X[:32], np.ones((32, CLASSES), "float32"), batch_size=32, verbose=0)
        np.testing.assert_allclose(model.history.loss, one.history.loss, rtol=1e-6)


class TestOneDecision:
    @pytest.mark.one_in(2)
    @pytest.mark.parametrize("kind", KINDS)
    def test_an_overflow_of_one_part_skips_everywhere(self, kind):
        x = X.copy()
        x[37] = np.inf  # in the second batch, on one device
        made = []
        for distribution in (None, KINDS[kind](devices(8))):
            model = network("mixed_float16")
            scale = DynamicLossScale(initial_loss_scale=64, increment_period=1000)
            model.compile(
                LossScaleOptimizer(SGD(0.1), scale),
                LOSS,
                "accuracy",
                distribution=distribution,
            )
            model.fit(x, Y, batch_size=24, verbose=0, shuffle=False)
            made.append(model)
        one, many = made
        assert many.history.skipped == one.history.skipped == [False, True, False]
        assert many.history.loss_scale == one.history.loss_scale == [64, 64, 32]
        assert many.history.history["accuracy"] == one.history.history["accuracy"]
        close(values(many), values(one), 2e-3)
        for leaf in jax.tree.leaves((many.optimizer.state, [each.value for each in many.variables.values()])):
            if leaf.sharding.is_fully_replicated:
                shards = [np.asarray(shard.data) for shard in leaf.addressable_shards]
                assert all(np.array_equal(shards[0], shard) for shard in shards)
        assert all(np.isfinite(value).all() for value in values(many).values())


class TestErrors:
    @pytest.mark.parametrize(
        ("make", "error", "told"),
        [
            (lambda: DataParallel(8), OperandError, "make_mesh"),
            (lambda: DataParallel(Mesh(np.reshape(jax.devices(), (4, 2)), ("a", "b"))), ArgumentError, "a, b"),
            (lambda: DataParallel(batches="mine"), UnknownNameError, "per_process"),
            (lambda: FullyShardedDataParallel(smallest=0), ArgumentError, "smallest"),
            (lambda: FullyShardedDataParallel().scope(), ArgumentError, "DataParallel"),
            (lambda: network().compile("sgd", "mse", distribution="all"), OperandError, "DataParallel"),
        ],
    )
    def test_bad_arguments_are_refused(self, make, error, told):
        with pytest.raises(error, match=told):
            make()

    def test_a_mesh_of_another_name_and_kind_will_do(self):
        mesh = jax.make_mesh((4,), ("batch",))
        model = trained(FullyShardedDataParallel(mesh, smallest=16), epochs=1)
        assert model.variables["dense/kernel"].value.sharding == NamedSharding(
            model.compiled().distribution.mesh, P(None, "batch")
        )


@pytest.mark.slow
def test_every_pair_of_device_counts_agrees():
    made = {count: values(trained(DataParallel(devices(count)), epochs=1)) for count in (2, 4, 8)}
    for one, other in itertools.combinations(made.values(), 2):
        close(one, other, 4e-6)
