"""`steps_per_execution="auto"`, the default: several steps in one dispatch where only the time can tell."""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.optimizers import SGD
from supremum.training import Callback, DataParallel, Model, Sequential, automatic_steps, step_execution
from supremum.training.automatic_steps import SEVERAL, AutomaticSteps
from supremum.training.callbacks import CallbackList, progress_of
from supremum.training.callbacks.progress import ProgressBar
from supremum.training.data import batches as data_module
from training.blobs import equal, values
from training.many_devices import devices

STEPS = 50


def mean_squared(y_true, y_pred):
    return jnp.mean((y_true - y_pred) ** 2)


def compiled(loss=mean_squared, **options):
    model = Sequential([nn.Dense(4), nn.ReLU(), nn.Dropout(0.2), nn.Dense(1)], dtype="mixed_float16")
    model.compile(SGD(0.1), loss, ["mae"], **options)
    return model


def data(steps=STEPS):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4 * steps, 3)).astype("float32")
    x[:8, 0] = 1e6  # overflows, so steps are skipped
    return x, x.sum(-1, keepdims=True).clip(-2, 2)


def fitted(model, **options):
    return model.fit(*data(), **{"batch_size": 4, "epochs": 2, "verbose": 0, **options})


@pytest.fixture
def trials(monkeypatch):
    """Let "auto" try several steps in every run, and find them faster; a list of the carries that trials led to."""
    found = []
    add_trial = AutomaticSteps.add_trial

    def add(self, seconds, carry):
        assert seconds > 0
        found.append(carry)
        add_trial(self, 0.0, carry)

    monkeypatch.setattr(AutomaticSteps, "add_trial", add)
    monkeypatch.setattr(automatic_steps, "_PAYBACK", 0.0)
    monkeypatch.setattr(automatic_steps, "_LONGEST", np.inf)
    return found


@pytest.fixture
def dispatches(monkeypatch):
    """The numbers of steps that `fit` sends at once."""
    found = []
    over = step_execution.Execution.over

    def recorded(self, *args, **kwargs):
        for steps, kept in over(self, *args, **kwargs):
            found.append(steps)
            yield steps, kept

    monkeypatch.setattr(step_execution.Execution, "over", recorded)
    return found


@pytest.mark.slow
class TestFit:
    @pytest.mark.parametrize("on_host", [True, False], ids=["arrays", "arrays on the device"])
    def test_several_steps_give_the_bits_of_single_ones(self, trials, dispatches, on_host, monkeypatch):
        monkeypatch.setattr(data_module, "host_is_the_device", lambda: on_host)
        single, automatic = compiled(steps_per_execution=1), compiled()
        expected = fitted(single)
        assert set(dispatches) == {1}
        assert not trials
        dispatches.clear()
        found = fitted(automatic)
        assert len(trials) == 1
        assert dispatches == [1] * 21 + [16] + [1] * 13 + [16] * 3 + [1] * 2
        assert automatic.compiled().steps_per_execution == SEVERAL
        for name in ("loss", "loss_scale", "skipped"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert found.history.keys() == {"loss", "mae", "loss_scale", "skipped_steps"}
        for name, numbers in found.history.items():
            np.testing.assert_array_equal(numbers, expected.history[name])
        assert found.history["skipped_steps"][0] > 0
        assert equal(values(automatic), values(single))

    @pytest.mark.parametrize("event", ["on_train_batch_begin", "on_train_batch_end"])
    def test_callback_of_batches_gets_every_batch(self, trials, event):
        seen = []
        recording = type("Recording", (Callback,), {event: lambda self, batch, *_: seen.append(batch)})
        fitted(compiled(), callbacks=recording())
        assert seen == 2 * list(range(STEPS))
        assert not trials

    def test_method_assigned_to_a_callback_gets_every_batch(self, trials):
        seen, callback = [], Callback()
        callback.on_train_batch_end = lambda batch, _: seen.append(batch)
        fitted(compiled(), callbacks=callback)
        assert seen == 2 * list(range(STEPS))
        assert not trials

    def test_callback_that_needs_no_batch_gets_dispatches(self, trials):
        class Last(Callback):
            needs_every_batch = False

            def on_train_batch_end(self, batch, logs):
                seen.append(batch)

        seen = []
        fitted(compiled(), callbacks=Last())
        assert len(trials) == 1
        assert len(seen) < 2 * STEPS
        assert seen[-1] == STEPS - 1

    @pytest.mark.parametrize("kind", ["debug", "pure", "io"])
    def test_step_that_calls_python_stays_single(self, trials, dispatches, kind):
        seen = []

        def loss(y_true, y_pred):
            value = mean_squared(y_true, y_pred)
            if kind == "debug":
                jax.debug.callback(lambda _: seen.append(len(dispatches)), value)
                return value
            call = jax.pure_callback if kind == "pure" else jax.experimental.io_callback
            return value + call(
                lambda: (seen.append(len(dispatches)), np.float32(0))[1], jax.ShapeDtypeStruct((), "f4")
            )

        model = compiled(loss)
        fitted(model)
        jax.effects_barrier()
        assert len(seen) == len(dispatches) == 2 * STEPS
        assert model.compiled().steps_per_execution == 1
        assert not trials

    def test_steps_with_other_bits_stay_single(self, trials, dispatches):
        traces = []

        def loss(y_true, y_pred):
            traces.append(0)
            return mean_squared(y_true, y_pred) * len(traces)

        model = compiled(loss)
        fitted(model)
        assert len(traces) > 1
        assert len(trials) == 1
        assert set(dispatches) == {1}
        assert model.compiled().steps_per_execution == 1

    def test_failing_trial_leaves_the_model_as_it_was(self, trials, monkeypatch):
        def fail(_):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED")

        monkeypatch.setattr(step_execution, "_copied", fail)
        single, automatic = compiled(steps_per_execution=1), compiled()
        np.testing.assert_array_equal(fitted(automatic).loss, fitted(single).loss)
        assert automatic.compiled().steps_per_execution == 1
        assert equal(values(automatic), values(single))

    def test_iterables_and_single_batches_stay_single(self, trials, dispatches):
        model, (x, y) = compiled(), data()
        model.fit([(x[start : start + 4], y[start : start + 4]) for start in range(0, len(x), 4)], verbose=0)
        for start in range(0, len(x), 4):
            model.train_on_batch(x[start : start + 4], y[start : start + 4])
        assert dispatches == [1] * 2 * STEPS
        assert not trials

    def test_training_on_several_devices_stays_single(self, trials, dispatches):
        model = compiled(distribution=DataParallel(devices(2)))
        fitted(model)
        assert dispatches == [1] * 2 * STEPS
        assert not trials

    @pytest.mark.parametrize("spare", [0, -1])
    def test_several_batches_that_are_too_large_stay_single(self, trials, spare, monkeypatch):
        x, y = data()
        monkeypatch.setattr(data_module, "host_is_the_device", lambda: True)
        size_of_steps = (x.nbytes + y.astype("float32").nbytes) * SEVERAL // STEPS
        monkeypatch.setattr(automatic_steps, "_MOST_BYTES", size_of_steps + spare)
        fitted(compiled())
        assert len(trials) == 1 + spare

    @pytest.mark.parametrize("flag", ["debug_nans", "debug_infs", "disable_jit"])
    def test_steps_are_single_while_jax_debugs(self, trials, flag):
        with getattr(jax, flag)(True):
            model = Sequential([nn.Dense(1)])
            model.compile(SGD(0.0), "mse")
            fitted(model)
        assert not trials

    def test_other_shapes_are_tried_anew(self, trials):
        model = compiled()
        fitted(model, epochs=1)
        fitted(model, epochs=1)
        assert len(trials) == 1
        fitted(model, epochs=1, batch_size=2)
        assert len(trials) == 2

    def test_lines_show_the_numbers_of_single_steps(self, trials, capsys):
        shown = []
        for options in ({"steps_per_execution": 1}, {}):
            fitted(compiled(**options), verbose=2)
            shown.append(re.sub(r"\d+\.\d s", "", capsys.readouterr().out))
        assert len(trials) == 1
        assert shown[0].count("skipped_steps") == 2
        assert shown[0] == shown[1]

    def test_bar_counts_the_batches_of_each_dispatch(self, trials, dispatches, monkeypatch):
        seen = []
        monkeypatch.setattr(ProgressBar, "on_train_batch_end", lambda self, batch, logs: seen.append(batch + 1))
        fitted(compiled(), epochs=1, verbose=1)
        assert SEVERAL in dispatches
        assert seen == np.cumsum(dispatches).tolist()

    def test_repeated_fits_choose_like_one(self, dispatches, monkeypatch):
        monkeypatch.setattr(automatic_steps, "_PAYBACK", 0.0)
        model = compiled()
        for _ in range(2):
            fitted(model, epochs=1)
        assert model.compiled().steps_per_execution is not None

    def test_short_training_compiles_only_single_steps(self, dispatches, monkeypatch):
        monkeypatch.setattr(AutomaticSteps, "add_trial", lambda *_: pytest.fail("the compilation cannot pay"))
        fitted(compiled())
        assert dispatches == [1] * 2 * STEPS


def measured(single, first=1.0):
    steps = AutomaticSteps()
    for seconds in (first, single, single, 100 * single, single):
        assert steps.is_measuring
        steps.add_single(seconds, None)
    return steps


class TestChoice:
    def test_default_is_automatic(self):
        assert inspect.signature(Model.compile).parameters["steps_per_execution"].default == "auto"

    def test_progress_needs_no_dispatch_for_each_batch(self):
        assert not CallbackList(progress_of(1, 1, 10)).need_every_batch
        assert not CallbackList([Callback()]).need_every_batch

    def test_trial_waits_for_enough_steps(self):
        steps = measured(0.01)
        assert not steps.is_measuring
        assert steps.should_try(SEVERAL, 401)
        assert not steps.should_try(SEVERAL - 1, 401)
        assert not steps.should_try(SEVERAL, 399)
        assert not AutomaticSteps().should_try(SEVERAL, 10**9)

    def test_steps_taken_count_as_steps_to_come(self):
        steps = measured(0.01)
        steps.taken = 300
        assert steps.should_try(SEVERAL, 101)
        assert not steps.should_try(SEVERAL, 99)

    def test_long_steps_stay_single(self):
        assert measured(0.5 / SEVERAL * 1.01).chosen == 1
        assert measured(0.5 / SEVERAL * 0.99).chosen is None

    def test_slower_dispatch_is_not_compared(self):
        steps = measured(0.01)
        steps.add_trial(0.01 * SEVERAL, None)
        assert steps.chosen == 1

    @pytest.mark.parametrize(
        ("found", "chosen"), [([0.0, np.nan], SEVERAL), ([-0.0, np.nan], 1), ([0.0, -np.nan], 1), ([0.0, 1.0], 1)]
    )
    def test_every_bit_counts(self, found, chosen):
        steps = measured(0.01)
        steps.add_trial(0.01, {"x": np.asarray([0.0, np.nan])})
        for _ in range(SEVERAL):
            assert steps.is_measuring
            assert steps.chosen is None
            steps.add_single(0.01, {"x": np.asarray(found)})
        assert steps.chosen == chosen
