"""Options of `compile`, `fit` and `evaluate` that users know from Keras; `conformance` compares them with Keras."""

import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from supremum import nn, optimizers, training
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.training import Model, Sequential
from training.blobs import values

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(16, 4)).astype("float32")
Y = X.sum(axis=1, keepdims=True)
CLASSES = np.arange(16) % 3


def compiled(optimizer="sgd", loss="mse", units=1, **options):
    model = Sequential([nn.Dense(units, kernel_initializer=jnp_ones)])
    model.compile(optimizer, loss, **options)
    return model


def jnp_ones(key, shape, dtype):
    return jnp.ones(shape, dtype) / shape[0]


SPARSE = training.SparseCategoricalCrossentropy(from_logits=True)


# weights of classes


@pytest.mark.parametrize("labels", [CLASSES, CLASSES[:, None], np.eye(3)[CLASSES].astype("float32")])
def test_class_weights_are_sample_weights(labels):
    loss = training.CategoricalCrossentropy(from_logits=True) if labels.shape == (16, 3) else SPARSE
    weights = np.where(CLASSES == 1, 5.0, np.where(CLASSES == 2, 0.0, 1.0)).astype("float32")
    arrays, made, batches, weighted, by_hand = (compiled(loss=loss, units=3) for _ in range(5))
    options = {"shuffle": False, "verbose": 0}
    arrays.fit(X, labels, batch_size=8, class_weight={1: 5, 2: 0}, **options)
    made.fit(training.ArrayData(X, labels, batch_size=8, class_weight={1: 5, 2: 0}), **options)
    batches.fit([(X[:8], labels[:8]), (X[8:], labels[8:])], class_weight={1: 5.0, 2: 0.0}, **options)
    weighted.fit(X, labels, batch_size=8, sample_weight=weights, **options)
    losses = [
        by_hand.train_on_batch(X[part], labels[part], class_weight={1: 5, 2: 0}) for part in (slice(8), slice(8, None))
    ]
    assert losses == arrays.history.loss
    assert arrays.history.loss == made.history.loss == batches.history.loss == weighted.history.loss


def test_class_weights_do_not_apply_to_validation():
    histories = []
    for options in ({"validation_split": 0.25}, {"validation_data": (X[12:], CLASSES[12:])}):
        model = compiled("sgd", SPARSE, 3)
        kept = slice(None) if "validation_split" in options else slice(12)
        history = model.fit(X[kept], CLASSES[kept], class_weight={0: 2.0}, shuffle=False, verbose=0, **options)
        assert history.history["val_loss"] == pytest.approx([model.evaluate(X[12:], CLASSES[12:], verbose=0)])
        histories.append(history.history)
    assert histories[0]["val_loss"] == pytest.approx(histories[1]["val_loss"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"class_weight": {0: 1.0}, "sample_weight": X[:, 0]}, ArgumentError, "not both"),
        ({"class_weight": {0: -1.0}}, ArgumentError, "each weight in class_weight must be 0 or more"),
        ({"class_weight": {"a": 1.0}}, OperandError, "each class in class_weight must be a whole number"),
        ({"class_weight": [1.0, 2.0]}, OperandError, "class_weight must be"),
        ({"class_weight": {0: 1.0}, "y": {"a": Y}}, ArgumentError, "give sample_weight instead"),
        ({"validation_steps": 2}, ArgumentError, "validation_steps needs validation_data="),
    ],
)
def test_invalid_options_of_fit_raise(arguments, error, message):
    model = compiled()
    with pytest.raises(error, match=message):
        model.fit(X, **{"y": Y, "verbose": 0} | arguments)


def test_class_weights_belong_to_the_data_if_that_is_already_made():
    data = training.ArrayData(X, CLASSES, batch_size=8)
    with pytest.raises(ArgumentError, match=r"give class_weight to ArrayData\(\.\.\.\) instead of fit"):
        compiled("sgd", SPARSE, 3).fit(data, class_weight={0: 2.0}, verbose=0)


# results


def test_evaluate_gives_a_number_a_list_or_a_dict():
    plain, measured = compiled(), compiled(metrics=["mae", "mse"])
    assert isinstance(plain.evaluate(X, Y, verbose=0), float)
    named = measured.evaluate(X, Y, verbose=0, return_dict=True)
    assert list(named) == ["loss", "mae", "mse"]
    assert measured.evaluate(X, Y, verbose=0) == list(named.values()) == measured.test_on_batch(X, Y)
    assert measured.train_on_batch(X, Y) == pytest.approx(list(named.values()))
    scaled = compiled(optimizers.LossScaleOptimizer(optimizers.SGD(0.1)), metrics=["mae"])
    assert len(scaled.train_on_batch(X, Y)) == 2
    assert list(scaled.train_on_batch(X, Y, return_dict=True)) == ["loss", "mae", "loss_scale", "skipped_steps"]


def two_heads():
    x = nn.Input((4,))
    return Model(x, [nn.Dense(3, name="kind")(x), nn.Dense(1, name="size")(x)])


def test_outputs_in_a_list_have_the_names_of_their_layers():
    model = two_heads()
    assert model.output_names == ("kind", "size")
    model.compile("sgd", {"size": "mse", "kind": SPARSE}, {"size": "mae"}, loss_weights={"size": 0.5})
    by_name = model.evaluate(X, {"kind": CLASSES, "size": Y}, verbose=0, return_dict=True)
    assert list(by_name) == ["loss", "size_loss", "kind_loss", "size_mae"]
    assert by_name["loss"] == pytest.approx(by_name["kind_loss"] + 0.5 * by_name["size_loss"])
    assert model.evaluate(X, [CLASSES, Y], verbose=0, return_dict=True) == by_name
    other = two_heads()
    other.compile("sgd", [SPARSE, "mse"], [[], ["mae"]], loss_weights=[1.0, 0.5])
    assert other.evaluate(X, [CLASSES, Y], verbose=0, return_dict=True) == pytest.approx(by_name)
    other.compile("sgd", {"kind": SPARSE, "sise": "mse"})
    with pytest.raises(ArgumentError, match="the loss is for 'kind', 'sise', but the labels are 'kind', 'size'"):
        other.evaluate(X, [CLASSES, Y], verbose=0)


def test_outputs_without_a_loss_need_no_labels():
    model = two_heads()
    model.compile("sgd", {"size": "mse"}, {"size": "mae"})
    expected = model.evaluate(X, {"kind": CLASSES, "size": Y}, verbose=0)
    assert model.evaluate(X, [None, Y], verbose=0) == model.evaluate(X, {"size": Y}, verbose=0) == expected
    model.compile("sgd", {"size": "mse"})
    assert model.train_on_batch(X, Y) == pytest.approx(expected[0])


@pytest.mark.parametrize("whole", [True, False])
def test_outputs_take_weights_of_their_own(whole):
    weights = (np.arange(16) % 4 != 1).astype("float32")
    x = np.where(weights[:, None] == 0, np.nan, X) if whole else X
    model = two_heads()
    model.compile("sgd", {"size": "mse", "kind": SPARSE}, {"size": "mae"})
    labels = {"size": Y, "kind": CLASSES}
    given = {"size": weights, "kind": weights} if whole else {"size": weights}
    numbers = model.evaluate(x, labels, sample_weight=given, verbose=0, return_dict=True)
    weighted = model.evaluate(x, labels, sample_weight=weights, verbose=0, return_dict=True)
    plain = model.evaluate(X, labels, verbose=0, return_dict=True)
    assert numbers["size_loss"] == weighted["size_loss"] != plain["size_loss"]
    assert numbers["size_mae"] == weighted["size_mae"] != plain["size_mae"]
    assert numbers["kind_loss"] == (weighted if whole else plain)["kind_loss"]
    assert np.isfinite(model.train_on_batch(x, labels, sample_weight=given)).all()


def test_output_names_are_unique():
    x = nn.Input((4,))
    dense = nn.Dense(1)
    hidden = dense(x)
    assert Model(x, [hidden, nn.Dense(1)(hidden)]).output_names == ("dense", "dense_1")
    assert Model(x, {"a": hidden}).output_names == ("a",)
    assert Model(x, hidden).output_names is None


class Pair(Model):
    def __init__(self, calls_super):
        super().__init__()
        self.calls_super = calls_super
        self.one, self.other = nn.Dense(1), nn.Dense(1)

    def call(self, x):
        return {"a": self.one(x), "b": self.other(x)}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        if self.calls_super:
            return 2 * super().compute_loss(x, y, y_pred, sample_weight, training)
        return jnp.mean((y["a"] - y_pred["a"]) ** 2)


@pytest.mark.parametrize("calls_super", [True, False])
def test_losses_of_outputs_are_nan_unless_compute_loss_computes_them(calls_super):
    model = Pair(calls_super)
    model.compile("sgd", {"a": "mse", "b": "mae"})
    history = model.fit(X, {"a": Y, "b": Y}, epochs=2, verbose=0).history
    parts = np.add(history["a_loss"], history["b_loss"])
    if calls_super:
        np.testing.assert_allclose(history["loss"], 2 * parts, rtol=1e-6)
    else:
        assert np.isnan(parts).all()
        assert np.isfinite(history["loss"]).all()


# callbacks


def test_numbers_that_callbacks_add_are_in_the_history():
    class Adding(training.Callback):
        def on_epoch_end(self, epoch, logs):
            logs["mine"] = float(epoch)

    seen = []
    history = compiled().fit(
        X, Y, epochs=2, callbacks=[Adding(), lambda epoch, logs: seen.append(logs["mine"])], verbose=0
    )
    assert history.history["mine"] == seen == [0.0, 1.0]


def test_learning_rate_callbacks_refuse_schedules_and_other_optimizers():
    optax = pytest.importorskip("optax")
    for callback in (training.ReduceLROnPlateau("loss"), training.LearningRateScheduler(lambda epoch: 0.1)):
        with pytest.raises(ArgumentError, match=r"optax\.inject_hyperparams"):
            compiled(optax.sgd(0.1)).fit(X, Y, callbacks=callback, verbose=0)
    with pytest.raises(ArgumentError, match="learning_rate follows the schedule"):
        compiled(optimizers.SGD(lambda step: 0.1)).fit(X, Y, callbacks=callback, verbose=0)
    injected = compiled(optax.inject_hyperparams(optax.sgd)(learning_rate=0.5))
    assert injected.fit(X, Y, callbacks=callback, verbose=0).history["learning_rate"] == pytest.approx([0.1])
    for factor in (0, 1, 2):
        with pytest.raises(ArgumentError, match="factor must be above 0 and below 1"):
            training.ReduceLROnPlateau(factor=factor)


def test_terminate_on_nan_ignores_skipped_steps():
    model = Sequential([nn.Dense(1)], dtype="mixed_float16")
    model.compile("sgd", "mse")
    model.fit(X, Y, epochs=2, batch_size=8, callbacks=training.TerminateOnNaN(), verbose=0)
    assert model.history.epoch == [0, 1]
    assert model.history.skipped_steps == 0 or np.isfinite(model.history.loss).all()


def events(folder):
    """The numbers in the event files of a folder: a dict from a name to pairs of a step and a number."""
    from tensorboardX import event_file_writer  # noqa: F401 (checks that it is installed)
    from tensorboardX.proto.event_pb2 import Event

    found = {}
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        while data:
            length = int.from_bytes(data[:8], "little")
            event = Event.FromString(data[12 : 12 + length])
            data = data[16 + length :]
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_tensorboard_writes_the_history(tmp_path):
    import_or_skip("tensorboardX")
    model = compiled(metrics=["mae"])
    options = {"batch_size": 4, "epochs": 3, "validation_data": (X, Y), "verbose": 0}
    history = model.fit(X, Y, callbacks=training.TensorBoard(tmp_path, update_freq=3), **options).history
    trained, validated = events(tmp_path / "train"), events(tmp_path / "validation")
    assert set(validated) == {"epoch_loss", "epoch_mae"}
    assert set(trained) == {"epoch_loss", "epoch_mae", "epoch_learning_rate", "batch_loss", "batch_mae"}
    for part, prefix in ((trained, ""), (validated, "val_")):
        for name in ("loss", "mae"):
            assert [step for step, _ in part[f"epoch_{name}"]] == [0, 1, 2]
            np.testing.assert_allclose([value for _, value in part[f"epoch_{name}"]], history[prefix + name], rtol=1e-6)
    assert [step for step, _ in trained["batch_loss"]] == [3, 6, 9, 12]
    with pytest.raises(UnknownNameError, match="did you mean 'epoch'"):
        training.TensorBoard(tmp_path, update_freq="epochs")


# optimizers


def test_accumulated_gradients_make_the_step_of_the_whole_batch():
    whole, parts = compiled(optimizers.Adam(0.1)), compiled(optimizers.Adam(0.1, gradient_accumulation_steps=4))
    whole.fit(X, Y, batch_size=16, epochs=3, shuffle=False, verbose=0)
    parts.fit(X, Y, batch_size=4, epochs=3, shuffle=False, verbose=0)
    for path, value in values(whole).items():
        np.testing.assert_allclose(values(parts)[path], value, rtol=1e-5)
    assert int(parts.optimizer.iterations) == int(whole.optimizer.iterations) == 3


def test_skipped_gradients_are_not_accumulated():
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(1.0, gradient_accumulation_steps=2))
    w = nn.Variable(jnp.ones(2), "w")
    for gradient in ([1.0, 2.0], [np.inf, 0.0], [3.0, 4.0]):
        optimizer.apply_gradients([(jnp.asarray(gradient), w)])
    np.testing.assert_array_equal(w.value, [1 - 2.0, 1 - 3.0])
    assert int(optimizer.iterations) == 1


def test_a_gradient_that_is_missing_at_the_step_is_kept():
    optimizer = optimizers.SGD(1.0, gradient_accumulation_steps=2)
    a, b = nn.Variable(jnp.zeros(1), "a"), nn.Variable(jnp.zeros(1), "b")
    optimizer.build([a, b])
    one = jnp.ones(1)
    for pairs in ([(one, a), (one, b)], [(one, a), (None, b)], [(one, a)], [(one, a), (one, b)]):
        optimizer.apply_gradients(pairs)
    np.testing.assert_array_equal(a.value, [-2.0])
    np.testing.assert_array_equal(b.value, [-1.0])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_averages_are_in_float32_and_assigned_at_the_end_of_fit(dtype):
    model = Sequential([nn.Dense(1, dtype=dtype, kernel_initializer=jnp_ones)])
    optimizer = optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    model.compile(optimizer, "mse")
    model.fit(X, Y, batch_size=16, epochs=1, verbose=0)
    first = values(model)
    model.fit(X, Y, batch_size=16, epochs=2, verbose=0)
    average = optimizer.variables["average/dense/kernel"]
    assert average.dtype == jnp.float32
    assert np.any(values(model)["dense/kernel"] != first["dense/kernel"])
    np.testing.assert_array_equal(values(model)["dense/kernel"], average.astype(dtype))


def test_without_a_step_there_is_no_average_to_assign():
    optimizer = optimizers.SGD(0.1, use_ema=True)
    w = nn.Variable(jnp.ones(2), "w")
    optimizer.build(w)
    optimizer.finalize_variable_values()
    np.testing.assert_array_equal(w.value, [1.0, 1.0])


@pytest.mark.slow
def test_amsgrad_keeps_the_largest_mean_of_squares():
    torch = import_or_skip("torch")
    gradients = RANDOM.normal(size=(8, 3)) * np.linspace(2, 0.1, 8)[:, None]
    w = nn.Variable(jnp.ones(3), "w")
    theirs = torch.ones(3, dtype=torch.float64, requires_grad=True)
    optimizer, other = optimizers.Adam(0.1, amsgrad=True), torch.optim.Adam([theirs], 0.1, eps=1e-7, amsgrad=True)
    for gradient in gradients:
        optimizer.apply_gradients([(jnp.asarray(gradient, jnp.float32), w)])
        theirs.grad = torch.from_numpy(gradient.copy())
        other.step()
    np.testing.assert_allclose(w.value, theirs.detach().numpy(), rtol=1e-5)
