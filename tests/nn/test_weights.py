"""Weights of other libraries: trees, names, errors and dtypes. `conformance/test_weights.py` has the live libraries."""

import re

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from nn.arrays import built
from optional_packages import import_or_skip
from supremum import nn
from supremum.errors import ArgumentError, FileError, OperandError
from supremum.nn.weights.conversions import TABLES
from supremum.nn.weights.trees import name_of, place_of


def mlp(**options):
    model = nn.SequentialNetwork([nn.Dense(4), nn.ReLU(), nn.Dense(2)], **options)
    nn.initialize(model, np.ones((1, 3), "float32"), seed=1)
    return model


def torch_mlp(first="0", second="2", dtype="float32"):
    """The weights of a `torch.nn.Sequential` of two linear layers."""
    rng = np.random.default_rng(0)
    shapes = {f"{first}.weight": (4, 3), f"{first}.bias": (4,), f"{second}.weight": (2, 4), f"{second}.bias": (2,)}
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


NAMES = {"dense": "0", "dense_1": "2"}


def built_cell(cell, features):
    return built(cell, np.ones((1, features), "float32"), cell.initial_state((1,)))


def mismatch(model, weights, library="torch"):
    """Return the error for weights that do not fit, which leaves the model as it was."""
    before = values_of(model)
    with pytest.raises(nn.WeightMismatchError) as caught:
        nn.load_variables(model, weights, library)
    assert_unchanged(model, before)
    return caught.value


def values_of(model):
    return {path: np.asarray(variable.read_stored()) for path, variable in model.variables.items()}


def assert_unchanged(model, before):
    for path, value in values_of(model).items():
        np.testing.assert_array_equal(value, before[path], path)


class Scale(nn.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight("factor", input_shape[-1:])
        self.inner = nn.Dense(2)

    def call(self, x):
        return self.inner(x * self.factor)


def test_names_lead_layers_to_their_counterparts():
    model, weights = mlp(), torch_mlp()
    nn.load_variables(model, weights, "torch", names=NAMES)
    np.testing.assert_array_equal(model.variables["dense/kernel"].value, weights["0.weight"].T)
    np.testing.assert_array_equal(model.variables["dense_1/bias"].value, weights["2.bias"])


def test_exports_with_names_load_back_with_the_same_names():
    model, other = mlp(), mlp()
    nn.load_variables(model, torch_mlp(), "torch", names=NAMES)
    for library in TABLES:
        if library == "torch":
            import_or_skip("torch")
        tree = nn.export_variables(model, library, names=NAMES)
        nn.load_variables(other, tree, library, names=NAMES)
        assert_unchanged(other, values_of(model))


def test_names_that_do_not_match_are_listed_with_the_nearest_and_the_names_that_fit():
    model = mlp()
    error = mismatch(model, torch_mlp())
    assert len(error.problems) == 8
    assert "'dense.weight' of shape (4, 3) for 'dense/kernel' is missing, nearest '0.weight'" in str(error)
    assert "'2.bias' of shape (2,) has no variable, nearest 'dense_1.bias'" in str(error)
    assert error.names == NAMES
    fix = re.search(r"names=(\{.*\});", str(error))
    nn.load_variables(model, torch_mlp(), "torch", names=eval(fix[1]))


def test_suggested_names_skip_layers_that_match_and_lead_into_inner_layers():
    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm, self.attention = nn.LayerNorm(), nn.MultiHeadAttention(2)

        def call(self, x):
            return x + self.attention(self.norm(x))

    class Model(nn.Network):
        def __init__(self):
            super().__init__()
            self.blocks, self.head = [Block(), Block()], nn.Dense(3)

        def call(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    model, other = Model(), Model()
    x = np.ones((1, 5, 6), "float32")
    nn.initialize(model, x, seed=1)
    nn.initialize(other, x, seed=2)
    import_or_skip("torch")
    names = {
        f"blocks/{i}/{ours}": f"h.{i}.{theirs}"
        for i in (0, 1)
        for ours, theirs in (("norm", "ln"), ("attention", "attn"))
    }
    tree = nn.export_variables(model, "torch", names=names)
    assert {"h.1.attn.in_proj_weight", "h.0.ln.bias", "head.weight"} <= tree.keys()
    assert mismatch(other, tree).names == names
    nn.load_variables(other, tree, "torch", names=names)
    assert_unchanged(other, values_of(model))
    tree = nn.export_variables(model, "torch", names={"blocks/0": "h.0", "blocks/1": "h.1"})
    assert {"h.0.attention.in_proj_weight", "h.1.norm.weight"} <= tree.keys()


def test_suggested_names_lead_to_layers_of_ones_own_and_to_the_layers_in_them():
    model = nn.SequentialNetwork([Scale(name="scale"), nn.Dense(3, name="head")])
    nn.initialize(model, np.ones((1, 3), "float32"))
    for given, suggested in (
        ({"head": "b"}, {"head": "b"}),
        ({"scale": "a", "head": "b"}, {"scale": "a", "scale/inner": "a/inner", "head": "b"}),
    ):
        weights = nn.export_variables(model, "keras", names=given)
        assert mismatch(model, weights, "keras").names == suggested
        nn.load_variables(model, weights, "keras", names=suggested)


def test_all_mismatches_are_in_one_error_with_expected_and_given_shapes():
    weights = torch_mlp("dense", "dense_1")
    weights["dense.weight"] = np.ones((4, 5), "float32")
    del weights["dense_1.bias"]
    weights["extra"] = np.ones(7, "float32")
    error = mismatch(mlp(), weights)
    assert error.problems == (
        "'dense.weight' of shape (4, 3) for 'dense/kernel' has shape (4, 5)",
        "'dense_1.bias' of shape (2,) for 'dense_1/bias' is missing",
        "'extra' of shape (7,) has no variable",
    )
    assert error.names == {}


def test_no_names_are_suggested_if_an_array_would_be_left():
    assert mismatch(mlp(), {**torch_mlp(), "extra": np.ones(7, "float32")}).names == {}


def test_an_array_without_a_name_has_no_variable():
    model = mlp()
    for library in TABLES:
        assert "'' of shape (7,) has no variable" in str(mismatch(model, {"": np.ones(7, "float32")}, library))


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.model."])
def test_a_prefix_of_all_names_is_ignored(prefix):
    model = mlp()
    weights = torch_mlp("dense", "dense_1")
    nn.load_variables(model, {prefix + name: value for name, value in weights.items()}, "torch")
    np.testing.assert_array_equal(model.variables["dense/kernel"].value, weights["dense.weight"].T)


def test_collections_of_flax_may_be_left_out_and_random_states_are_ignored():
    layer = built(nn.BatchNorm(), np.ones((2, 3), "float32"))
    tree = nn.export_variables(layer, "flax")
    assert {name: list(group) for name, group in tree.items()} == {
        "params": ["scale", "bias"],
        "batch_stats": ["mean", "var"],
    }
    nn.load_variables(layer, {**tree["params"], **tree["batch_stats"]}, "flax")
    nn.load_variables(layer, {**nn.export_variables(layer, "nnx"), "rngs": {"key": jax.random.key(0)}}, "nnx")
    seeded = {"batch_norm/seed_generator/seed_generator_state": np.ones(2, "uint32")}
    nn.load_variables(layer, {**nn.export_variables(layer, "keras"), **seeded}, "keras")


def test_a_list_of_keras_weights_is_taken_in_order():
    model = mlp()
    weights = nn.export_variables(model, "keras")
    assert list(weights) == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]
    other = mlp()
    nn.load_variables(other, [value + 1 for value in weights.values()], "keras")
    assert_unchanged(other, {path: value + 1 for path, value in values_of(model).items()})
    with pytest.raises(
        nn.WeightMismatchError, match=r"the list must have 4 arrays, for dense/kernel, dense/bias, .*got 3"
    ):
        nn.load_variables(other, list(weights.values())[:3], "keras")
    with pytest.raises(OperandError, match="a nested dict"):
        nn.load_variables(other, list(weights.values()), "torch")


def test_safetensors_files_are_read_in_every_dtype(tmp_path):
    from safetensors.numpy import save_file

    model = mlp()
    weights = torch_mlp("dense", "dense_1", "float16")
    save_file(weights, tmp_path / "model.safetensors")
    nn.load_variables(model, tmp_path / "model.safetensors", "torch")
    np.testing.assert_array_equal(model.variables["dense/kernel"].value, weights["dense.weight"].T.astype("float32"))
    (tmp_path / "broken.safetensors").write_bytes(b"1234")
    with pytest.raises(ArgumentError, match="not a complete safetensors file"):
        nn.load_variables(model, str(tmp_path / "broken.safetensors"), "torch")
    with pytest.raises(FileError, match="there is no such file"):
        nn.load_variables(model, tmp_path / "missing.safetensors", "torch")
    for endless in ("/dev/zero", "/dev/full"):
        with pytest.raises(FileError, match="cannot be read: it is a device, not a file"):
            nn.load_variables(model, endless, "torch")


def test_bfloat16_tensors_of_torch_keep_their_bits(tmp_path):
    torch = import_or_skip("torch")
    from safetensors.torch import save_file

    module = torch.nn.Linear(3, 4).to(torch.bfloat16)
    expected = module.weight.detach().float().numpy().T
    save_file(module.state_dict(), tmp_path / "model.safetensors")
    for values in (module.state_dict(), dict(module.named_parameters()), tmp_path / "model.safetensors"):
        layer = built(nn.Dense(4, param_dtype="bfloat16"), np.ones((1, 3), "float32"))
        nn.load_variables(layer, values, "torch")
        np.testing.assert_array_equal(np.asarray(layer.kernel.read_stored(), "float32"), expected)
        tree = nn.export_variables(layer, "torch")
        assert tree["weight"].dtype == torch.bfloat16
        assert torch.equal(tree["weight"], module.weight.detach())


def test_loaded_weights_share_no_memory_with_the_given_arrays():
    torch = import_or_skip("torch")
    module = torch.nn.Linear(3, 4)
    layer = built(nn.Dense(4), np.ones((1, 3), "float32"))
    nn.load_variables(layer, module.state_dict(), "torch")
    before = np.array(layer.bias.value)
    with torch.no_grad():
        module.bias.add_(1)
    np.testing.assert_array_equal(layer.bias.value, before)
    tree = nn.export_variables(layer, "torch")
    tree["bias"].add_(1)
    np.testing.assert_array_equal(layer.bias.value, before)


def dense_in(dtype, values, **options):
    layer = built(nn.Dense(2, use_bias=False, param_dtype=dtype), np.ones((1, 2), "float32"))
    nn.load_variables(layer, {"kernel": values}, "keras", **options)
    return np.asarray(layer.kernel.read_stored())


def test_values_are_cast_where_that_is_exact():
    narrow = np.array([[0.5, 1.0], [np.inf, -2.0]], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(dense_in("float32", narrow), narrow.astype("float32"))
    wide = np.array([[0.5, np.nan], [np.inf, -2.0]], "float64")
    for dtype in ("float32", "bfloat16", "float16"):
        found = dense_in(dtype, wide)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype("float64"), wide)


def test_values_are_rounded_only_if_that_is_asked_for_and_never_to_infinity():
    values = np.array([[0.1, 1e6], [1.0, 2.0]], "float32")
    with pytest.raises(nn.WeightMismatchError, match=r"bfloat16 cannot hold 0.1 exactly; cast=True rounds it"):
        dense_in("bfloat16", values)
    np.testing.assert_array_equal(dense_in("bfloat16", values, cast=True), values.astype(ml_dtypes.bfloat16))
    with pytest.raises(nn.WeightMismatchError, match=r"float16 cannot hold 1000000.0; give the layer a wider variable"):
        dense_in("float16", values, cast=True)
    for other in (np.ones((2, 2), "int32"), np.ones((2, 2), "complex64")):
        with pytest.raises(nn.WeightMismatchError, match="the variable is float32"):
            dense_in("float32", other, cast=True)


def test_summed_biases_are_rounded_once_in_at_least_float32():
    cell = built_cell(nn.LSTMCell(1), 1)
    weights = {
        "weight_ih": np.ones((4, 1)),
        "weight_hh": np.ones((4, 1)),
        "bias_ih": np.full(4, 256.0),
        "bias_hh": np.ones(4),
    }
    weights = {name: value.astype(ml_dtypes.bfloat16) for name, value in weights.items()}
    nn.load_variables(cell, weights, "torch")
    np.testing.assert_array_equal(cell.bias.value, np.full(4, 257, "float32"))


def test_weights_of_nnx_gru_cells_need_a_recurrent_bias_of_zeros():
    cell = built_cell(nn.GRUCell(2), 3)
    nn.load_variables(cell, nn.export_variables(cell, "nnx"), "flax")
    cell.recurrent_bias.assign(np.ones(2, "float32"))
    with pytest.raises(ArgumentError, match="recurrent_bias"):
        nn.export_variables(cell, "nnx")


def test_layers_of_ones_own_have_the_same_names_and_layouts():
    layer = built(Scale(), np.ones((1, 3), "float32"))
    weights = {"factor": np.ones(3), "inner.weight": np.ones((2, 3)), "inner.bias": np.ones(2)}
    nn.load_variables(layer, weights, "torch")
    assert [float(y) for y in layer(jnp.ones((1, 3)))[0]] == [4.0, 4.0]


def test_every_layer_with_weights_has_a_row_for_each_library():
    kinds = [kind for kind in vars(nn).values() if isinstance(kind, type) and issubclass(kind, nn.Layer)]
    with_weights = [kind for kind in kinds if kind.build is not nn.Layer.build and not issubclass(kind, nn.Network)]
    assert {nn.Dense, nn.BatchNorm, nn.LSTMCell, nn.MultiHeadAttention} <= set(with_weights)
    for library, table in TABLES.items():
        assert [kind for kind in with_weights if not issubclass(kind, tuple(table))] == [], library
        assert table.keys() == TABLES["flax"].keys(), library


LAYERS = {
    "dense": (lambda: nn.Dense(4), (2, 3)),
    "general": (lambda: nn.DenseGeneral((2, 4), axis=(-2, -1)), (5, 3, 6)),
    "general in batches": (lambda: nn.DenseGeneral(4, batch_axis=0), (2, 5, 3)),
    "einsum": (lambda: nn.Einsum("bti,hio->bhto", (2, 3, 4), bias_shape=(2, 4)), (2, 5, 3)),
    "conv in groups": (lambda: nn.Conv(6, (3, 2), groups=2), (2, 9, 8, 4)),
    "transposed conv": (lambda: nn.ConvTranspose(6, (3, 2)), (2, 5, 4, 4)),
    "transposed conv in groups": (lambda: nn.ConvTranspose(6, (3, 2), groups=2), (2, 5, 4, 4)),
    "gradient in groups": (lambda: nn.ConvTranspose(6, (3,), groups=2, transpose_kernel=True), (2, 5, 4)),
    "embedding": (lambda: nn.Embedding(7, 4), (2, 3)),
    "layer norm": (nn.LayerNorm, (2, 3, 6)),
    "batch norm": (nn.BatchNorm, (2, 6)),
    "rms norm": (nn.RMSNorm, (2, 6)),
    "rnn": (lambda: nn.RNN(nn.SimpleRNNCell(4)), (2, 5, 3)),
    "lstm": (lambda: nn.Bidirectional(nn.RNN(nn.LSTMCell(4))), (2, 5, 3)),
    "gru": (lambda: nn.RNN(nn.GRUCell(4)), (2, 5, 3)),
    "gru without bias": (lambda: nn.RNN(nn.GRUCell(4, use_bias=False)), (2, 5, 3)),
    "attention": (lambda: nn.MultiHeadAttention(2), (2, 5, 6)),
    "attention in groups": (lambda: nn.MultiHeadAttention(4, 3, num_key_value_heads=2), (2, 5, 6)),
}


@pytest.fixture(scope="module")
def layers():
    """One of each layer, with weights."""
    dtypes = {name: "int32" if name == "embedding" else "float32" for name in LAYERS}
    return {name: built(make(), np.ones(shape, dtypes[name])) for name, (make, shape) in LAYERS.items()}


@pytest.mark.parametrize("library", TABLES)
def test_exported_weights_of_every_layer_load_back_bit_for_bit(library, layers):
    if library == "torch":
        import_or_skip("torch")
    changed, rng = [], np.random.default_rng(0)
    for name, layer in layers.items():
        for path, variable in layer.variables.items():
            is_unknown = library == "nnx" and path.endswith("recurrent_bias")  # nnx has no such bias
            variable.assign(rng.normal(size=variable.shape).astype("float32") * (not is_unknown))
        before, tree = values_of(layer), nn.export_variables(layer, library)
        for variable in layer.variables.values():
            variable.assign(np.zeros(variable.shape, "float32"))
        nn.load_variables(layer, tree, library)
        after = values_of(layer)
        changed += [(name, path) for path, value in before.items() if not np.array_equal(value, after[path])]
    assert changed == []


def test_arrays_that_are_joined_must_have_one_dtype():
    cell = built_cell(nn.LSTMCell(1), 1)
    weights = {name: np.ones(shape, "float32") for name, shape in (("weight_ih", (4, 1)), ("weight_hh", (4, 1)))}
    weights |= {"bias_ih": np.ones(4, "float32"), "bias_hh": np.ones(4, "float16")}
    assert mismatch(cell, weights).problems == ("'bias_ih' and 'bias_hh' must have one dtype, got float16, float32",)
    weights["bias_hh"] = np.ones(4, ">f4")  # the order of the bytes does not count
    nn.load_variables(cell, weights, "torch")
    np.testing.assert_array_equal(cell.bias.value, np.full(4, 2, "float32"))


def test_a_variable_that_a_subclass_adds_has_the_same_name():
    class Scaled(nn.Dense):
        def build(self, input_shape):
            super().build(input_shape)
            self.factor = self.add_weight("factor", (self.units,))

    layer = built(Scaled(2), np.ones((1, 3), "float32"))
    assert list(nn.export_variables(layer, "keras")) == ["kernel", "bias", "factor"]


def test_a_shared_layer_has_its_first_name():
    class Tied(nn.Layer):
        def __init__(self):
            super().__init__()
            self.first = nn.Dense(3)
            self.second = self.first

        def call(self, x):
            return self.second(self.first(x))

    layer = built(Tied(), np.ones((1, 3), "float32"))
    layer.itself = layer
    assert list(nn.export_variables(layer, "keras")) == ["first/kernel", "first/bias"]


def test_stacked_recurrent_layers_of_torch_are_named_by_their_number():
    torch = import_or_skip("torch")
    module = torch.nn.LSTM(3, 4, num_layers=2, batch_first=True)
    model = nn.SequentialNetwork([nn.RNN(nn.LSTMCell(4), name="first"), nn.RNN(nn.LSTMCell(4), name="second")])
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    nn.initialize(model, x)
    names = {"first/cell": "l0", "second/cell": "l1"}
    nn.load_variables(model, module.state_dict(), "torch", names=names)
    with torch.no_grad():
        want = module(torch.asarray(x))[0].numpy()
    np.testing.assert_allclose(model(x), want, rtol=1e-5, atol=1e-6)
    assert nn.export_variables(model, "torch", names=names).keys() == module.state_dict().keys()


def test_attention_of_torch_with_separate_matrices_and_with_linear_projections():
    torch = import_or_skip("torch")
    layer = nn.MultiHeadAttention(2)
    rng = np.random.default_rng(0)
    x, other = (rng.normal(size=(2, 5, size)).astype("float32") for size in (6, 4))
    nn.initialize(layer, x, other)
    module = torch.nn.MultiheadAttention(6, 2, kdim=4, vdim=4, batch_first=True)
    with torch.no_grad():
        module.in_proj_bias.normal_()
        nn.load_variables(layer, module.state_dict(), "torch")
        want = module(*map(torch.asarray, (x, other, other)), need_weights=False)[0].numpy()
    np.testing.assert_allclose(layer(x, other), want, rtol=1e-5, atol=1e-6)
    assert nn.export_variables(layer, "torch").keys() == module.state_dict().keys()
    llama = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj"}
    tree = nn.export_variables(layer, "torch", names=llama)
    assert tree["o_proj.weight"].shape == (6, 6)
    before = values_of(layer)
    nn.load_variables(layer, tree, "torch", names=llama)
    assert_unchanged(layer, before)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("encoder.0.weight", ("encoder", "0", "weight")), ("weight_ih_l0", ("l0", "weight_ih")),
        ("lstm.bias_hh_l10_reverse", ("lstm", "l10_reverse", "bias_hh")), ("lstm.l1", ("lstm", "l1")), ("", ()),
        ("weight_hr_l0", ("weight_hr_l0",)),
    ],
)  # fmt: skip
def test_names_of_torch_are_split_and_joined(name, parts):
    assert place_of(name, "torch") == parts
    assert name_of(parts, "torch") == name
