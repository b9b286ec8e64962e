"""Cross entropies are computed from the logits of the softmax or sigmoid directly before them, and of nothing else.

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
# Whole numbers that bfloat16 has too, with differences that the probabilities of no dtype here show.
LOGITS = jnp.asarray([[0.0, 120.0, 60.0], [3.0, -200.0, 5.0]], "float16")
LABELS = jnp.asarray([0, 1])
ONE_HOT = jax.nn.one_hot(LABELS, 3)
WANT = np.mean([120, 205 + np.log1p(np.exp(-2.0))])


def sees_logits(run):
    """Whether a function of the logits gives the loss that they have in float64, not that of their probabilities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        value = float(run(LOGITS))
    assert np.isfinite(value)
    return value == pytest.approx(WANT, rel=1e-6)


def built(model):
    nn.initialize(model, LOGITS)
    return model


class Subclassed(nn.Network):
    """A model that casts its inputs, and softmaxes itself."""

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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("policy", [*POLICIES, OUT32])
@pytest.mark.parametrize("name", MODELS)
def test_ok_softmax_and_cross_entropy_are_fused_automatically(name, policy):
    """The second example, in all the ways a model may end in a softmax, with the casts of layers in between."""
    model = built(MODELS[name](policy))
    value = SparseCategoricalCrossentropy()(LABELS, model(LOGITS))
    assert value.dtype == jnp.float32
    np.testing.assert_allclose(value, WANT, rtol=1e-6)


def test_ok_from_logits():
    """The first example."""
    for loss, labels in ((SparseCategoricalCrossentropy, LABELS), (CategoricalCrossentropy, ONE_HOT)):
        np.testing.assert_allclose(loss(from_logits=True)(labels, LOGITS), WANT, rtol=1e-6)


def test_not_ok_an_operation_between_softmax_and_cross_entropy_warns_once_in_float16():
    """The third example: probabilities are clipped."""

    def clip(x):
        return jnp.clip(x, 1e-5, 1)

    for policy in ("mixed_float16", "mixed_bfloat16", "float32"):
        model = built(nn.SequentialNetwork([nn.Softmax(dtype=policy), nn.Activation(clip, dtype=policy)]))
        loss = CategoricalCrossentropy()
        if policy == "mixed_float16":
            fix = r"remove the softmax and use CategoricalCrossentropy\(from_logits=True\)"
            with pytest.warns(PolicyWarning, match=fix) as caught:
                first = loss(ONE_HOT, model(LOGITS))
            # A process may also warn, once, that its device computes slowly in float16.
            ours = [each for each in caught if "do not come from a softmax" in str(each.message)]
            assert len(ours) == 1
            assert ours[0].filename == __file__
            assert loss(ONE_HOT, model(LOGITS)) == first
            with pytest.warns(PolicyWarning):  # another loss says it again
                CategoricalCrossentropy()(ONE_HOT, model(LOGITS))
        else:
            first = loss(ONE_HOT, model(LOGITS))  # a warning is an error
        assert np.isfinite(float(first))
        assert float(first) < 20 < WANT


def test_eagerly_and_with_every_loss():
    softmax, sigmoid = nn.functional.softmax, nn.functional.sigmoid
    assert sees_logits(lambda x: SparseCategoricalCrossentropy()(LABELS, softmax(x)))
    assert sees_logits(lambda x: CategoricalCrossentropy()(ONE_HOT, softmax(x)))
    assert sees_logits(lambda x: CategoricalCrossentropy()(ONE_HOT, nn.Softmax(dtype="float16")(x)))
    logits = jnp.asarray([30.0, -30.0], "float16")
    for made in (sigmoid, nn.Sigmoid(dtype="float16"), nn.Activation(jax.nn.sigmoid, dtype="float16")):
        assert float(BinaryCrossentropy()([0.0, 1.0], made(logits))) == 30


def test_sigmoid_and_softmax_are_told_apart():
    with pytest.warns(PolicyWarning, match="remove the sigmoid"):
        value = BinaryCrossentropy()(ONE_HOT, nn.functional.softmax(LOGITS))
    assert float(value) < 20
    with pytest.warns(PolicyWarning, match="remove the softmax"):
        CategoricalCrossentropy()(ONE_HOT, nn.functional.sigmoid(LOGITS))


def test_the_axes_of_softmax_and_loss_have_to_be_one():
    x, y = LOGITS.T, ONE_HOT.T
    softmax = nn.functional.softmax
    fused = CategoricalCrossentropy(axis=0)
    for axis in (0, -2):
        np.testing.assert_allclose(fused(y, softmax(x, axis)), WANT, rtol=1e-6)
    with pytest.warns(PolicyWarning):
        assert float(fused(y, softmax(x, 1))) < 20
    assert float(fused(y, softmax(x, (0, 1)))) < 20


UNKNOWN = {
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


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_not_guessed(name):
    assert not sees_logits(lambda x: SparseCategoricalCrossentropy()(LABELS, UNKNOWN[name](x)))


def test_logits_keep_their_own_dtype():
    """Probabilities were asked for in float16; the logits are not rounded to it."""
    logits = jnp.asarray([[0.0, 1e5]])
    value = SparseCategoricalCrossentropy()(jnp.asarray([0]), nn.functional.softmax(logits, dtype="float16"))
    assert float(value) == 1e5


@pytest.mark.slow
def test_gradients_are_those_of_the_logits_in_every_transformation():
    softmax, loss = nn.functional.softmax, SparseCategoricalCrossentropy()
    x = LOGITS.astype("float32")

    def of(x):
        return loss(LABELS, softmax(x))

    def exact(x):
        return SparseCategoricalCrossentropy(from_logits=True)(LABELS, x)

    def scanned(x):
        return jax.lax.scan(lambda total, x: (total + of(x), None), 0.0, jnp.stack([x, x]))[0] / 2

    def remat(x):
        return jax.checkpoint(of)(x)

    def inner(x):
        return jax.jit(of)(x)

    def mapped(x):
        each = SparseCategoricalCrossentropy()
        return jnp.mean(jax.vmap(lambda y, x: each(y, softmax(x)))(LABELS, x))

    with jax.checking_leaks():
        want = jax.jit(jax.value_and_grad(exact))(x)
        everything = jax.jit(lambda x: [jax.value_and_grad(f)(x) for f in (of, scanned, remat, inner, mapped)])(x)
        eager = jax.value_and_grad(of)(x)
    for value, gradient in (*everything, eager):
        np.testing.assert_allclose(value, want[0], rtol=1e-6)
        np.testing.assert_allclose(gradient, want[1], atol=1e-6)
    assert np.abs(want[1]).max() > 0.4  # of probabilities they are nothing here
    np.testing.assert_allclose(jax.jit(jax.hessian(of))(x), jax.jit(jax.hessian(exact))(x), atol=1e-6)


def test_the_derivative_by_the_probabilities_themselves_does_not_go_to_the_logits():
    p = nn.functional.softmax(jnp.asarray([[0.0, 1.0]]))
    gradient = jax.grad(lambda p: CategoricalCrossentropy()(jnp.asarray([[1.0, 0.0]]), p))(p)
    # -1 / p for the label, plus what dividing by the sum gives.
    np.testing.assert_allclose(gradient, [[1 - 1 / p[0, 0], 1]], rtol=1e-5)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("policy", POLICIES)
def test_training_steps_see_the_logits_through_functional_call(policy):
    layers = [nn.Dense(3, kernel_initializer=jax.nn.initializers.constant(40.0), dtype=policy)]
    model = nn.SequentialNetwork([*layers, nn.Softmax(dtype=policy)])
    bare = nn.SequentialNetwork(layers)
    x = jnp.asarray([[1.0, -1.0, 2.0], [0.5, 0.0, 0.0]])
    nn.initialize(model, x)
    variables, _ = nn.split_variables(model)
    shift = {"dense/kernel": jnp.zeros((3, 3)).at[0, 0].set(80.0), "dense/bias": jnp.zeros(3)}
    variables = {path: value + shift[path] for path, value in variables.items()}

    def value_and_grad(model, loss):
        def of(variables):
            return loss(LABELS + 1, nn.functional_call(model, variables, x, training=True)[0])

        with jax.checking_leaks():
            return jax.jit(jax.value_and_grad(of))(variables)

    value, gradients = value_and_grad(model, SparseCategoricalCrossentropy())
    want, wanted = value_and_grad(bare, SparseCategoricalCrossentropy(from_logits=True))
    assert float(value) == float(want) == 60
    for path in wanted:
        np.testing.assert_array_equal(gradients[path], wanted[path])
        assert gradients[path].dtype == jnp.float32
    assert np.any(wanted["dense/kernel"])


@pytest.mark.slow
def test_nothing_is_kept_alive():
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


def test_an_identity_that_is_used_again_has_no_origin():
    class Output:
        """Something weakly referenced in the place of an array."""

    first, second = Output(), Output()
    logits_registry.record(first, logits_registry.Origin("softmax", LOGITS, (1,)))
    entry = logits_registry._origins[id(first)]
    logits_registry._origins[id(second)] = entry
    assert logits_registry.origin_of(first) is entry[1]
    assert logits_registry.origin_of(second) is None
    del logits_registry._origins[id(second)]


def test_logits_that_were_donated_are_not_read():
    logits = LOGITS + 0
    p = nn.functional.softmax(logits)
    logits.delete()
    with pytest.warns(PolicyWarning):
        assert float(SparseCategoricalCrossentropy()(LABELS, p)) < 20


def test_fused_float16_is_the_result_of_float64_and_unfused_is_not():
    random = np.random.default_rng(0)
    x = (8 * random.normal(size=(64, 1000))).astype("float16")
    y = random.integers(1000, size=64)
    wide = x.astype(np.float64)
    top = wide.max(-1, keepdims=True)
    want = np.mean(np.log(np.exp(wide - top).sum(-1)) + top[:, 0] - wide[range(64), y])

    @jax.jit
    def both(x, y):
        p = nn.functional.softmax(x)
        return SparseCategoricalCrossentropy()(y, p), SparseCategoricalCrossentropy()(y, p + 0)

    with pytest.warns(PolicyWarning, match="gets float16 probabilities"):
        fused, unfused = both(x, y)
    assert float(fused) == pytest.approx(want, rel=1e-6)
    assert abs(float(unfused) / want - 1) > 0.1
