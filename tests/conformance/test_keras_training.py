"""What `fit`, `evaluate`, callbacks and optimizers do is compared with live Keras on JAX."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from slowly import for_each
from supremum import nn, optimizers, training

# Keras' own conversion of its variables warns.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(24, 4)).astype("float32")
Y = (X @ RANDOM.normal(size=(4, 1)) + 0.5).astype("float32")
CLASSES = RANDOM.integers(0, 3, 24)
WEIGHTS = RANDOM.uniform(0.5, 2.0, 24).astype("float32")
KERNEL = RANDOM.normal(size=(4, 3)).astype("float32") * 0.3


@pytest.fixture
def keras(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    found = import_or_skip("keras")
    if found.backend.backend() != "jax":
        pytest.skip("Keras was loaded with another backend")
    return found


def close(ours, theirs, tolerance=2e-5):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def start(units, name=None):
    """A dense layer of ours and one of Keras', as functions, with the same weights."""
    kernel = np.tile(KERNEL, 2)[:, :units]

    def initial(key, shape, dtype):
        return jnp.asarray(kernel[: shape[0]], dtype)

    def of_keras(keras, **options):
        return keras.layers.Dense(
            units, kernel_initializer=lambda shape, dtype: kernel[: shape[0]], name=name, **options
        )

    return nn.Dense(units, kernel_initializer=initial, name=name), of_keras


def pair(keras, units, optimizer, their_optimizer, loss, **options):
    ours, theirs = start(units)
    one, other = training.Sequential([ours]), keras.Sequential([keras.Input((4,)), theirs(keras)])
    one.compile(optimizer, loss if isinstance(loss, str) else loss[0], **options)
    other.compile(their_optimizer, loss if isinstance(loss, str) else loss[1], **options)
    return one, other


def compared(one, other, ours, theirs, names=("loss",)):
    for name in names:
        close(ours.history[name], theirs.history[name])
    for variable, value in zip(one.variables.values(), other.weights, strict=True):
        close(variable.value, value)


def sparse(keras):
    return (
        training.SparseCategoricalCrossentropy(from_logits=True),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )


def sgd(keras):
    return optimizers.SGD(0.1), keras.optimizers.SGD(0.1)


FIT = {"batch_size": 8, "epochs": 3, "shuffle": False, "verbose": 0}


@pytest.mark.parametrize("labels", ["numbers", "column", "one-hot"])
def test_class_weight(keras, labels):
    given = {"numbers": CLASSES, "column": CLASSES[:, None], "one-hot": np.eye(3, dtype="float32")[CLASSES]}[labels]
    loss = sparse(keras) if labels != "one-hot" else (
        training.CategoricalCrossentropy(from_logits=True), keras.losses.CategoricalCrossentropy(from_logits=True)
    )  # fmt: skip
    one, other = pair(keras, 3, *sgd(keras), loss)
    options = FIT | {"class_weight": {0: 0.5, 2: 4.0}, "validation_data": (X, given)}
    compared(one, other, one.fit(X, given, **options), other.fit(X, given, **options), ("loss", "val_loss"))


@pytest.mark.parametrize("weights", [WEIGHTS, WEIGHTS[:, None]])
@pytest.mark.parametrize("labels", [Y, Y[:, 0]])
def test_weights_and_labels_of_one_column(keras, labels, weights):
    one, other = pair(keras, 1, *sgd(keras), "mse")
    options = FIT | {"sample_weight": weights}
    compared(one, other, one.fit(X, labels, **options), other.fit(X, labels, **options))


def test_binary_accuracy_of_flat_labels(keras):
    labels = (Y[:, 0] > 0).astype("int32")
    losses = training.BinaryCrossentropy(from_logits=True), keras.losses.BinaryCrossentropy(from_logits=True)
    one, other = pair(keras, 1, *sgd(keras), losses, metrics=["accuracy"])
    ours, theirs = one.fit(X, labels, **FIT), other.fit(X, labels, **FIT)
    compared(one, other, ours, theirs, ("loss", "accuracy"))


def test_validation_steps(keras):
    one, other = pair(keras, 1, *sgd(keras), "mse")
    options = FIT | {"validation_data": (X, Y), "validation_batch_size": 4, "validation_steps": 2}
    compared(one, other, one.fit(X, Y, **options), other.fit(X, Y, **options), ("loss", "val_loss"))


def test_validation_steps_start_anew(keras):
    one, other = pair(keras, 1, *sgd(keras), "mse")

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return X[4 * index : 4 * index + 4], Y[4 * index : 4 * index + 4]

    batches = [Batches()[index] for index in range(6)]
    ours = one.fit(X, Y, validation_data=batches, validation_steps=2, **FIT)
    theirs = other.fit(X, Y, validation_data=Batches(), validation_steps=2, **FIT)
    compared(one, other, ours, theirs, ("loss", "val_loss"))


def test_evaluate_returns_what_keras_returns(keras):
    for metrics in ([], ["mae"], ["mae", "mse"]):
        one, other = pair(keras, 1, *sgd(keras), "mse", metrics=metrics)
        for method in ("evaluate", "test_on_batch", "train_on_batch"):
            options = {"verbose": 0} if method == "evaluate" else {}
            named = [getattr(model, method)(X, Y, return_dict=True, **options) for model in (one, other)]
            assert named[0].keys() == named[1].keys()
            ours, theirs = (getattr(model, method)(X, Y, **options) for model in (one, other))
            assert isinstance(ours, list) == isinstance(theirs, list)
            close(ours, theirs)


def two_heads(keras):
    (ours, theirs), (our_other, their_other) = start(3, "kind"), start(1, "size")
    x, z = nn.Input((4,)), keras.Input((4,))
    one = training.Model(x, [ours(x), our_other(x)])
    other = keras.Model(z, [theirs(keras)(z), their_other(keras)(z)])
    return one, other


def test_losses_of_outputs(keras):
    one, other = two_heads(keras)
    ours, theirs = sparse(keras)
    options = {"loss_weights": {"kind": 1.0, "size": 0.5}, "metrics": {"size": ["mae"], "kind": ["accuracy"]}}
    one.compile("sgd", {"kind": ours, "size": "mse"}, **options)
    other.compile("sgd", {"kind": theirs, "size": "mse"}, **options)
    labels = {"kind": CLASSES, "size": Y}
    found = one.fit(X, labels, validation_data=(X, labels), **FIT)
    expected = other.fit(X, labels, validation_data=(X, labels), **FIT)
    assert set(found.history) == set(expected.history)
    for name, values in expected.history.items():
        close(found.history[name], values)
    numbers, their_numbers = (model.evaluate(X, labels, verbose=0, return_dict=True) for model in (one, other))
    assert numbers.keys() == their_numbers.keys()
    # The order of a list is that of Keras, but for several metrics of outputs, which Keras sorts by name.
    close(one.evaluate(X, labels, verbose=0)[:3], other.evaluate(X, labels, verbose=0)[:3])


def test_one_loss_for_all_outputs(keras):
    x, z = nn.Input((4,)), keras.Input((4,))
    (ours, theirs), (our_other, their_other) = start(1, "a"), start(1, "b")
    one, other = training.Model(x, [ours(x), our_other(x)]), keras.Model(z, [theirs(keras)(z), their_other(keras)(z)])
    for model in (one, other):
        model.compile("sgd", "mse")
    found, expected = (model.fit(X, [Y, 2 * Y], **FIT) for model in (one, other))
    assert set(found.history) == set(expected.history) == {"loss", "a_loss", "b_loss"}
    for name, values in expected.history.items():
        close(found.history[name], values)


VALUES = [3.0, 2.0, 2.5, 1.5, 1.6, 1.7, 1.2, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3]


class Fake:
    """A model of whatever library, in the eyes of a callback."""

    def __init__(self, optimizer=None):
        self.optimizer, self.stop_training, self.metrics = optimizer, False, []

    def get_weights(self):
        return []

    def set_weights(self, weights):
        pass


@for_each(
    "options",
    [
        {"patience": patience, "baseline": baseline, "start_from_epoch": first, "min_delta": delta}
        for patience in (0, 1, 2, 4)
        for baseline in (None, 2.2, 1.25, 0.5)
        for first in (0, 2, 5)
        for delta in (0.0, 0.15)
    ],
)
def test_early_stopping(keras, options):
    stopped = []
    for kind in (training.EarlyStopping, keras.callbacks.EarlyStopping):
        callback, model = kind("loss", **options), Fake()
        callback.set_model(model)
        callback.on_train_begin()
        stopped.append(None)
        for epoch, loss in enumerate(VALUES):
            callback.on_epoch_end(epoch, {"loss": loss})
            if model.stop_training:
                stopped[-1] = epoch
                break
    assert stopped[0] == stopped[1]


@for_each(
    "options",
    [
        {"patience": patience, "cooldown": cooldown, "min_lr": lowest, "factor": 0.5, "min_delta": delta}
        for patience in (0, 1, 2, 4)
        for cooldown in (0, 1, 3)
        for lowest in (0.0, 0.3)
        for delta in (1e-4, 0.15)
    ],
)
def test_reduce_lr_on_plateau(keras, options):
    rates = []
    pairs = (
        (training.ReduceLROnPlateau, optimizers.SGD(1.0)),
        (keras.callbacks.ReduceLROnPlateau, keras.optimizers.SGD(1.0)),
    )
    for kind, optimizer in pairs:
        callback = kind("loss", **options)
        callback.set_model(Fake(optimizer))
        callback.on_train_begin()
        rates.append([])
        for epoch, loss in enumerate(VALUES):
            logs = {"loss": loss}
            callback.on_epoch_end(epoch, logs)
            rates[-1].append((logs["learning_rate"], float(optimizer.learning_rate)))
    close(*rates)


@pytest.mark.parametrize("schedule", [lambda epoch: 0.5 / (1 + epoch), lambda epoch, rate: rate * 0.9])
def test_learning_rate_scheduler(keras, schedule):
    one, other = pair(keras, 1, *sgd(keras), "mse")
    ours = one.fit(X, Y, callbacks=training.LearningRateScheduler(schedule), **FIT)
    theirs = other.fit(X, Y, callbacks=[keras.callbacks.LearningRateScheduler(schedule)], **FIT)
    compared(one, other, ours, theirs, ("loss", "learning_rate"))


def test_terminate_on_nan(keras):
    one, other = pair(keras, 1, *sgd(keras), "mse")
    labels, seen = Y.copy(), []
    labels[10] = np.inf
    counting = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    with pytest.warns(training.TrainingWarning, match="after batch 1 of epoch 0"):
        history = one.fit(X, labels, callbacks=training.TerminateOnNaN(), **FIT)
    other.fit(X, labels, callbacks=[keras.callbacks.TerminateOnNaN(), counting], **FIT)
    assert len(history.loss) == len(seen) == 2


OPTIMIZERS = {
    "amsgrad": ("Adam", {"learning_rate": 0.1, "amsgrad": True, "epsilon": 1e-12}),
    "amsgrad with weight decay": ("AdamW", {"learning_rate": 0.1, "amsgrad": True, "epsilon": 1e-12}),
    "accumulation": ("SGD", {"learning_rate": 0.1, "gradient_accumulation_steps": 3}),
    "accumulation with momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "gradient_accumulation_steps": 2}),
    "accumulation, clipped": ("SGD", {"learning_rate": 0.1, "gradient_accumulation_steps": 3, "clipnorm": 0.1}),
    "average": ("SGD", {"learning_rate": 0.1, "use_ema": True, "ema_momentum": 0.7}),
    "average, overwriting": ("SGD",
     {"learning_rate": 0.1, "use_ema": True, "ema_momentum": 0.7, "ema_overwrite_frequency": 2}),
}  # fmt: skip


@for_each("name", OPTIMIZERS)
def test_optimizer_options(keras, name):
    kind, options = OPTIMIZERS[name]
    one, other = pair(keras, 1, getattr(optimizers, kind)(**options), getattr(keras.optimizers, kind)(**options), "mse")
    fit = FIT | {"epochs": 4}
    compared(one, other, one.fit(X, Y, **fit), other.fit(X, Y, **fit))


@for_each("name, backwards, sequences", itertools.product(["SimpleRNN", "GRU", "LSTM"], [True, False], [True, False]))
def test_recurrent_layers(keras, name, backwards, sequences):
    options = {"return_sequences": sequences, "return_state": True, "go_backwards": backwards}
    theirs, ours = getattr(keras.layers, name)(5, **options), getattr(nn, name)(5, **options)
    x = RANDOM.normal(size=(2, 7, 3)).astype("float32")
    expected = theirs(x)
    nn.initialize(ours, x)
    weights = {variable.name: np.asarray(variable) for variable in theirs.weights}
    values = {"cell/kernel": weights["kernel"], "cell/recurrent_kernel": weights["recurrent_kernel"]}
    if name == "GRU":  # Keras has gates in another order, and two biases for each
        order = np.r_[5:10, 0:5, 10:15]
        values = {path: value[:, order] for path, value in values.items()}
        bias = weights["bias"][:, order] + RANDOM.normal(size=(2, 15)).astype("float32")
        theirs.cell.bias.assign(bias[:, order])
        expected = theirs(x)
        values["cell/bias"] = bias[0] + np.r_[bias[1][:10], np.zeros(5, "float32")]
        values["cell/recurrent_bias"] = bias[1][10:]
    else:
        values["cell/bias"] = weights["bias"]
    np.testing.assert_array_equal(np.asarray(ours.variables["cell/bias"].value).shape, values["cell/bias"].shape)
    if name == "LSTM":
        np.testing.assert_array_equal(ours.variables["cell/bias"].value, weights["bias"])  # 1 for the forget gate
    nn.load_variables(ours, values)
    for found in (ours(x), jax.jit(ours)(x)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other)
    state = [RANDOM.normal(size=(2, 5)).astype("float32") for _ in expected[1:]]
    theirs_given = theirs(x, initial_state=state)
    given = ours(x, initial_state=state if name == "LSTM" else state[0])
    close(given[0], theirs_given[0])
