"""Mistakes in the use of layers and of their functions: each raises an error that says what is wrong."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

from nn.arrays import built, data
from nn.mistakes import OF_COMPUTATIONS
from nn.recurrent_reference import rnn
from supremum import nn
from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.nn import functional


def ones(*shape):
    return jnp.ones(shape)


def decoder():
    return built(nn.MultiHeadAttention(4, num_key_value_heads=2, value_dim=3), data(2, 6, 8))


class ForgetfulCell(nn.RecurrentCell):
    """A cell with a state that changes its dtype at each step."""

    def initial_state(self, batch_shape, dtype=None):
        return jnp.zeros(batch_shape, "int32")

    def call(self, x, state):
        return x, state.astype("float32" if state.dtype == "int32" else "int32")


class Building(nn.Layer):
    """A layer with a layer inside it, and variables that a function makes in `build`."""

    def __init__(self, make):
        super().__init__()
        self.dense, self.make = nn.Dense(2), make

    def build(self, input_shape):
        self.made = self.make(self)

    def call(self, x):
        return self.dense(x) if x.ndim > 1 else x


NAMES = {
    "Building": Building,
    "jax": jax,
    "jnp": jnp,
    "np": np,
    "nn": nn,
    "ones": ones,
    "built": built,
    "data": data,
    "rnn": rnn,
}
NAMES |= {name: getattr(package, name) for package in (nn, functional) for name in package.__all__}
NAMES |= {
    "sparse": sparse,
    "decoder": decoder,
    "ForgetfulCell": ForgetfulCell,
    "KEY": jax.random.key(0),
    "ROW": ones(2, 1, 4, 5),
}
X = {
    "attention": lambda: ones(2, 5, 4, 3),
    "bidirectional": lambda: data(3, 5, 2),
    "decoding": lambda: nn.KeyValueCache.empty(2, 3, 4, 5, dtype="float32"),
    "models": lambda: nn.Input((2,)),
    "multi-head attention": lambda: data(2, 5, 8),
    "normalization": lambda: ones(2, 3, 4),
    "recurrent": lambda: data(3, 5, 2),
    "reshaping": lambda: jnp.arange(24.0).reshape(2, 3, 4),
    "weights": lambda: built(nn.SequentialNetwork([nn.Dense(4), nn.ReLU(), nn.Dense(2)]), ones(1, 3)),
    "rotary": lambda: np.ones((2, 300, 3, 8), "float32"),
}
"""What `x` is in the expressions of a topic."""

MISTAKES = OF_COMPUTATIONS | {
    ("options", ArgumentError): """
    nn.MinMaxNorm(2, 1) | max_value must be at least min_value=2
    nn.L1(-1.0) | l1 must be at least 0, got -1.0
    nn.L2(np.nan) | l2 must be at least 0, got nan
    nn.L1L2(np.inf) | l1 must be at least 0, got inf
    """,
    ("options", OperandError): """
    Dense(2, 2) | activation must be a name or a function, got 2
    Dense(2, bias_initializer=None) | initializer must be a name or a function, got None; use 'glorot_uniform'
    Dense(2, kernel_constraint=nn.MaxNorm) | constraint must be a name or a function, …MaxNorm'>; use MaxNorm()
    Dense(1, bias_regularizer=nn.L2) | regularizer must be a name or a function, …regularizers.L2'>; use L2()
    ReLU(activity_regularizer=0.01) | got 0.01
    nn.Lambda(2) | function must be a function, got 2
    dense(ones(2, 2), ones(2, 2), precision=3) | precision must be a name
    """,
    ("options", UnknownNameError): """
    Dense(2, "rleu") | unknown activation 'rleu': did you mean 'relu'
    Dense(2, kernel_initializer="he_norml") | unknown initializer 'he_norml': did you mean 'he_normal'
    Dense(2, kernel_constraint="maxnorm") | unknown constraint 'maxnorm': did you mean 'max_norm'
    Dense(1, kernel_regularizer="l1l2") | did you mean 'l1_l2'
    Dense(3, precision="higest") | did you mean 'highest'
    nn.Variable(1.0, constraint="maxnorm") | unknown constraint 'maxnorm': did you mean 'max_norm'
    nn.SequentialNetwork([], dtype="mixed_flaot16") | did you mean 'mixed_float16'
    nn.Dense.from_config({"units": 2, "dtype": "flaot16"}) | did you mean 'float16'
    """,
    ("arrays of layers", ArgumentError): """
    nn.Dense(2).full("a", 1) | Dense(dtype='float32') cannot make the array
    nn.Dense(2).zeros(-1) | cannot make the array
    nn.Dense(2).constant("a") | cannot make the array
    nn.Dense(2).arange([1, 2]) | cannot make the array
    nn.Dense(2).arange(0, 1, 0) | cannot make the array: division by zero
    nn.Dense(2).eye(1.5) | cannot make the array
    """,
    ("arrays of layers", OperandError): """
    nn.Dense(2).add_weight("w", 2.5) | shape must be
    nn.Dense(2).add_weight((3, 2)) | the name of a variable must be a str, got (3, 2); for a shape, use
        shape=(3, 2)
    nn.Dense(2).add_weight(2) | use shape=2
    """,
    ("variables", ArgumentError): """
    Building(lambda layer: [layer.add_weight("w", 2), layer.add_weight("w", 2)])(ones(2)) | two variables have the path
        'w'; give one of them a different name
    Building(lambda layer: layer.add_weight("dense/kernel", 2))(ones(1, 2)) | two variables have the path 'dense/kernel'
    Building(lambda layer: nn.Variable(ones(2)))(ones(2)) | variable 'made' was made in `build`, which JAX traces, so it
        has no value; use self.add_weight('made', (2,), initializer)
    """,
    ("inputs", ArgumentError): """
    nn.initialize(nn.Dense(2, dtype="int32"), ones(1, 2)) | dtype must be floating-point or complex, got int32
    nn.initialize(nn.Dense(2, dtype="bool"), ones(1, 2)) | dtype must be floating-point or complex, got bool
    Flatten(dtype="mixed_float16")({1: ones(2), "a": ones(2)}) | unsortable keys, 1, 'a'
    dense(sparse.BCOO.fromdense(ones(2, 3), n_dense=1), ones(3, 1)) | use x.todense()
    dense(sparse.BCOO.fromdense(ones(4, 6)), ones(3, 1)) | must have shapes (..., n) and (n, m), got (4, 6) and (3, 1)
    """,
    ("inputs", TypeError): """
    nn.initialize(nn.Dense(2, dtype="float64"), ones(1, 2)) | the layer computes in float64, which JAX cannot hold
    nn.initialize(nn.Dense(2), np.array(["a"])) | the inputs of a layer must be arrays of numbers, got an array of dtype
    """,
    ("sequential", ArgumentError): """
    nn.SequentialNetwork([nn.Dense(2), nn.Input((3,))]) | must be the first item
    nn.SequentialNetwork([nn.Dense(2)(nn.Input((3,)))]) | must be the first item
    nn.SequentialNetwork().pop() | has no layers to remove
    nn.SequentialNetwork([nn.Dense(2, input_shape=("a",))]) | lengths, or None for any length, got 'a'
    """,
    ("sequential", OperandError): """
    nn.SequentialNetwork([np.sin]) | SequentialNetwork takes layers, got …; wrap a function: nn.Lambda(function)
    """,
    ("configs", OperandError): """
    nn.Dense.from_config([3]) | config must be
    nn.SequentialNetwork.from_config({"layers": [{"class_name": int, "config": {}}]}) | class_name must be a class
    """,
    ("configs", UnknownNameError): """
    nn.SequentialNetwork.from_config({"layers": [{"class_name": "Dens", "config": {}}]}) | did you mean 'Dense'
    """,
    ("weights", ArgumentError): """
    nn.export_variables(x, "flax", names={"dense": "a", "dense_1": "a"}) | two weights get the name 'a/kernel'
    nn.load_variables(x, nn.split_variables(x)[0], cast=True) | source='flax'
    """,
    ("weights", OperandError): """
    nn.export_variables(x, "flax", names={"dense": 0}) | names
    nn.load_variables(x, {"dense.weight": "a"}, "torch") | 'dense.weight' must be an array of numbers
    """,
    ("weights", UnknownNameError): """
    nn.load_variables(x, {}, "pytorch") | unknown library 'pytorch': did you mean 'torch'
    nn.export_variables(x, "Flax") | unknown library 'Flax'
    nn.export_variables(x, "flax", names={"dens": "0"}) | unknown layer 'dens': did you mean 'dense'
    """,
    ("weights", nn.UninitializedError): """
    nn.load_variables(nn.Dense(2), {}, "torch") | nn.initialize
    """,
    ("weights", nn.WeightMismatchError): """
    nn.load_variables(built(Conv(8, (3, 5)), ones(1, 9, 9, 2)), {"weight": ones(3, 5, 2, 8), "bias": ones(8)}, "torch")
        | 'weight' of shape (8, 2, 3, 5) for 'kernel' has shape
    """,
}


def cases():
    for (topic, error), table in MISTAKES.items():
        for line in re.sub(r"\n {5,}(?=\S)", " ", table).strip().splitlines():
            expression, message = line.strip().split(" | ")
            yield topic, error, expression, ".*".join(map(re.escape, message.split("…")))


@pytest.mark.parametrize(("topic", "error", "expression", "message"), list(cases()))
def test_mistakes_get_a_clear_error(topic, error, expression, message):
    x = X.get(topic, lambda: None)()
    with pytest.raises(error, match=message):
        eval(expression, NAMES | {"x": x})
