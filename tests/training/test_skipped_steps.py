"""Logs, callbacks and warnings about skipped steps."""

import csv
import warnings

import numpy as np
import pytest

from supremum import nn
from supremum.errors import ArgumentError
from supremum.mixed_precision import DynamicLossScale, Policy
from supremum.optimizers import SGD, LossScaleOptimizer
from supremum.training import Callback, CSVLogger, EarlyStopping, ModelCheckpoint, Sequential, TrainingWarning
from supremum.training.default_loss_scale import SkippedSteps

INF, NAN = np.inf, np.nan
EVERY_SIZE = pytest.mark.parametrize("size", [1, 3], ids=["one_by_one", "three_at_once"])
FLOOR = DynamicLossScale(2.0, minimum=2.0)


def compiled(size=1, scale=FLOOR, loss="mse", optimizer=None, **options):
    """Compile a dense layer that returns its input, with the loss scale at its floor."""
    ones = lambda key, shape, dtype: np.ones(shape, dtype)  # noqa: E731
    model = Sequential([nn.Dense(1, use_bias=False, kernel_initializer=ones)], dtype=Policy("mixed_float16", scale))
    model.compile(SGD(0.0) if optimizer is None else optimizer, loss, ["mae"], steps_per_execution=size, **options)
    return model


def data(*numbers, per_batch=2):
    """Arguments of `fit` with one number per batch; the loss of a batch is the number squared."""
    x = np.repeat(np.asarray(numbers, "float32"), per_batch)[:, None]
    return {"x": x, "y": np.zeros_like(x), "batch_size": per_batch, "shuffle": False, "verbose": 0}


def assert_same_float64(found, expected):
    np.testing.assert_array_equal(np.asarray(found, "float64"), np.asarray(expected, "float64"))


class LogRecorder(Callback):
    def __init__(self):
        self.seen = []

    def on_train_batch_end(self, batch, logs):
        self.seen.append((logs["loss"], logs["mae"], logs["skipped_steps"]))


class TestEpochLogs:
    """As measured with Keras 3.15.1 on JAX: `fit` logs nan for an epoch of nan, and inf if one batch is inf."""

    @pytest.mark.one_in(8)
    @EVERY_SIZE
    @pytest.mark.parametrize(
        ("numbers", "loss", "mae", "skipped"),
        [
            ((NAN, NAN, NAN), NAN, NAN, 3),
            ((1, INF, 3), INF, INF, 1),
            ((INF, INF, INF), INF, INF, 3),
            ((INF, NAN, 1), NAN, NAN, 2),
            ((1, 2, 3), 14 / 3, 2, 0),
        ],
    )
    def test_include_the_losses_of_skipped_steps(self, size, numbers, loss, mae, skipped, tmp_path):
        model, recorder = compiled(size), LogRecorder()
        history = model.fit(**data(*numbers), callbacks=[recorder, CSVLogger(tmp_path / "log.csv")])
        assert_same_float64(history.history["loss"], np.float32([loss]))
        assert_same_float64(history.history["mae"], np.float32([mae]))
        assert_same_float64(history.loss, np.square(np.float32(numbers)))
        assert history.history["skipped_steps"] == [skipped]
        assert history.skipped == [not np.isfinite(number) for number in numbers]
        assert_same_float64(recorder.seen[-1], [np.float32(loss), np.float32(mae), skipped])
        (row,) = csv.DictReader((tmp_path / "log.csv").read_text().splitlines())
        assert_same_float64(
            [row["loss"], row["mae"], row["skipped_steps"]], [np.float32(loss), np.float32(mae), skipped]
        )

    @pytest.mark.parametrize("bad", [INF, NAN])
    def test_of_train_on_batch_cover_only_that_batch(self, bad):
        model = compiled()
        x = np.full((2, 1), 3, "float32")
        first, skipped, after = (model.train_on_batch(each, 0 * x, return_dict=True) for each in (x, x * bad, x))
        assert first == after == {"loss": 9.0, "mae": 3.0, "loss_scale": 2.0, "skipped_steps": 0}
        assert_same_float64([skipped["loss"], skipped["mae"]], [bad, bad])
        assert skipped["skipped_steps"] == 1

    @pytest.mark.slow
    def test_start_again_in_each_epoch(self):
        x, y = np.asarray([[INF], [1]], "float32"), np.zeros((2, 1), "float32")
        batches = [[(x[:1], y[:1])], [(x[1:], y[1:])]]
        history = compiled().fit((b for epoch in batches for b in epoch), steps_per_epoch=1, epochs=2, verbose=0)
        assert history.history["loss"] == [INF, 1.0]

    def test_include_a_finite_loss_when_only_the_gradients_overflow(self):
        model = compiled(scale=DynamicLossScale(2.0**30))
        history = model.fit(**data(2, 4))
        assert history.skipped == [True, True]
        assert history.history["loss"] == [10.0]


class TestBestEpoch:
    @pytest.mark.one_in(2)
    @EVERY_SIZE
    def test_is_missing_without_a_finite_loss(self, size, tmp_path):
        model = compiled(size)
        nn.initialize(model, np.ones((1, 1), "float32"))
        stopping = EarlyStopping("loss", patience=1, restore_best_weights=True)
        saving = ModelCheckpoint(tmp_path / "best", monitor="loss", save_best_only=True)
        with pytest.warns(TrainingWarning) as caught:
            history = model.fit(**data(NAN, NAN, NAN), epochs=9, callbacks=[stopping, saving])
        messages = [str(each.message) for each in caught]
        assert any("EarlyStopping: loss was inf or NaN in every epoch" in each for each in messages)
        assert any(
            "ModelCheckpoint: loss was inf or NaN in every epoch, so no epoch was the best" in e for e in messages
        )
        assert stopping.stopped_epoch == 1
        assert len(history.epoch) == 2
        assert stopping.best == saving.best == INF
        assert not (tmp_path / "best").exists()
        assert_same_float64(model.variables["dense/kernel"].value, [[1]])

    def test_has_a_finite_value_in_min_and_max_mode(self, tmp_path):
        model = compiled()
        model.fit(**data(1))
        for mode, bad in (("min", -INF), ("max", INF), ("min", NAN), ("max", NAN), ("min", INF)):
            folder = tmp_path / f"{mode} {bad}"
            folder.mkdir()
            callbacks = [
                EarlyStopping("n", mode=mode, patience=9),
                ModelCheckpoint(folder / "{epoch}-{n:.0f}", monitor="n", mode=mode, save_best_only=True),
            ]
            for callback in callbacks:
                callback.set_model(model)
                callback.on_train_begin()
                for epoch, number in enumerate([bad, 5.0, bad]):
                    callback.on_epoch_end(epoch, {"n": number})
                callback.on_train_end()
                assert callback.best == 5.0, (mode, bad)
            assert [path.name for path in folder.iterdir()] == ["1-5"], (mode, bad)

    @pytest.mark.slow
    def test_missing_does_not_warn_without_restore_or_after_an_error(self):
        model = compiled(warn_after_skipped_steps=None)
        model.fit(**data(NAN), callbacks=EarlyStopping("loss"))
        stopping = EarlyStopping("loss", restore_best_weights=True)
        with pytest.raises(ZeroDivisionError):
            model.fit(**data(NAN), callbacks=[lambda *_: 1 / 0, stopping])


def training_warnings(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(each.message) for each in caught if each.category is TrainingWarning]


class TestWarning:
    @pytest.mark.one_in(2)
    @EVERY_SIZE
    def test_is_given_once_if_all_steps_overflow_at_the_floor(self, size):
        model = compiled(size)
        (message,) = training_warnings(lambda: model.fit(**data(*[NAN] * 12), epochs=3))
        assert message.startswith("10 steps in a row were skipped")
        assert "with the loss scale at its floor of 2" in message
        assert "The loss is nan, so a lower scale would not help" in message
        assert len(training_warnings(lambda: model.fit(**data(*[NAN] * 12)))) == 1

    @pytest.mark.one_in(3)
    @pytest.mark.parametrize(("limit", "steps", "count"), [(3, 2, 0), (3, 3, 1), (1, 1, 1), (None, 12, 0), (10, 9, 0)])
    def test_is_given_after_warn_after_skipped_steps(self, limit, steps, count):
        model = compiled(warn_after_skipped_steps=limit)
        assert len(training_warnings(lambda: model.fit(**data(*[INF] * steps)))) == count

    @pytest.mark.slow
    def test_counts_skipped_steps_across_epochs_and_batches(self):
        model = compiled(warn_after_skipped_steps=4)
        assert len(training_warnings(lambda: model.fit(**data(NAN, NAN), epochs=2))) == 1
        model = compiled(warn_after_skipped_steps=4)
        batch = [data(NAN)[name] for name in ("x", "y")]
        assert [len(training_warnings(lambda: model.train_on_batch(*batch))) for _ in range(6)] == [0, 0, 0, 1, 0, 0]

    @pytest.mark.slow
    def test_is_given_in_the_middle_of_a_long_epoch(self, monkeypatch):
        class Stopping(Callback):
            def on_train_batch_end(self, batch, logs):
                self.model.stop_training = batch == 20

        monkeypatch.setattr("supremum.training.trainer.CAPACITY", 8)
        model = compiled(warn_after_skipped_steps=8)
        at = []

        class Watching(Callback):
            def on_train_batch_end(self, batch, logs):
                at.append((batch, len(caught)))

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TrainingWarning)
            model.fit(**data(*[NAN] * 30), callbacks=[Watching(), Stopping()])
        assert next(batch for batch, count in at if count) < 12

    def test_a_good_step_ends_the_steps_in_a_row(self):
        skipped = SkippedSteps(2, LossScaleOptimizer(SGD(), FLOOR))
        rows = {"good": (1.0, 2.0, 0), "skipped": (NAN, 2.0, 1), "above the floor": (NAN, 4.0, 1)}
        for names, count in ((["skipped", "good", "skipped", "above the floor", "skipped"], 0), (["skipped"], 1)):
            warned = training_warnings(lambda names=names: skipped.add(np.array([rows[name] for name in names])))
            assert len(warned) == count

    @pytest.mark.parametrize("number", [0, -1, 2.5])
    def test_limit_must_be_a_positive_integer(self, number):
        with pytest.raises(ArgumentError, match="warn_after_skipped_steps"):
            compiled(warn_after_skipped_steps=number)

    @pytest.mark.slow
    def test_suggests_a_lower_floor_for_finite_losses_and_the_fix_works(self):
        loss = lambda y_true, y_pred: 1e6 * (y_pred.astype("float32") - y_true).mean()  # noqa: E731
        model = compiled(loss=loss)
        (message,) = training_warnings(lambda: model.fit(**data(*[1] * 12)))
        assert "LossScaleOptimizer(optimizer, DynamicLossScale(minimum=2.0**-10))" in message
        model = compiled(loss=loss, optimizer=LossScaleOptimizer(SGD(0.0), DynamicLossScale(minimum=2.0**-10)))
        assert training_warnings(lambda: model.fit(**data(*[1] * 40))) == []
        assert not model.history.skipped[-1]

    @pytest.mark.slow
    @pytest.mark.parametrize("policy", ["mixed_bfloat16", "float32"])
    def test_suggests_a_wider_policy_for_infinite_losses_and_the_fix_works(self, policy):
        (message,) = training_warnings(lambda: compiled().fit(**data(*[1e5] * 12)))
        assert "'mixed_bfloat16', or dtype='float32'" in message
        model = Sequential([nn.Dense(1)], dtype=policy)
        model.compile(SGD(0.0), "mse", ["mae"])
        assert np.isfinite(model.fit(**data(*[1e5] * 12)).history["loss"][0])


@EVERY_SIZE
def test_a_skipped_step_changes_neither_weights_nor_running_statistics(size):
    model = Sequential([nn.BatchNorm(), nn.Dense(1)], dtype=Policy("mixed_float16", FLOOR))
    model.compile("adam", "mse", steps_per_execution=size)

    def changed_by(*numbers):
        arguments = data(*numbers)
        before = {path: np.asarray(variable.value) for path, variable in model.variables.items()}
        skipped = model.fit(**arguments | {"y": arguments["x"]}).history["skipped_steps"]
        changed = {path for path, each in model.variables.items() if not np.array_equal(before[path], each.value)}
        return skipped, {path.rpartition("/")[2] for path in changed}

    model.fit(**data(1, 2, 3))  # makes the variables
    assert changed_by(INF, INF, INF) == ([3], set())
    assert changed_by(1, 2, 3) == ([0], {"beta", "moving_mean", "moving_variance", "kernel", "bias"})
