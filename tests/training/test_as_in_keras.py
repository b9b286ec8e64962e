"""Attributes, overrides and calls that users know from Keras behave as they do in Keras."""

import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.errors import ArgumentError, OperandError
from supremum.mixed_precision import global_policy, set_floatx, set_global_policy, use_policy
from supremum.nn import BatchNorm, Dense, Dropout, Input
from supremum.optimizers import SGD
from supremum.training import Callback, Model, NumericsMonitor, Sequential
from training.blobs import equal, values

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(16, 4)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


# trainable


def frozen_by_attribute():
    model = Sequential([Dense(8), BatchNorm(), Dense(1)])
    model[0].trainable = model[1].trainable = False
    return model


def frozen_by_argument():
    return Sequential([Dense(8, trainable=False), BatchNorm(trainable=False), Dense(1)])


def frozen_as_a_whole():
    return Sequential([nn.SequentialNetwork([Dense(8), BatchNorm()], trainable=False), Dense(1)])


@pytest.mark.slow
@pytest.mark.parametrize("make", [frozen_by_attribute, frozen_by_argument, frozen_as_a_whole])
def test_frozen_layers_keep_their_weights(make):
    model = make()
    model.compile("sgd", loss="mse")
    model(X)
    before = values(model)
    model.fit(X, Y, epochs=2, verbose=0)
    changed = {path for path, value in values(model).items() if np.any(value != before[path])}
    assert changed == {
        path for path in before if path.startswith(("dense_1", "dense/")) and "sequential" not in path
    } - {path for path in before if path.startswith("dense/") and make is not frozen_as_a_whole}
    assert model.trainable_variables.keys() == changed
    assert model.summary().trainable == 9
    trainable, frozen = nn.split_variables(model)
    assert trainable.keys() == changed
    assert trainable.keys() | frozen.keys() == before.keys()


@pytest.mark.slow
def test_frozen_layer_adds_no_penalty_and_uses_moving_statistics():
    model = Sequential([Dense(4, kernel_regularizer="l2"), BatchNorm(), Dense(1)])
    model(X)
    assert len(model.losses) == 1
    model[0].trainable = False
    assert model.losses == []
    norm = BatchNorm(trainable=False)
    np.testing.assert_allclose(norm(X, training=True), norm(X), rtol=1e-6)
    trainable = BatchNorm()
    assert np.any(np.asarray(trainable(X, training=True)) != np.asarray(trainable(X)))


@pytest.mark.slow
def test_unfrozen_layers_train_after_compiling_again():
    model = frozen_by_attribute()
    model.compile("adam", loss="mse")
    model.fit(X, Y, epochs=1, verbose=0)
    model[0].trainable = model[1].trainable = True
    model.compile("adam", loss="mse")
    before = values(model)
    model.fit(X, Y, epochs=1, verbose=0)
    assert all(np.any(value != before[path]) for path, value in values(model).items())


# overriding


class Weighted(Model):
    def __init__(self, **options):
        super().__init__(**options)
        self.dense = Dense(1)
        self.seen = []

    def call(self, x):
        return self.dense(x)

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        self.seen.append(training)
        return jnp.mean((y - y_pred) ** 2 * jnp.abs(x[:, :1])) * 3


@pytest.mark.slow
def test_fit_minimizes_an_overridden_compute_loss():
    model = Weighted()
    model.compile("sgd")
    model(X)
    expected = float(np.mean((Y - np.asarray(model(X))) ** 2 * np.abs(X[:, :1])) * 3)
    assert model.evaluate(X, Y, batch_size=16, verbose=0, return_dict=True)["loss"] == pytest.approx(expected, rel=1e-5)
    history = model.fit(X, Y, batch_size=16, epochs=30, verbose=0)
    assert history.history["loss"][0] == pytest.approx(expected, rel=1e-5)
    assert history.history["loss"][-1] < 0.5 * expected
    assert set(model.seen) == {True, False}


class Scaled(Model):
    """Train on ten times the inputs, and undo a tenth of each step."""

    def __init__(self, **options):
        super().__init__(**options)
        self.dense = Dense(1, kernel_initializer="zeros")

    def call(self, x):
        return self.dense(x)

    def train_step(self, state, batch):
        after = super().train_step(state, batch._replace(x=10 * batch.x))
        mixed = jax.tree.map(lambda old, new: 0.1 * old + 0.9 * new, state.trainable, after.trainable)
        return dataclasses.replace(after, trainable=mixed)


@pytest.mark.parametrize("steps", [1, 2])
def test_fit_takes_an_overridden_train_step(steps):
    own, plain = Scaled(), Sequential([Dense(1, kernel_initializer="zeros")])
    own.compile(SGD(0.001), "mse", steps_per_execution=steps)
    plain.compile(SGD(0.0009), "mse")
    own.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
    plain.fit(10 * X, Y, batch_size=8, shuffle=False, verbose=0)
    np.testing.assert_allclose(own.history.loss, plain.history.loss, rtol=1e-5)
    restored = pickle.loads(pickle.dumps(own))
    assert restored.train_on_batch(X, Y) == own.train_on_batch(X, Y)


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (lambda self, data: {}, ArgumentError, r"write def train_step\(self, state, batch\)"),
        (lambda self, state, batch: ({}, state), OperandError, "the result of train_step must be the state after"),
        (
            lambda self, state, batch: Model.train_step(self, Model.train_step(self, state, batch), batch),
            ArgumentError,
            r"call super\(\).train_step once",
        ),
    ],
)
def test_train_steps_that_cannot_work_raise(step, error, message):
    model = type("Own", (Scaled,), {"train_step": step})()

    def train():
        model.compile("sgd", loss="mse")
        model.fit(X, Y, verbose=0)

    with pytest.raises(error, match=message):
        train()


def test_numerics_monitor_refuses_an_overridden_train_step():
    model = Scaled()
    model.compile("sgd", "mse")
    with pytest.raises(ArgumentError, match="remove the monitor"):
        model.fit(X, Y, callbacks=NumericsMonitor(), verbose=0)


@pytest.mark.parametrize("name", ["test_step", "predict_step"])
def test_overriding_a_step_method_that_is_never_called_raises(name):
    model = type("Own", (Weighted,), {name: lambda self, data: {}})()
    with pytest.raises(ArgumentError, match=rf"Own\.{name} is never called: override compute_loss"):
        model.compile("sgd", loss="mse")


class Scale(nn.Layer):
    """Double the inputs in training; the default of the argument is that of the class."""

    def call(self, x, training=None):
        assert isinstance(training, bool)
        return x * (2 if training else 1)


class ScaleByDefault(Scale):
    def call(self, x, training=True):
        return super().call(x, training)


class KeepByDefault(Scale):
    def call(self, x, training=False):
        return super().call(x, training)


class Outer(nn.Layer):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner()

    def call(self, x):
        return self.inner(x)


@pytest.mark.parametrize(("kind", "factor"), [(ScaleByDefault, 2), (KeepByDefault, 1), (Scale, 1)])
def test_omitted_training_argument_uses_the_default_of_the_layer(kind, factor):
    ones = jnp.ones(2)
    for layer in (kind(), Outer(kind)):
        assert float(layer(ones)[0]) == factor
        assert float(layer(ones, training=True)[0]) == 2
        assert float(layer(ones, training=False)[0]) == 1
        assert float(nn.functional_call(layer, {}, ones)[0][0]) == factor
    inside = Sequential([Dense(2), kind()])
    inside.compile("sgd", loss="mse")
    inside.predict(X, verbose=0)  # predict passes training=False
    np.testing.assert_allclose(inside.predict(X, verbose=0), inside[0](X), rtol=1e-5)


# callbacks


class Recorder(Callback):
    """Records the calls of all methods that callbacks have, with their arguments."""

    def __init__(self):
        self.calls = []


def recording_method(name):
    def record(self, *args):
        self.calls.append((name, *[arg if isinstance(arg, int) else dict(arg) for arg in args]))

    return record


for each in dir(Callback):
    if each.startswith("on_"):
        setattr(Recorder, each, recording_method(each))


def test_callback_methods_are_called_in_order():
    recorder, model = Recorder(), Sequential([Dense(1)])
    model.compile("sgd", loss="mse", metrics=["mae"])
    model.fit(
        X, Y, batch_size=8, epochs=2, validation_data=(X, Y), validation_batch_size=16, callbacks=recorder, verbose=0
    )
    names = [name for name, *_ in recorder.calls]
    epoch = [
        "on_epoch_begin", "on_train_batch_begin", "on_train_batch_end", "on_train_batch_begin", "on_train_batch_end",
        "on_test_begin", "on_test_batch_begin", "on_test_batch_end", "on_test_end", "on_epoch_end",
    ]  # fmt: skip
    assert names == ["on_train_begin", *epoch, *epoch, "on_train_end"]
    assert [args[0] for name, *args in recorder.calls if name == "on_train_batch_begin"] == [0, 1, 0, 1]
    (_, logs) = next(each for each in recorder.calls if each[0] == "on_test_end")
    assert logs.keys() == {"loss", "mae"}
    recorder.calls.clear()
    found = model.evaluate(X, Y, batch_size=8, callbacks=[recorder], verbose=0, return_dict=True)
    assert [name for name, *_ in recorder.calls] == [
        "on_test_begin", *["on_test_batch_begin", "on_test_batch_end"] * 2, "on_test_end",
    ]  # fmt: skip
    assert recorder.calls[-1][1] == found
    assert recorder.calls[-2][2] == found  # the mean over all batches so far
    recorder.calls.clear()
    model.predict(X, batch_size=8, callbacks=recorder, verbose=0)
    assert [name for name, *_ in recorder.calls] == [
        "on_predict_begin", *["on_predict_batch_begin", "on_predict_batch_end"] * 2, "on_predict_end",
    ]  # fmt: skip


# building and inputs


def test_build_creates_weights():
    for model in (Sequential([Dense(3), Dense(1)]), Weighted()):
        model.build((None, 4))
        assert model.built
        assert model.variables
        assert all(each.is_initialized for each in model.variables.values())
        other = type(model)([Dense(3), Dense(1)]) if isinstance(model, Sequential) else Weighted()
        other(X)
        assert equal(values(model), values(other))
    inputs = Input((4,))
    functional = Model(inputs, Dense(1)(inputs))
    functional.build()
    assert functional(X).shape == (16, 1)
    with pytest.raises(ArgumentError, match="call build with an input shape"):
        Sequential([Dense(1)]).build()


def two_inputs():
    one, other = Input((4,)), Input((2,))
    model = Model([one, other], Dense(1)(nn.Concatenate()([one, other])))
    model.compile("sgd", loss="mse")
    return model


@pytest.mark.slow
def test_list_of_arrays_is_passed_as_several_inputs():
    model, inputs = two_inputs(), [X, X[:, :2]]
    history = model.fit(inputs, Y, batch_size=4, epochs=3, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    assert model.predict(inputs, batch_size=4, verbose=0).shape == (16, 1)
    np.testing.assert_allclose(model.predict(inputs, verbose=0), model.predict(tuple(inputs), verbose=0), rtol=1e-6)
    assert model.evaluate(inputs, Y, verbose=0, return_dict=True).keys() == {"loss"}
    model.fit(inputs, Y, validation_data=(inputs, Y), verbose=0)
    batches = [(X[:8], Y[:8]), (X[8:], Y[8:])]
    single = Sequential([Dense(1)])
    single.compile("sgd", loss="mse")
    single.fit(batches, verbose=0)  # a list of pairs is a list of batches


def test_predict_draws_new_masks_for_dropout_called_with_training_true():
    inputs = Input((4,))
    model = Model(inputs, Dropout(0.5)(inputs, training=True))
    one, other = (model.predict(X, batch_size=4, verbose=0) for _ in range(2))
    assert np.any(one != other)
    assert len({tuple(np.flatnonzero(one[start : start + 4] == 0)) for start in (0, 4, 8, 12)}) > 1
    model.compile("sgd", loss="mse")
    assert model.evaluate(X, X, verbose=0) > 0


def test_predict_without_training_true_drops_nothing():
    model = Sequential([Dense(4), Dropout(0.5)])
    model.compile("sgd", loss="mse")
    found = model.predict(X, verbose=0)
    np.testing.assert_array_equal(found, model.predict(X, verbose=0))
    assert np.all(found != 0)


@pytest.mark.slow
def test_evaluate_and_predict_do_not_change_later_training():
    found = []
    for calls in (0, 3):
        model = Sequential([Dense(8), Dropout(0.5), Dense(1)])
        model.compile("sgd", loss="mse")
        model.fit(X, Y, epochs=1, verbose=0)
        for _ in range(calls):
            model.evaluate(X, Y, verbose=0)
            model.predict(X, verbose=0)
        model.fit(X, Y, epochs=1, verbose=0)
        found.append(values(model))
    assert equal(*found)


# policies and scales


@pytest.mark.parametrize("policy", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_global_policy_too_narrow_for_training_raises(policy):
    before = global_policy()
    for put, must in (
        (set_global_policy, "must compute in"),
        (use_policy, "must compute in"),
        (set_floatx, "floatx must be"),
    ):
        with pytest.raises(ArgumentError, match=f"{must} bfloat16, float16, float32 or float64"):
            put(policy)
    assert global_policy() is before
    assert Dense(1, dtype=policy).compute_dtype == policy
