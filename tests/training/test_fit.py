"""`compile`, `fit`, `evaluate` and `predict`."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slowly import mostly_slow, slow
from supremum import nn
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.mixed_precision import DynamicLossScale, Policy
from supremum.optimizers import SGD, Adam, LossScaleOptimizer
from supremum.training import Callback, Mean, Model, Sequential, SparseCategoricalCrossentropy, TrainingWarning, trainer
from supremum.training.callbacks.progress import ProgressBar
from supremum.training.data import batches as data_module
from training.blobs import blobs, equal, network, values

LOSS = SparseCategoricalCrossentropy(from_logits=True)
POLICIES = ["float32", "mixed_bfloat16", "mixed_float16"]


def compiled(policy="float32", optimizer=None, **options):
    model = network(policy)
    model.compile(Adam(0.02) if optimizer is None else optimizer, LOSS, ["accuracy"], **options)
    return model


class TestLearning:
    @pytest.mark.slow
    @pytest.mark.parametrize("policy", POLICIES)
    def test_every_policy_learns(self, policy):
        x, y = blobs(512)
        model = compiled(policy)
        history = model.fit(x, y, batch_size=100, epochs=8, validation_data=blobs(200, seed=1), verbose=0)
        assert history is model.history
        assert history.epoch == list(range(8))
        assert len(history.loss) == len(history.loss_scale) == len(history.skipped) == 8 * 6
        assert history.history["loss"][-1] < 0.3 * history.history["loss"][0]
        assert history.history["accuracy"][-1] > 0.95
        assert history.history["val_accuracy"][-1] > 0.95
        assert set(history.history) == {"loss", "accuracy", "val_loss", "val_accuracy"} | (
            {"loss_scale", "skipped_steps"} if policy == "mixed_float16" else set()
        )
        test = model.evaluate(x, y, verbose=0, return_dict=True)
        assert test["accuracy"] > 0.95
        outputs = model.predict(x, batch_size=100, verbose=0)
        assert outputs.shape == (512, 3)
        assert outputs.dtype == model(x[:1]).dtype
        assert np.mean(outputs.astype("float32").argmax(-1) == y) == pytest.approx(test["accuracy"])

    @pytest.mark.slow
    def test_epoch_loss_is_the_mean_over_examples_despite_a_smaller_last_batch(self):
        x, y = blobs(10)
        model = compiled(optimizer=SGD(0.0))
        logs = model.fit(x, y, batch_size=4, verbose=0, shuffle=False).history
        steps = model.history.loss
        assert logs["loss"][0] == pytest.approx((4 * steps[0] + 4 * steps[1] + 2 * steps[2]) / 10, rel=1e-6)
        assert model.evaluate(x, y, batch_size=3, verbose=0) == pytest.approx(model.evaluate(x, y, verbose=0), rel=1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("steps", [1, 2])
    def test_history_records_more_steps_than_its_buffer_holds(self, steps, monkeypatch):
        x, y = blobs(13 * 4)
        results = []
        for capacity in (1024, 5):
            monkeypatch.setattr(trainer, "CAPACITY", capacity)
            model = compiled("mixed_float16", steps_per_execution=steps)
            model.fit(x, y, batch_size=4, epochs=2, verbose=0)
            results.append((model.history.loss, model.history.loss_scale, model.history.skipped))
        assert results[0] == results[1]
        assert len(results[0][0]) == len(set(results[0][0])) == 26

    def test_sample_weights_scale_the_loss(self):
        x, y = blobs(64)
        weights = (np.arange(64) < 32).astype("float32") * 2
        # Batch statistics would include the examples with weight 0, so these models have only a dense layer.
        dense, half = (Sequential([nn.Dense(3)]) for _ in range(2))
        for model, data in ((dense, (x, y, weights)), (half, (x[:32], y[:32], None))):
            model.compile(SGD(0.1), LOSS)
            model.fit(*data[:2], sample_weight=data[2], batch_size=64, shuffle=False, verbose=0)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), values(dense), values(half))
        assert dense.evaluate(x, y, sample_weight=weights * 0, verbose=0) == 0

    @pytest.mark.slow
    def test_loss_includes_penalties_of_layers(self):
        x, y = blobs(32)
        plain = Sequential([nn.Dense(3)])
        regularized = Sequential([nn.Dense(3, kernel_regularizer="l2")])
        for model in (plain, regularized):
            model.compile(SGD(0.0), LOSS)
            model.fit(x, y, verbose=0)
        kernel = values(regularized)["dense/kernel"]
        penalty = 0.01 * np.square(kernel.astype("float64")).sum()
        assert regularized.history.history["loss"][0] == pytest.approx(
            plain.history.history["loss"][0] + penalty, rel=1e-5
        )
        assert regularized.evaluate(x, y, verbose=0) == pytest.approx(
            plain.evaluate(x, y, verbose=0) + penalty, rel=1e-5
        )

    def test_penalty_does_not_overflow_with_a_float16_loss(self):
        x, y = blobs(16)
        model = Sequential([nn.Dense(3, kernel_regularizer=nn.L2(1e6), dtype="mixed_float16")])
        model.compile(SGD(0.0), lambda y_true, y_pred: jnp.square(y_pred).mean())
        model.fit(x, y, verbose=0)
        kernel = values(model)["dense/kernel"].astype("float64")
        assert 1e6 * np.square(kernel).sum() > 7e4
        assert model.history.loss[0] == pytest.approx(1e6 * np.square(kernel).sum(), rel=1e-5)


def order_in_batches(seed, epochs=1, **options):
    """Return the examples in the order in which a layer sees them, in batches of five."""
    order = []

    class Recording(nn.Layer):
        def build(self, input_shape):
            self.w = self.add_weight("w", (1, 2), jax.nn.initializers.ones)

        def call(self, x):
            jax.debug.callback(lambda v: order.append(np.asarray(v).ravel()), x, ordered=True)
            return x @ self.w.value

    model = Sequential([Recording()])
    model.compile(SGD(0.0), LOSS, seed=seed)
    x = np.arange(10, dtype=np.float32)[:, None]
    model.fit(x, np.zeros(10, np.int32), batch_size=5, epochs=epochs, verbose=0, **options)
    jax.effects_barrier()
    return np.concatenate(order).tolist()


def order_of_losses(seed, epochs=1, **options):
    """Return the examples in the order in which they are trained on; the loss of number n is its square."""
    model = Sequential([nn.Dense(1, kernel_initializer="ones")])
    model.compile(SGD(0.0), "mse", seed=seed)
    x = np.arange(10, dtype=np.float32)[:, None]
    return np.sqrt(model.fit(x, 0 * x, batch_size=1, epochs=epochs, verbose=0, **options).loss).tolist()


@pytest.mark.parametrize("example_order", [order_of_losses, slow(order_in_batches)])
def test_epoch_visits_each_example_once_in_an_order_set_by_the_seed(example_order):
    first, again, other = example_order(0, 2), example_order(0, 2), example_order(1, 2)
    assert sorted(first[:10]) == sorted(first[10:]) == list(range(10))
    assert first == again != other
    assert first[:10] != first[10:]
    assert example_order(0, shuffle=False) == list(range(10))
    assert example_order(0, 2, initial_epoch=1) == first[10:]


class TestLossScale:
    """Keras RFC 293, mixed precision, "A policy's loss scale"."""

    def test_compile_wraps_the_given_optimizer_with_a_separate_scale(self):
        optimizer = SGD(0.1)
        one, two = network("mixed_float16"), network("mixed_float16")
        one.compile(optimizer, LOSS)
        two.compile(SGD(0.1), LOSS)
        assert isinstance(one.optimizer, LossScaleOptimizer)
        assert one.optimizer.inner_optimizer is optimizer
        one.optimizer.loss_scale.loss_scale.assign(2.0)
        assert float(two.optimizer.loss_scale()) == float(Policy("mixed_float16").loss_scale.initial_loss_scale)

    def test_compile_wraps_no_optimizer_twice(self):
        wrapped = LossScaleOptimizer(SGD(0.1), 8.0)
        model = network("mixed_float16")
        model.compile(wrapped, LOSS)
        assert model.optimizer is wrapped

    def test_training_continues_after_overflows_and_counts_them(self):
        x, y = blobs(256)
        scale = DynamicLossScale(2.0**30, increment_period=5)  # far too high for float16: the first steps overflow
        model = compiled(Policy("mixed_float16", scale))
        history = model.fit(x, y, batch_size=64, epochs=12, verbose=0)
        assert history.skipped[0]
        assert history.skipped_steps == sum(history.skipped) == sum(history.history["skipped_steps"]) > 5
        assert history.loss_scale[:2] == [2.0**30, 2.0**29]
        assert history.history["accuracy"][-1] > 0.95
        assert int(model.optimizer.iterations) == 48 - history.skipped_steps


class TestChangesDuringTraining:
    def test_learning_rate_set_in_a_callback_applies_to_the_next_step(self):
        x, y = blobs(64)
        optimizer = SGD(0.1)
        model = compiled(optimizer=optimizer)
        seen = []

        def freeze(epoch, logs):
            seen.append(values(model)["dense/kernel"])
            if epoch == 1:
                optimizer.learning_rate = 0.0

        model.fit(x, y, epochs=4, callbacks=freeze, verbose=0)
        assert not equal(seen[0], seen[1])
        assert equal(seen[1], seen[2])
        assert equal(seen[2], seen[3])

    def test_values_read_earlier_stay_readable(self):
        x, y = blobs(64)
        model = compiled("mixed_float16")
        nn.initialize(model, x[:1])
        kernel = model.variables["dense/kernel"]
        kernels, kept = [kernel.value], []

        def keep(epoch, logs):
            optimizer = model.optimizer
            kernels.append(kernel.value)
            kept.append((optimizer.iterations, optimizer.learning_rate, optimizer.loss_scale(), optimizer.variables))

        model.fit(x, y, epochs=3, callbacks=keep, verbose=0)
        kernels.append(kernel.value)
        model.fit(x, y, verbose=0)
        assert len({np.asarray(each).tobytes() for each in kernels}) == 4  # the last two are equal
        assert [int(iterations) for iterations, *_ in kept] == [2, 4, 6]
        assert all(float(rate) == pytest.approx(0.02) for _, rate, *_ in kept)
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves([each[2:] for each in kept]))

    @pytest.mark.slow
    def test_nesterov_set_between_fits_applies_to_the_next_step(self):
        x, y = blobs(64)
        results = {}
        for is_nesterov in (False, True):
            model = compiled("mixed_float16", SGD(0.1, momentum=0.9))
            model.fit(x, y, batch_size=64, epochs=2, shuffle=False, verbose=0)
            before = values(model)
            model.optimizer.inner_optimizer.nesterov = is_nesterov
            model.fit(x, y, batch_size=64, shuffle=False, verbose=0)
            results[is_nesterov] = before, values(model)
        assert equal(results[False][0], results[True][0])
        assert not equal(results[False][1], results[True][1])


class TestStepsPerExecution:
    @pytest.mark.parametrize("steps", mostly_slow([2, 3, 7], 2))
    @pytest.mark.parametrize("kind", mostly_slow(["arrays", "arrays on the device", "batches"], "batches"))
    def test_several_steps_per_execution_train_like_single_steps(self, steps, kind, monkeypatch):
        monkeypatch.setattr(data_module, "host_is_the_device", lambda: kind == "arrays")
        x, y = blobs(11 * 16 + 5)
        parts = [(x[start : start + 16], y[start : start + 16]) for start in range(0, len(x), 16)]
        data = ((x, y), {"batch_size": 16}) if kind != "batches" else ((parts,), {})
        one, several = (compiled("mixed_float16", steps_per_execution=number) for number in (1, steps))
        for model in (one, several):
            model.fit(*data[0], epochs=2, shuffle=False, verbose=0, **data[1])
        assert len(several.history.loss) == len(one.history.loss) == 24
        np.testing.assert_allclose(several.history.loss, one.history.loss, rtol=2e-2, atol=1e-3)
        assert int(several.optimizer.iterations) == int(one.optimizer.iterations)
        assert several.history.loss_scale == one.history.loss_scale

    @pytest.mark.slow
    @pytest.mark.parametrize("steps", [1, 3])
    def test_rows_selected_on_host_or_device_train_to_the_same_bits(self, steps, monkeypatch):
        x, y = blobs(7 * 16 + 5)
        trained = []
        for is_host in (True, False):
            monkeypatch.setattr(data_module, "host_is_the_device", lambda is_host=is_host: is_host)
            model = compiled("mixed_float16", steps_per_execution=steps)
            model.fit(x, y, batch_size=16, epochs=2, verbose=0)
            trained.append(values(model))
        assert equal(*trained)

    @pytest.mark.parametrize(("steps", "ends"), [(1, range(1, 8)), (3, (3, 6, 7)), (7, [7])])
    def test_callbacks_get_the_last_step_of_each_dispatch(self, steps, ends, monkeypatch):
        """The progress bar is one of them."""
        seen, shown = [], []

        class Recording(Callback):
            def on_train_batch_end(self, batch, logs):
                seen.append((batch, logs["loss"]))

        monkeypatch.setattr(
            ProgressBar, "on_train_batch_end", lambda self, batch, logs: shown.append((batch, logs["loss"]))
        )
        model = compiled(steps_per_execution=steps, optimizer=SGD(0.0))
        losses = model.fit(*blobs(7 * 8), batch_size=8, shuffle=False, callbacks=Recording(), verbose=1).loss
        assert seen == shown == [(end - 1, pytest.approx(np.mean(losses[:end]), abs=2e-6)) for end in ends]


class TestModels:
    def test_dropout_in_a_subclass_draws_a_new_mask_in_every_step(self):
        class Noisy(Model):
            def __init__(self):
                super().__init__()
                self.dense, self.dropout = nn.Dense(3), nn.Dropout(0.5)

            def call(self, x):
                return self.dropout(self.dense(x))

        x, y = blobs(64)
        model = Noisy()
        model.compile(SGD(0.0), LOSS)
        model.fit(x, y, batch_size=64, epochs=5, shuffle=False, verbose=0)
        assert len(set(model.history.loss)) == 5
        assert model.evaluate(x, y, verbose=0) == model.evaluate(x, y, verbose=0)

    def test_on_batch_methods_match_fit_evaluate_and_predict(self):
        x, y = blobs(32)
        model, fitted = compiled("mixed_float16"), compiled("mixed_float16")
        for _ in range(3):
            logs = model.train_on_batch(x, y, return_dict=True)
        fitted.fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=0)
        assert equal(values(model), values(fitted))
        assert logs == {name: numbers[-1] for name, numbers in fitted.history.history.items()}
        assert model.test_on_batch(x, y) == fitted.evaluate(x, y, verbose=0)
        np.testing.assert_array_equal(model.predict_on_batch(x), fitted.predict(x, verbose=0))

    @pytest.mark.slow
    def test_fit_accepts_lists_of_batches_generators_and_a_validation_split(self):
        x, y = blobs(64)
        parts = [(x[start : start + 16], y[start : start + 16]) for start in range(0, 64, 16)]
        by_arrays, by_list, by_generator = (compiled(optimizer=SGD(0.1)) for _ in range(3))
        by_arrays.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
        by_list.fit(parts, epochs=2, verbose=0, validation_data=parts)
        by_generator.fit((part for _ in range(2) for part in parts), epochs=2, steps_per_epoch=4, verbose=0)
        assert values(by_arrays).keys() == values(by_list).keys() == values(by_generator).keys()
        for path, value in values(by_arrays).items():
            for model in (by_list, by_generator):
                np.testing.assert_allclose(values(model)[path], value, rtol=1e-5, atol=1e-6)
        evaluated = by_list.evaluate(x, y, verbose=0)[0]
        assert by_list.history.history["val_loss"][1] == pytest.approx(evaluated)
        with pytest.raises(ArgumentError, match=r"the data has no batches left in epoch 1.*steps_per_epoch"):
            compiled().fit((part for part in parts), epochs=2, verbose=0)
        split = compiled()
        split.fit(x, y, validation_split=0.25, verbose=0, validation_freq=2, epochs=2)
        assert np.isnan(split.history.history["val_loss"][0])
        assert split.history.history["val_loss"][1] == pytest.approx(split.evaluate(x[48:], y[48:], verbose=0)[0])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("run", ["fit", "evaluate", "predict"])
def test_fewer_batches_than_steps_warn(run):
    """Keras 3.15.1 warns that its input ran out of data."""
    x, y = blobs(12)
    model = compiled()
    model.fit(x, y, verbose=0)
    name = "steps_per_epoch" if run == "fit" else "steps"
    calls = []

    class Counter(Callback):
        def on_train_batch_end(self, batch, logs=None):
            calls.append(batch)

        on_test_batch_end = on_predict_batch_end = on_train_batch_end

    for parts, batches in ([(x, y)], 1), (((x, y) for _ in range(2)), 2), (x, 1):
        calls.clear()
        labels = {"y": y} if parts is x and run != "predict" else {}
        with pytest.warns(TrainingWarning, match=f"3 steps were requested, but the data ran out after {batches}"):
            getattr(model, run)(parts, **{name: 3}, **labels, verbose=0, callbacks=Counter())
        assert len(calls) == batches


def test_trained_model_is_garbage_collected():
    x, y = blobs(32)
    model = compiled("mixed_float16")
    model.fit(x, y, validation_data=(x, y), verbose=0)
    model.predict(x, verbose=0)
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def compiled_flatten():
    model = Sequential([nn.Flatten()])
    model.compile("sgd", "mse")
    return model


class TestBadInput:
    x, y = blobs(16)

    @pytest.mark.parametrize(
        ("run", "error", "message"),
        [
            (lambda m, x, y: Sequential([nn.Dense(3)]).fit(x, y), ArgumentError, r"compile\('adam', loss='mse'\)"),
            (lambda m, x, y: m.fit(x, y[:3]), ArgumentError, "same number of examples"),
            (lambda m, x, y: m.fit(x, y, batch_size=0), ArgumentError, "batch_size"),
            (lambda m, x, y: m.fit(x, y, epochs=0), ArgumentError, "epochs must be an integer of at least 1, got 0"),
            (lambda m, x, y: m.fit(x, y, verbose=7), UnknownNameError, "verbose"),
            (lambda m, x, y: m.fit(x, y, callbacks=[3]), OperandError, "a callback must be"),
            (lambda m, x, y: m.fit(x, y, validation_split=1.5), ArgumentError, "between 0 and 1"),
            (lambda m, x, y: m.fit(x, y, validation_split=0.5, validation_data=(x, y)), ArgumentError, "not both"),
            (lambda m, x, y: m.fit(x, y, validation_split=0.01), ArgumentError, "leaves one part of the"),
            (lambda m, x, y: m.fit(3, y), (ArgumentError, OperandError), "leave out y=|data are arrays"),
            (lambda m, x, y: m.fit(x), (ArgumentError, OperandError), "labels|y_true"),
            (lambda m, x, y: m.compile("adm", "mse"), UnknownNameError, "did you mean 'adam'"),
            (lambda m, x, y: m.compile("adam", "msee"), UnknownNameError, "did you mean 'MSE'"),
            (lambda m, x, y: m.compile("adam", "mse", ["acuracy"]), UnknownNameError, "did you mean 'accuracy'"),
            (lambda m, x, y: m.compile("adam", "mse", ["accuracy"] * 2), ArgumentError, "two called 'accuracy'"),
            (lambda m, x, y: m.compile("adam", "mse", [Mean(name="loss")]), ArgumentError, "two called 'loss'"),
            (lambda m, x, y: m.compile("adam", "mse", steps_per_execution=0), ArgumentError, "steps_per_execution"),
            (lambda m, x, y: m.compile(steps_per_execution="auto"), OperandError, "must be a whole number, got 'auto'"),
            (lambda m, x, y: m.compile("adam", "mse", seed=2**63), ArgumentError, "seed must be from"),
            (lambda m, x, y: m.compile("adam", {"a": "mse"}, loss_weights={"b": 1.0}), ArgumentError, "have no loss"),
            (lambda m, x, y: Sequential([nn.Flatten()]).train_on_batch(x, x), ArgumentError, "compiled first"),
            (lambda m, x, y: compiled_flatten().fit(x, x), ArgumentError, "no trainable variables"),
        ],
    )
    def test_bad_call_raises_with_a_fix(self, run, error, message):
        model = compiled()
        with pytest.raises(error, match=message):
            run(model, self.x, self.y)

    def test_failed_call_leaves_the_model_trainable(self):
        model = compiled()
        model.fit(self.x, self.y, verbose=0)
        before = values(model)
        with pytest.raises(ArgumentError, match="input"):
            model.fit(np.ones((16, 5), "float32"), self.y, verbose=0)
        assert equal(values(model), before)
        model.fit(self.x, self.y, verbose=0)
        with pytest.raises(ZeroDivisionError):
            model.fit(self.x, self.y, epochs=2, callbacks=lambda *_: 1 / 0, verbose=0)
        assert np.all(np.isfinite(values(model)["dense/kernel"]))
        model.fit(self.x, self.y, verbose=0)
