"""Losses: agreement with float64 formulas and optax, dtypes, weights, reductions and errors."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import nn, training
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.formats import as_format
from supremum.mixed_precision import Policy, use_policy
from supremum.training import as_loss

RANDOM = np.random.default_rng(0)
SHAPE = (4, 5)


def log_sum_exp(x):
    return np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)) + x.max(-1, keepdims=True)


def categorical(y, x, smoothing=0.0):
    y = y * (1 - smoothing) + smoothing / y.shape[-1]
    return -(y * (x - log_sum_exp(x))).sum(-1)


def binary(y, x):
    p = 1 / (1 + np.exp(-x))
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)


def huber(y, x, delta):
    d = np.abs(x - y)
    return np.where(d <= delta, d**2 / 2, delta * (d - delta / 2)).mean(-1)


def cosine(y, x):
    return -(x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1)


def focal(y, x, smoothing=0.0):
    y = y * (1 - smoothing) + smoothing / y.shape[-1]
    return -(np.array([0.1, 0.2, 0.3, 0.4, 0.5]) * (1 - x) ** 1.5 * y * np.log(x)).sum(-1)


def binary_focal(y, x):
    p = np.where(y == 1, x, 1 - x)
    return -(np.where(y == 1, 0.3, 0.7) * (1 - p) ** 1.5 * np.log(p)).mean(-1)


def tversky(y, x, alpha, beta, axis):
    shared = (x * y).sum(axis)
    return 1 - shared / (shared + alpha * ((1 - y) * x).sum(axis) + beta * (y * (1 - x)).sum(axis))


def circle(y, x, gamma, margin):
    """The formula of the paper, with similarities instead of distances, one example after another."""
    losses = []
    for i, j in enumerate(y):
        s = x @ x[i]
        positive = [gamma * max(1 + margin - s[k], 0) * (1 - margin - s[k]) for k in np.flatnonzero(y == j) if k != i]
        negative = [gamma * max(s[k] + margin, 0) * (s[k] - margin) for k in np.flatnonzero(y != j)]
        losses.append(np.log1p(np.exp(positive).sum() * np.exp(negative).sum()))
    return np.array(losses)


def ctc(y, x):
    """Add up the probabilities of all alignments, which are few."""
    losses = []
    for labels, frames in zip(y, x, strict=True):
        wanted = [each for each in labels if each]
        logs, total = frames - log_sum_exp(frames), 0.0
        for path in itertools.product(range(frames.shape[1]), repeat=len(frames)):
            if [each for each, _ in itertools.groupby(path) if each] == wanted:
                total += np.exp(logs[range(len(frames)), path].sum())
        losses.append(-np.log(total))
    return np.array(losses)


NUMBERS, OTHER_NUMBERS = RANDOM.normal(size=(2, *SHAPE))
PROBABILITIES, LABELS = RANDOM.dirichlet(np.ones(5), size=(2, 4))
BITS = RANDOM.integers(2, size=SHAPE)
BCE, CCE, SCE = training.BinaryCrossentropy, training.CategoricalCrossentropy, training.SparseCategoricalCrossentropy
CLASSES = np.array([0, 4, 2, 2])
ONE_HOT, SIGNS = np.eye(5)[CLASSES], 2.0 * BITS - 1
FRAMES, SEQUENCES = RANDOM.normal(size=(4, 5, 3)), np.array([[1, 2, 0], [1, 1, 0], [2, 0, 0], [1, 2, 1]])
BFCE, CFCE = training.BinaryFocalCrossentropy, training.CategoricalFocalCrossentropy
GCE = training.CategoricalGeneralizedCrossEntropy
BALANCED = {"apply_class_balancing": True, "alpha": 0.3, "gamma": 1.5}
FOCUSED = {"alpha": [0.1, 0.2, 0.3, 0.4, 0.5], "gamma": 1.5}
CASES = {
    "mse": (training.MeanSquaredError(), NUMBERS, OTHER_NUMBERS, lambda y, x: ((x - y) ** 2).mean(-1)),
    "mae": (training.MeanAbsoluteError(), NUMBERS, OTHER_NUMBERS, lambda y, x: np.abs(x - y).mean(-1)),
    "huber": (training.Huber(0.7), NUMBERS, OTHER_NUMBERS, lambda y, x: huber(y, x, 0.7)),
    "poisson": (training.Poisson(), BITS, PROBABILITIES, lambda y, x: (x - y * np.log(x)).mean(-1)),
    "kl": (training.KLDivergence(), LABELS, PROBABILITIES, lambda y, x: (y * np.log(y / x)).sum(-1)),
    "cosine": (training.CosineSimilarity(), NUMBERS, OTHER_NUMBERS, cosine),
    "categorical": (CCE(), LABELS, PROBABILITIES, lambda y, x: -(y * np.log(x)).sum(-1)),
    "categorical logits": (CCE(from_logits=True), LABELS, NUMBERS, categorical),
    "smoothed": (CCE(from_logits=True, label_smoothing=0.2), LABELS, NUMBERS, lambda y, x: categorical(y, x, 0.2)),
    "sparse": (SCE(), CLASSES, PROBABILITIES, lambda y, x: -np.log(x[range(4), y])),
    "sparse logits": (SCE(from_logits=True), CLASSES, NUMBERS, lambda y, x: -(x - log_sum_exp(x))[range(4), y]),
    "binary": (BCE(), BITS, PROBABILITIES, lambda y, x: -(y * np.log(x) + (1 - y) * np.log(1 - x)).mean(-1)),
    "binary logits": (BCE(from_logits=True), BITS, NUMBERS, binary),
    "mape": (training.MeanAbsolutePercentageError(), NUMBERS, OTHER_NUMBERS,
             lambda y, x: 100 * np.abs((x - y) / y).mean(-1)),
    "msle": (training.MeanSquaredLogarithmicError(), LABELS, PROBABILITIES,
             lambda y, x: ((np.log(x + 1) - np.log(y + 1)) ** 2).mean(-1)),
    "log cosh": (training.LogCosh(), NUMBERS, OTHER_NUMBERS, lambda y, x: np.log(np.cosh(x - y)).mean(-1)),
    "hinge": (training.Hinge(), SIGNS, NUMBERS, lambda y, x: np.maximum(1 - y * x, 0).mean(-1)),
    "hinge of bits": (training.Hinge(), BITS, NUMBERS, lambda y, x: np.maximum(1 - (2 * y - 1) * x, 0).mean(-1)),
    "squared hinge": (training.SquaredHinge(), SIGNS, NUMBERS, lambda y, x: (np.maximum(1 - y * x, 0) ** 2).mean(-1)),
    "categorical hinge": (training.CategoricalHinge(), ONE_HOT, NUMBERS,
                          lambda y, x: np.maximum(1 + ((1 - y) * x).max(-1) - (y * x).sum(-1), 0)),
    "dice": (training.Dice(), BITS, PROBABILITIES, lambda y, x: np.array(1 - 2 * (x * y).sum() / (x.sum() + y.sum()))),
    "dice of rows": (training.Dice(axis=-1), BITS + 1, PROBABILITIES,
                     lambda y, x: 1 - 2 * (x * y).sum(-1) / (x.sum(-1) + y.sum(-1))),
    "tversky": (training.Tversky(0.3, 0.6, axis=(0, 1)), BITS, PROBABILITIES,
                lambda y, x: tversky(y, x, 0.3, 0.6, (0, 1))),
    "circle": (training.Circle(2.0, 0.3), CLASSES, NUMBERS / np.linalg.norm(NUMBERS, axis=-1, keepdims=True),
               lambda y, x: circle(y, x, 2.0, 0.3)),
    "ctc": (training.CTC(), SEQUENCES, FRAMES, ctc),
    "generalized": (GCE(0.3), CLASSES, PROBABILITIES, lambda y, x: (1 - x[range(4), y] ** 0.3) / 0.3),
    "focal": (CFCE(**FOCUSED), LABELS, PROBABILITIES, focal),
    "focal, axis 1": (CFCE(axis=1, **FOCUSED), np.stack([LABELS, PROBABILITIES], -1),
                      np.stack([PROBABILITIES, LABELS], -1),
                      lambda y, x: focal(np.moveaxis(y, 1, -1), np.moveaxis(x / x.sum(1, keepdims=True), 1, -1))),
    "focal logits": (CFCE(from_logits=True, label_smoothing=0.2, **FOCUSED), LABELS, NUMBERS,
                     lambda y, x: focal(y, np.exp(x - log_sum_exp(x)), 0.2)),
    "binary focal": (BFCE(**BALANCED), BITS, PROBABILITIES, binary_focal),
    "binary focal logits": (BFCE(from_logits=True, **BALANCED), BITS, NUMBERS,
                            lambda y, x: binary_focal(y, 1 / (1 + np.exp(-x)))),
    "binary smooth": (BCE(from_logits=True, label_smoothing=0.2), BITS, NUMBERS, lambda y, x: binary(0.8 * y + 0.1, x)),
}  # fmt: skip
every_case = pytest.mark.parametrize("case", CASES)


def cast_floating(array, dtype):
    """Return a floating-point array cast to a dtype, and its rounded values in float64; keep other arrays."""
    if not np.issubdtype(array.dtype, np.floating):
        return jnp.asarray(array), array
    given = np.asarray(array, as_format(dtype).dtype)
    return given, given.astype(np.float64)


@every_case
@pytest.mark.filterwarnings("ignore:.*do not come from a")  # this test passes float16 probabilities on purpose
def test_every_loss_agrees_with_its_formula_in_float64(case):
    """Run all dtypes in one compiled program, and the first dtype eagerly too."""
    loss, y_true, y_pred, formula = CASES[case]
    dtypes = ["float16", "bfloat16", "float32", "float64"]
    pairs = [(cast_floating(y_true, dtype), cast_floating(y_pred, dtype)) for dtype in dtypes]
    # Rounded probabilities no longer sum to one, so the loss divides them by their sum.
    divides = case in ("categorical", "sparse", "generalized", "focal")
    expected = [formula(y, x / x.sum(-1, keepdims=True) if divides else x) for (_, y), (_, x) in pairs]
    with jax.enable_x64(True):
        given = [(jnp.asarray(y), jnp.asarray(x)) for (y, _), (x, _) in pairs]
        found = jax.jit(lambda given: [loss(y, x) for y, x in given])(given)
    for value, wanted, dtype in zip(found, expected, dtypes, strict=True):
        assert value.dtype == np.float32, dtype
        np.testing.assert_allclose(value, wanted.mean(), rtol=3e-6, err_msg=dtype)
    (y, _), (x, _) = pairs[0]
    np.testing.assert_allclose(loss(y, x), found[0], rtol=3e-6)


def test_the_result_has_the_dtype_of_the_loss():
    with use_policy("mixed_float16"):
        assert training.MeanSquaredError()([1.0], [3.0]).dtype == jnp.float32  # the global policy has no effect
    for dtype in ("float16", "bfloat16", "float32"):
        value = training.MeanSquaredError(dtype=dtype)(np.zeros((2, 3)), jnp.ones((2, 3), "float16"))
        assert (value.dtype, float(value), value.weak_type) == (as_format(dtype).dtype, 1.0, False)
    with jax.enable_x64(True):
        exact = training.MeanSquaredError(dtype="float64")(np.zeros(1), np.full(1, 1e-30))
        assert (exact.dtype, float(exact)) == (np.float64, 1e-30**2)
    with pytest.raises(supremum.arrays.RuntimeDtypeError, match="jax_enable_x64"):
        training.MeanSquaredError(dtype="float64")([1.0], [3.0])


@pytest.mark.compiled
def test_a_large_sum_is_finite_in_float32_and_infinite_in_float16():
    y, x = np.zeros(70_000, "float16"), np.ones(70_000, "float16")
    assert float(training.MeanSquaredError(reduction="sum")(y, x)) == 70_000
    assert float(training.MeanSquaredError(reduction="sum", dtype="float16")(y, x)) == np.inf
    assert float(training.MeanSquaredError(dtype="float16")(y, x)) == 1


@pytest.mark.slow
def test_reductions_and_weights():
    y, x = np.zeros((2, 3, 2), "float32"), np.arange(12, dtype="float32").reshape(2, 3, 2)
    each = (x**2).mean(-1)
    assert float(training.MeanSquaredError(reduction="sum")(y, x)) == each.sum()
    np.testing.assert_array_equal(training.MeanSquaredError(reduction=None)(y, x), each)
    assert training.MeanSquaredError(reduction="sum_over_batch_size").reduction == "mean"
    weights = np.array([1.0, 3.0])
    loss = training.MeanSquaredError()
    # As in Keras, the mean divides by the number of losses, not by the sum of the weights.
    assert float(loss(y, x, weights)) == pytest.approx((each * weights[:, None]).mean())
    assert float(loss(y, x, [1, 3])) == float(loss(y, x, weights)) == float(loss(y, x, weights[:, None]))
    spread = RANDOM.random((2, 3)).astype("float32")
    assert float(loss(y, x, spread)) == pytest.approx((each * spread).mean())
    assert float(loss(y, x, 2.0)) == pytest.approx(2 * each.mean())
    np.testing.assert_array_equal(
        training.MeanSquaredError(reduction=None)(y, x, np.array([False, True])), each * [[0], [1]]
    )
    for bad in (np.ones(3), np.ones((2, 3, 2)), np.ones((2, 2))):
        with pytest.raises(ArgumentError, match="sample_weight has shape"):
            loss(y, x, bad)
    y, x = (
        np.zeros((2, 3)),
        np.array([[1.0, 2, 3], [4, 5, 6]]),
    )  # as in Keras, weights may have an axis of length 1 more
    assert float(loss(y, x, weights[:, None])) == float(loss(y, x, weights))
    assert float(loss(np.zeros((0, 3)), np.zeros((0, 3)))) == 0


def test_examples_of_weight_zero_add_no_loss_and_no_gradient():
    loss = SCE(from_logits=True)

    def loss_of(x):
        return loss(jnp.asarray([1, -1]), x, jnp.asarray([1.0, 0.0]))

    value, gradient = jax.jit(jax.value_and_grad(loss_of))(jnp.zeros((2, 2)))
    assert float(value) == pytest.approx(np.log(2) / 2)
    np.testing.assert_allclose(gradient, [[0.25, -0.25], [0, 0]])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loss", [training.MeanSquaredError(), BCE(), as_loss("poisson")])
def test_labels_and_outputs_may_differ_by_a_last_axis_of_length_1(loss):
    y, x = np.array([0.0, 1.0, 1.0], "float32"), np.array([[0.5], [0.25], [0.75]], "float32")
    expected = loss(y, x[:, 0])
    assert loss(y, x) == pytest.approx(expected)
    for one, other in ((y, x), (y[:, None], x), (y[:, None], x[:, 0])):
        assert jax.jit(loss)(one, other) == pytest.approx(expected)
    with pytest.raises(ArgumentError, match="same shape, got"):
        loss(np.ones((3, 2)), np.ones((3, 4)))


@pytest.mark.parametrize("loss", [training.MeanSquaredError(), CCE()])
def test_sample_weights_may_have_a_last_axis_of_length_1(loss):
    y, x = np.eye(3, dtype="float32"), np.full((3, 3), 0.25, "float32")
    x[1] = np.inf  # with weight 0
    weights = np.array([2.0, 0.0, 1.0], "float32")
    run = jax.jit(jax.value_and_grad(lambda x, weights: loss(y, x, weights)))
    values = [run(x, each) for each in (weights, weights[:, None])]
    assert np.isfinite(values[0][0])
    jax.tree.map(np.testing.assert_array_equal, *values)
    with pytest.raises(ArgumentError, match=r"sample_weight has shape \(3, 3\)"):
        loss(y, x, np.ones((3, 3)))


def test_sparse_labels_may_have_a_last_axis_of_length_1():
    loss = SCE(ignore_class=-1)
    p = np.array([[0.25, 0.75], [0.5, 0.5], [0.125, 0.875]], "float32")
    y, weights = np.array([1, -1, 0]), np.array([1.0, 2.0, 3.0])
    run = jax.jit(loss)
    expected = run(y, p, weights)
    assert run(y[:, None], p, weights[:, None]) == pytest.approx(expected)
    assert run(y[:, None], p, weights) == pytest.approx(expected)
    many = SCE()
    assert many(np.ones((3, 4, 1), int), np.full((3, 4, 5), 0.2)) == pytest.approx(np.log(5))


@pytest.mark.slow
def test_out_of_range_labels_give_nan_and_ignored_labels_do_not_count():
    logits = jnp.asarray(NUMBERS, "float32")
    each = SCE(from_logits=True, reduction=None)
    labels = jnp.asarray([0, 5, -1, 4])
    np.testing.assert_array_equal(np.isnan(each(labels, logits)), [False, True, True, False])
    ignoring = SCE(from_logits=True, ignore_class=-1)
    kept, known = jnp.asarray([0, -1, -1, 4]), each(labels, logits)
    assert float(ignoring(kept, logits)) == pytest.approx(float(known[0] + known[3]) / 2)
    assert float(ignoring(kept, logits, [1.0, 1.0, 9.0, 3.0])) == pytest.approx(float(known[0] + 3 * known[3]) / 2)
    value, gradient = jax.jit(jax.value_and_grad(lambda x: ignoring(jnp.full(4, -1), x)))(logits)
    assert float(value) == 0
    assert not np.any(gradient)


@pytest.mark.slow
def test_a_logit_of_minus_infinity_for_a_wrong_class_adds_no_loss():
    logits = jnp.asarray([[0.0, 0.0, -jnp.inf]])
    loss = CCE(from_logits=True)
    value, gradient = jax.value_and_grad(lambda x: loss(jnp.asarray([[1.0, 0, 0]]), x))(logits)
    assert float(value) == pytest.approx(np.log(2))
    np.testing.assert_allclose(gradient, [[-0.5, 0.5, 0]])
    binary = BCE(from_logits=True)
    assert float(binary(jnp.asarray([1.0, 0.0]), jnp.asarray([jnp.inf, -jnp.inf]))) == 0


def test_gradients_of_pairwise_and_focal_losses_are_finite_at_their_limits():
    sure = 200.0 * jnp.eye(3)
    for loss in (loss_class(from_logits=True, gamma=gamma) for loss_class in (BFCE, CFCE) for gamma in (0, 0.5, 2)):
        assert np.all(np.isfinite(jax.grad(lambda x, loss=loss: loss(jnp.eye(3), x))(sure)))
    for labels in ([0, 1, 2], [0, 0, 0]):  # examples without a pair of one class, and without one of two
        value, gradient = jax.value_and_grad(lambda x, labels=labels: training.Circle()(labels, x))(jnp.eye(3))
        assert float(value) == 0
        assert not np.any(gradient)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_probabilities_are_clipped_by_eps(dtype):
    eps = as_format(dtype).eps
    binary = jax.jit(BCE(dtype=dtype))
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    assert float(binary(one, zero)) == pytest.approx(-np.log(eps), rel=1e-3)
    assert 0 < float(binary(one, one)) < 2 * eps
    sparse = jax.jit(SCE(dtype=dtype))
    assert float(sparse(np.asarray([1]), np.float32([[1.0, 0.0]]))) == pytest.approx(-np.log(eps), rel=1e-3)
    assert float(sparse(np.asarray([1]), np.float32([[0.0, 0.0]]))) == pytest.approx(-np.log(eps), rel=1e-3)


@pytest.mark.slow
def test_cosine_similarity_handles_zero_huge_and_tiny_vectors():
    loss = training.CosineSimilarity(reduction=None)
    x = jnp.asarray([[0.0, 0.0], [3e30, 4e30], [3e-30, 0.0]])
    value, gradient = jax.vmap(jax.value_and_grad(lambda x: loss(jnp.asarray([1.0, 0.0]), x)))(x)
    np.testing.assert_allclose(value, [0, -0.6, -1], rtol=1e-6)
    assert np.all(np.isfinite(gradient))
    assert not np.any(gradient[0])


def test_integer_labels_are_not_cast_to_the_loss_dtype():
    class IntegerLabelLoss(training.Loss):
        def call(self, y_true, y_pred):
            assert y_true.dtype == jnp.int32
            assert y_pred.dtype == jnp.bfloat16
            return (y_pred - y_true).mean(-1)

    assert IntegerLabelLoss(dtype="bfloat16")(np.arange(4), np.arange(4.0)).dtype == jnp.bfloat16


def test_losses_accept_variables_arrays_and_lists():
    y, x = [[0.0, 1.0]], [[2.0, 3.0]]
    loss = training.MeanSquaredError()
    assert float(loss(y, x)) == 4
    assert float(loss(supremum.asarray(np.array(y)), supremum.asarray(np.array(x, "float16"), library="jax"))) == 4
    assert float(loss(nn.Variable(y), np.array(x))) == 4


def test_as_loss_accepts_losses_and_the_names_of_keras():
    loss = training.Huber()
    assert as_loss(loss) is loss
    for name in ("mse", "MSE", "mean_squared_error", "MeanSquaredError"):
        assert isinstance(as_loss(name), training.MeanSquaredError)
    assert isinstance(as_loss("kld"), training.KLDivergence)
    for name in KERAS:
        assert as_loss(name).name == name


KERAS = [
    "binary_crossentropy", "binary_focal_crossentropy", "categorical_crossentropy", "categorical_focal_crossentropy",
    "categorical_generalized_cross_entropy", "categorical_hinge", "circle", "cosine_similarity", "ctc", "dice",
    "hinge", "huber", "kl_divergence", "log_cosh", "mean_absolute_error", "mean_absolute_percentage_error",
    "mean_squared_error", "mean_squared_logarithmic_error", "poisson", "sparse_categorical_crossentropy",
    "squared_hinge", "tversky",
]  # fmt: skip
"""The classes in `losses.py` of Keras 3.16, by the names of their objects."""


def test_a_plain_function_loss_gets_uncast_outputs_and_is_averaged():
    seen = []

    def error(y_true, y_pred):
        seen.append((y_true.dtype, y_pred.dtype))
        return jnp.abs(y_pred - y_true)

    loss = as_loss(error)
    value = loss(jnp.zeros((2, 2), "float16"), jnp.asarray([[1, 3], [0, 0]], "float16"))
    assert (seen, value.dtype, float(value)) == ([(jnp.float16, jnp.float16)], jnp.float16, 1)
    assert loss.name == "error"
    weighted = loss(jnp.zeros((2, 2)), jnp.asarray([[1.0, 3.0], [5.0, 5.0]]), [1.0, 0.0])
    assert float(weighted) == 1
    assert float(as_loss(lambda y, x: 2.5)(0, 0)) == 2.5


P, ONES = np.full((3, 4), 0.25, "float32"), np.ones((2, 3))
MSE, HUBER = training.MeanSquaredError(), training.Huber
INVALID = [
    *[(lambda dtype=dtype: HUBER(dtype=dtype), ArgumentError, "must be a dtype, got the policy")
      for dtype in ("mixed_float16", Policy("float32"), "infer", "variable=float32,compute=float16")],
    *[(lambda dtype=dtype: HUBER(dtype=dtype), ArgumentError, "give dtype='float32'")
      for dtype in ("int32", "bool", "complex64")],
    (lambda: HUBER(dtype="flaot32"), UnknownNameError, "'float32'"),
    (lambda: HUBER(reduction="maen"), UnknownNameError, "did you mean 'mean'"),
    (lambda: HUBER(delta=0.0), ArgumentError, "positive"),
    (lambda: HUBER(delta="a"), ArgumentError, "delta=1.0"),
    (lambda: GCE(1.0), ArgumentError, "give q=0.5"),
    (lambda: BFCE(gamma=-1), ArgumentError, "gamma must be 0 or more"),
    (lambda: BFCE(alpha=1.5), ArgumentError, "alpha must be from 0 to 1"),
    (lambda: training.Circle(margin=1.5), ArgumentError, "margin must be from 0 to 1"),
    (lambda: CFCE(alpha=[0.5, 0.5])(P, P), ArgumentError, "alpha must be one number or 4"),
    (lambda: training.Tversky(alpha=-1), ArgumentError, "alpha must be 0 or more"),
    (lambda: training.Dice(axis=2)(P, P), ArgumentError, "axis must be within -2 to 1"),
    (lambda: training.Dice()(P, P, np.ones(3)), ArgumentError, "sample_weight has shape"),
    (lambda: training.Circle()(np.zeros((3, 2), "int32"), P[:, None]), ArgumentError, "give y_true one axis less"),
    (lambda: training.Circle()(np.zeros((3, 4), "int32"), np.ones((3, 4, 2))), ArgumentError, "one vector for each"),
    (lambda: training.CTC()(np.zeros((3, 2)), P[:, None]), OperandError, r"y_true\.astype\('int32'\)"),
    (lambda: training.CTC()(np.zeros((2, 2), "int32"), P[:, None]), ArgumentError, r"\(2, 2\) and \(3, 1, 4\)"),
    (lambda: BCE(label_smoothing=1.5), ArgumentError, "label_smoothing"),
    (lambda: BCE(label_smoothing="a"), OperandError, "label_smoothing"),
    (lambda: SCE(ignore_class=1.5), OperandError, "a whole number"),
    (lambda: SCE(from_logits=1), OperandError, "True or False"),
    (lambda: training.BinaryAccuracy("x"), OperandError, "threshold"),
    (lambda: nn.L1("a"), OperandError, "l1 must be a number"),
    (lambda: as_loss("categorical_crosentropy"), UnknownNameError, "did you mean 'categorical_crossentropy'"),
    (lambda: as_loss(HUBER), OperandError, r"use Huber\(\)"),
    (lambda: as_loss(3), OperandError, "got 3"),
    (lambda: as_loss(lambda y, x: jnp.arange(2))(0, 0), OperandError, "got int32"),
    (lambda: as_loss(lambda y, x: None)(0, 0), OperandError, "made of numbers"),
    (lambda: as_loss(lambda y, x: jnp.float32(1))(0, 0, np.ones(2)), ArgumentError, "sample_weight"),
    (lambda: SCE()(np.zeros(3), P), OperandError, r"y_true\.astype\('int32'\)"),
    (lambda: SCE()(np.zeros((3, 2), "int32"), P), ArgumentError, "give y_true one axis less"),
    (lambda: SCE()(np.zeros((3, 4), "int32"), P), ArgumentError, r"y_true\.argmax\(-1\)"),
    (lambda: SCE()(np.array([0, 1, 2**40]), P), supremum.arrays.NarrowingError, "1099511627776"),
    (lambda: SCE()(1, 0.5), ArgumentError, r"give y_true\[None\]"),
    (lambda: CCE()(np.zeros(3, "int32"), P), ArgumentError, r"one_hot\(y_true, 4\)"),
    (lambda: CCE()(np.ones(3, "float32"), np.ones((3, 1), "float32")), ArgumentError,
     r"every example against every other: give y_true\[\.\.\., None\]"),
    (lambda: CCE()(P, P.astype("complex64")), OperandError, r"y_pred\.real"),
    (lambda: CCE()(P, {"a": P}), OperandError, "one array as y_pred, got a dict"),
    *[(lambda bad=bad: CCE()(bad, P), OperandError, "y_true must be made of numbers")
      for bad in (None, "a", np.array(["a"]))],
    (lambda: CCE()(ONES + 1j, ONES), OperandError, "crossentropy takes real numbers, but y_true is complex64"),
    (lambda: CCE()(ONES, ONES + 1j), OperandError, "crossentropy takes real numbers, but y_pred is complex64"),
    (lambda: CCE(axis=3)(ONES, ONES), ArgumentError, "axis must be within -2 to 1"),
    (lambda: MSE(jax.random.key(0), 1.0), OperandError, "keys of jax.random"),
    (lambda: MSE(np.ones(2), np.ones(2), [1j, 2]), OperandError, "sample_weight is complex64"),
    (lambda: MSE([[1.0]], [[10**30]]), OperandError, "too large for every format"),
    (lambda: MSE([[1.0], [1.0, 2.0]], [[2.0, 3.0]]), OperandError, "unequal"),
    (lambda: training.KLDivergence()(1.0, 0.5), ArgumentError, r"give y_true\[None\]"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "error", "message"), INVALID)
def test_invalid_inputs_and_arguments_raise(run, error, message):
    with pytest.raises(error, match=message):
        run()
