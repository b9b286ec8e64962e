"""An example with weight 0 does not affect losses or gradients, whatever its values."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.mixed_precision import DynamicLossScale, Policy
from supremum.optimizers import SGD
from supremum.training import (
    CTC,
    BinaryCrossentropy,
    CategoricalCrossentropy,
    Circle,
    CosineSimilarity,
    Dice,
    FunctionLoss,
    Loss,
    MeanSquaredError,
    Sequential,
    SparseCategoricalCrossentropy,
    Tversky,
)
from supremum.training.losses import LOSSES
from training.blobs import values

BAD = [np.nan, np.inf, -np.inf]
JITTED = pytest.mark.parametrize("jitted", [True, False], ids=["jitted", "eager"])


class Logarithm(Loss):
    """A user-defined loss whose slope is infinite at 0."""

    def call(self, y_true, y_pred):
        return jnp.square(jnp.log(y_true) - jnp.log(y_pred)).mean(-1)


def root(y_true, y_pred):
    """A loss function whose slope is infinite where both arguments are equal."""
    return jnp.sqrt(jnp.square(y_pred - y_true).mean(-1))


# A circle loss is about pairs of examples; the others need an axis of the examples.
ALL_LOSSES = {
    **{loss_class.__name__: loss_class() for loss_class in LOSSES if loss_class not in (Circle, Dice, Tversky)},
    "Dice along the last axis": Dice(axis=-1),
    "Tversky along the last axis": Tversky(alpha=0.3, beta=0.7, axis=-1),
    "BinaryCrossentropy of logits": BinaryCrossentropy(from_logits=True),
    "CategoricalCrossentropy of logits": CategoricalCrossentropy(from_logits=True),
    "CategoricalCrossentropy along axis 1": CategoricalCrossentropy(axis=1),
    "CosineSimilarity along axis 1": CosineSimilarity(axis=1),
    "SparseCategoricalCrossentropy of logits": SparseCategoricalCrossentropy(from_logits=True),
    "in float16": MeanSquaredError(dtype="float16"),
    "a user's": Logarithm(),
    "a function": FunctionLoss(root),
}


def labels_and_outputs(loss, shape):
    """Make labels and probabilities that the loss accepts."""
    random = np.random.default_rng(len(shape))
    y_pred, y_true = random.uniform(0.1, 0.9, (2, *shape)).astype("float32")
    if isinstance(loss, CTC):
        return np.asarray([[1, 2], [2, 2], [1, 0]], "int32"), y_pred
    is_sparse = isinstance(loss, SparseCategoricalCrossentropy)
    return (random.integers(3, size=shape[:-1]).astype("int32") if is_sparse else y_true), y_pred


@pytest.mark.slow
@pytest.mark.one_slow_in(3)
@JITTED
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5)])
@pytest.mark.parametrize("loss", ALL_LOSSES.values(), ids=ALL_LOSSES)
def test_every_loss_ignores_examples_of_weight_zero(loss, shape, jitted):
    if isinstance(loss, CTC):
        shape = (3, 6, 4)
    y_true, y_pred = labels_and_outputs(loss, shape)
    weights = jnp.asarray([1.0, 0.0, 2.0])

    def weighted_loss(y_true, y_pred):
        return loss(y_true, y_pred, weights)

    run = jax.value_and_grad(weighted_loss, argnums=1)
    expected = run(jnp.asarray(y_true), jnp.asarray(y_pred))
    run = jax.jit(run) if jitted else run
    for where, bad in itertools.product(["label", "output", "both"], BAD):
        corrupted = [np.array(y_true), np.array(y_pred)]
        if where != "output" and y_true.dtype != "int32":
            corrupted[0][1] = bad
        if where != "label":
            corrupted[1][1] = bad
        value, gradient = run(*map(jnp.asarray, corrupted))
        rtol = 1e-3 if loss is ALL_LOSSES["in float16"] else 1e-6
        np.testing.assert_allclose(value, expected[0], rtol=rtol, err_msg=f"{where} {bad}")
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-3, atol=1e-6, err_msg=f"{where} {bad}")
        assert not np.any(gradient[1]), (where, bad)


@pytest.mark.one_slow_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_position_weights_of_zero_work_with_any_class_axis(axis):
    weights = np.asarray(np.arange(12).reshape(2, 3, 2) % 3, "float32")
    y = np.random.default_rng(0).uniform(0.1, 0.9, (2, 2, 3, 2, 4)).astype("float32")
    y_true, y_pred = np.moveaxis(y, -1, axis + 1)
    for loss in (CategoricalCrossentropy(axis=axis), CosineSimilarity(axis=axis)):
        run = jax.value_and_grad(lambda p, y_true=y_true, loss=loss: loss(y_true, p, weights))
        expected = run(y_pred)
        corrupted = y_pred.copy()
        np.moveaxis(corrupted, axis, -1)[weights == 0] = np.nan
        for found, wanted in zip(run(corrupted), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(4)
@JITTED
@pytest.mark.parametrize("activation", [nn.functional.softmax, jax.nn.softmax])
def test_weight_zero_still_uses_the_logits_of_a_softmax(activation, jitted):
    layer = nn.Activation(activation)

    def weighted_loss(logits):
        return SparseCategoricalCrossentropy()(jnp.asarray([0, 1]), layer(logits), jnp.asarray([1.0, 0.0]))

    run = jax.value_and_grad(weighted_loss)
    value, gradient = (jax.jit(run) if jitted else run)(jnp.asarray([[0.0, 200.0], [np.inf, np.nan]]))
    assert float(value) == 100
    np.testing.assert_allclose(gradient, [[-0.5, 0.5], [0, 0]])


@pytest.mark.slow
def test_ignored_labels_have_no_gradient():
    loss = SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    logits = jnp.asarray([[0.0, 0.0], [np.nan, 1.0]])
    value, gradient = jax.value_and_grad(lambda x: loss(jnp.asarray([1, -1]), x))(logits)
    assert float(value) == pytest.approx(np.log(2))
    np.testing.assert_allclose(gradient, [[0.5, -0.5], [0, 0]])


def test_only_nonfinite_values_of_weight_zero_are_replaced():
    class Recording(Loss):
        def call(self, y_true, y_pred):
            recorded.append((y_true, y_pred))
            return (y_pred - y_true).mean(-1)

    recorded = []
    x = np.asarray([[1.0, -3.0], [2.0, np.inf]], "float32")
    Recording()(x, -x, [0.0, 0.0])
    FunctionLoss(Recording().call)(x.astype("float64"), x, np.zeros(2))
    assert [each.tolist() for each in recorded[0]] == [[[1, -3], [2, 0.5]], [[-1, 3], [-2, 0.25]]]
    assert recorded[1][0].dtype == "float64"
    Recording()(x, x, [1.0, 1.0])
    assert [each.tolist() for each in recorded[2]] == [x.tolist()] * 2


def test_sample_weights_with_the_wrong_shape_raise():
    for weights in (np.zeros(2), np.zeros((3, 1, 1))):
        with pytest.raises(ValueError, match="sample_weight has shape"):
            MeanSquaredError()(np.ones((3, 4)), np.ones((3, 4)), weights)


def network(policy):
    return Sequential([nn.Dense(4), nn.BatchNorm(), nn.Dense(3)], dtype=policy)


def data(place, bad):
    random = np.random.default_rng(1)
    x = random.normal(size=(6, 2)).astype("float32")
    y = random.uniform(0.1, 0.9, (6, 3)).astype("float32")
    {"label": y, "x": x}[place][4, 1] = bad
    return x, y, np.asarray([1, 1, 2, 1, 0, 1], "float32")


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 1])
@pytest.mark.parametrize("policy", ["float32", Policy("mixed_float16", DynamicLossScale(8.0))])
@pytest.mark.parametrize("place", ["label", "x"])
def test_fit_and_evaluate_ignore_nan_in_examples_of_weight_zero(place, policy, size):
    results = []
    for bad in (np.nan, 0.5):
        x, y, weights = data(place, bad)
        model = network(policy)
        model.compile(SGD(0.1), "mse", ["mae"], steps_per_execution=size)
        history = model.fit(x, y, sample_weight=weights, batch_size=3, epochs=2, shuffle=False, verbose=0)
        assert history.skipped_steps == 0
        evaluated = model.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
        results.append((history.history, evaluated, values(model)))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(results))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6), *results)


@pytest.mark.slow
def test_inputs_with_any_nonzero_weight_are_not_replaced():
    recorded = []

    class Recording(nn.Layer):
        def build(self, input_shape):
            self.w = self.add_weight("w", (), jax.nn.initializers.ones)

        def call(self, x):
            jax.debug.callback(lambda x: recorded.append(np.asarray(x)), x)
            return x * self.w.value

    model = Sequential([Recording()])
    model.compile(SGD(0.0), "mse")
    x = np.full((3, 2, 1), np.nan, "float32")
    x[0] = 1.0
    weights = np.asarray([[1, 1], [0, 1], [0, 0]], "float32")
    model.train_on_batch({"x": x}["x"], x, sample_weight=weights)
    jax.effects_barrier()
    np.testing.assert_array_equal(recorded[-1].ravel(), [1, 1, np.nan, np.nan, 0.5, 0.5])
