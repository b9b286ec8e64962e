"""Saving and loading weights between policies: all of them load, or none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    LoadReport,
    MismatchError,
    MissingCheckpointError,
    fit_values,
    load_arrays,
    load_weights,
    save_arrays,
    save_weights,
)
from training.blobs import equal, values


class Net(nn.Network):
    """A small model with running statistics, which optimizers do not change."""

    def __init__(self, policy, classes=3, **kwargs):
        super().__init__(dtype=policy, **kwargs)
        self.dense = nn.Dense(4, dtype=policy)
        self.batch_norm = nn.BatchNorm(dtype=policy)
        self.head = nn.Dense(classes, dtype=policy)

    def call(self, x):
        return self.head(self.batch_norm(self.dense(x)))


def net(policy="float32", seed=0, classes=3):
    model = Net(policy, classes)
    nn.initialize(model, np.ones((2, 5), np.float32), seed=seed)
    return model


def same(a, b):
    return list(a) == list(b) and equal(a, b) and all(a[path].dtype == b[path].dtype for path in a)


def rewrite(path, change):
    """Rewrite a file with changed arrays."""
    arrays, metadata = load_arrays(path)
    save_arrays(path, change(arrays), metadata)


@pytest.mark.parametrize("target", ["float32", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("source", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_float32_and_mixed_models_load_each_others_weights(path, source, target):
    saved, loaded = net(source, seed=1), net(target, seed=2)
    assert not same(values(saved), values(loaded))
    save_weights(saved, path)
    report = load_weights(loaded, path)
    assert same(values(saved), values(loaded))
    assert report == LoadReport(loaded=tuple(saved.variables))
    assert report.is_complete
    assert all(variable.read_stored().committed is False for variable in loaded.variables.values())


def test_saving_inside_call_writes_the_uncast_values(path):
    class Saving(nn.Layer):
        def build(self, input_shape):
            self.weight = self.add_weight("weight", (2,), jax.nn.initializers.constant(1 + 2**-20))

        def call(self, x):
            assert self.weight.dtype == jnp.float16
            if not isinstance(x, jax.core.Tracer):
                save_weights(self, path)
            return x * self.weight

    layer = Saving(dtype="mixed_float16")
    nn.initialize(layer, np.ones(2, np.float32))
    layer(np.ones(2, np.float32))
    assert load_arrays(path)[0]["weight"].tolist() == [1 + 2**-20] * 2
    assert load_arrays(path)[0]["weight"].dtype == np.float32


def test_weights_load_into_a_built_layer_without_values(path):
    saved, loaded = net(), Net("float32")
    save_weights(saved, path)
    nn.output_spec(loaded, np.ones((2, 5), np.float32))
    load_weights(loaded, path)
    assert same(values(saved), values(loaded))


def test_weights_load_into_deleted_variables(path):
    model = net()
    save_weights(model, path)
    before = values(model)
    before = {name: value.copy() for name, value in before.items()}
    for variable in model.variables.values():
        variable.read_stored().delete()
    load_weights(model, path)
    assert same(values(model), before)


@pytest.mark.parametrize("is_committed", [False, True])
def test_fitted_values_share_no_memory_with_the_given_arrays(is_committed):
    model = net()
    for variable in model.variables.values():
        variable.assign(jax.device_put(variable.read_stored(), jax.devices()[0] if is_committed else None))
    given = {path: np.full(value.shape, 2, value.dtype) for path, value in values(model).items()}
    fitted, _ = fit_values(model, given)
    for path, variable in model.variables.items():
        variable.assign(fitted[path])
    for array in given.values():
        array[...] = 3
    assert all((value == 2).all() for value in values(model).values())


def test_loaded_values_stay_on_the_device_of_the_variable(path):
    model = net()
    device = jax.devices()[0]
    for variable in model.variables.values():
        variable.assign(jax.device_put(variable.read_stored(), device))
    save_weights(model, path)
    assert load_weights(model, path).loaded == tuple(model.variables) != ()
    for variable in model.variables.values():
        assert variable.read_stored().committed
        assert variable.read_stored().devices() == {device}


def test_weights_load_from_a_training_state_with_a_damaged_optimizer(path):
    saved, loaded = net(seed=1), net(seed=2)
    mu = np.full(3, 0.125)
    Checkpoint(saved.variables, {"mu": mu}, step=3).save(path)
    data = path.read_bytes()
    assert data.count(mu.tobytes()) == 1
    path.write_bytes(data.replace(mu.tobytes(), (2 * mu).tobytes()))
    with pytest.raises(CheckpointError, match="'optimizer/mu' do not match their checksum"):
        Checkpoint.load(path)
    assert load_weights(loaded, path).is_complete
    assert same(values(saved), values(loaded))


def test_saving_or_loading_an_uninitialized_layer_raises(path):
    for call in (lambda: save_weights(Net("float32"), path), lambda: load_weights(Net("float32"), path)):
        with pytest.raises(nn.UninitializedError, match=r"nn\.initialize"):
            call()
    declared = Net("float32")
    nn.output_spec(declared, np.ones((2, 5), np.float32))
    with pytest.raises(nn.UninitializedError, match="has no value yet"):
        save_weights(declared, path)
    assert not path.exists()


def test_a_layer_without_weights_is_saved_and_loaded(path):
    layer = nn.ReLU()
    layer(np.ones(2, np.float32))
    save_weights(layer, path)
    assert load_weights(layer, path) == LoadReport()


# Failed loads leave the model unchanged


def assert_load_raises(model, path, *fragments, **options):
    """Assert that a load raises and leaves every bit of the model unchanged; return the error."""
    before, identities = values(model), {name: id(v.read_stored()) for name, v in model.variables.items()}
    with pytest.raises(CheckpointError) as caught:
        load_weights(model, path, **options)
    assert same(values(model), before)
    assert {name: id(v.read_stored()) for name, v in model.variables.items()} == identities
    for fragment in (str(path), *fragments):
        assert fragment in str(caught.value)
    return caught.value


def test_the_error_lists_every_mismatch(path):
    save_weights(net(seed=1), path)

    def change(arrays):
        arrays["dense/kernle"] = arrays.pop("dense/kernel")
        arrays["dense/bias"] = np.ones(7, np.float32)
        arrays["head/bias"] = arrays["head/bias"].astype(np.int32)
        arrays["zzz"] = np.ones(1)
        return arrays

    rewrite(path, change)
    error = assert_load_raises(
        net(),
        path,
        "'dense/kernel' is missing; did you mean 'dense/kernle'?",
        "'dense/kernle' is not a variable of the layer; did you mean 'dense/kernel'?",
        "'dense/bias' is float32[7], but the variable is float32[4]",
        "'head/bias' is int32[3], but the variable is float32[3]; only floating-point values can be cast, "
        "to floating-point dtypes",
        "'zzz' is not a variable of the layer",
        "strict=False",
        cast=True,
    )
    assert isinstance(error, MismatchError)
    assert len(error.problems) == 5


def test_strict_false_loads_matching_weights_and_reports_the_rest(path):
    saved, loaded = net(seed=1), net(seed=2, classes=7)
    save_weights(saved, path)
    rewrite(path, lambda arrays: {"new": np.ones(1)} | {name: a for name, a in arrays.items() if name != "dense/bias"})
    before = values(loaded)
    assert_load_raises(loaded, path)
    report = load_weights(loaded, path, strict=False)
    assert report.missing == ("dense/bias",)
    assert report.unexpected == ("new",)
    assert report.misshapen == ("head/kernel", "head/bias")
    assert not report.is_complete
    left = {*report.missing, *report.misshapen}
    assert report.loaded == tuple(name for name in loaded.variables if name not in left)
    for name, value in values(loaded).items():
        assert value.tobytes() == (before if name in left else values(saved))[name].tobytes()


def test_loading_no_matching_weights_raises_even_with_strict_false(path):
    save_arrays(path, {"other/kernel": np.ones(1)})
    error = assert_load_raises(net(), path, "'other/kernel' is not a variable", "'dense/bias' is missing", strict=False)
    assert "strict=False" not in str(error)
    assert "strict=False" not in str(assert_load_raises(net(), path))


@pytest.mark.slow
def test_a_narrower_variable_dtype_needs_a_cast(path):
    saved, narrow = net("float32", seed=1), net("bfloat16", seed=2)
    save_weights(saved, path)
    assert_load_raises(
        narrow, path, "'dense/kernel' is float32[5, 4], but the variable is bfloat16[5, 4]; cast=True casts it"
    )
    assert_load_raises(narrow, path, "cast=True", strict=False)
    assert load_weights(narrow, path, cast=True).is_complete
    for name, value in values(narrow).items():
        assert np.array_equal(value, values(saved)[name].astype(value.dtype)), name
    save_weights(narrow, path)
    wide = net("float32", seed=3)
    assert_load_raises(wide, path, "is bfloat16[5, 4], but the variable is float32[5, 4]; cast=True casts it")
    assert load_weights(wide, path, cast=True).is_complete
    assert all(np.array_equal(value, values(narrow)[name]) for name, value in values(wide).items())


class OneWeight(nn.Layer):
    def __init__(self, weight_dtype):
        super().__init__()
        self.weight_dtype = weight_dtype

    def build(self, input_shape):
        self.weight = self.add_weight("weight", (2,), dtype=self.weight_dtype)

    def call(self, x):
        return x


def one_weight(dtype="float32"):
    layer = OneWeight(dtype)
    nn.initialize(layer, np.ones(2, np.float32))
    return layer


@pytest.mark.parametrize(
    ("dtype", "value", "fits"),
    [
        ("float16", 70000.0, False), ("float16", -1e30, False), ("float16", np.inf, True), ("float16", np.nan, True),
        ("bfloat16", 3.4e38, False), ("float8_e5m2", np.inf, True), ("float8_e4m3fn", 500.0, False),
        ("float8_e4m3fn", np.inf, False), ("float4_e2m1fn", np.nan, False), ("float4_e2m1fn", np.inf, False),
        ("float4_e2m1fn", 7.0, False), ("float4_e2m1fn", -6.0, True), ("float16", -0.0, True),
    ],
)  # fmt: skip
def test_a_cast_raises_if_the_format_has_no_such_number(path, dtype, value, fits):
    layer, given = one_weight(dtype), np.array([1, value], np.float32)
    save_arrays(path, {"weight": given})
    if fits:
        load_weights(layer, path, cast=True)
        assert np.asarray(layer.weight.value, np.float32).tobytes() == given.tobytes() or np.isnan(value)
        assert np.isnan(np.float32(layer.weight.value[1])) == np.isnan(value)
    else:
        problem = f"cannot hold {given[1].item()}; give the layer a wider variable dtype"
        assert_load_raises(layer, path, "'weight' is float32[2]", problem, cast=True)


def test_only_floating_point_weights_are_cast(path):
    for wrong in (np.ones(2, np.complex64), np.ones(2, np.int8), np.ones(2, bool), jax.random.split(jax.random.key(0))):
        save_arrays(path, {"weight": wrong})
        for cast in (False, True):
            name = "key<fry>" if wrong.dtype == jax.random.key(0).dtype else wrong.dtype
            fragments = f"'weight' is {name}[2]", "only floating-point values can be cast"
            assert_load_raises(one_weight(), path, *fragments, cast=cast)


def test_float64_variables_without_x64_raise_before_any_weight_loads(path):
    layer = nn.Dense(2, dtype="float32")
    nn.initialize(layer, np.ones((1, 2), np.float32))
    save_weights(layer, path)
    with jax.enable_x64(True):
        wide = nn.Dense(2, dtype="float64")
        nn.initialize(wide, np.ones((1, 2)))
        load_weights(wide, path, cast=True)
        assert same(values(wide), {name: value.astype(np.float64) for name, value in values(layer).items()})
    before = values(wide)
    with pytest.raises(TypeError, match="jax_enable_x64"):
        load_weights(wide, path, cast=True)
    assert same(values(wide), before)


def test_a_damaged_or_missing_file_raises_and_keeps_the_weights(path):
    model = net()
    save_weights(net(seed=1), path)
    data = path.read_bytes()
    for broken in (data[:-1], data[: len(data) // 2], b"", data[:-1] + bytes([data[-1] ^ 1])):
        path.write_bytes(broken)
        assert_load_raises(model, path)
    path.unlink()
    assert isinstance(assert_load_raises(model, path), MissingCheckpointError)


def test_error_messages_keep_names_with_format_characters(path):
    save_arrays(path, {"{0}": np.ones(1), "%s": np.ones(1), "": np.ones(1)})
    assert_load_raises(net(), path, "'{0}' is not a variable", "'%s' is not a variable", "'' is not a variable")
