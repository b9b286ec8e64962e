"""Callbacks while a model trains."""

import csv
import io
import re
from functools import cache, partial
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rich.console import Console

from supremum import nn
from supremum.errors import ArgumentError, FileError, UnknownNameError
from supremum.mixed_precision import DynamicLossScale, Policy
from supremum.optimizers import SGD, Adam
from supremum.training import (
    Callback,
    CheckpointError,
    CSVLogger,
    EarlyStopping,
    History,
    ModelCheckpoint,
    Sequential,
    SparseCategoricalCrossentropy,
)
from supremum.training.callbacks import progress
from supremum.training.callbacks.callback import BatchLogs
from supremum.training.callbacks.progress import log_text
from training.blobs import blobs, equal, network, values

LOSS = SparseCategoricalCrossentropy(from_logits=True)
X, Y = blobs(48)


def compiled(policy="float32", optimizer=None):
    model = network(policy)
    model.compile(SGD(0.1) if optimizer is None else optimizer, LOSS, ["accuracy"])
    return model


@cache
def reused(policy="float32"):
    """Return a model that several tests train, for tests of what `fit` passes to callbacks."""
    return compiled(policy)


class EpochCounter(Callback):
    epochs = 0

    def on_epoch_begin(self, epoch):
        self.epochs += 1


def test_batch_logs_hold_loss_scale_and_skipped_steps_so_far():
    seen = []

    class RecordLogs(Callback):
        def on_train_batch_end(self, batch, logs):
            seen.append((logs["loss_scale"], logs["skipped_steps"]))

    model = compiled(Policy("mixed_float16", DynamicLossScale(2.0**30)))
    model.fit(X, Y, batch_size=8, epochs=2, callbacks=RecordLogs(), verbose=0)
    assert seen[:3] == [(2.0**29, 1), (2.0**28, 2), (2.0**27, 3)]
    skipped = model.history.skipped
    assert [count for _, count in seen] == [*np.cumsum(skipped[:6]), *np.cumsum(skipped[6:])]


@pytest.mark.slow
def test_callbacks_may_be_functions_and_lists():
    seen = []
    compiled().fit(X, Y, epochs=2, callbacks=[lambda *args: seen.append(args), EpochCounter()], verbose=0)
    assert [epoch for epoch, _ in seen] == [0, 1]
    assert seen[0][1]["loss"] > seen[1][1]["loss"]


def test_stop_training_ends_fit_after_the_current_batch():
    class StopInSecondBatch(Callback):
        def on_train_batch_end(self, batch, logs):
            self.model.stop_training = batch == 1

    model = reused()
    model.fit(X, Y, batch_size=8, epochs=3, callbacks=StopInSecondBatch(), verbose=0)
    assert len(model.history.loss) == 2
    assert model.history.epoch == [0]
    model.fit(X, Y, batch_size=8, epochs=3, verbose=0)
    assert model.history.epoch == [0, 1, 2]


def test_batch_logs_must_be_read_in_their_callback():
    kept = []

    class KeepLogs(Callback):
        def on_train_batch_end(self, batch, logs):
            kept.append(logs)
            if batch == 0:
                assert logs["loss"] > 0

    reused().fit(X, Y, batch_size=24, callbacks=KeepLogs(), verbose=0)
    assert kept[0]["loss"] > 0
    with pytest.raises(ArgumentError, match="read them in the callback"):
        kept[1]["loss"]
    assert repr(BatchLogs(lambda: {"loss": 1.0})) == "{'loss': 1.0}"


class TestEarlyStopping:
    @pytest.mark.parametrize(
        ("numbers", "options", "stopped", "weights"),
        [
            ([3, 2, 2, 1], {}, 2, 2),
            ([3, 2, 2, 2, 2, 2], {"patience": 1}, 2, 2),
            ([3, 2, 2, 2, 2, 2], {"patience": 3}, 4, 4),
            ([3, 2, 2, 1, 1, 1], {"patience": 2}, 5, 5),
            ([3, 2, 2, 1, 1, 1], {"patience": 2, "restore_best_weights": True}, 5, 3),
            ([1, 2, 3], {"mode": "max"}, None, 2),
            ([1, 2, 3], {"restore_best_weights": True}, 1, 0),
            ([3, 2.5, 2.4], {"min_delta": 0.2}, 2, 2),
            ([3, float("nan"), 1], {}, 1, 1),
        ],
    )
    def test_stops_and_restores_weights(self, numbers, options, stopped, weights):
        """Pass a number for each epoch, with the bias set to the epoch."""
        model = Sequential([nn.Dense(1)])
        nn.initialize(model, X)
        stopping = EarlyStopping("n", **options)
        stopping.set_model(model)
        stopping.on_train_begin()
        for epoch, number in enumerate(numbers):
            model.variables["dense/bias"].assign(np.full(1, float(epoch), "float32"))
            stopping.on_epoch_end(epoch, {"n": number})
            if model.stop_training:
                break
        stopping.on_train_end()
        assert (stopping.stopped_epoch, values(model)["dense/bias"][0]) == (stopped, weights)

    @pytest.mark.slow
    def test_stops_fit(self):
        model = compiled(optimizer=SGD(0.0))
        stopping = EarlyStopping("val_accuracy", patience=2)
        model.fit(X, Y, epochs=10, validation_data=(X, Y), callbacks=stopping, verbose=0)
        assert stopping.stopped_epoch is not None
        assert len(model.history.epoch) == stopping.stopped_epoch + 1 < 10

    @pytest.mark.slow
    def test_mode_follows_the_name_and_invalid_arguments_raise(self):
        for name, better_value in (("val_accuracy", 2.0), ("loss", 0.5), ("cosine_similarity", 2.0)):
            stopping = EarlyStopping(name)
            stopping.on_train_begin()
            for value in (1.0, better_value):
                stopping.on_epoch_end(0, {name: value})
            assert stopping.best == better_value
        with pytest.raises(UnknownNameError, match=r"val_los.*did you mean 'val_loss'"):
            compiled().fit(X, Y, validation_data=(X, Y), callbacks=EarlyStopping("val_los"), verbose=0)
        for options in ({"patience": -1}, {"min_delta": -1.0}, {"mode": "least"}):
            with pytest.raises(ValueError, match=next(iter(options))):
                EarlyStopping(**options)


class TestModelCheckpoint:
    def test_saves_every_few_epochs_or_only_the_best(self, tmp_path):
        model = reused()
        callbacks = [
            ModelCheckpoint(tmp_path / "w-{epoch:02d}-{loss:.2f}.safetensors", save_weights_only=True, every=2),
            ModelCheckpoint(tmp_path / "best", monitor="loss", save_best_only=True),
        ]
        model.fit(X, Y, epochs=4, callbacks=callbacks, verbose=0)
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names[0] == "best"
        assert [name[:4] for name in names[1:]] == ["w-01", "w-03"]
        after = values(model)
        other = compiled()
        other.fit(X, Y, verbose=0)
        other.load_weights(tmp_path / names[-1])
        assert equal(values(other), after)
        assert other.load_state(tmp_path / "best") == 4

    def test_unknown_name_in_the_path_raises(self, tmp_path):
        with pytest.raises(UnknownNameError, match="did you mean 'accuracy'"):
            reused().fit(X, Y, callbacks=ModelCheckpoint(tmp_path / "{acuracy}"), verbose=0)

    @pytest.mark.parametrize(
        ("path", "format", "error"),
        [
            ("notes/{epoch}", "safetensors", FileError),
            ("notes/{epoch}", "orbax", FileError),
            (".", "orbax", CheckpointError),
        ],
    )
    def test_files_of_the_user_raise_before_training(self, tmp_path, path, format, error):  # noqa: A002
        (tmp_path / "notes").write_text("a file of the user's")
        counter = EpochCounter()
        with pytest.raises(error, match=str(tmp_path / path).removesuffix("/{epoch}")):
            reused().fit(X, Y, callbacks=[counter, ModelCheckpoint(tmp_path / path, format=format)], verbose=0)
        assert counter.epochs == 0
        assert (tmp_path / "notes").read_text() == "a file of the user's"
        assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def add_number(epoch, logs):
    logs["mine"] = 1.0


class TestCSVLogger:
    def test_writes_a_row_per_epoch_and_appends_rows(self, tmp_path):
        path, model = tmp_path / "log.csv", reused("mixed_float16")
        first = model.fit(X, Y, epochs=2, callbacks=CSVLogger(path), verbose=0)
        model.fit(X, Y, epochs=3, initial_epoch=2, callbacks=CSVLogger(path, append=True), verbose=0)
        rows = list(csv.DictReader(path.read_text().splitlines()))
        assert [row["epoch"] for row in rows] == ["0", "1", "2"]
        assert [float(row["loss"]) for row in rows[:2]] == first.history["loss"]
        assert list(rows[0]) == ["epoch", "loss", "accuracy", "loss_scale", "skipped_steps"]
        for options in ({"validation_data": (X, Y)}, {"callbacks": [add_number]}):
            callbacks = [*options.pop("callbacks", []), CSVLogger(path, append=True)]
            with pytest.raises(ArgumentError, match="has the columns"):
                model.fit(X, Y, callbacks=callbacks, verbose=0, **options)


class TestProgress:
    @pytest.mark.slow
    def test_prints_a_line_per_epoch_evaluation_and_prediction_without_a_terminal(self, capsys):
        model = compiled("mixed_float16")
        model.fit(X, Y, epochs=2, validation_data=(X, Y))
        model.evaluate(X, Y, verbose=2)
        model.predict(X, verbose=2)
        lines = capsys.readouterr().out.splitlines()
        assert re.fullmatch(r"evaluate  \S+ s  loss \S+  accuracy \S+\npredict  \S+ s", "\n".join(lines[2:]))
        assert re.fullmatch(
            r"epoch 1/2  \d+\.\d s  loss [\d.]+  accuracy [\d.]+  loss_scale \d+  skipped_steps \d  val_loss [\d.]+  "
            r"val_accuracy [\d.]+",
            lines[0],
        )

    @pytest.mark.one_in(2)
    @pytest.mark.parametrize("columns", [60, 120])
    def test_bar_is_replaced_by_a_line_with_every_number(self, columns, monkeypatch):
        # A terminal that keeps what rich draws.
        shown = io.StringIO()
        terminal = partial(Console, file=shown, force_terminal=True, width=columns, soft_wrap=True, color_system=None)
        monkeypatch.setattr(progress, "Console", lambda **_: terminal())
        monkeypatch.setattr(progress, "_SECONDS_BETWEEN", 0.0)
        model = reused("mixed_float16")
        model.fit(X, Y, batch_size=8, validation_data=(X, Y), verbose=1)
        drawn = shown.getvalue()
        assert re.search(r"epoch 1/1 \S+ +[1-6]/6 .*loss 1?\.?\d", drawn)
        last = [line for line in drawn.splitlines() if "val_accuracy" in line][-1]
        names = ["loss", "accuracy", "loss_scale", "skipped_steps", "val_loss", "val_accuracy"]
        assert re.findall(r"(\w+) [\d.]+(?:  |$)", last[last.index("epoch") :].split(" s  ")[1]) == names

    def test_verbose_0_prints_nothing(self, capsys):
        model = reused()
        model.fit(X, Y, verbose=0)
        model.evaluate(X, Y, verbose=0)
        assert capsys.readouterr().out == ""

    def test_a_line_longer_than_the_terminal_is_not_wrapped(self, capsys):
        logs = {f"metric_{number}": 0.5 for number in range(20)}
        progress.ProgressBar(1, 3, bar=False, what="epoch").on_epoch_end(0, logs)
        (line,) = capsys.readouterr().out.splitlines()
        assert "metric_19 0.5000" in line

    def test_numbers_leave_room_for_a_long_count_of_batches(self, monkeypatch):
        shown = io.StringIO()
        terminal = Console(file=shown, force_terminal=True, width=70, soft_wrap=True, color_system=None)
        monkeypatch.setattr(progress, "Console", lambda **_: terminal)
        bar = progress.ProgressBar(1, 100_000, bar=True, what="epoch")
        bar.on_epoch_begin(0)
        bar.on_train_batch_end(54_320, {"loss": 0.25, "accuracy": 0.5, "precision": 0.75})
        bar.on_train_end()
        text = re.sub(r"\x1b\[[^m]*?[A-Za-z]", "", shown.getvalue())
        (line,) = {line.rstrip() for line in re.split(r"[\r\n]", text) if "54321" in line}
        assert re.fullmatch(r"epoch 1/1 \S+ +54321/100000 \S+ loss 0.2500  accuracy 0.5", line)

    def test_numbers_are_formatted_in_one_line(self):
        assert log_text({"loss": 1e-7, "n": float("nan"), "m": float("inf"), "k": 12345.678, "z": 0.0}) == (
            "loss 1.000e-07  n nan  m inf  k 1.235e+04  z 0"
        )


class TestHistory:
    def test_control_characters_in_names_reach_neither_the_terminal_nor_the_plot(self, tmp_path, capsys):
        def error(y, prediction):
            return abs(y - prediction)

        error.__name__ = "e\x1b[31m"
        model = Sequential([nn.Dense(1, name="lay\x1b[31mer")])
        model.compile("sgd", "mse", metrics=[error])
        history = model.fit(X, Y, verbose=2)
        print(model.summary())
        history.plot(tmp_path / "history.svg")
        printed, tree = capsys.readouterr().out, ET.parse(tmp_path / "history.svg")
        assert tree.getroot().tag.endswith("svg")
        assert "\x1b" not in printed
        assert r"e\x1b[31m " in printed
        assert r"lay\x1b[31mer" in printed

    @pytest.mark.slow
    def test_plot_has_a_panel_per_metric_and_one_for_the_loss_scale(self, tmp_path):
        model = compiled("mixed_float16", Adam(0.02))
        history = model.fit(X, Y, epochs=3, validation_data=(X, Y), verbose=0)
        figure = history.plot(tmp_path / "history.png")
        assert [panel.get_title() for panel in figure.axes] == ["loss", "accuracy", "loss scale"]
        assert [line.get_label() for line in figure.axes[0].lines] == ["training", "validation"]
        assert (tmp_path / "history.png").stat().st_size > 5000
        file = io.BytesIO()
        history.plot().savefig(file, format="svg")
        with pytest.raises(ArgumentError, match="nothing to plot"):
            History().plot()


class Ending(Callback):
    def __init__(self, failure=None):
        self.failure, self.ended = failure, 0

    def on_train_end(self):
        self.ended += 1
        if self.failure:
            raise self.failure


def fail(epoch, logs):
    raise RuntimeError("in training")


@pytest.mark.parametrize("before", [[], [fail]])
def test_on_train_end_is_called_on_every_callback_and_the_first_error_is_raised(before):
    endings = [Ending(), Ending(OSError("at the end")), Ending(ValueError("after it")), Ending()]
    with pytest.raises(RuntimeError if before else OSError, match="in training" if before else "at the end") as caught:
        reused().fit(X, Y, verbose=0, callbacks=[*before, *endings])
    assert [each.ended for each in endings] == [1, 1, 1, 1]
    failed = ["OSError('at the end')", "ValueError('after it')"][not before :]
    assert caught.value.__notes__ == [f"Ending.on_train_end failed as well: {each}" for each in failed]
