"""Training on a mesh of data and model axes matches training on one device, and variables stay split as laid out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from mixed_precision.replica_groups import collectives
from supremum import nn
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.mixed_precision import DynamicLossScale
from supremum.optimizers import SGD, Adam, LossScaleOptimizer
from supremum.training import Batch, DataParallel, FullyShardedDataParallel, Sequential, init_state, train_step
from supremum.training.distributed.layout import Layout
from supremum.training.step import place_state
from training.many_devices import (
    CLASSES,
    FEATURES,
    KINDS,
    LOSS,
    X,
    Y,
    baseline,
    close,
    lowered,
    mesh,
    network,
    shard_shapes,
    split,
    split_and_sharded,
    stored,
    trained,
    values,
)

DATA_GROUPS = {(0, 4), (1, 5), (2, 6), (3, 7)}
MODEL_GROUPS = {(0, 1, 2, 3), (4, 5, 6, 7)}
both_kinds = pytest.mark.parametrize("kind", ["split and sharded", "split"])


@pytest.mark.slow
@both_kinds
def test_the_pure_step_runs_without_jit(kind):
    model, optimizer, distribution = network("mixed_float16"), LossScaleOptimizer(SGD(0.1)), KINDS[kind]()
    nn.initialize(model, X[:1])
    step = train_step(model, LOSS, optimizer, distribution=distribution)
    state, batch = place_state(distribution, init_state(model, optimizer)), distribution.batch(Batch(X[:32], Y[:32]))
    eager, jitted = (run(state, batch).trainable for run in (step, jax.jit(step)))
    close(eager, jitted, 1e-3)
    assert shard_shapes(eager) == shard_shapes(jitted) == shard_shapes(state.trainable)


class Block(nn.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.attention = nn.MultiHeadAttention(4, 8)
        self.norm = nn.LayerNorm()

    def call(self, x):
        return self.norm(x + self.attention(x))


LAYOUT_OF_LAYERS = {
    "embedding/.*": ("model",),
    "block/attention/(query|key|value)/kernel": (None, "model"),
    "block/attention/(query|key|value)/bias": ("model",),
    "block/attention/output/kernel": ("model",),
    "block/norm/.*": ("model",),
    "rnn/cell/.*kernel": (None, "model"),
    "dense/kernel": ("model",),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "dropout", "kind"),
    [
        ((2, 4), 0, DataParallel),
        ((2, 4), 0, lambda *args, **options: FullyShardedDataParallel(*args, smallest=16, **options)),
        ((1, 4), 0.5, DataParallel),  # one replica has the random numbers of one device
    ],
)
def test_layers_of_all_kinds_train_alike_when_they_are_split(shape, dropout, kind):
    tokens, labels = np.arange(32 * 6).reshape(32, 6) ** 2 % 16, np.arange(32) % CLASSES
    results = []
    for devices in (None, np.reshape(jax.devices()[: np.prod(shape)], shape)):
        layers = [nn.Embedding(16, 32), Block(), nn.RNN(nn.LSTMCell(16)), nn.Dropout(dropout)]
        model = Sequential([*layers, nn.Activation(lambda x: x.mean(1)), nn.Dense(CLASSES)])
        distribution = None
        if devices is not None:
            distribution = kind(Mesh(devices, ("data", "model")), data_axes="data", layout=LAYOUT_OF_LAYERS)
        model.compile(SGD(0.1), LOSS, distribution=distribution, steps_per_execution=2)
        model.fit(tokens, labels, batch_size=16, epochs=2, verbose=0)
        results.append(model)
    close(values(results[1]), values(results[0]), 2e-5)
    np.testing.assert_allclose(results[1].history.loss, results[0].history.loss, rtol=2e-6)
    shapes = shard_shapes(stored(results[1]))
    assert shapes["block/attention/query/kernel"][1:] == (1, 8)
    assert shapes["embedding/embedding"][0] == 4


SHAPES = {
    "split and sharded": {"dense/kernel": (8, 8), "dense/bias": (8,), "dense_1/kernel": (8, 2), "dense_1/bias": (4,)},
    "split": {"dense/kernel": (16, 8), "dense/bias": (8,), "dense_1/kernel": (8, 4), "dense_1/bias": (4,)},
    "fully sharded": {"dense/kernel": (16, 4), "dense/bias": (4,), "dense_1/kernel": (4, 4), "dense_1/bias": (4,)},
}


class TestPlacement:
    @pytest.mark.one_in(2)
    @pytest.mark.parametrize("kind", SHAPES)
    def test_variables_and_optimizer_slots_stay_split_as_laid_out(self, kind):
        model = trained(KINDS[kind](), optimizer=Adam(0.01), epochs=1)
        assert shard_shapes(stored(model)) == SHAPES[kind]
        slots = shard_shapes(model.optimizer.variables)
        for slot in ("mu", "nu"):
            assert {path: slots[f"{slot}/{path}"] for path in SHAPES[kind]} == SHAPES[kind]

    @pytest.mark.slow
    def test_variables_that_are_not_trained_are_split_too(self):
        model = network()
        nn.initialize(model, X[:1])
        model.variables["dense/kernel"].trainable = False
        model.compile(SGD(0.1), LOSS, distribution=split_and_sharded())
        model.fit(X, Y, batch_size=32, verbose=0)
        assert shard_shapes(stored(model))["dense/kernel"] == (FEATURES, 8)

    def test_layout_and_data_axes_split_different_axes_of_a_variable(self):
        distribution = FullyShardedDataParallel(
            mesh(), data_axes="data", layout={"a": (None, "model"), "b": (("model",),)}, smallest=16
        )
        cases = {
            ("a", (16, 32)): P("data", "model"), ("a", (15, 32)): P(None, "model"), ("c", (16, 32)): P(None, "data"),
            ("b", (32,)): P(("model",)), ("a", (1,)): P(), ("a", ()): P(), ("a", (16, 31)): P("data"),
        }  # fmt: skip
        assert {key: distribution.spec(shape, path) for key in cases for path, shape in [key]} == cases

    def test_batches_are_split_over_data_axes_and_whole_along_model_axes(self):
        distribution = split()
        batch = distribution.batch(Batch(X[:32], Y[:32]))
        assert batch.x.sharding.is_equivalent_to(NamedSharding(distribution.mesh, P("data")), 2)
        assert distribution.replicas == 2

    @pytest.mark.slow
    def test_constraints_in_a_layer_may_use_model_axes(self):
        class Constrained(nn.Layer):
            def call(self, x):
                return jax.lax.with_sharding_constraint(x, P(None, "model"))

        distribution = split()
        with jax.set_mesh(distribution.mesh):
            model = trained(distribution, middle=[Constrained])
            outputs = model.predict(X, verbose=0)
        close(values(model), baseline()[0], 4e-6)
        assert outputs.shape == (len(X), CLASSES)


PIECES = sorted([FEATURES * 32 // 4, 32 // 4, 32 * CLASSES // 4, CLASSES])


class TestCommunication:
    @pytest.mark.compiled
    @pytest.mark.one_in(3)
    @pytest.mark.parametrize(
        ("policy", "flag", "kind"),
        [("mixed_float16", True, "f16"), ("float32", None, "f32"), ("mixed_float16", False, "f32")],
    )
    def test_pieces_of_gradients_are_summed_over_data_axes_in_the_reduce_dtype(self, policy, flag, kind):
        optimizer = None if flag is None else LossScaleOptimizer(SGD(0.1), aggregate_in_float16=flag)
        found = collectives(lowered(policy, split(), optimizer).compile().as_text())
        across_data = [each for each in found if each.groups == DATA_GROUPS]
        assert sorted(size for each in across_data for size in each.sizes) == PIECES
        assert {each.dtype for each in across_data} == {kind}
        # Within a replica only the activations after the second product are summed, in the compute dtype.
        others = [each for each in found if each.groups != DATA_GROUPS]
        assert others == [("all-reduce", "f32" if policy == "float32" else "f16", (16 * CLASSES,), MODEL_GROUPS)]
        assert {each.name for each in found} == {"all-reduce"}

    @pytest.mark.slow
    def test_fully_sharded_variables_are_gathered_and_scattered_over_data_axes_only(self):
        found = collectives(lowered("mixed_float16", split_and_sharded()).compile().as_text())
        moved = sorted((each.name, each.dtype, *each.sizes) for each in found if each.groups == DATA_GROUPS)
        assert moved == [
            ("all-gather", "f16", 32 * CLASSES // 4), ("all-gather", "f16", FEATURES * 32 // 4),
            ("all-reduce", "f16", 8, CLASSES),
            ("reduce-scatter", "f16", 32 * CLASSES // 8), ("reduce-scatter", "f16", FEATURES * 32 // 8),
        ]  # fmt: skip
        others = [each for each in found if each.groups != DATA_GROUPS]
        assert {(each.name, each.groups == MODEL_GROUPS) for each in others} == {("all-reduce", True)}


@pytest.mark.slow
def test_overflow_on_one_device_of_a_replica_skips_the_step_on_all_devices():
    """The columns of one device overflow in the backward pass only."""
    factors = np.ones(32, "float32")
    factors[-1] = 1e38

    class Scaled(nn.Layer):
        def call(self, x):
            @jax.custom_vjp
            def identity(x):
                return x

            identity.defvjp(lambda x: (x, None), lambda _, g: (g * jnp.asarray(factors, g.dtype),))
            return identity(x)

    model = Sequential([nn.Dense(32), Scaled(), nn.Dense(CLASSES)])
    scale = DynamicLossScale(initial_loss_scale=2.0**20, increment_period=1000)
    model.compile(LossScaleOptimizer(SGD(0.1), scale), LOSS, distribution=split())
    nn.initialize(model, X[:1])
    before = values(model)
    model.fit(X[:32], Y[:32], batch_size=32, verbose=0)
    assert model.history.skipped == [True]
    close(values(model), before, 0)


@pytest.mark.slow
@both_kinds
@pytest.mark.parametrize("kind_of_file", [None, "orbax"])
def test_a_state_goes_from_a_mesh_to_one_device_and_back(kind_of_file, kind, tmp_path):
    def compiled(distribution):
        model = network("mixed_float16")
        model.compile(Adam(0.01), LOSS, distribution=distribution)
        nn.initialize(model, X[:1])
        return model

    def state_of(model):
        return {**stored(model), **model.optimizer.variables}

    first = compiled(KINDS[kind]())
    first.fit(X[:64], Y[:64], batch_size=32, verbose=0)
    first.save_state(tmp_path / "first", format=kind_of_file)
    one = compiled(None)
    one.load_state(tmp_path / "first")
    one.save_state(tmp_path / "second", format=kind_of_file)
    back = compiled(KINDS[kind]())
    back.load_state(tmp_path / "second")
    for model in (one, back):
        jax.tree.map(np.testing.assert_array_equal, state_of(model), state_of(first))
    for model in (first, one, back):
        model.fit(X[:64], Y[:64], batch_size=32, initial_epoch=1, epochs=2, verbose=0)
    jax.tree.map(np.testing.assert_array_equal, state_of(back), state_of(first))
    close(values(one), values(back), 4e-3)
    assert shard_shapes(stored(back)) == shard_shapes(stored(first))


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "error", "told"),
        [
            ({}, ArgumentError, "the axes data, model; say which .* data_axes='data'"),
            ({"data_axes": "date"}, UnknownNameError, "unknown mesh axis 'date': did you mean 'data'"),
            ({"data_axes": ()}, ArgumentError, "one axis of the mesh or several"),
            ({"data_axes": ("data", "data")}, ArgumentError, "several different ones"),
            ({"data_axes": 1}, OperandError, "data_axes must be a list"),
            ({"layout": "model"}, OperandError, "layout must be a mapping"),
            ({"layout": {"a": "model"}}, OperandError, "must be a PartitionSpec or a tuple, got 'model'"),
            ({"layout": {"a": ("data",)}}, UnknownNameError, "unknown model axis 'data': choose from model"),
            ({"layout": {"a": ("model", "model")}}, ArgumentError, "use each mesh axis once"),
            ({"layout": {"a(": ("model",)}}, ArgumentError, r"not a regular expression .* write 'a\\\\\('"),
            ({"layout": {1: ("model",)}}, OperandError, "a pattern of layout must be a str"),
            ({"layout": {"a": (1,)}}, OperandError, "a mesh axis of layout"),
        ],
    )
    def test_invalid_arguments_raise(self, options, error, told):
        options = {"data_axes": "data", **options} if options else {}
        with pytest.raises(error, match=told):
            DataParallel(mesh(), **options)

    @pytest.mark.parametrize(
        ("layout", "told"),
        [
            ({"dense_1/kernel": (None, None, "model")}, r"cannot split 'dense_1/kernel' .*: it has 2 axes"),
            (
                {"dense/kernel": ("model",), "dense_1/bias": ("model",)},
                "'dense_1/bias' .*: axis 0 must be divisible by 8",
            ),
            ({"dens/kernel": ("model",)}, "'dens/kernel' matches no variable; similar paths are dense/kernel"),
        ],
    )
    @pytest.mark.parametrize("way", ["fit", "evaluate", "train_step"])
    def test_a_layout_that_does_not_fit_the_variables_raises(self, layout, told, way):
        distribution = DataParallel(mesh(1, 8), data_axes="data", layout=layout)
        model = network()
        model.compile(SGD(0.1), LOSS, distribution=distribution)

        def train(x, y, verbose):
            nn.initialize(model, x)
            step = train_step(model, LOSS, SGD(0.1), distribution=distribution)
            jax.eval_shape(step, init_state(model, SGD(0.1)), Batch(x, y))

        with pytest.raises(ArgumentError, match=told):
            (train if way == "train_step" else getattr(model, way))(X, Y, verbose=0)

    def test_an_unknown_axis_without_a_mesh_raises(self):
        with pytest.raises(UnknownNameError, match="model axis 'model'"):
            DataParallel(layout={"a": ("model",)})


def test_the_first_pattern_that_matches_wins():
    layout = Layout({"a/.*": ("model",), ".*/kernel": (None, "model")}, {"model": 2})
    assert layout.spec("a/kernel", (4, 4)) == P("model")
    assert layout.spec("b/kernel", (4, 4)) == P(None, "model")
    assert layout.spec("ba/kernels", (4, 4)) == P()


def test_repr_shows_axes_and_layout():
    text = repr(split({".*/kernel": (None, "model")}))
    assert text.endswith("data_axes='data', layout={'.*/kernel': (None, 'model')}, batches='global')")
