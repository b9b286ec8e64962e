"""Metrics: agreement with NumPy, pure and stateful, eager and jitted, over more values than float32 can count."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import training
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.training import as_metric
from supremum.training.metrics.metric import MeanAbsoluteError, MeanSquaredError, plus, plus_count, zero

RANDOM = np.random.default_rng(0)
DTYPES = ["float16", "bfloat16", "float32"]
SCORES = RANDOM.normal(size=(2, 8, 5))
CLASSES = RANDOM.integers(5, size=(2, 8))
WEIGHTS = RANDOM.random((2, 8)).astype("float32")
BITS = RANDOM.integers(2, size=(2, 8, 5))


def rank(y, x):
    return (x > np.take_along_axis(x, y[..., None], -1)).sum(-1)


ONE_HOT, TOP_2 = np.eye(5)[CLASSES], training.TopKCategoricalAccuracy(2)
CASES = {
    "sparse": (training.SparseCategoricalAccuracy(), CLASSES, SCORES, lambda y, x: x.argmax(-1) == y),
    "categorical": (training.CategoricalAccuracy(), ONE_HOT, SCORES, lambda y, x: x.argmax(-1) == y.argmax(-1)),
    "binary": (training.BinaryAccuracy(0.0), BITS, SCORES, lambda y, x: ((x > 0) == y).mean(-1)),
    "top 2": (TOP_2, CLASSES, SCORES, lambda y, x: rank(y, x) < 2),
    "top 2 of one-hot": (TOP_2, ONE_HOT, SCORES, lambda y, x: rank(y.argmax(-1), x) < 2),
    "accuracy, sparse": (training.Accuracy(), CLASSES, SCORES, lambda y, x: x.argmax(-1) == y),
    "accuracy, one-hot": (training.Accuracy(), ONE_HOT, SCORES, lambda y, x: x.argmax(-1) == y.argmax(-1)),
    "accuracy, binary": (training.Accuracy(), BITS[..., :1], SCORES[..., :1], lambda y, x: ((x > 0.5) == y)[..., 0]),
    "accuracy, flat": (training.Accuracy(), BITS[..., 0], SCORES[..., 0], lambda y, x: (x > 0.5) == y),
    "accuracy, classes": (training.Accuracy(), CLASSES, CLASSES % 3, lambda y, x: y == x),
    "mse": (MeanSquaredError(), SCORES[::-1], SCORES, lambda y, x: ((y - x) ** 2).mean(-1)),
    "mae": (MeanAbsoluteError(), SCORES[::-1], SCORES, lambda y, x: np.abs(y - x).mean(-1)),
    "function": (as_metric(lambda y, x: jnp.max(x, -1)), CLASSES, SCORES, lambda y, x: x.max(-1)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_metrics_agree_with_numpy_in_every_dtype_over_batches(name):
    metric, labels, outputs, formula = CASES[name]

    @jax.jit
    def run_epoch(given):
        plain, weighted = metric.init(), metric.init()
        for y, x, w in given:
            plain, weighted = metric.update(plain, y, x), metric.update(weighted, y, x, w)
        return metric.result(plain), metric.result(weighted), plain

    for dtype in DTYPES:
        cast = outputs if name.endswith("classes") else np.asarray(jnp.asarray(outputs, dtype))
        given = list(zip(labels, cast, WEIGHTS, strict=True))
        plain, weighted, state = run_epoch(given)
        wide = cast if name.endswith("classes") else cast.astype(np.float64)
        values = np.stack([formula(y, x) for y, x in zip(labels, wide, strict=True)])
        assert plain.dtype == weighted.dtype == np.float32
        assert {leaf.dtype for leaf in jax.tree.leaves(state)} == {np.dtype("float32")}
        np.testing.assert_allclose(plain, values.mean(), rtol=2e-6, err_msg=dtype)
        np.testing.assert_allclose(weighted, np.average(values, weights=WEIGHTS), rtol=2e-6, err_msg=dtype)


def test_update_state_matches_the_pure_update():
    metric = training.SparseCategoricalAccuracy()
    assert float(metric.result()) == 0
    state = metric.init()
    for y, x in zip(CLASSES, SCORES, strict=True):
        metric.update_state(y, x)
        state = metric.update(state, y, x)
    assert float(metric.result()) == float(metric.result(state)) == np.float32((SCORES.argmax(-1) == CLASSES).mean())
    metric.reset_state()
    assert float(metric.result()) == 0
    metric.update_state(CLASSES[0], SCORES[0], sample_weight=np.zeros(8))
    assert float(metric.result()) == 0


def test_mean_weights_values_and_ignores_nan_of_weight_zero():
    mean = training.Mean("loss")
    mean.update_state([1.0, 3.0], sample_weight=[3.0, 1.0])
    mean.update_state(jnp.asarray(6, "int32"))
    assert (mean.name, float(mean.result())) == ("loss", np.float32(12 / 5))
    mean.update_state([np.nan, 0.4], sample_weight=[0.0, 1.0])
    assert float(mean.result()) == pytest.approx(12.4 / 6)
    with pytest.raises(ArgumentError, match="sample_weight"):
        mean.update_state([1.0, 2.0], sample_weight=np.ones(3))


@pytest.mark.compiled
def test_compensated_sums_count_beyond_the_integers_of_float32():
    """Count an epoch of 2**24 + 2900 examples: a float32 sum of ones stops growing at 2**24."""

    @jax.jit
    def add_3000(total):
        return jax.lax.scan(lambda total, _: (plus(total, 1.0), None), total, None, length=3000)[0]

    near_limit = plus_count(zero(), 2**24 - 100)
    total = add_3000(near_limit)
    assert float(total.value) + float(total.error) == 2**24 + 2900
    plain = jax.lax.scan(lambda t, _: (t + 1, None), jnp.float32(2**24 - 100), None, length=3000)[0]
    assert float(plain) == 2**24  # a plain float32 sum stops growing
    small_first = plus(plus(zero(), 1.0), 2.0**25)
    assert (float(small_first.value), float(small_first.error)) == (2**25, 1)
    for count in (2**31 - 1, 2**35 + 1):
        found = plus_count(zero(), count)
        assert int(float(found.value)) + int(float(found.error)) == count
    traced = jax.jit(plus_count)(zero(), jnp.int32(2**31 - 1))
    assert int(float(traced.value)) + int(float(traced.error)) == 2**31 - 1


@pytest.mark.compiled
def test_accuracy_and_mean_are_exact_over_a_long_epoch():
    metric = training.Accuracy()
    labels = jnp.zeros(2, "int32")
    outputs = jnp.asarray([[1.0, 0.0], [0.0, 1.0]])
    state = metric.init()
    state = state._replace(total=plus_count(state.total, 2**25), weight=plus_count(state.weight, 2**25))

    @jax.jit
    def run(state):
        return jax.lax.scan(lambda s, _: (metric.update(s, labels, outputs), None), state, None, length=2**14)[0]

    for _ in range(4):
        state = run(state)
    right, count = 2**25 + 2**16, 2**25 + 2**17
    assert (float(state.total.value), float(state.weight.value)) == (right, count)
    assert float(metric.result(state)) == np.float32(right / count)
    tenths, mean = np.float32(0.1), training.Mean()
    state = jax.jit(lambda s: jax.lax.scan(lambda s, _: (mean.update(s, tenths), None), s, None, length=2**17)[0])(
        mean.init()
    )
    assert float(mean.result(state)) == tenths
    assert float(state.total.value) == np.float32(float(tenths) * 2**17)


def test_infinity_and_nan_reach_the_mean():
    for bad in (np.inf, np.nan):
        mean = training.Mean()
        mean.update_state([1.0, bad])
        mean.update_state([2.0])
        np.testing.assert_equal(float(mean.result()), bad)


def test_metric_states_can_be_donated():
    metric = training.Accuracy()
    step = jax.jit(metric.update, donate_argnums=0)
    state = step(metric.init(), CLASSES[0], SCORES[0])
    state = step(state, CLASSES[0], SCORES[0])
    assert float(metric.result(state)) == np.float32((SCORES[0].argmax(-1) == CLASSES[0]).mean())


NANS, ZEROS = jnp.full((4, 3), jnp.nan), jnp.zeros(4, "int32")
NEIGHBOURS = jax.nn.one_hot(jnp.asarray([257, 256]), 300, dtype="bfloat16")  # bfloat16 cannot represent 257
COLUMN, PAIRS = np.array([[1], [0]]), np.array([[0.2, 0.8], [0.1, 0.9]])
SPARSE, TOP = training.SparseCategoricalAccuracy, training.TopKCategoricalAccuracy


@pytest.mark.parametrize(
    ("metric", "y_true", "y_pred", "expected"),
    [
        # a NaN is wrong
        *((metric, ZEROS, NANS, 0) for metric in (training.Accuracy(), TOP(3), SPARSE())),
        (training.BinaryAccuracy(), jnp.zeros((4, 3)), NANS, 0),
        # labels are not cast to the dtype of the outputs, nor is a threshold
        *((metric, jnp.asarray([256, 257]), NEIGHBOURS, 0) for metric in (training.Accuracy(), SPARSE())),
        (TOP(1), jnp.asarray([257, -1]), NEIGHBOURS, 0.5),
        (training.BinaryAccuracy(threshold=0.49999), [1.0], jnp.asarray([0.5], "float16"), 1),
        (training.BinaryAccuracy(threshold=0.49999), [1], jnp.asarray([0.5], "bfloat16"), 1),
        # class numbers may have a last axis of length 1
        *((metric, COLUMN, PAIRS, 0.5) for metric in (training.Accuracy(), SPARSE(), TOP(1))),
    ],
)
def test_outputs_are_compared_exactly(metric, y_true, y_pred, expected):
    metric.update_state(y_true, y_pred)
    assert float(metric.result()) == expected


def test_a_scalar_metric_function_counts_for_the_whole_batch():
    metric = as_metric(training.MeanSquaredError())
    assert metric.name == "mean_squared_error"
    metric.update_state(np.zeros((3, 2)), np.ones((3, 2), "float16"))
    metric.update_state(np.zeros((1, 2)), np.full((1, 2), 3.0))
    assert float(metric.result()) == 3
    with pytest.raises(ArgumentError, match="one number for a batch"):
        metric.update_state(np.zeros((3, 2)), np.ones((3, 2)), sample_weight=np.ones(3))

    def largest(y_true, y_pred):
        assert y_pred.dtype == np.float16
        return y_pred.max(-1)

    named = as_metric(largest)
    named.update_state(None, np.ones((2, 2), "float16"))
    assert (named.name, float(named.result())) == ("largest", 1)


@pytest.mark.parametrize("metric", [training.Accuracy(), training.BinaryAccuracy(), MeanSquaredError()])
def test_labels_and_outputs_may_differ_by_a_last_axis_of_length_1(metric):
    y, x = np.array([0.0, 1.0, 1.0]), np.array([[0.25], [0.25], [0.75]])
    found = []
    for one, other in ((y, x[:, 0]), (y, x), (y.astype("int32"), x), (y[:, None], x[:, 0])):
        metric.reset_state()
        metric.update_state(one, other, sample_weight=np.array([[1.0], [2.0], [3.0]]))
        found.append(float(metric.result()))
    assert found == [found[0]] * 4
    with pytest.raises(ArgumentError, match="same shape"):
        metric.update_state(np.zeros(3), np.zeros((3, 3)))


def test_as_metric_accepts_metrics_and_names():
    metric = training.Mean()
    assert as_metric(metric) is metric
    assert (as_metric("acc").name, type(as_metric("accuracy"))) == ("acc", training.Accuracy)


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (lambda: as_metric("acuracy"), UnknownNameError, "did you mean 'accuracy'"),
        (lambda: as_metric(training.Mean), OperandError, r"use Mean\(\)"),
        (lambda: as_metric(3), OperandError, "got 3"),
        (lambda: training.SparseCategoricalAccuracy().update_state([1.0], [[0, 1.0]]), OperandError, "class numbers"),
        (lambda: training.TopKCategoricalAccuracy(0), ArgumentError, "k must be an integer"),
        (lambda: training.Accuracy().update_state([1], np.ones((1, 2), "complex64")), OperandError, "complex"),
    ],
)
def test_invalid_arguments_raise(run, error, message):
    with pytest.raises(error, match=message):
        run()
