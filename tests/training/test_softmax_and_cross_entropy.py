"""Cross entropies use the logits of a softmax or sigmoid that comes directly before them, and only then.

Named after Keras RFC 293, mixed precision, "Softmax and cross entropy".
"""

import functools
import gc
import warnings
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.mixed_precision import PolicyWarning
from supremum.nn import logits_registry
from supremum.training import BinaryCrossentropy, CategoricalCrossentropy, SparseCategoricalCrossentropy

POLICIES = ["float32", "mixed_float16", "mixed_bfloat16"]
OUT32 = "variable=float32,compute=float16,output=float32"
# Integers that bfloat16 represents exactly; their differences are too large to show in probabilities of any dtype.
LOGITS = jnp.asarray([[0.0, 120.0, 60.0], [3.0, -200.0, 5.0]], "float16")
LABELS = jnp.asarray([0, 1])
ONE_HOT = jax.nn.one_hot(LABELS, 3)
EXPECTED_LOSS = np.mean([120, 205 + np.log1p(np.exp(-2.0))])


def sees_logits(run):
    """Return whether a function of the logits gives their float64 loss, not the loss of the rounded probabilities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        value = float(run(LOGITS))
    assert np.isfinite(value)
    return value == pytest.approx(EXPECTED_LOSS, rel=1e-6)


def initialized(model):
    nn.initialize(model, LOGITS)
    return model


class Subclassed(nn.Network):
    """A model that casts its inputs and applies softmax in `call`."""

    def __init__(self, **options):
        super().__init__(**options)
        self.softmax = nn.Softmax(dtype=self.dtype_policy)

    def call(self, x):
        return self.softmax(x)


class Functional(nn.Network):
    def call(self, x):
        return nn.functional.softmax(x)


def functional_model(policy):
    x = nn.Input((3,), "float16")
    return nn.Network(x, nn.Softmax(dtype=policy)(x))


MODELS = {
    "last layer": lambda p: nn.SequentialNetwork([nn.Activation(jnp.negative, dtype=p)] * 2 + [nn.Softmax(dtype=p)]),
    "activation of jax": lambda p: nn.Activation(jax.nn.softmax, dtype=p),
    "activation of ours": lambda p: nn.Activation(nn.functional.softmax, dtype=p),
    "activation with an axis": lambda p: nn.Activation(functools.partial(jax.nn.softmax, axis=1), dtype=p),
    "functional model": functional_model,
    "subclassed model": lambda p: Subclassed(dtype=p),
    "subclassed with a function": lambda p: Functional(dtype=p),
    "layers after it that do nothing": lambda p: nn.SequentialNetwork(
        [nn.Softmax(dtype=p), nn.Dropout(0.5, dtype=p), nn.Activation(lambda x: x, dtype="float32")]
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("policy", [*POLICIES, OUT32])
@pytest.mark.parametrize("name", MODELS)
def test_softmax_and_cross_entropy_are_fused_automatically(name, policy):
    """The second example, for every way a model can end in a softmax, with the casts of layers in between."""
    model = initialized(MODELS[name](policy))
    value = SparseCategoricalCrossentropy()(LABELS, model(LOGITS))
    assert value.dtype == jnp.float32
    np.testing.assert_allclose(value, EXPECTED_LOSS, rtol=1e-6)


def test_from_logits_computes_the_loss_from_the_logits():
    """The first example."""
    for loss, labels in ((SparseCategoricalCrossentropy, LABELS), (CategoricalCrossentropy, ONE_HOT)):
        np.testing.assert_allclose(loss(from_logits=True)(labels, LOGITS), EXPECTED_LOSS, rtol=1e-6)


def test_an_operation_after_a_float16_softmax_warns_once_per_loss():
    """The third example: probabilities are clipped."""

    def clip(x):
        return jnp.clip(x, 1e-5, 1)

    for policy in ("mixed_float16", "mixed_bfloat16", "float32"):
        model = initialized(nn.SequentialNetwork([nn.Softmax(dtype=policy), nn.Activation(clip, dtype=policy)]))
        loss = CategoricalCrossentropy()
        if policy == "mixed_float16":
            fix = r"remove the softmax and use CategoricalCrossentropy\(from_logits=True\)"
            with pytest.warns(PolicyWarning, match=fix) as caught:
                first = loss(ONE_HOT, model(LOGITS))
            # A process may also warn, once, that its device computes slowly in float16.
            softmax_warnings = [each for each in caught if "do not come from a softmax" in str(each.message)]
            assert len(softmax_warnings) == 1
            assert softmax_warnings[0].filename == __file__
            assert loss(ONE_HOT, model(LOGITS)) == first
            with pytest.warns(PolicyWarning):  # a different loss warns again
                CategoricalCrossentropy()(ONE_HOT, model(LOGITS))
        else:
            first = loss(ONE_HOT, model(LOGITS))  # a warning is an error
        assert np.isfinite(float(first))
        assert float(first) < 20 < EXPECTED_LOSS


def test_every_cross_entropy_finds_the_logits_eagerly():
    softmax, sigmoid = nn.functional.softmax, nn.functional.sigmoid
    assert sees_logits(lambda x: SparseCategoricalCrossentropy()(LABELS, softmax(x)))
    assert sees_logits(lambda x: CategoricalCrossentropy()(ONE_HOT, softmax(x)))
    assert sees_logits(lambda x: CategoricalCrossentropy()(ONE_HOT, nn.Softmax(dtype="float16")(x)))
    logits = jnp.asarray([30.0, -30.0], "float16")
    for activation in (sigmoid, nn.Sigmoid(dtype="float16"), nn.Activation(jax.nn.sigmoid, dtype="float16")):
        assert float(BinaryCrossentropy()([0.0, 1.0], activation(logits))) == 30


def test_a_loss_does_not_use_the_logits_of_the_wrong_activation():
    with pytest.warns(PolicyWarning, match="remove the sigmoid"):
        value = BinaryCrossentropy()(ONE_HOT, nn.functional.softmax(LOGITS))
    assert float(value) < 20
    with pytest.warns(PolicyWarning, match="remove the softmax"):
        CategoricalCrossentropy()(ONE_HOT, nn.functional.sigmoid(LOGITS))


@pytest.mark.slow
def test_the_softmax_must_have_the_axis_of_the_loss():
    x, y = LOGITS.T, ONE_HOT.T
    softmax = nn.functional.softmax
    fused = CategoricalCrossentropy(axis=0)
    for axis in (0, -2):
        np.testing.assert_allclose(fused(y, softmax(x, axis)), EXPECTED_LOSS, rtol=1e-6)
    with pytest.warns(PolicyWarning):
        assert float(fused(y, softmax(x, 1))) < 20
    assert float(fused(y, softmax(x, (0, 1)))) < 20


UNRECOGNIZED = {
    "another operation": lambda x: nn.functional.softmax(x) * 1,
    "a mask": lambda x: nn.functional.softmax(x, mask=jnp.ones((2, 3), bool)),
    "a cast of the user": lambda x: nn.functional.softmax(x).astype("float32"),
    "a compiled function": jax.jit(nn.functional.softmax),
    "a mapped function": jax.vmap(nn.functional.softmax),
    "numpy": lambda x: np.asarray(nn.functional.softmax(x)),
    "another function of jax": nn.Activation(lambda x: jax.nn.softmax(x), dtype="infer"),
    "other arguments": nn.Activation(
        functools.partial(jax.nn.softmax, axis=-1, where=jnp.ones((2, 3), bool)), dtype="infer"
    ),
}


@pytest.mark.parametrize("name", UNRECOGNIZED)
def test_logits_are_not_used_after_unrecognized_operations(name):
    assert not sees_logits(lambda x: SparseCategoricalCrossentropy()(LABELS, UNRECOGNIZED[name](x)))


@pytest.mark.slow
def test_logits_keep_their_dtype():
    """The logits of float16 probabilities are not rounded to float16."""
    logits = jnp.asarray([[0.0, 1e5]])
    value = SparseCategoricalCrossentropy()(jnp.asarray([0]), nn.functional.softmax(logits, dtype="float16"))
    assert float(value) == 1e5


@pytest.mark.slow
def test_fused_gradients_match_from_logits_in_every_transformation():
    softmax, loss = nn.functional.softmax, SparseCategoricalCrossentropy()
    x = LOGITS.astype("float32")

    def fused_loss(x):
        return loss(LABELS, softmax(x))

    def loss_from_logits(x):
        return SparseCategoricalCrossentropy(from_logits=True)(LABELS, x)

    def scanned(x):
        return jax.lax.scan(lambda total, x: (total + fused_loss(x), None), 0.0, jnp.stack([x, x]))[0] / 2

    def remat(x):
        return jax.checkpoint(fused_loss)(x)

    def inner(x):
        return jax.jit(fused_loss)(x)

    def mapped(x):
        each = SparseCategoricalCrossentropy()
        return jnp.mean(jax.vmap(lambda y, x: each(y, softmax(x)))(LABELS, x))

    with jax.checking_leaks():
        expected = jax.jit(jax.value_and_grad(loss_from_logits))(x)
        everything = jax.jit(lambda x: [jax.value_and_grad(f)(x) for f in (fused_loss, scanned, remat, inner, mapped)])(
            x
        )
        eager = jax.value_and_grad(fused_loss)(x)
    for value, gradient in (*everything, eager):
        np.testing.assert_allclose(value, expected[0], rtol=1e-6)
        np.testing.assert_allclose(gradient, expected[1], atol=1e-6)
    assert np.abs(expected[1]).max() > 0.4  # gradients through the probabilities vanish here
    np.testing.assert_allclose(
        jax.jit(jax.hessian(fused_loss))(x), jax.jit(jax.hessian(loss_from_logits))(x), atol=1e-6
    )


@pytest.mark.slow
def test_a_gradient_with_respect_to_probabilities_is_not_fused():
    p = nn.functional.softmax(jnp.asarray([[0.0, 1.0]]))
    gradient = jax.grad(lambda p: CategoricalCrossentropy()(jnp.asarray([[1.0, 0.0]]), p))(p)
    # -1 / p for the label, plus 1 from dividing by the sum.
    np.testing.assert_allclose(gradient, [[1 - 1 / p[0, 0], 1]], rtol=1e-5)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("policy", POLICIES)
def test_training_steps_use_the_logits_through_functional_call(policy):
    layers = [nn.Dense(3, kernel_initializer=jax.nn.initializers.constant(40.0), dtype=policy)]
    model = nn.SequentialNetwork([*layers, nn.Softmax(dtype=policy)])
    bare = nn.SequentialNetwork(layers)
    x = jnp.asarray([[1.0, -1.0, 2.0], [0.5, 0.0, 0.0]])
    nn.initialize(model, x)
    variables, _ = nn.split_variables(model)
    shift = {"dense/kernel": jnp.zeros((3, 3)).at[0, 0].set(80.0), "dense/bias": jnp.zeros(3)}
    variables = {path: value + shift[path] for path, value in variables.items()}

    def value_and_grad(model, loss):
        def fused_loss(variables):
            return loss(LABELS + 1, nn.functional_call(model, variables, x, training=True)[0])

        with jax.checking_leaks():
            return jax.jit(jax.value_and_grad(fused_loss))(variables)

    value, gradients = value_and_grad(model, SparseCategoricalCrossentropy())
    expected, expected_gradients = value_and_grad(bare, SparseCategoricalCrossentropy(from_logits=True))
    assert float(value) == float(expected) == 60
    assert expected_gradients.keys() == shift.keys()
    for path in expected_gradients:
        np.testing.assert_array_equal(gradients[path], expected_gradients[path])
        assert gradients[path].dtype == jnp.float32
    assert np.any(expected_gradients["dense/kernel"])


@pytest.mark.slow
def test_the_logits_registry_keeps_no_array_alive():
    gc.collect()
    before = len(logits_registry._origins)
    logits = jnp.asarray([[0.0, 1.0]], "float16")
    p = nn.functional.softmax(logits)
    cast = nn.Activation(lambda x: x, dtype="float32")(p)
    watched = [weakref.ref(each) for each in (logits, p, cast)]
    assert len(logits_registry._origins) == before + 2
    del logits, p
    assert float(SparseCategoricalCrossentropy()([1], cast)) > 0
    del cast
    assert [each() for each in watched] == [None] * 3
    jax.jit(lambda x: SparseCategoricalCrossentropy()(LABELS, nn.functional.softmax(x)))(LOGITS)
    gc.collect()
    assert len(logits_registry._origins) == before


def test_a_reused_object_id_has_no_origin():
    class Output:
        """A weakly referenceable stand-in for an array."""

    first, second = Output(), Output()
    logits_registry.record(first, logits_registry.Origin("softmax", LOGITS, (1,)))
    entry = logits_registry._origins[id(first)]
    logits_registry._origins[id(second)] = entry
    assert logits_registry.origin_of(first) is entry[1]
    assert logits_registry.origin_of(second) is None
    del logits_registry._origins[id(second)]


def test_donated_logits_are_not_read():
    logits = LOGITS + 0
    p = nn.functional.softmax(logits)
    logits.delete()
    with pytest.warns(PolicyWarning):
        assert float(SparseCategoricalCrossentropy()(LABELS, p)) < 20


@pytest.mark.compiled
def test_fused_float16_matches_float64_and_unfused_does_not():
    random = np.random.default_rng(0)
    x = (8 * random.normal(size=(64, 1000))).astype("float16")
    y = random.integers(1000, size=64)
    wide = x.astype(np.float64)
    top = wide.max(-1, keepdims=True)
    expected = np.mean(np.log(np.exp(wide - top).sum(-1)) + top[:, 0] - wide[range(64), y])

    @jax.jit
    def fused_and_unfused(x, y):
        p = nn.functional.softmax(x)
        return SparseCategoricalCrossentropy()(y, p), SparseCategoricalCrossentropy()(y, p + 0)

    with pytest.warns(PolicyWarning, match="gets float16 probabilities"):
        fused, unfused = fused_and_unfused(x, y)
    assert float(fused) == pytest.approx(expected, rel=1e-6)
    assert abs(float(unfused) / expected - 1) > 0.1
