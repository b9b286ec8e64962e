"""`NumericsMonitor` counts the gradients of the steps that train, exactly, and leaves training as it is."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numerics.reference import counts_of
from slowly import mostly_slow, slow
from supremum import nn
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.formats import as_format
from supremum.mixed_precision import DynamicLossScale, FixedLossScale
from supremum.optimizers import SGD, Adam, LossScaleOptimizer
from supremum.training import (
    Callback,
    DataParallel,
    FullyShardedDataParallel,
    Model,
    NumericsMonitor,
    Sequential,
    SparseCategoricalCrossentropy,
)
from training.blobs import blobs, equal, network, values
from training.many_devices import devices

LOSS = SparseCategoricalCrossentropy(from_logits=True)
X, Y = blobs(96)
FORMATS = "float16", "bfloat16", "float8_e4m3fn"
ROWS = [as_format(name) for name in FORMATS]
POLICIES = ["float32", "mixed_float16", "mixed_bfloat16", "float16", "bfloat16"]


def fitted(model, monitor=None, *, x=X, y=Y, batch_size=16, epochs=1, **options):
    model.compile(**{"optimizer": SGD(0.1), "loss": LOSS, **options})
    model.fit(x, y, batch_size=batch_size, epochs=epochs, shuffle=False, callbacks=monitor or (), verbose=0)
    return model


def plain(counts):
    """The counts as `counts_of` has them."""
    found = counts.to_dict()
    for row in found["formats"].values():
        del row["overflow_to"]
    return found


@pytest.mark.parametrize("policy", mostly_slow(POLICIES[:3], "mixed_float16"))
def test_counts_are_those_of_the_gradients_that_the_step_applied(policy):
    """From weights of zero, with a learning rate of 1, the new weights are the negative gradients."""
    random = np.random.default_rng(0)
    x = (random.normal(size=(32, 40)) * 10.0 ** random.uniform(-9, 4, size=40)).astype("float32")
    y = random.normal(size=(32, 8)).astype("float32")
    scale = 4.0
    model = Sequential([nn.Dense(8, kernel_initializer="zeros")], dtype=policy)
    optimizer = SGD(1.0) if policy == "float32" else LossScaleOptimizer(SGD(1.0), FixedLossScale(scale))
    monitor = NumericsMonitor(formats=FORMATS)
    fitted(model, monitor, x=x, y=y, batch_size=32, optimizer=optimizer, loss="mse")
    (record,) = monitor.history.records
    applied = [-each for each in values(model).values()]
    expected = counts_of(applied, ROWS)
    assert expected["formats"]["float8_e4m3fn"]["flushed"] > 10
    if policy == "float32":
        assert plain(record.values["gradients"]["dense"]) == expected
        assert (record.loss_scale, record.skipped_steps) == (None, 0)
    else:
        assert record.loss_scale == scale
        assert plain(record.values["unscaled_gradients"]["dense"]) == expected
        scaled = counts_of([np.float32(scale) * each for each in applied], ROWS)
        assert scaled != expected
        assert plain(record.values["gradients"]["dense"]) == scaled


@pytest.mark.parametrize("policy", mostly_slow(POLICIES, "mixed_float16"))
def test_counts_are_those_of_gradients_taken_by_hand(policy):
    model = network(policy)
    monitor = NumericsMonitor(formats=FORMATS)
    nn.initialize(model, X[:1])
    trainable, other = nn.split_variables(model)
    trainable, other = (jax.tree.map(jnp.copy, each) for each in (trainable, other))
    fitted(model, monitor, batch_size=96)
    scale = monitor.history.loss_scale[0]

    @jax.jit
    def gradients(trainable):
        def loss(trainable):
            outputs, _ = nn.functional_call(model, trainable | other, X, training=True)
            return LOSS(Y, outputs).astype("float32") * (scale or 1.0)

        return jax.grad(loss)(trainable)

    found = gradients(trainable)
    (record,) = monitor.history.records
    layers = {"dense": ["bias", "kernel"], "batch_norm": ["beta", "gamma"], "dense_1": ["bias", "kernel"]}
    assert set(record.values["gradients"]) == set(layers)
    for layer, names in layers.items():
        expected = counts_of([np.asarray(found[f"{layer}/{name}"]) for name in names], ROWS)
        assert plain(record.values["gradients"][layer]) == expected, layer
        stored = [np.asarray(trainable[f"{layer}/{name}"]) for name in names]
        stored += [np.asarray(value) for path, value in other.items() if path.startswith(f"{layer}/")]
        assert record.values["weights"][layer].largest == max(np.abs(each.astype("float64")).max() for each in stored)
    assert ("unscaled_gradients" in record.values) == (scale is not None)


DISTRIBUTIONS = {
    "one": lambda: None,
    "data": lambda: DataParallel(devices(4)),
    "sharded": lambda: FullyShardedDataParallel(devices(4), smallest=1),
}


@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        ("one", "float32"),
        slow("one", "mixed_bfloat16"),
        slow("sharded", "mixed_float16"),
        *(pytest.param("data", policy, marks=pytest.mark.slow) for policy in ("float32", "mixed_float16")),
        pytest.param("sharded", "mixed_bfloat16", marks=pytest.mark.slow),
    ],
)
def test_training_has_the_same_bits_with_and_without_a_monitor(kind, policy):
    def run(monitor):
        model = fitted(network(policy), monitor, optimizer=Adam(0.01), epochs=2, distribution=DISTRIBUTIONS[kind]())
        return values(model), model.optimizer.variables, model.history.loss, model.history.skipped

    monitor = NumericsMonitor(every=3)
    assert equal(run(monitor), run(None))
    assert monitor.history.steps == [0, 3, 6, 9]


@pytest.mark.parametrize(
    ("kind", "policy"),
    [("data", "mixed_float16"), *(pytest.param("sharded", policy, marks=pytest.mark.slow) for policy in POLICIES[:2])],
)
def test_counts_on_several_devices_are_those_of_the_mean_gradient(kind, policy):
    def record(distribution):
        monitor = NumericsMonitor()
        model = Sequential([nn.Dense(16), nn.ReLU(), nn.Dense(3)], dtype=policy)
        fitted(model, monitor, batch_size=32, distribution=distribution)
        return monitor.history.records[0]

    one, several = record(None), record(DISTRIBUTIONS[kind]())
    assert one.values.keys() == several.values.keys()
    for kind_of_values, named in one.values.items():
        assert named.keys() == several.values[kind_of_values].keys()
        for name, counts in named.items():
            other = several.values[kind_of_values][name]
            assert math.isclose(counts.largest, other.largest, rel_tol=0.01), (kind_of_values, name)
            if kind_of_values != "activations":
                assert counts.values == other.values


@pytest.mark.parametrize(("steps", "expected"), [slow(1, [0, 3, 6, 9]), (4, [0, 6])])
def test_the_first_step_of_a_dispatch_that_is_due_is_measured(steps, expected):
    """Six steps an epoch. Dispatches of four start at 0, 4, 5, 6, 10 and 11; those at 0 and 6 have a due step."""
    monitor = NumericsMonitor(every=3)
    model = fitted(network("mixed_float16"), monitor, epochs=2, steps_per_execution=steps)
    assert monitor.history.steps == expected
    assert equal(values(model), values(fitted(network("mixed_float16"), epochs=2, steps_per_execution=steps)))


@pytest.mark.parametrize(
    ("make", "epochs", "many", "expected"),
    [(network, 1, 3, [0, 3]), (lambda: Sequential([nn.Dense(3)]), 2, 4, [0, 6])],
    ids=["3", "4"],
)
def test_a_measured_step_in_a_dispatch_has_the_batch_and_the_values_of_that_step(make, epochs, many, expected):
    records = {}
    for steps in (1, many):
        monitor = NumericsMonitor(every=3)
        fitted(make(), monitor, epochs=epochs, steps_per_execution=steps)
        records[steps] = {each.step: each for each in monitor.history.records}
    assert (list(records[1]), list(records[many])) == ([0, 3, 6, 9][: 2 * epochs], expected)
    for step, one in records[many].items():
        assert one.numbers() == pytest.approx(records[1][step].numbers(), rel=1e-5, abs=1e-12)


@pytest.mark.slow
def test_batches_of_a_list_are_measured_with_gradient_accumulation():
    batches = [(X[start : start + 32], Y[start : start + 32]) for start in range(0, 96, 32)]
    monitor = NumericsMonitor(every=1)
    model = network()
    model.compile(SGD(0.1, gradient_accumulation_steps=3), LOSS)
    model.fit(batches, callbacks=monitor, verbose=0)
    assert monitor.history.steps == [0, 1, 2]
    dense = monitor.history.numbers("gradients", "largest")["dense"]
    assert len({*dense}) == 3
    weights = monitor.history.numbers("weights", "largest")["dense"]
    assert len({*weights}) == 1


class TestActivations:
    @pytest.mark.parametrize("policy", mostly_slow(POLICIES[:2], "mixed_float16"))
    def test_they_are_the_outputs_of_layers(self, policy):
        inputs = nn.Input((2,))
        hidden = nn.Dense(4, name="hidden")(inputs)
        model = Model(inputs, nn.Dense(3, name="logits")(nn.ReLU()(hidden)), dtype=policy)
        nn.initialize(model)
        variables = {path: np.asarray(each.read_stored()) for path, each in model.variables.items()}
        monitor = NumericsMonitor()
        fitted(model, monitor, batch_size=96)
        narrow = np.float16 if policy == "mixed_float16" else np.float32
        first = nn.functional.dense(X.astype(narrow), variables["hidden/kernel"].astype(narrow))
        found = monitor.history.numbers("activations", "largest")
        assert set(found) == {"hidden", "relu", "logits", model.name}
        assert found["hidden"] == [float(jnp.abs(first).max())]
        assert found["relu"] == [float(first.max())]
        assert found["logits"] == found[model.name]

    def test_layers_inside_loops_jit_and_checkpoint_are_seen(self):
        class Nested(Model):
            def __init__(self):
                super().__init__()
                self.inner, self.last = nn.Dense(3), nn.Dense(3)

            def call(self, x):
                x = jax.checkpoint(jax.jit(self.inner))(x)
                x, _ = jax.lax.scan(lambda carry, _: (self.inner(carry), None), x, length=4)
                return self.last(x)

        x = X @ np.ones((2, 3), "float32")
        model = Nested()
        nn.initialize(model, x[:1])
        kernel = np.asarray(model.inner.kernel.read_stored())
        expected, value = 0.0, x
        for _ in range(5):
            value = value @ kernel
            expected = max(expected, np.abs(value).max())
        monitor = NumericsMonitor()
        fitted(model, monitor, x=x, batch_size=96)
        assert monitor.history.numbers("activations", "largest")["inner"] == pytest.approx([expected], rel=1e-5)

    @pytest.mark.slow
    def test_cells_of_recurrent_layers(self):
        x = np.random.default_rng(0).normal(size=(32, 5, 2)).astype("float32")
        monitor = NumericsMonitor()
        fitted(Sequential([nn.GRU(4), nn.Dense(3)]), monitor, x=x, y=Y[:32], batch_size=32)
        assert {"gru", "dense"} <= set(monitor.history.numbers("activations", "largest"))

    def test_a_softmax_before_the_cross_entropy_keeps_its_logits(self):
        monitors = []
        for layers, loss in (([nn.Softmax()], SparseCategoricalCrossentropy()), ([], LOSS)):
            monitors.append(NumericsMonitor())
            model = Sequential([nn.Dense(3), *layers], dtype="mixed_float16")
            fitted(model, monitors[-1], x=1e3 * X, loss=loss)
        both = [each.history.records[0].values["gradients"]["dense"].to_dict() for each in monitors]
        assert both[0] == both[1]

    def test_programs_traced_without_a_monitor_have_no_marks(self):
        dense = nn.Dense(2)
        nn.initialize(dense, X[:1])
        program = jax.make_jaxpr(lambda x: dense(x))(X)
        with nn.marked_outputs():
            marked = jax.make_jaxpr(lambda x: dense(x))(X)
        assert "name[" not in str(program)
        assert "name[" in str(marked)


def test_lost_gradients_are_zeros_that_grow_as_the_scale_falls():
    def lost(scale):
        monitor = NumericsMonitor(formats=["float16"])
        model = Sequential([nn.Dense(8), nn.Dense(3)], dtype="mixed_float16")
        optimizer = LossScaleOptimizer(SGD(0.1), FixedLossScale(scale))
        fitted(model, monitor, optimizer=optimizer, loss=lambda y, found: 1e-7 * LOSS(y, found))
        numbers = monitor.history.numbers
        return numbers("gradients", "zeros")["dense"][0], numbers("unscaled_gradients", "float16/flushed")["dense"][0]

    high, low = lost(2.0**15), lost(1.0)
    assert high[0] < 0.2 < 0.8 < low[0]
    assert high[1] > 0.8


def test_on_log_gets_numbers_for_any_logger():
    got = []
    monitor = NumericsMonitor(every=2, formats=["float16"], on_log=got.append)
    model = Sequential([nn.Dense(3)], dtype="mixed_float16")
    optimizer = LossScaleOptimizer(SGD(0.1), DynamicLossScale(2.0**30))
    fitted(model, monitor, optimizer=optimizer)
    assert [each["step"] for each in got] == monitor.history.steps == [0, 2, 4]
    assert got[0]["skipped_steps"] == 0
    assert got[2]["skipped_steps"] == sum(model.history.skipped[:4]) > 0
    assert [each["loss_scale"] for each in got] == [model.history.loss_scale[step] for step in (0, 2, 4)]
    assert {type(value) for each in got for value in each.values()} <= {int, float}
    assert {"gradients/dense/float16/flushed", "weights/dense/largest", "activations/dense/largest"} <= set(got[0])
    assert got[0]["gradients/dense/not_finite"] > 0
    json.dumps(monitor.history.to_dict())


def test_each_training_has_a_history_of_its_own():
    monitor = NumericsMonitor(every=4)
    model = fitted(network(), monitor)
    assert monitor.history.steps == [0, 4]
    model.fit(X, Y, batch_size=16, callbacks=monitor, verbose=0)
    assert monitor.history.steps == [8]  # steps are counted from the first training


@pytest.mark.slow
def test_the_history_is_complete_after_an_interruption():
    class Interrupt(Callback):
        def on_train_batch_end(self, batch, logs):
            if batch == 3:
                raise KeyboardInterrupt

    monitor = NumericsMonitor(every=1)
    model = network()
    model.compile(SGD(0.1), LOSS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, batch_size=16, callbacks=[monitor, Interrupt()], verbose=0)
    assert monitor.history.steps == [0, 1, 2, 3]
    assert all(np.isfinite(each).all() for each in values(model).values())


@pytest.mark.slow
def test_plot_has_panels_for_what_was_lost(tmp_path):
    monitor = NumericsMonitor(every=1, formats=["float16", "bfloat16"])
    with pytest.raises(ArgumentError, match="no step was measured"):
        monitor.history.plot()
    fitted(Sequential([nn.Dense(8), nn.Dense(3)], dtype="mixed_float16"), monitor, x=1e-6 * X)
    figure = monitor.history.plot(tmp_path / "numerics.svg")
    titles = [panel.get_title() for panel in figure.axes if panel.get_title()]
    assert {"gradients: largest magnitude", "unscaled gradients: flushed to zero in float16", "loss scale"} <= {*titles}
    assert not any("bfloat16" in title for title in titles)
    assert (tmp_path / "numerics.svg").read_text().startswith("<?xml")
    with pytest.raises(UnknownNameError, match="png"):
        monitor.history.plot(tmp_path / "numerics.pgn")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"every": 0}, ArgumentError, "every"),
        ({"every": 1.5}, ArgumentError, "every"),
        ({"formats": ["int8"]}, OperandError, "real floating"),
        ({"formats": 3}, OperandError, "formats"),
        ({"on_log": "print"}, OperandError, "on_log must be a function"),
    ],
)
def test_wrong_arguments_raise(options, error, message):
    with pytest.raises(error, match=message):
        NumericsMonitor(**options)


def test_unknown_numbers_raise():
    monitor = NumericsMonitor()
    fitted(network(), monitor)
    with pytest.raises(UnknownNameError, match="did you mean 'gradients'"):
        monitor.history.numbers("gradient", "largest")
    with pytest.raises(UnknownNameError, match="float8"):
        monitor.history.numbers("gradients", "float8/flushed")
