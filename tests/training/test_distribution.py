"""Training on several devices matches training on one, and arrays are placed and split as documented."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from supremum import nn
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.mixed_precision import DynamicLossScale
from supremum.optimizers import SGD, LossScaleOptimizer
from supremum.training import (
    Callback,
    DataParallel,
    FullyShardedDataParallel,
    MeanSquaredError,
    Sequential,
    SparseCategoricalCrossentropy,
)
from training import many_devices
from training.many_devices import CLASSES, KINDS, LOSS, X, Y, baseline, close, devices, network, split, trained, values

KERNEL = {"dense/kernel": P(None, "model")}
HOSTS = {"data_axes": ("hosts", "cores"), "layout": many_devices.LAYOUT}
ALL_KINDS = {
    "split": split,
    "split and sharded": many_devices.split_and_sharded,
    "two data axes": lambda: DataParallel(many_devices.mesh(2, 2, 2, names=("hosts", "cores", "model")), **HOSTS),
    "two data axes, sharded": lambda: FullyShardedDataParallel(
        many_devices.mesh(2, 2, 2, names=("hosts", "model", "cores")), smallest=16, **HOSTS
    ),
    "one replica": lambda: DataParallel(many_devices.mesh(1, 8), data_axes="data", layout=KERNEL),
    "no layout": lambda: split(None),
    **{f"data parallel on {count}": lambda count=count: DataParallel(devices(count)) for count in (1, 2, 4, 8)},
    **{f"fully sharded on {count}": lambda count=count: many_devices.sharded(count) for count in (1, 2, 4, 8)},
}


WHOLE_BATCH = {
    "sum": {"loss": MeanSquaredError(reduction="sum"), "rate": 1e-3},
    "weights": {"sample_weight": many_devices.WEIGHTS},
    "ignored labels": {"loss": SparseCategoricalCrossentropy(from_logits=True, ignore_class=3), "y": Y},
    "regularised": {"kernel_regularizer": "l2", "activity_regularizer": "l2"},
    "batches": {"size": 24},
    "three at once": {"steps": 3},
}


class TestMatchesOneDevice:
    @pytest.mark.one_in(len(ALL_KINDS))
    @pytest.mark.parametrize("kind", ALL_KINDS)
    def test_float32_training_matches_up_to_the_order_of_sums(self, kind):
        """72 examples in batches of 32, 32 and 8: the smaller last batch is split too."""
        model = trained(ALL_KINDS[kind]())
        expected, losses, history = baseline()
        exact = kind.endswith(" 1")
        close(values(model), expected, 0 if exact else 4e-6)
        np.testing.assert_allclose(model.history.loss, losses, rtol=0 if exact else 2e-6)
        for name, numbers in history.items():
            np.testing.assert_allclose(model.history.history[name], numbers, rtol=2e-6, err_msg=name)

    @pytest.mark.slow
    @pytest.mark.parametrize(("policy", "within"), [("mixed_float16", 2e-3), ("mixed_bfloat16", 2e-2)])
    @pytest.mark.parametrize("kind", [*KINDS, "data parallel on 1", "fully sharded on 1"])
    def test_narrow_policies_match_within_the_rounding_of_their_dtypes(self, kind, policy, within):
        model = trained((KINDS | ALL_KINDS)[kind](), policy)
        expected, losses, history = baseline(policy)
        within = 0 if kind.endswith(" 1") else within
        close(values(model), expected, within)
        np.testing.assert_allclose(model.history.loss, losses, rtol=within)
        assert model.history.history.get("loss_scale") == history.get("loss_scale")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "loss", [LOSS, SparseCategoricalCrossentropy(from_logits=True, ignore_class=2, reduction="sum")]
    )
    def test_batch_that_does_not_divide_evenly_is_not_split(self, loss):
        """72 examples in batches of 25, 25 and 22, none of which can be split among 8 devices."""
        results = []
        for make in (lambda: None, *KINDS.values()):
            model = network()
            model.compile(SGD(0.1 if loss is LOSS else 0.002), loss, "accuracy", distribution=make())
            model.fit(X, Y, batch_size=25, epochs=2, verbose=0)
            results.append((values(model), model.history.history["accuracy"], model.history.loss))
        for actual, accuracy, losses in results[1:]:
            close(actual, results[0][0], 4e-6)
            assert accuracy == results[0][1]
            np.testing.assert_allclose(losses, results[0][2], rtol=2e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("case", WHOLE_BATCH)
    def test_losses_are_computed_over_the_whole_batch(self, case):
        results = []
        for distribution in (None, DataParallel(devices(8))):
            options = {"loss": "mse", "rate": 0.1, "y": X[:, :CLASSES], "steps": 1, **WHOLE_BATCH[case]}
            loss, rate, y, steps = (options.pop(name) for name in ("loss", "rate", "y", "steps"))
            data = {"x": X, "y": y, "batch_size": 24, "shuffle": False}
            if size := options.pop("size", None):
                data = {"x": [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]}
            if case == "weights":
                data |= {"sample_weight": options.pop("sample_weight")}
            model = Sequential([nn.Dense(32, **options), nn.ReLU(), nn.Dense(CLASSES)])
            model.compile(SGD(rate), loss, distribution=distribution, steps_per_execution=steps)
            model.fit(**data, epochs=2, verbose=0)
            results.append((values(model), model.history.loss))
        close(results[1][0], results[0][0], 4e-6)
        np.testing.assert_allclose(results[1][1], results[0][1], rtol=3e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["fully sharded", "split and sharded"])
    def test_evaluate_and_predict_match(self, kind):
        one, many = trained(None), trained(KINDS[kind]())
        for model in (one, many):
            nn.load_variables(model, baseline()[0])
        for size in (24, 25, 30):
            options = {"batch_size": size, "verbose": 0}
            actual, expected = (model.evaluate(X, Y, return_dict=True, **options) for model in (many, one))
            assert actual["accuracy"] == expected["accuracy"]
            np.testing.assert_allclose(actual["loss"], expected["loss"], rtol=2e-6)
            np.testing.assert_allclose(many.predict(X, **options), one.predict(X, **options), atol=2e-6)

    @pytest.mark.slow
    def test_dropout_masks_differ_between_devices(self):
        seen = []

        class RecordInputs(nn.Layer):
            def call(self, x):
                jax.debug.callback(lambda x: seen.append(np.asarray(x)), x)
                return x

        model = Sequential([nn.Dropout(0.5), RecordInputs(), nn.Dense(1)])
        model.compile("sgd", "mse", distribution=DataParallel(devices(8)))
        model.fit(np.ones((16, 64), "float32"), np.ones((16, 1), "float32"), batch_size=16, verbose=0)
        jax.effects_barrier()
        masks = {part.tobytes() for part in seen if part.shape == (2, 64) and (part == 0).any()}
        assert len(masks) == 8


@pytest.mark.slow
class TestNormalization:
    def test_synchronized_statistics_are_those_of_the_whole_batch(self):
        layout = many_devices.LAYOUT | {"batch_norm/.*": ("model",)}
        cases = [
            (None, "data"),
            (DataParallel(devices(8)), "data"),
            (split(layout), "data"),
            (KINDS["data parallel"](), None),
        ]
        models = [
            trained(distribution, middle=[lambda axis=axis: nn.BatchNorm(axis_name=axis, momentum=0.5)])
            for distribution, axis in cases
        ]
        results = [values(model) for model in models]
        for synchronized in results[1:3]:
            close(synchronized, results[0], 2e-5)
        with pytest.raises(AssertionError):
            close(results[3], results[0], 1e-2)
        shapes = many_devices.shard_shapes(many_devices.stored(models[2]))
        assert shapes["batch_norm/gamma"] == shapes["batch_norm/moving_mean"] == (8,)

    def test_unsynchronized_moving_statistics_are_the_mean_over_devices(self):
        model = Sequential([nn.BatchNorm(momentum=0.0), nn.Dense(1)])
        model.compile(SGD(0.0), "mse", distribution=DataParallel(devices(8)))
        model.fit(X[:32], X[:32, :1], batch_size=32, shuffle=False, verbose=0)
        found = {path.split("/")[-1]: variable.value for path, variable in model.variables.items()}
        parts = X[:32].reshape(8, 4, many_devices.FEATURES)
        np.testing.assert_allclose(found["moving_mean"], parts.mean(1).mean(0), atol=1e-6)
        np.testing.assert_allclose(found["moving_variance"], parts.var(1).mean(0), rtol=1e-5)

    def test_synchronized_statistics_respect_the_mask(self):
        norm = nn.BatchNorm(axis_name="data", momentum=0.0)
        x, mask = many_devices.RNG.normal(size=(16, 3)).astype("float32"), many_devices.RNG.random(16) < 0.4
        nn.initialize(norm, x)
        weights = {path: each.value for path, each in norm.variables.items()}

        def normalize(weights, x, mask):
            return nn.functional_call(norm, weights, x, mask=mask, training=True)

        specs = {"in_specs": (P(), P("data"), P("data")), "out_specs": (P("data"), P())}
        split_normalize = jax.shard_map(normalize, mesh=devices(8), check_vma=False, **specs)
        found, wanted = (jax.tree.leaves(jax.jit(run)(weights, x, mask)) for run in (split_normalize, normalize))
        assert len(found) == len(wanted) == 5  # outputs, scale, offset, mean and variance
        for actual, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(actual, expected, atol=2e-6)


class TestPlacement:
    def test_spec_splits_the_longest_axis_that_divides_evenly(self):
        distribution = many_devices.sharded(8)
        specs = {(64, 128): P(None, "data"), (8, 9): P("data"), (7, 9, 3): P(), (8,): P(), (): P(), (16,): P("data")}
        assert {shape: distribution.spec(shape) for shape in specs} == specs

    def test_one_device_neither_splits_nor_rounds_gradients(self):
        distribution, third = many_devices.sharded(1), {"w": jnp.full(64, 1 / 3)}
        assert distribution.spec((64, 128)) == P()
        added = distribution.aggregate(third, np.dtype("float16"), {"w": (64,)})
        np.testing.assert_array_equal(added["w"], third["w"])

    @pytest.mark.slow
    def test_assigned_values_move_to_the_sharding_of_their_variable(self):
        model = trained(many_devices.sharded(8), epochs=1)
        new = np.ones(model.variables["dense/kernel"].shape, "float32")
        model.variables["dense/kernel"].assign(jax.device_put(new, jax.devices()[3]))
        seen = []

        class AssignInSecondBatch(Callback):
            def on_train_batch_end(self, batch, logs):
                seen.append(values(model))
                if batch == 1:  # all other variables keep their placement
                    model.variables["dense/kernel"].assign(jax.device_put(new * 2, jax.devices()[5]))

        model.fit(X, Y, batch_size=32, verbose=0, callbacks=AssignInSecondBatch())
        assert len(seen) == 3
        assert abs(seen[0]["dense/kernel"] - new).max() < 0.1
        assert abs(seen[2]["dense/kernel"] - 2).max() < 0.1

    def test_user_jitted_loss_is_retraced_for_a_distribution(self):
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_overflow_in_one_replica_skips_the_step_on_all_devices(kind):
    x = X.copy()
    x[37] = np.inf  # in the second batch, on one device or in one replica
    results = []
    for distribution in (None, KINDS[kind]()):
        model = network("mixed_float16")
        scale = DynamicLossScale(initial_loss_scale=64, increment_period=1000)
        model.compile(LossScaleOptimizer(SGD(0.1), scale), LOSS, "accuracy", distribution=distribution)
        model.fit(x, Y, batch_size=24, verbose=0, shuffle=False)
        results.append(model)
    one, many = results
    assert many.history.skipped == one.history.skipped == [False, True, False]
    assert many.history.loss_scale == one.history.loss_scale == [64, 64, 32]
    assert many.history.history["accuracy"] == one.history.history["accuracy"]
    close(values(many), values(one), 2e-3)
    leaves = jax.tree.leaves((many.optimizer.state, [each.value for each in many.variables.values()]))
    replicated = [leaf for leaf in leaves if leaf.sharding.is_fully_replicated and len(leaf.addressable_shards) > 1]
    assert many.optimizer.state.scaling.loss_scale in replicated
    for leaf in replicated:
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
    def test_invalid_arguments_raise(self, make, error, told):
        with pytest.raises(error, match=told):
            make()

    @pytest.mark.slow
    def test_mesh_may_have_any_axis_name_and_type(self):
        mesh = jax.make_mesh((4,), ("batch",))
        model = trained(FullyShardedDataParallel(mesh, smallest=16), epochs=1)
        assert model.variables["dense/kernel"].value.sharding == NamedSharding(
            model.compiled().distribution.mesh, P(None, "batch")
        )
