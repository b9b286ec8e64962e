"""Tests of the losses of layers: regularizers of weights and outputs, `add_loss`, and collecting them.

Keras RFC 293, mixed precision, "Loss dtype".
"""

import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.errors import ArgumentError, OperandError

X = np.arange(12, dtype="float32").reshape(4, 3) / 8
ones = jax.nn.initializers.ones


def constant(value):
    return jax.nn.initializers.constant(value)


def built(layer, x=X):
    nn.initialize(layer, x)
    return layer


def collected(model, variables=None, x=X, **kwargs):
    """Return the losses that a jitted functional call collects."""

    def run(variables):
        with nn.collected_losses() as losses:
            nn.functional_call(model, variables, x, **kwargs)
        return losses

    with jax.checking_leaks():
        return jax.jit(run)({**nn.split_variables(model)[0]} if variables is None else variables)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_regularizers_are_computed_in_at_least_float32(dtype):
    x = jnp.asarray([300.0, -2.0, 0.0], dtype)
    cases = [(nn.L1(0.5), 151), (nn.L2(0.25), 22501), (nn.L1L2(0.5, 0.25), 22652)]
    found = jax.jit(lambda x: [jax.value_and_grad(penalty)(x) for penalty, _ in cases])(x)
    for (value, gradient), (_, want) in zip(found, cases, strict=True):
        assert (value.dtype, float(value), gradient.dtype) == (jnp.float32, want, x.dtype)
        assert np.all(np.isfinite(gradient))
    with jax.enable_x64(True):
        assert nn.L2(1.0)(jnp.asarray([1e-30], "float64")).dtype == np.float64


def test_regularizers_can_be_given_by_name():
    for name, want in {"l1": 0.03, "l2": 0.09, "l1_l2": 0.12}.items():
        layer = built(nn.Dense(1, use_bias=False, kernel_initializer=constant(3.0), kernel_regularizer=name), X[:, :1])
        assert float(layer.losses[0]) == pytest.approx(want)
    table = built(
        nn.Embedding(5, 2, embedding_initializer=constant(2.0), embedding_regularizer="l2"), jnp.zeros(3, "int32")
    )
    assert [float(term) for term in table.losses] == [pytest.approx(0.4)]
    assert repr(nn.L1L2(0.1, 0.2)) == "L1L2(l1=0.1, l2=0.2)"


kernel, bias = nn.L2(1.0), nn.L1(1.0)
both = {
    "kernel_regularizer": kernel,
    "bias_regularizer": bias,
    "kernel_initializer": constant(2.0),
    "bias_initializer": constant(-3.0),
}
LAYERS = {
    "dense": (nn.Dense(2, **both), (4, 3), {"kernel": 24, "bias": 6}),
    "dense_general": (nn.DenseGeneral((2,), **both), (4, 3), {"kernel": 24, "bias": 6}),
    "embedding": (nn.Embedding(5, 2, embedding_initializer=constant(2.0), embedding_regularizer=kernel), (4,),
     {"embedding": 40}),
    "einsum": (nn.Einsum("bi,io->bo", (3, 2), bias_shape=(2,), **both), (4, 3), {"kernel": 24, "bias": 6}),
    "conv": (nn.Conv(2, (2,), **both), (4, 5, 3), {"kernel": 48, "bias": 6}),
    "conv_transpose": (nn.ConvTranspose(2, (2,), **both), (4, 5, 3), {"kernel": 48, "bias": 6}),
    "gru": (nn.RNN(nn.GRUCell(2, recurrent_initializer=ones, recurrent_regularizer=kernel, **both)), (4, 5, 3),
     {"kernel": 72, "recurrent_kernel": 12, "bias": 18, "recurrent_bias": 6}),
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_regularise_their_weights(name):
    layer, shape, want = LAYERS[name]
    built(layer, jnp.ones(shape, "int32" if name == "embedding" else "float32"))
    assert sum(map(float, layer.losses)) == sum(want.values())
    assert len(layer.losses) == len(want)


class LossReader(nn.Layer):
    """A layer that reads its losses in `call`."""

    def build(self, input_shape):
        self.w = self.add_weight("w", (1,), constant(1 + 2**-20), regularizer=nn.L2(1.0))
        self.frozen = self.add_weight("frozen", (1,), ones, trainable=False, regularizer=nn.L2(1.0))
        self.add_loss(lambda: jnp.sum(self.w.value))

    def call(self, x):
        asked = self.losses
        if not isinstance(x, jax.core.Tracer):
            self.asked = tuple(asked)
        return x * self.w.value


@pytest.mark.one_in(2)
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float32"])
def test_weights_are_regularised_by_their_stored_values_inside_call(policy):
    layer = built(LossReader(dtype=policy))
    layer(X)
    want = [np.float32(1 + 2**-20) ** 2, np.float32(1 + 2**-20)]  # narrower dtypes round it to 1
    for terms in (layer.losses, layer.asked, collected(layer)):
        assert [term.dtype for term in terms] == [jnp.float32] * 2
        assert [float(term) for term in terms] == want
    layer.w.assign(np.array([3.0], "float32"))
    assert [float(term) for term in layer.losses] == [9, 3]
    values = collected(layer, {"w": jnp.asarray([2.0])})
    assert [float(term) for term in values] == [4, 2]  # computed from the given values


def test_weights_in_float16_are_regularised_in_float32():
    layer = nn.Dense(
        2, use_bias=False, kernel_initializer=constant(200.0), kernel_regularizer=nn.L2(1.0), param_dtype="float16"
    )
    (term,) = built(layer).losses
    assert (term.dtype, float(term)) == (jnp.float32, 240_000)  # beyond float16

    def of_a_user(w):
        return jnp.sum(w * w)

    wide = nn.Dense(2, kernel_initializer=constant(200.0), kernel_regularizer=of_a_user, param_dtype="float16")
    assert float(built(wide).losses[0]) == 240_000


def test_gradients_of_penalties_reach_the_variables():
    model = built(nn.SequentialNetwork([nn.Dense(2, kernel_regularizer=nn.L2(0.5), dtype="mixed_float16")]))
    variables, _ = nn.split_variables(model)

    def penalty(variables):
        with nn.collected_losses() as losses:
            nn.functional_call(model, variables, X)
        return sum(losses)

    gradients = jax.jit(jax.grad(penalty))(variables)
    assert gradients["dense/kernel"].dtype == jnp.float32
    np.testing.assert_array_equal(gradients["dense/kernel"], variables["dense/kernel"])
    assert not np.any(gradients["dense/bias"])


@pytest.mark.slow
def test_shared_weights_count_once():
    shared = nn.Dense(3, kernel_regularizer=nn.L2(1.0))
    model = built(nn.SequentialNetwork([shared, nn.ReLU(), shared]))
    assert len(model.losses) == len(collected(model)) == 1
    variables, _ = nn.split_variables(model)
    with nn.collected_losses() as losses:
        nn.functional_call(model, variables, X)
        nn.functional_call(model, variables, X)
    assert len(losses) == 1
    with nn.collected_losses() as losses:
        for factor in (1, 2):
            nn.functional_call(model, {path: value * factor for path, value in variables.items()}, X)
    assert float(losses[1]) == pytest.approx(4 * float(losses[0]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_activities_are_regularised_in_the_output_dtype_per_example(dtype):
    layer = built(nn.Activation(lambda x: x * 100, activity_regularizer=nn.L2(1.0), dtype=dtype))
    x = np.full((4, 3), 2.0, "float32")
    layer(x)
    (term,) = layer.losses
    (same,) = collected(layer, {}, x)
    # 12 * 200**2 and a quarter of it are out of range for float16; a sixteenth, for one example, is not.
    assert term.dtype == same.dtype == jnp.dtype(dtype)
    assert float(term) == float(same)
    if dtype == "float16":
        assert float(term) == np.inf
    else:
        assert float(term) == pytest.approx(120_000, rel=2**-8)
    layer(x / 4)
    assert float(layer.losses[0]) == pytest.approx(7500, rel=2**-8)


def test_activity_penalty_has_the_output_dtype_of_the_policy():
    layer = nn.ReLU(activity_regularizer="l2", dtype="variable=float32,compute=float16,output=float32")
    built(layer)(X)
    assert layer.losses[0].dtype == jnp.float32


class LossAdder(nn.Layer):
    def __init__(self, value, **options):
        super().__init__(**options)
        self.value = value
        self.skip = False

    def call(self, x):
        if not self.skip:
            self.add_loss(self.value if self.value is not None else x.mean())
        return x


def test_losses_are_those_of_the_last_eager_call():
    inner = LossAdder(None)
    model = built(nn.SequentialNetwork([inner, inner, nn.SequentialNetwork([LossAdder(2)])]))
    assert model.losses == []
    for _ in range(2):
        model(X)
        assert [float(term) for term in model.losses] == [X.mean(), X.mean(), 2]
    assert [float(term) for term in inner.losses] == [X.mean()] * 2
    inner.skip = True
    model(X)
    assert [float(term) for term in model.losses] == [2]
    inner(X)  # a call of the inner layer does not count for the outer one
    assert [float(term) for term in model.losses] == [2]


@pytest.mark.slow
def test_layer_keeps_no_tracer():
    model = built(nn.SequentialNetwork([LossAdder(None), nn.ReLU(activity_regularizer="l1")]))
    seen = []

    class Watched(nn.Layer):
        def call(self, x):
            seen.append(weakref.ref(x))
            return x

    whole = built(nn.SequentialNetwork([model, Watched()]))
    seen.clear()
    with jax.checking_leaks():
        jax.jit(whole)(X)
        jax.jit(jax.grad(lambda x: whole(x).sum()))(X)
    assert whole.losses == []
    whole(X)
    before = whole.losses
    assert len(before) == len(collected(whole)) == 2
    assert [float(a) for a in whole.losses] == [float(b) for b in before]
    gc.collect()
    assert [reference() for reference in seen if isinstance(reference(), jax.core.Tracer)] == []
    # Neither functional nor eager calls change these losses.
    nn.functional_call(whole, {}, X * 2)
    assert [float(a) for a in whole.losses] == [float(b) for b in before]


def test_loss_function_reads_variables_in_their_stored_dtype():
    class Penalised(nn.Layer):
        def build(self, input_shape):
            self.w = self.add_weight("w", (1,), constant(1 + 2**-20))

        def call(self, x):
            self.add_loss(lambda: jnp.sum(self.w.value))
            return x * self.w.value

    layer = built(Penalised(dtype="mixed_float16"))
    layer(X)
    for (term,) in (layer.losses, collected(layer)):
        assert (term.dtype, float(term)) == (jnp.float32, np.float32(1 + 2**-20))


def test_invalid_losses_raise():
    for bad, error, match in [
        (X, ArgumentError, r"a loss must be a real scalar, got float32\[4, 3\]; use abs\(x\).mean\(\)"),
        (1j * jnp.ones(()), ArgumentError, "complex64"),
        ("a", OperandError, "got str"),
        (lambda: X, ArgumentError, r"a loss must be a real scalar, got float32\[4, 3\]"),
    ]:
        with pytest.raises(error, match=match):
            built(LossAdder(bad))(X)
    with pytest.raises(ArgumentError, match="must get a function without arguments, got float"):
        LossAdder(1).add_loss(1.0)
    layer = built(nn.Dense(1, kernel_regularizer=lambda w: w))
    with pytest.raises(ArgumentError, match="real scalar"):
        _ = layer.losses


@pytest.mark.slow
def test_losses_inside_separately_traced_functions_raise():
    class Mapped(nn.Layer):
        def __init__(self, inner, transform):
            super().__init__()
            self.inner, self.transform = inner, transform

        def call(self, x):
            return self.transform(self.inner)(x)

    transforms = [
        jax.vmap,
        jax.checkpoint,
        jax.jit,
        lambda f: lambda x: jax.lax.scan(lambda c, row: (c, f(row)), 0, x)[1],
    ]
    for transform in transforms:
        for inner in (LossAdder(None), nn.ReLU(activity_regularizer="l1")):
            model = built(Mapped(inner, transform))
            with pytest.raises(
                ArgumentError,
                match=r"a layer adds a loss inside a function that JAX traces separately, such as the function",
            ):
                collected(model)
    weights = built(Mapped(nn.Dense(2, kernel_initializer=ones, kernel_regularizer=nn.L1(1.0)), jax.vmap))
    assert [float(term) for term in collected(weights)] == [6]  # penalties on weights are not mapped
    with (
        pytest.raises(ArgumentError, match=r"use nn\.collected_losses\(\) inside that function"),
        nn.collected_losses(),
    ):
        jax.jit(built(nn.SequentialNetwork([LossAdder(None)])))(X)


@pytest.mark.slow
def test_recurrent_layers_regularise_the_outputs_of_all_steps():
    x = np.ones((2, 5, 3), "float32")
    rnn = built(nn.RNN(nn.SimpleRNNCell(4, activity_regularizer=nn.L1(1.0))), x)
    outputs = rnn(x)
    assert [float(term) for term in rnn.losses] == [pytest.approx(float(jnp.abs(outputs).sum()) / 2)]
    # The order of sums may differ between one compiled program and separate operations.
    assert [float(term) for term in collected(rnn, x=x)] == [pytest.approx(float(rnn.losses[0]), rel=1e-6)]

    class Cell(nn.SimpleRNNCell):
        def call(self, x, state):
            self.add_loss(x.sum())
            return super().call(x, state)

    with pytest.raises(ArgumentError, match="in the layer around the loop"):
        built(nn.RNN(Cell(4)), x)(x)


def test_each_thread_collects_its_own_losses():
    model = built(nn.SequentialNetwork([LossAdder(None)]))
    nn.functional_call(model, {}, X)
    together, found = threading.Barrier(4), {}

    def run(number):
        with nn.collected_losses() as losses:
            together.wait()
            for _ in range(5):
                nn.functional_call(model, {}, np.full((4, 3), number, "float32"))
            together.wait()
        found[number] = [float(term) for term in losses]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [number] * 5 for number in range(4)}
    with nn.collected_losses() as outer:
        with nn.collected_losses() as inner:
            model(X)
        assert (len(inner), len(outer)) == (1, 0)
    model(X)
    assert len(inner) == 1


def test_output_spec_collects_no_losses():
    with nn.collected_losses() as losses:
        model = nn.SequentialNetwork([LossAdder(None), nn.Dense(1, kernel_regularizer="l2", activity_regularizer="l2")])
        nn.initialize(model, X)
    assert losses == []


def test_second_build_does_not_repeat_loss_functions():
    class Once(nn.Layer):
        def build(self, input_shape):
            self.add_loss(lambda: 1.0)

        def call(self, x):
            return x

    layer = Once()
    nn.output_spec(layer, X)
    built(nn.SequentialNetwork([layer], dtype="mixed_bfloat16"))
    assert [float(term) for term in layer.losses] == [1]
