"""Activations, initializers and constraints of layers, by name or as functions."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import mixed_precision, nn, optimizers, training
from supremum.errors import ArgumentError, OperandError, UnknownNameError

X = np.linspace(-1, 1, 24, dtype="float32").reshape(2, 4, 3)
WITH_ACTIVATION = {
    "dense": lambda **options: nn.Dense(5, **options),
    "dense_general": lambda **options: nn.DenseGeneral((2, 3), **options),
    "einsum": lambda **options: nn.Einsum("...i,io->...o", (3, 5), **options),
    "conv": lambda **options: nn.Conv(5, (2,), **options),
    "conv_transpose": lambda **options: nn.ConvTranspose(5, (2,), **options),
}


@pytest.mark.parametrize("make", WITH_ACTIVATION.values(), ids=WITH_ACTIVATION)
def test_activation_is_applied_to_the_outputs(make):
    plain = make(dtype="mixed_float16")(X)
    assert plain.min() < 0
    np.testing.assert_array_equal(make(activation="relu", dtype="mixed_float16")(X), jax.nn.relu(plain))


def test_an_activation_may_be_a_name_a_function_or_a_layer():
    make = WITH_ACTIVATION["dense"]
    plain = make(dtype="mixed_float16")(X)
    np.testing.assert_array_equal(make(activation=jnp.sin, dtype="mixed_float16")(X), jnp.sin(plain))
    layer = nn.ReLU(dtype="mixed_float16")
    np.testing.assert_array_equal(make(activation=layer, dtype="mixed_float16")(X), jax.nn.relu(plain))
    assert make(activation="softmax", dtype="mixed_float16")(X).dtype == "float16"


def test_dense_takes_its_activation_by_position():
    assert nn.Dense(2, "tanh").activation == "tanh"
    layer = nn.Dense(2, "tanh")
    layer(X)
    copy = pickle.loads(pickle.dumps(layer))
    np.testing.assert_array_equal(copy(X), layer(X))


def test_cross_entropy_gets_the_logits_of_a_softmax_by_name():
    model = training.Sequential([nn.Dense(3, "softmax", kernel_initializer="ones")])
    model.compile("sgd", "categorical_crossentropy")
    x = np.asarray([[200.0]], "float32")  # the probability of the first class is zero, and its logarithm is -300
    nn.initialize(model, x)
    model[0].bias.assign(np.asarray([0.0, 300.0, 0.0], "float32"))
    assert model.evaluate(x, np.asarray([[1.0, 0, 0]], "float32"), verbose=0) == 300.0


@pytest.mark.parametrize(
    "layer",
    [nn.LayerNorm(scale_initializer="zeros"), nn.SimpleRNNCell(3, recurrent_initializer="zeros"),
     nn.Embedding(4, 3, embedding_initializer="zeros")],
    ids=lambda layer: layer.name,
)  # fmt: skip
def test_initializers_have_names_in_every_layer(layer):
    if isinstance(layer, nn.RecurrentCell):
        layer = nn.RNN(layer)
    inputs = jnp.zeros((2, 3), "int32") if isinstance(layer, nn.Embedding) else X
    nn.initialize(layer, inputs)
    (name,) = (path for path in layer.variables if path.endswith(("gamma", "recurrent_kernel", "embedding")))
    assert not layer.variables[name].value.any()


class Weighted(nn.Layer):
    def build(self, input_shape):
        self.w = self.add_weight("w", (2,), "ones", constraint="non_neg")
        self.free = self.add_weight("free", (2,), "ones")

    def call(self, x):
        return jnp.sum(x * (self.w + self.free))


WRAPPED = {
    "sgd": lambda: optimizers.SGD(2.0),
    "scaled": lambda: optimizers.LossScaleOptimizer(optimizers.SGD(2.0)),
    "averaged": lambda: optimizers.SGD(2.0, use_ema=True, ema_momentum=0.5),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("make", WRAPPED.values(), ids=WRAPPED)
def test_optimizers_apply_constraints_after_each_step(make, compiled):
    layer, x = Weighted(), jnp.ones(2)
    nn.initialize(layer, x)
    optimizer = make()
    optimizer.minimize(layer if compiled else lambda: layer(x), layer.trainable_variables, *([x] if compiled else []))
    assert (layer.w.value.tolist(), layer.free.value.tolist()) == ([0.0, 0.0], [-1.0, -1.0])
    optimizer.apply_gradients([(jnp.asarray([-1.0, 1.0]), layer.w)])
    assert (layer.w.value.tolist(), layer.free.value.tolist()) == ([2.0, 0.0], [-1.0, -1.0])


@pytest.mark.parametrize("compiled", [lambda function: function, jax.jit], ids=["eager", "jitted"])
def test_constraints_apply_only_when_accumulated_gradients_make_a_step(compiled):
    optimizer = optimizers.SGD(1.0, gradient_accumulation_steps=2)
    variable = nn.Variable(jnp.asarray([-1.0, 1.0], "bfloat16"))
    variable.constraint = nn.NonNeg()
    optimizer.build([variable])
    (key,), state, update = optimizer.built_for, optimizer.state, compiled(optimizer.update)
    values, gradients = {key: variable.value}, {key: jnp.asarray([0.0, 3.0])}
    for expected in ([-1.0, 1.0], [0.0, 0.0]):
        values, state, *_ = update(gradients, state, values)
        assert values[key].tolist() == expected
        assert values[key].dtype == "bfloat16"


@pytest.mark.one_in(9)
@pytest.mark.parametrize("compiled", [lambda function: function, jax.jit], ids=["eager", "jitted"])
@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16", "float32"])
@pytest.mark.parametrize("kind", [nn.SimpleRNN, nn.GRU, nn.LSTM])
def test_recurrent_layers_take_activations_and_initializers_by_name(kind, dtype, compiled):
    gates = {} if kind is nn.SimpleRNN else {"recurrent_activation": "sigmoid"}
    named = kind(4, activation="tanh", recurrent_initializer="orthogonal", dtype=dtype, **gates)
    plain = kind(4, dtype=dtype)
    for layer in (named, plain):
        nn.initialize(layer, X)
    nn.load_variables(plain, {path: each.value for path, each in named.variables.items()})
    ulp = float(jnp.finfo(named.compute_dtype).eps)
    difference = compiled(named)(X).astype("float32") - compiled(plain)(X).astype("float32")
    assert np.abs(difference).max() <= 4 * ulp
    assert not np.array_equal(kind(4, activation="relu", dtype=dtype)(X), plain(X))
    assert kind(4, activation=None)(X).shape == (2, 4)
    with pytest.raises(UnknownNameError, match="did you mean 'tanh'"):
        kind(4, activation="thanh")


def test_skipped_step_applies_no_constraint():
    w = nn.Variable([-1.0])
    w.constraint = nn.NonNeg()
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(1.0))
    optimizer.apply_gradients([(jnp.asarray([np.inf]), w)])
    assert w.value.tolist() == [-1.0]
    optimizer.apply_gradients([(jnp.asarray([0.0]), w)])
    assert w.value.tolist() == [0.0]


def test_fit_keeps_constrained_kernels_in_float32():
    model = training.Sequential([nn.Dense(4, kernel_constraint=nn.UnitNorm())], dtype="mixed_float16")
    model.compile(optimizers.SGD(1.0), "mse")
    model.fit(np.ones((8, 3), "float32"), np.ones((8, 4), "float32"), verbose=0)
    kernel = model[0].kernel
    assert kernel.dtype == "float32"
    np.testing.assert_allclose(np.linalg.norm(kernel, axis=0), 1, rtol=1e-6)


def test_constraint_must_keep_the_shape():
    w = nn.Variable([1.0, 2.0], "w")
    w.constraint = lambda value: value.sum()
    with pytest.raises(ArgumentError, match=r"the constraint of .* must return shape \(2,\), got \(\)"):
        optimizers.SGD().apply_gradients([(jnp.ones(2), w)])


def test_lambda_calls_a_function():
    layer = nn.Lambda(lambda x, y: (x + y) ** 2, dtype="mixed_float16")
    assert layer(X, X).dtype == "float16"
    assert layer.name == "lambda"


def test_loss_scale_optimizer_is_in_mixed_precision_too(recwarn):
    assert mixed_precision.LossScaleOptimizer is optimizers.LossScaleOptimizer
    assert not recwarn


CONSTRAINTS = (nn.MaxNorm(), nn.MinMaxNorm(), nn.NonNeg(), nn.UnitNorm())
REGULARIZERS = (nn.L1(), nn.L2(), nn.L1L2())
NOT_FLOATING = {
    "None": (None, "None; use {}=jnp.asarray([1.0, 2.0])"),
    "text": ("junk", "'junk'; use {}=jnp.asarray([1.0, 2.0])"),
    "list": ([1.0, 2.0], "[1.0, 2.0]; use {}=jnp.asarray([1.0, 2.0])"),
    "objects": (np.asarray([None]), "array([None], dtype=object); use {}=jnp.asarray([1.0, 2.0])"),
    "int": (3, "int; use jnp.asarray({}, 'float32')"),
    "bools": (jnp.ones(2, bool), "bool[2]; use {}.astype('float32')"),
    "integers of NumPy": (np.ones((2, 3), "int64"), "int64[2, 3]; use {}.astype('float32')"),
    "int4": (jnp.ones(2, "int4"), "int4[2]; use {}.astype('float32')"),
}


@pytest.mark.parametrize(("value", "message"), NOT_FLOATING.values(), ids=NOT_FLOATING)
def test_constraints_and_regularizers_take_floating_arrays_only(value, message):
    cases = [(each, "w", "real floating-point") for each in CONSTRAINTS]
    cases += [(each, "x", "floating-point or complex") for each in REGULARIZERS]
    for function, name, kind in cases:
        with pytest.raises(OperandError) as caught:
            function(value)
        must = f"{name} of {type(function).__name__} must be a {kind} array"
        assert str(caught.value) == f"{must}, got {message.format(name)}"


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_constraints_refuse_complex_numbers(constraint):
    with pytest.raises(OperandError) as caught:
        constraint(jnp.ones(2, "complex64"))
    name = type(constraint).__name__
    assert str(caught.value) == f"w of {name} must be a real floating-point array, got complex64[2]; use w.real"


def test_norms_are_computed_over_axes_of_the_weight():
    with pytest.raises(ArgumentError, match=r"^axis must be an axis of the array, which has none, got 0$"):
        nn.MaxNorm()(1.5)
    assert (
        nn.MaxNorm(1.0, axis=None)(jnp.asarray([[3.0, 0], [0, 4]])).round(3).tolist()
        == jnp.asarray([[0.6, 0], [0, 0.8]]).tolist()
    )
