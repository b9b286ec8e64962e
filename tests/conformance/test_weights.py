"""Weights of Flax, Keras and PyTorch, loaded and exported: the outputs of each layer agree with the live library's."""

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from slowly import for_each, mostly_slow
from supremum import nn

LIBRARIES = ("flax", "nnx", "keras", "torch")
EPS = 2.0**-23


class Theirs(NamedTuple):
    """A layer of another library: a function of the library that makes it, and the call, if it is not usual."""

    make: Callable[[Any], Any]
    call: Callable[[Any, Any], Any] | None = None


class Case(NamedTuple):
    """A layer here, the shape of its inputs, and its counterparts; `channels` is whether PyTorch has channels first."""

    ours: Callable[[], nn.Layer]
    shape: tuple[int, ...]
    theirs: dict[str, Theirs]
    channels: bool = False
    sums_biases: tuple[str, ...] = ()  # the libraries with two biases of which the layer has the sum
    is_integer: bool = False
    call: dict[str, Any] = {}  # noqa: RUF012


def rngs():
    from flax import nnx

    return nnx.Rngs(0)


def attention_of_torch(layer, x):
    return layer(x, x, x, need_weights=False)[0]


def first(result):
    return result[0]


def recurrent(kind, torch_kind, keras_kind):
    """The cases of a recurrent layer and of a bidirectional one."""
    ours = getattr(nn, f"{kind}Cell")
    flax_kind = {"SimpleRNN": "SimpleCell"}.get(kind, f"{kind}Cell")
    biases = {"GRU": ("torch", "keras")}.get(kind, ("torch",))
    one = Case(
        lambda: nn.RNN(ours(4)),
        (2, 5, 3),
        {
            "flax": Theirs(lambda linen: linen.RNN(getattr(linen, flax_kind)(4))),
            "nnx": Theirs(lambda nnx: nnx.RNN(getattr(nnx, flax_kind)(3, 4, rngs=rngs()))),
            "keras": Theirs(lambda keras: getattr(keras.layers, keras_kind)(4, return_sequences=True)),
            "torch": Theirs(lambda torch: getattr(torch.nn, torch_kind)(3, 4, batch_first=True), lambda m, x: m(x)[0]),
        },
        sums_biases=biases,
    )
    both = Case(
        lambda: nn.Bidirectional(nn.RNN(ours(4))),
        (2, 5, 3),
        {
            "flax": Theirs(
                lambda linen: linen.Bidirectional(
                    linen.RNN(getattr(linen, flax_kind)(4)), linen.RNN(getattr(linen, flax_kind)(4))
                )
            ),
            "keras": Theirs(
                lambda keras: keras.layers.Bidirectional(getattr(keras.layers, keras_kind)(4, return_sequences=True))
            ),
            "torch": Theirs(
                lambda torch: getattr(torch.nn, torch_kind)(3, 4, batch_first=True, bidirectional=True),
                lambda m, x: m(x)[0],
            ),
        },
        sums_biases=biases,
    )
    return one, both


SIMPLE, SIMPLE_BOTH = recurrent("SimpleRNN", "RNN", "SimpleRNN")
LSTM, LSTM_BOTH = recurrent("LSTM", "LSTM", "LSTM")
GRU, GRU_BOTH = recurrent("GRU", "GRU", "GRU")

CASES = {
    "dense": Case(lambda: nn.Dense(4), (2, 3), {
        "flax": Theirs(lambda linen: linen.Dense(4)),
        "nnx": Theirs(lambda nnx: nnx.Linear(3, 4, rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.Dense(4)),
        "torch": Theirs(lambda torch: torch.nn.Linear(3, 4)),
    }),
    "dense without bias": Case(lambda: nn.Dense(4, use_bias=False), (2, 3), {
        "flax": Theirs(lambda linen: linen.Dense(4, use_bias=False)),
        "keras": Theirs(lambda keras: keras.layers.Dense(4, use_bias=False)),
        "torch": Theirs(lambda torch: torch.nn.Linear(3, 4, bias=False)),
    }),
    "general": Case(lambda: nn.DenseGeneral((2, 4), axis=(-2, -1)), (5, 3, 6), {
        "flax": Theirs(lambda linen: linen.DenseGeneral((2, 4), axis=(-2, -1))),
        "nnx": Theirs(lambda nnx: nnx.LinearGeneral((3, 6), (2, 4), axis=(-2, -1), rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.EinsumDense("abc,bcde->ade", (2, 4), bias_axes="de")),
        "torch": Theirs(lambda torch: torch.nn.Linear(18, 8), lambda m, x: m(x.reshape(5, 18)).reshape(5, 2, 4)),
    }),
    "general with a batch axis": Case(lambda: nn.DenseGeneral(4, batch_axis=0), (2, 5, 3), {
        "flax": Theirs(lambda linen: linen.DenseGeneral(4, batch_dims=(0,))),
        "nnx": Theirs(lambda nnx: nnx.LinearGeneral(3, 4, batch_axis={0: 2}, rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.EinsumDense("abc,acd->abd", (5, 4), bias_axes="ad")),
    }),
    "einsum": Case(lambda: nn.Einsum("bti,hio->bhto", (2, 3, 4), bias_shape=(2, 4)), (2, 5, 3), {
        "keras": Theirs(lambda keras: keras.layers.EinsumDense("bti,hio->bhto", (2, 5, 4), bias_axes="ho")),
        "flax": Theirs(lambda linen: linen.Einsum((2, 3, 4), "bti,hio->bhto")),
        "nnx": Theirs(lambda nnx: nnx.Einsum("bti,hio->bhto", (2, 3, 4), (2, 4), rngs=rngs())),
    }),
    "conv 1d": Case(lambda: nn.Conv(4, (3,), padding="VALID", strides=2), (2, 9, 3), {
        "flax": Theirs(lambda linen: linen.Conv(4, (3,), padding="VALID", strides=2)),
        "nnx": Theirs(lambda nnx: nnx.Conv(3, 4, (3,), padding="VALID", strides=2, rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.Conv1D(4, 3, strides=2)),
        "torch": Theirs(lambda torch: torch.nn.Conv1d(3, 4, 3, stride=2)),
    }, channels=True),
    "conv 2d in groups": Case(lambda: nn.Conv(6, (3, 2), padding="VALID", groups=2, kernel_dilation=2), (2, 9, 8, 4), {
        "flax": Theirs(
            lambda linen: linen.Conv(6, (3, 2), padding="VALID", feature_group_count=2, kernel_dilation=2)
        ),
        "nnx": Theirs(
            lambda nnx: nnx.Conv(
                4, 6, (3, 2), padding="VALID", feature_group_count=2, kernel_dilation=2, rngs=rngs()
            )
        ),
        "keras": Theirs(lambda keras: keras.layers.Conv2D(6, (3, 2), groups=2, dilation_rate=2)),
        "torch": Theirs(lambda torch: torch.nn.Conv2d(4, 6, (3, 2), groups=2, dilation=2)),
    }, channels=True),
    "conv 3d": Case(lambda: nn.Conv(4, (2, 3, 2), padding="VALID"), (1, 4, 5, 4, 3), {
        "flax": Theirs(lambda linen: linen.Conv(4, (2, 3, 2), padding="VALID")),
        "keras": Theirs(lambda keras: keras.layers.Conv3D(4, (2, 3, 2))),
        "torch": Theirs(lambda torch: torch.nn.Conv3d(3, 4, (2, 3, 2))),
    }, channels=True),
    "transposed conv 1d": Case(lambda: nn.ConvTranspose(4, (3,), padding="VALID", strides=2), (2, 5, 3), {
        "flax": Theirs(lambda linen: linen.ConvTranspose(4, (3,), padding="VALID", strides=(2,))),
        "nnx": Theirs(lambda nnx: nnx.ConvTranspose(3, 4, (3,), padding="VALID", strides=(2,), rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.Conv1DTranspose(4, 3, strides=2)),
        "torch": Theirs(lambda torch: torch.nn.ConvTranspose1d(3, 4, 3, stride=2)),
    }, channels=True),
    "transposed conv 2d": Case(lambda: nn.ConvTranspose(4, (3, 2), padding="VALID", strides=2), (2, 5, 4, 3), {
        "flax": Theirs(lambda linen: linen.ConvTranspose(4, (3, 2), padding="VALID", strides=(2, 2))),
        "keras": Theirs(lambda keras: keras.layers.Conv2DTranspose(4, (3, 2), strides=2)),
        "torch": Theirs(lambda torch: torch.nn.ConvTranspose2d(3, 4, (3, 2), stride=2)),
    }, channels=True),
    "gradient of a conv": Case(
        lambda: nn.ConvTranspose(4, (3, 2), padding="VALID", strides=2, transpose_kernel=True),
        (2, 5, 4, 3),
        {
            "flax": Theirs(
                lambda linen: linen.ConvTranspose(4, (3, 2), padding="VALID", strides=(2, 2), transpose_kernel=True)
            ),
            "keras": Theirs(lambda keras: keras.layers.Conv2DTranspose(4, (3, 2), strides=2)),
            "torch": Theirs(lambda torch: torch.nn.ConvTranspose2d(3, 4, (3, 2), stride=2)),
        },
        channels=True,
    ),
    "transposed conv in groups": Case(
        lambda: nn.ConvTranspose(6, (3, 2), padding="VALID", groups=2),
        (2, 5, 4, 4),
        {"torch": Theirs(lambda torch: torch.nn.ConvTranspose2d(4, 6, (3, 2), groups=2))},
        channels=True,
    ),
    "gradient of a conv in groups": Case(
        lambda: nn.ConvTranspose(6, (3, 2), padding="VALID", groups=2, transpose_kernel=True),
        (2, 5, 4, 4),
        {"torch": Theirs(lambda torch: torch.nn.ConvTranspose2d(4, 6, (3, 2), groups=2))},
        channels=True,
    ),
    "embedding": Case(lambda: nn.Embedding(7, 4), (2, 3), {
        "flax": Theirs(lambda linen: linen.Embed(7, 4)),
        "nnx": Theirs(lambda nnx: nnx.Embed(7, 4, rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.Embedding(7, 4)),
        "torch": Theirs(lambda torch: torch.nn.Embedding(7, 4)),
    }, is_integer=True),
    "layer norm": Case(lambda: nn.LayerNorm(axes=(-2, -1), epsilon=1e-3), (2, 3, 6), {
        "flax": Theirs(
            lambda linen: linen.LayerNorm(
                1e-3, reduction_axes=(-2, -1), feature_axes=(-2, -1), use_fast_variance=False
            )
        ),
        "keras": Theirs(lambda keras: keras.layers.LayerNormalization([-2, -1], 1e-3)),
        "torch": Theirs(lambda torch: torch.nn.LayerNorm((3, 6), 1e-3)),
    }),
    "layer norm of the last axis": Case(
        lambda: nn.LayerNorm(epsilon=1e-3),
        (2, 3, 6),
        {"nnx": Theirs(lambda nnx: nnx.LayerNorm(6, epsilon=1e-3, use_fast_variance=False, rngs=rngs()))},
    ),
    "rms norm": Case(lambda: nn.RMSNorm(epsilon=1e-3), (2, 3, 6), {
        "flax": Theirs(lambda linen: linen.RMSNorm(1e-3)),
        "nnx": Theirs(lambda nnx: nnx.RMSNorm(6, epsilon=1e-3, rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.RMSNormalization(epsilon=1e-3)),
        "torch": Theirs(lambda torch: torch.nn.RMSNorm(6, 1e-3)),
    }),
    "group norm": Case(lambda: nn.GroupNorm(2, epsilon=1e-3), (2, 3, 5, 6), {
        "flax": Theirs(lambda linen: linen.GroupNorm(2, epsilon=1e-3, use_fast_variance=False)),
        "nnx": Theirs(lambda nnx: nnx.GroupNorm(6, 2, epsilon=1e-3, use_fast_variance=False, rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.GroupNormalization(2, epsilon=1e-3)),
        "torch": Theirs(lambda torch: torch.nn.GroupNorm(2, 6, 1e-3)),
    }, channels=True),
    "instance norm": Case(lambda: nn.InstanceNorm(epsilon=1e-3), (2, 3, 5, 6), {
        "flax": Theirs(lambda linen: linen.InstanceNorm(epsilon=1e-3, use_fast_variance=False)),
        "nnx": Theirs(lambda nnx: nnx.InstanceNorm(6, epsilon=1e-3, use_fast_variance=False, rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.GroupNormalization(-1, epsilon=1e-3)),
        "torch": Theirs(lambda torch: torch.nn.InstanceNorm2d(6, 1e-3, affine=True)),
    }, channels=True),
    "batch norm": Case(lambda: nn.BatchNorm(epsilon=1e-3), (2, 3, 5, 6), {
        "flax": Theirs(lambda linen: linen.BatchNorm(True, epsilon=1e-3)),
        "nnx": Theirs(lambda nnx: nnx.BatchNorm(6, use_running_average=True, epsilon=1e-3, rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.BatchNormalization(epsilon=1e-3)),
        "torch": Theirs(lambda torch: torch.nn.BatchNorm2d(6, 1e-3)),
    }, channels=True),
    "simple rnn": SIMPLE,
    "bidirectional simple rnn": SIMPLE_BOTH,
    "lstm": LSTM,
    "bidirectional lstm": LSTM_BOTH,
    "gru": GRU,
    "bidirectional gru": GRU_BOTH,
    "attention": Case(lambda: nn.MultiHeadAttention(2), (2, 5, 6), {
        "flax": Theirs(lambda linen: linen.MultiHeadDotProductAttention(2)),
        "nnx": Theirs(lambda nnx: nnx.MultiHeadAttention(2, 6, decode=False, rngs=rngs())),
        "keras": Theirs(lambda keras: keras.layers.MultiHeadAttention(2, 3), lambda layer, x: layer(x, x)),
        "torch": Theirs(lambda torch: torch.nn.MultiheadAttention(6, 2, batch_first=True), attention_of_torch),
    }),
    "attention without bias": Case(lambda: nn.MultiHeadAttention(2, use_bias=False), (2, 5, 6), {
        "torch": Theirs(
            lambda torch: torch.nn.MultiheadAttention(6, 2, bias=False, batch_first=True), attention_of_torch
        ),
    }),
    "grouped attention": Case(lambda: nn.MultiHeadAttention(4, 3, num_key_value_heads=2), (2, 5, 6), {
        "keras": Theirs(lambda keras: keras.layers.GroupQueryAttention(3, 4, 2), lambda layer, x: layer(x, x)),
    }),
}  # fmt: skip
PAIRS = [(name, library) for name, case in CASES.items() for library in case.theirs]


def inputs_of(case):
    rng = np.random.default_rng(0)
    if case.is_integer:
        return rng.integers(0, 7, case.shape).astype("int32")
    return rng.normal(size=case.shape).astype("float32")


def drawn(rng, name, like):
    """Draw a float32 weight of the size that initializers give kernels; variances are positive.

    With much larger kernels, recurrent layers and attention amplify differences in rounding.
    """
    values = rng.normal(size=like.shape) * (0.3 if len(like.shape) > 1 else 1)
    return (np.abs(values) + 0.5 if "var" in name else values).astype("float32")


def of_flax(theirs, x, rng):
    linen = import_or_skip("flax.linen")
    module = theirs.make(linen)
    like = jax.eval_shape(module.init, jax.random.key(0), x)
    tree = jax.tree_util.tree_map_with_path(lambda path, leaf: drawn(rng, jax.tree_util.keystr(path), leaf), like)
    reload = lambda tree: module.apply(tree, x)  # noqa: E731
    return tree, np.asarray(module.apply(tree, x)), reload


def of_nnx(theirs, x, rng):
    nnx = import_or_skip("flax.nnx")
    module = theirs.make(nnx)
    state = nnx.state(module, (nnx.Param, nnx.BatchStat))
    pure = nnx.to_pure_dict(state)
    pure = jax.tree_util.tree_map_with_path(lambda path, leaf: drawn(rng, jax.tree_util.keystr(path), leaf), pure)

    def reload(tree):
        nnx.replace_by_pure_dict(state, jax.tree.map(jnp.asarray, tree))
        nnx.update(module, state)
        return np.asarray(module(x))

    return pure, reload(pure), reload


def of_keras(theirs, x, rng):
    os.environ.setdefault("KERAS_BACKEND", "jax")
    keras = import_or_skip("keras")
    layer = theirs.make(keras)
    call = theirs.call or (lambda layer, x: layer(x))
    call(layer, x)

    def reload(tree):
        layer.set_weights(list(tree.values()))
        return np.asarray(call(layer, x))

    tree = {weight.path: drawn(rng, weight.path, weight) for weight in layer.weights}
    return tree, reload(tree), reload


def of_torch(theirs, x, rng, channels):
    torch = import_or_skip("torch")
    module = theirs.make(torch).eval()
    call = theirs.call or (lambda module, x: module(x))
    x = torch.asarray(np.moveaxis(x, -1, 1).copy() if channels else x)

    def reload(tree):
        module.load_state_dict(tree)
        with torch.no_grad():
            found = call(module, x).numpy()
        return np.moveaxis(found, 1, -1) if channels else found

    tree = {
        name: torch.asarray(drawn(rng, name, value)) if value.is_floating_point() else value
        for name, value in module.state_dict().items()
    }
    return tree, reload(tree), reload


def live(name, library):
    """The weights of a live layer, its outputs with them, and a function that gives it other weights and runs it."""
    case = CASES[name]
    x, rng = inputs_of(case), np.random.default_rng(1)
    if library == "torch":
        return of_torch(case.theirs[library], x, rng, case.channels)
    return {"flax": of_flax, "nnx": of_nnx, "keras": of_keras}[library](case.theirs[library], x, rng)


def layer_of(name, seed=0):
    case = CASES[name]
    layer, x = case.ours(), inputs_of(case)
    nn.initialize(layer, x, seed=seed)
    return layer, x


def assert_within_2_ulps(got, want):
    """Assert that outputs differ by at most 2 ulps of the largest one, or of 1 if all are smaller."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape) == (np.float32, want.shape)
    assert np.abs(got - want).max() <= 2 * EPS * max(np.abs(want).max(), 1)


@for_each("name, library", PAIRS, one_in=16, one_slow_in=6)
def test_loaded_weights_give_the_outputs_of_the_library(name, library):
    tree, want, _ = live(name, library)
    layer, x = layer_of(name)
    nn.load_variables(layer, tree, library)
    assert_within_2_ulps(layer(x), want)


@for_each("name, library", PAIRS, one_in=0, one_slow_in=12)
def test_exported_weights_give_our_outputs_and_load_back_exactly(name, library):
    _, _, reload = live(name, library)
    layer, x = layer_of(name, seed=3)
    rng = np.random.default_rng(5)
    for path, variable in layer.variables.items():
        is_unknown = library == "nnx" and path.endswith("recurrent_bias")  # nnx has no such bias
        variable.assign(drawn(rng, path, variable) * (0 if is_unknown else 1))
    tree = nn.export_variables(layer, library)
    assert_within_2_ulps(reload(tree), layer(x))
    other, _ = layer_of(name, seed=4)
    nn.load_variables(other, tree, library)
    for path, variable in layer.variables.items():
        np.testing.assert_array_equal(np.asarray(variable.value), np.asarray(other.variables[path].value), path)


@for_each("name, library", PAIRS, one_in=0, one_slow_in=12)
def test_weights_of_the_library_come_back_exactly(name, library):
    if library in CASES[name].sums_biases:
        pytest.skip("the layer has the sum of two biases")
    tree, _, _ = live(name, library)
    layer, _ = layer_of(name)
    nn.load_variables(layer, tree, library)
    back = nn.export_variables(layer, library)
    if library == "keras":  # paths begin with the name of the layer, and names end in numbers
        assert [re.sub(r"_\d+(?=/|$)", "", path).partition("/")[2] for path in tree] == list(back)
        tree = dict(zip(back, tree.values(), strict=True))
    assert jax.tree.structure(jax.tree.map(np.asarray, back)) == jax.tree.structure(jax.tree.map(np.asarray, tree))
    for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(tree), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert np.asarray(a).dtype == np.asarray(b).dtype


def small_network():
    model = nn.SequentialNetwork(
        [
            nn.Conv(4, (3, 3), padding="VALID", use_bias=False),
            nn.BatchNorm(epsilon=1e-3),
            nn.ReLU(),
            nn.GlobalAveragePool(),
            nn.Dropout(0.5),
            *(nn.Dense(4) for _ in range(11)),
        ]
    )
    x = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype("float32")
    nn.initialize(model, x)
    return model, x


def network_of_linen(x):
    linen = import_or_skip("flax.linen")

    class Model(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Conv(4, (3, 3), padding="VALID", use_bias=False)(x)
            x = linen.relu(linen.BatchNorm(True, epsilon=1e-3)(x)).mean((1, 2))
            x = linen.Dropout(0.5, deterministic=True)(x)
            for _ in range(11):
                x = linen.Dense(4)(x)
            return x

    module = Model()
    weights = jax.tree.map(lambda leaf: jnp.abs(leaf) + 0.1, module.init(jax.random.key(0), x))
    return weights, module.apply(weights, x), "flax"


def network_of_nnx(x):
    nnx = import_or_skip("flax.nnx")
    layers = [
        nnx.Conv(3, 4, (3, 3), padding="VALID", use_bias=False, rngs=rngs()),
        nnx.BatchNorm(4, use_running_average=True, epsilon=1e-3, rngs=rngs()),
        lambda x: nnx.relu(x).mean((1, 2)),
        nnx.Dropout(0.5, deterministic=True, rngs=rngs()),
        *(nnx.Linear(4, 4, rngs=rngs()) for _ in range(11)),
    ]
    module = nnx.Sequential(*layers)
    return nnx.state(module), module(x), "nnx"  # variables of nnx, random states among them


def network_of_keras(x):
    os.environ.setdefault("KERAS_BACKEND", "jax")
    keras = import_or_skip("keras")
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Conv2D(4, 3, use_bias=False),
            layers.BatchNormalization(epsilon=1e-3),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.5),
            *(layers.Dense(4) for _ in range(11)),
        ]
    )
    return {variable.path: variable for variable in (model(x), model.variables)[1]}, model(x), "keras"


def network_of_torch(x):
    torch = import_or_skip("torch")
    layers = torch.nn
    model = layers.Sequential(
        layers.Conv2d(3, 4, 3, bias=False),
        layers.BatchNorm2d(4, 1e-3),
        layers.ReLU(),
        layers.AdaptiveAvgPool2d(1),
        layers.Flatten(),
        layers.Dropout(0.5),
        *(layers.Linear(4, 4) for _ in range(11)),
    ).eval()
    with torch.no_grad():
        return model.state_dict(), model(torch.asarray(np.moveaxis(x, -1, 1).copy())).numpy(), "torch"


def test_parameters_of_linen_with_axis_names_are_read():
    linen = import_or_skip("flax.linen")
    named = linen.with_partitioning(linen.initializers.lecun_normal(), ("rows", "columns"))
    weights = linen.Dense(4, kernel_init=named).init(jax.random.key(0), np.ones((2, 3), "float32"))
    layer, _ = layer_of("dense")
    nn.load_variables(layer, weights, "flax")
    np.testing.assert_array_equal(layer.kernel.value, weights["params"]["kernel"].value)


@pytest.mark.parametrize(
    "network",
    mostly_slow(
        [network_of_linen, network_of_nnx, network_of_keras, network_of_torch], network_of_linen, network_of_torch
    ),
)
def test_the_suggested_names_load_a_whole_model(network):
    model, x = small_network()
    weights, want, library = network(x)
    with pytest.raises(nn.WeightMismatchError) as caught:
        nn.load_variables(model, weights, library)
    nn.load_variables(model, weights, library, names=caught.value.names)
    assert_within_2_ulps(model(x), want)
