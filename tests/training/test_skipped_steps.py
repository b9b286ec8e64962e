"""What is told about steps that were skipped."""

import csv
import warnings

import numpy as np
import pytest

from supremum import nn
from supremum.errors import ArgumentError
from supremum.mixed_precision import DynamicLossScale, Policy
from supremum.optimizers import SGD, LossScaleOptimizer
from supremum.training import (
    Callback,
    CSVLogger,
    EarlyStopping,
    ModelCheckpoint,
    Sequential,
    TrainingWarning,
)

INF, NAN = np.inf, np.nan
EVERY_SIZE = pytest.mark.parametrize("size", [1, 3], ids=["one_by_one", "three_at_once"])
FLOOR = DynamicLossScale(2.0, minimum=2.0)


def compiled(size=1, scale=FLOOR, loss="mse", optimizer=None, **options):
    """A dense layer whose output is its input, with a scale at its floor."""
    ones = lambda key, shape, dtype: np.ones(shape, dtype)  # noqa: E731
    model = Sequential([nn.Dense(1, use_bias=False, kernel_initializer=ones)], dtype=Policy("mixed_float16", scale))
    model.compile(SGD(0.0) if optimizer is None else optimizer, loss, ["mae"], steps_per_execution=size, **options)
    return model


def data(*numbers, per_batch=2):
    """Batches of one number each, whose loss is its square."""
    x = np.repeat(np.asarray(numbers, "float32"), per_batch)[:, None]
    return {"x": x, "y": np.zeros_like(x), "batch_size": per_batch, "shuffle": False, "verbose": 0}


def same(found, expected):
    np.testing.assert_array_equal(np.asarray(found, "float64"), np.asarray(expected, "float64"))


class Reading(Callback):
    def __init__(self):
        self.seen = []

    def on_train_batch_end(self, batch, logs):
        self.seen.append((logs["loss"], logs["mae"], logs["skipped_steps"]))


class TestAverages:
    """Measured with Keras 3.15.1 on JAX: `fit` there gives nan for an epoch of nan, and inf where one batch is inf."""

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
    def test_have_the_losses_of_skipped_steps_in_fit_batch_logs_and_csv(
        self, size, numbers, loss, mae, skipped, tmp_path
    ):
        model, reading = compiled(size), Reading()
        history = model.fit(**data(*numbers), callbacks=[reading, CSVLogger(tmp_path / "log.csv")])
        same(history.history["loss"], np.float32([loss]))
        same(history.history["mae"], np.float32([mae]))
        same(history.loss, np.square(np.float32(numbers)))
        assert history.history["skipped_steps"] == [skipped]
        assert history.skipped == [not np.isfinite(number) for number in numbers]
        same(reading.seen[-1], [np.float32(loss), np.float32(mae), skipped])
        (row,) = csv.DictReader((tmp_path / "log.csv").read_text().splitlines())
        same([row["loss"], row["mae"], row["skipped_steps"]], [np.float32(loss), np.float32(mae), skipped])

    @pytest.mark.parametrize("bad", [INF, NAN])
    def test_have_it_in_train_on_batch_and_only_there(self, bad):
        model = compiled()
        x = np.full((2, 1), 3, "float32")
        first, skipped, after = (model.train_on_batch(each, 0 * x) for each in (x, x * bad, x))
        assert first == after == {"loss": 9.0, "mae": 3.0, "loss_scale": 2.0, "skipped_steps": 0}
        same([skipped["loss"], skipped["mae"]], [bad, bad])
        assert skipped["skipped_steps"] == 1

    @pytest.mark.slow
    def test_an_epoch_begins_anew(self):
        x, y = np.asarray([[INF], [1]], "float32"), np.zeros((2, 1), "float32")
        batches = [[(x[:1], y[:1])], [(x[1:], y[1:])]]
        history = compiled().fit((b for epoch in batches for b in epoch), steps_per_epoch=1, epochs=2, verbose=0)
        assert history.history["loss"] == [INF, 1.0]

    def test_a_loss_that_is_finite_counts_where_only_the_gradients_overflow(self):
        model = compiled(scale=DynamicLossScale(2.0**30))
        history = model.fit(**data(2, 4))
        assert history.skipped == [True, True]
        assert history.history["loss"] == [10.0]


class TestTheBestEpoch:
    @pytest.mark.one_in(2)
    @EVERY_SIZE
    def test_is_none_without_a_finite_number(self, size, tmp_path):
        model = compiled(size)
        nn.initialize(model, np.ones((1, 1), "float32"))
        stopping = EarlyStopping("loss", patience=1, restore_best_weights=True)
        saving = ModelCheckpoint(tmp_path / "best", monitor="loss", save_best_only=True)
        with pytest.warns(TrainingWarning) as caught:
            history = model.fit(**data(NAN, NAN, NAN), epochs=9, callbacks=[stopping, saving])
        said = [str(each.message) for each in caught]
        assert any("EarlyStopping: loss was inf or NaN in every epoch" in each for each in said)
        assert any("ModelCheckpoint: loss was inf or NaN in every epoch, so no epoch was the best" in e for e in said)
        assert stopping.stopped_epoch == 1
        assert len(history.epoch) == 2
        assert stopping.best == saving.best == INF
        assert not (tmp_path / "best").exists()
        same(model.variables["dense/kernel"].value, [[1]])

    @pytest.mark.parametrize(("mode", "bad"), [("min", -INF), ("max", INF), ("min", NAN), ("max", NAN), ("min", INF)])
    def test_is_one_with_a_finite_number_in_either_direction(self, mode, bad, tmp_path):
        model = compiled()
        model.fit(**data(1))
        callbacks = [
            EarlyStopping("n", mode=mode, patience=9),
            ModelCheckpoint(tmp_path / "{epoch}-{n:.0f}", monitor="n", mode=mode, save_best_only=True),
        ]
        for callback in callbacks:
            callback.set_model(model)
            callback.on_train_begin()
            for epoch, number in enumerate([bad, 5.0, bad]):
                callback.on_epoch_end(epoch, {"n": number})
            callback.on_train_end()
            assert callback.best == 5.0
        assert [path.name for path in tmp_path.iterdir()] == ["1-5"]

    @pytest.mark.slow
    def test_without_restoring_nothing_is_said(self):
        model = compiled(warn_after_skipped_steps=None)
        model.fit(**data(NAN), callbacks=EarlyStopping("loss"))
        stopping = EarlyStopping("loss", restore_best_weights=True)
        with pytest.raises(ZeroDivisionError):
            model.fit(**data(NAN), callbacks=[lambda *_: 1 / 0, stopping])


def caught_in(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(each.message) for each in caught if each.category is TrainingWarning]


class TestWarning:
    @pytest.mark.one_in(2)
    @EVERY_SIZE
    def test_comes_once_if_all_steps_overflow_at_the_floor(self, size):
        model = compiled(size)
        (said,) = caught_in(lambda: model.fit(**data(*[NAN] * 12), epochs=3))
        assert said.startswith("10 steps in a row were skipped")
        assert "with the loss scale at its floor of 2" in said
        assert "The loss is nan, so a lower scale would not help" in said
        assert len(caught_in(lambda: model.fit(**data(*[NAN] * 12)))) == 1

    @pytest.mark.one_in(3)
    @pytest.mark.parametrize(("limit", "steps", "count"), [(3, 2, 0), (3, 3, 1), (1, 1, 1), (None, 12, 0), (10, 9, 0)])
    def test_comes_after_as_many_steps_as_were_asked_for(self, limit, steps, count):
        model = compiled(warn_after_skipped_steps=limit)
        assert len(caught_in(lambda: model.fit(**data(*[INF] * steps)))) == count

    @pytest.mark.slow
    def test_counts_over_epochs_and_batches(self):
        model = compiled(warn_after_skipped_steps=4)
        assert len(caught_in(lambda: model.fit(**data(NAN, NAN), epochs=2))) == 1
        model = compiled(warn_after_skipped_steps=4)
        batch = [data(NAN)[name] for name in ("x", "y")]
        assert [len(caught_in(lambda: model.train_on_batch(*batch))) for _ in range(6)] == [0, 0, 0, 1, 0, 0]

    @pytest.mark.slow
    def test_does_not_come_before_the_floor_is_reached_or_if_a_step_is_good(self):
        falling = compiled(scale=DynamicLossScale(2.0**9), warn_after_skipped_steps=3)
        assert caught_in(lambda: falling.fit(**data(*[NAN] * 11))) == []  # two of them at the floor
        some = compiled(warn_after_skipped_steps=3)
        assert caught_in(lambda: some.fit(**data(NAN, NAN, 1, NAN, NAN))) == []

    @pytest.mark.slow
    def test_comes_within_a_long_epoch(self, monkeypatch):
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

    @pytest.mark.parametrize("number", [0, -1, 2.5])
    def test_needs_a_whole_number_of_steps(self, number):
        with pytest.raises(ArgumentError, match="warn_after_skipped_steps"):
            compiled(warn_after_skipped_steps=number)

    @pytest.mark.slow
    def test_says_to_lower_the_floor_if_the_loss_is_finite_and_that_helps(self):
        loss = lambda y_true, y_pred: 1e6 * (y_pred.astype("float32") - y_true).mean()  # noqa: E731
        model = compiled(loss=loss)
        (said,) = caught_in(lambda: model.fit(**data(*[1] * 12)))
        assert "LossScaleOptimizer(optimizer, DynamicLossScale(minimum=2.0**-10))" in said
        model = compiled(loss=loss, optimizer=LossScaleOptimizer(SGD(0.0), DynamicLossScale(minimum=2.0**-10)))
        assert caught_in(lambda: model.fit(**data(*[1] * 40))) == []
        assert not model.history.skipped[-1]

    @pytest.mark.slow
    @pytest.mark.parametrize("policy", ["mixed_bfloat16", "float32"])
    def test_says_to_use_a_wider_policy_if_the_loss_is_not_finite_and_that_helps(self, policy):
        (said,) = caught_in(lambda: compiled().fit(**data(*[1e5] * 12)))
        assert "'mixed_bfloat16', or dtype='float32'" in said
        model = Sequential([nn.Dense(1)], dtype=policy)
        model.compile(SGD(0.0), "mse", ["mae"])
        assert np.isfinite(model.fit(**data(*[1e5] * 12)).history["loss"][0])
