"""Training on several devices beside training on one, and what travels between them."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from supremum import nn
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.mixed_precision import DynamicLossScale, Policy, use_policy
from supremum.optimizers import SGD, Adam, LossScaleOptimizer
from supremum.training import (
    Batch,
    Callback,
    DataParallel,
    FullyShardedDataParallel,
    MeanSquaredError,
    Sequential,
    SparseCategoricalCrossentropy,
    init_state,
    train_step,
)
from supremum.training.step import placed

EXAMPLES, FEATURES, CLASSES = 72, 16, 4
LOSS = SparseCategoricalCrossentropy(from_logits=True)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(EXAMPLES, FEATURES)).astype("float32")
Y = RNG.integers(0, CLASSES, EXAMPLES)
WEIGHTS = RNG.uniform(0, 2, EXAMPLES).astype("float32")
KINDS = {
    "data parallel": DataParallel,
    "fully sharded": lambda mesh: FullyShardedDataParallel(mesh, smallest=16),
}


def devices(count):
    return Mesh(jax.devices()[:count], "data")


def network(policy="float32", *middle):
    with use_policy(policy):
        return Sequential([nn.Dense(32), *(make() for make in middle), nn.ReLU(), nn.Dense(CLASSES)])


def trained(distribution, policy="float32", middle=(), *, optimizer=None, epochs=2):
    model = network(policy, *middle)
    model.compile(optimizer or SGD(0.1), LOSS, ["accuracy"], distribution=distribution)
    model.fit(X, Y, batch_size=32, epochs=epochs, verbose=0)
    return model


def values(model):
    return {path: np.asarray(variable.value) for path, variable in model.variables.items()}


def close(ours, theirs, rtol):
    """Values of models within a share of the largest of each."""
    for path, value in theirs.items():
        np.testing.assert_allclose(ours[path], value, rtol=0, atol=rtol * max(np.abs(value).max(), 0.05), err_msg=path)


ALONE = {}


def alone(policy="float32"):
    """What one device comes to, once for all tests of a policy."""
    if policy not in ALONE:
        model = trained(None, policy)
        ALONE[policy] = values(model), model.history.loss, model.history.history
    return ALONE[policy]


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

    def test_a_batch_that_does_not_divide_is_computed_whole(self):
        """72 examples in batches of 25: of 25, 25 and 22."""
        made = []
        for distribution in (None, DataParallel(devices(8)), FullyShardedDataParallel(devices(8), smallest=16)):
            model = network()
            model.compile(SGD(0.1), LOSS, "accuracy", distribution=distribution)
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


class TestNormalisation:
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


def reductions(text):
    """(operation, element type, elements) of what travels, but for single numbers, in the optimised HLO."""
    found = []
    for types, name in re.findall(r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all)(?:-start)?\(", text):
        for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", types):
            found.append((name, kind, int(np.prod([int(n) for n in shape.split(",") if n]))))
    return [each for each in found if each[2] > 1]


def lowered(policy, distribution, optimizer=None, middle=()):
    model = network(policy, *middle)
    nn.initialize(model, X[:1])
    optimizer = optimizer or (LossScaleOptimizer(SGD(0.1)) if Policy(policy).loss_scale else SGD(0.1))
    step = train_step(model, LOSS, optimizer, distribution=distribution)
    state = placed(distribution, init_state(model, optimizer))
    return jax.jit(step).lower(state, distribution.batch(Batch(X[:32], Y[:32])))


PARAMETERS = FEATURES * 32 + 32 + 32 * CLASSES + CLASSES


class TestWhatTravels:
    @pytest.mark.parametrize(
        ("policy", "flag", "dtype"),
        [
            ("float32", None, "f32"),
            ("mixed_float16", True, "f16"),
            ("mixed_float16", False, "f32"),
            ("mixed_bfloat16", None, "f32"),
            ("variable=float32,compute=float16,reduce=float32", None, "f16"),
            ("variable=float32,compute=float32,reduce=float16", None, "f16"),
        ],
    )
    def test_one_all_reduce_in_the_dtype_asked_for(self, policy, flag, dtype):
        """A flag that is set on the optimizer, True unless asked otherwise, wins over the policy."""
        optimizer = None if flag is None else LossScaleOptimizer(SGD(0.1), aggregate_in_float16=flag)
        text = lowered(policy, DataParallel(devices(8)), optimizer).compile().as_text()
        assert reductions(text) == [("all-reduce", dtype, PARAMETERS)]

    def test_bfloat16_travels_where_it_is_asked_for(self):
        """In the StableHLO: XLA's CPU backend widens it."""
        policy = "variable=float32,compute=bfloat16,reduce=bfloat16"
        text = lowered(policy, DataParallel(devices(8))).as_text()
        kinds = re.findall(r"all_reduce.*?\}\) : \(tensor<(?:(\d+)x)?(\w+)>\)", text, re.DOTALL)
        assert (str(PARAMETERS), "bf16") in kinds
        assert all(kind == "f32" for size, kind in kinds if size != str(PARAMETERS))

    def test_compile_asks_for_what_the_policy_says(self):
        for policy, flag in (("mixed_float16", True), ("variable=float32,compute=float16,reduce=float32", False)):
            model = network(policy)
            model.compile("sgd", "mse")
            assert model.optimizer.aggregate_in_float16 is flag

    def test_a_flag_set_in_mid_training_acts_on_the_next_step(self):
        model = trained(DataParallel(devices(2)), "mixed_float16", epochs=1)
        before = model.optimizer.trace_key
        model.optimizer.aggregate_in_float16 = False
        assert model.optimizer.trace_key != before
        assert model.optimizer.reduce_dtype(np.dtype("float16")) is None
        model.fit(X, Y, batch_size=32, verbose=0)

    @pytest.mark.parametrize(("policy", "kind"), [("float32", "f32"), ("mixed_float16", "f16")])
    def test_variables_are_cast_before_they_are_gathered_and_gradients_scattered(self, policy, kind):
        distribution = FullyShardedDataParallel(devices(8), smallest=100)
        found = reductions(lowered(policy, distribution).compile().as_text())
        kernels = [FEATURES * 32, 32 * CLASSES]
        gathered = sorted(size for name, dtype, size in found if name == "all-gather" and dtype == kind)
        scattered = sorted(size * 8 for name, dtype, size in found if name == "reduce-scatter" and dtype == kind)
        assert gathered == scattered == sorted(kernels)
        assert [each for each in found if each[0] == "all-reduce"] == [("all-reduce", kind, 32 + CLASSES)]

    def test_bfloat16_variables_gathered_for_bfloat16_are_summed_in_float32(self):
        text = lowered("mixed_bfloat16", FullyShardedDataParallel(devices(8), smallest=100)).as_text()
        assert re.search(r"reduce_scatter.*?: \(tensor<\S+xf32>\)", text, re.DOTALL)
        assert re.search(r"all_gather.*?: \(tensor<\S+xbf16>\)", text)

    def test_float16_moves_half_the_bytes(self):
        size = {"f16": 2, "f32": 4}
        moved = []
        for flag in (True, False):
            optimizer = LossScaleOptimizer(SGD(0.1), aggregate_in_float16=flag)
            found = reductions(lowered("mixed_float16", DataParallel(devices(8)), optimizer).compile().as_text())
            moved.append(sum(size[kind] * elements for _, kind, elements in found))
        assert moved[0] * 2 == moved[1] == 4 * PARAMETERS


class TestWhereThingsLie:
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

    def test_values_that_were_assigned_go_where_they_belong(self):
        model = trained(FullyShardedDataParallel(devices(8), smallest=16), epochs=1)
        new = np.ones(model.variables["dense/kernel"].shape, "float32")
        model.variables["dense/kernel"].assign(jax.device_put(new, jax.devices()[3]))
        seen = []

        class Looking(Callback):
            def on_train_batch_end(self, batch, logs):
                seen.append(values(model))

        model.fit(X, Y, batch_size=32, verbose=0, callbacks=Looking())
        assert len(seen) == 3
        assert abs(seen[0]["dense/kernel"] - new).max() < 0.1

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


def loss_of(model):
    def loss_fn(x, y):
        return LOSS(y, model(x, training=True))

    return loss_fn


class TestOptimizersAcrossDevices:
    @pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
    @pytest.mark.parametrize("way", ["minimize", "get_gradients"])
    def test_loops_of_ones_own_train_as_on_one_device(self, way, policy):
        made = []
        for count in (None, 8):
            model = network(policy, lambda: nn.BatchNorm(axis_name="data"))
            nn.initialize(model, X[:1])
            optimizer = SGD(0.1) if policy == "float32" else LossScaleOptimizer(SGD(0.1))
            loss_fn, variables = loss_of(model), model.trainable_variables
            losses = []
            with DataParallel(devices(count)).scope() if count else use_policy(policy):
                for start in (0, 32):
                    args = X[start : start + 32], Y[start : start + 32]
                    if way == "minimize":
                        losses.append(float(optimizer.minimize(loss_fn, variables, *args)))
                    else:
                        gradients = optimizer.get_gradients(loss_fn, variables, *args)
                        optimizer.apply_gradients(zip(gradients, variables.values(), strict=True))
            made.append((values(model), losses))
        close(made[1][0], made[0][0], 1e-5 if policy == "float32" else 4e-3)
        np.testing.assert_allclose(made[1][1], made[0][1], rtol=1e-6 if policy == "float32" else 2e-3)

    def test_gradients_stay_apart_until_they_are_applied(self):
        w = nn.Variable([1.0], "w")
        optimizer = LossScaleOptimizer(SGD(1.0), 1024)
        with DataParallel(devices(4)).scope():
            (apart,) = optimizer.get_gradients(lambda x: (w.value * x).mean(), w, np.arange(8, dtype="float32"))
            np.testing.assert_allclose(apart[:, 0], [0.5, 2.5, 4.5, 6.5])
            optimizer.apply_gradients([(apart, w)])
            assert w.value == 1 - 3.5
            optimizer.apply_gradients([(jnp.ones(1), w)], aggregate_gradients=False)
            assert w.value == -3.5
            with pytest.raises(ArgumentError, match="aggregate_gradients=False"):
                optimizer.apply_gradients([(jnp.ones(1), w)])

    def test_unscaled_gradients_too_small_for_float16_survive_the_journey(self):
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

    def test_the_loss_is_given_the_batch(self):
        w = nn.Variable([1.0], "w")
        for method in ("minimize", "get_gradients"):
            with DataParallel(devices(2)).scope(), pytest.raises(ArgumentError, match="loss_fn"):
                getattr(SGD(1.0), method)(lambda: w.value.sum(), w)

    def test_numbers_are_the_same_everywhere(self):
        w = nn.Variable([1.0], "w")
        with DataParallel(devices(2)).scope():
            SGD(1.0).minimize(lambda x, factor: (w.value * x * factor).mean(), w, np.ones(4, "float32"), 0.25)
        assert w.value == 0.75


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


def test_every_pair_of_device_counts_agrees():
    made = {count: values(trained(DataParallel(devices(count)), epochs=1)) for count in (2, 4, 8)}
    for one, other in itertools.combinations(made.values(), 2):
        close(one, other, 4e-6)
