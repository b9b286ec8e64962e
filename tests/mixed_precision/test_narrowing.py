"""Checkpoints narrowed by path, with the errors of each array."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slowly import slow
from supremum import mixed_precision, nn, training
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.mixed_precision import PolicyMap, UnmatchedPatternWarning, narrow


@pytest.mark.parametrize("library", [np, jnp], ids=["numpy", "jax"])
@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_report_has_the_largest_relative_error(library, name):
    x = library.asarray(np.random.default_rng(0).uniform(1, 2, (64, 64)).astype("float32"))
    (made,), report = narrow([x], name)
    assert made.dtype == name
    exact = np.asarray(x, np.float64)
    wanted = np.abs(np.asarray(made, np.float64) - exact) / exact
    (row,) = report.rows
    np.testing.assert_allclose(row.relative_error, wanted.max(), rtol=1e-5)
    assert 0 < row.relative_error <= as_format(name).eps / 2
    assert (row.before, row.after, row.path) == ("float32", name, "0")
    assert (row.bytes_before, row.bytes_after) == (4 * x.size, x.size * as_format(name).bits // 8)
    assert report.relative_error == row.relative_error


def test_errors_of_numbers_out_of_range():
    def error(value):
        return narrow(np.asarray([value, 0.0, 1.0, np.inf, np.nan], "float32"), "float16").report.relative_error

    assert error(1e5) == np.inf
    assert error(1e-9) == 1
    assert error(1.0) == 0


def test_only_wider_floating_arrays_change():
    given = {
        "half": jnp.ones(2, "float16"), "count": np.arange(3), "phase": jnp.ones(2, "complex64"), "eps": 1e-8,
        "key": jax.random.key(0), "double": np.ones(2), "mask": np.ones(2, bool),
    }  # fmt: skip
    made, report = narrow(given, "bfloat16")
    assert [row.path for row in report.rows] == ["double"]
    assert all(made[name] is given[name] for name in given if name != "double")
    assert isinstance(made["double"], np.ndarray)
    assert narrow({"w": jnp.ones(2, "bfloat16")}, "float32").tree["w"].dtype == "bfloat16"


def test_policies_are_chosen_by_path():
    tree = {"norm": {"scale": jnp.ones(2)}, "layers": [{"w": jnp.ones(2)}, {"w": jnp.ones(2)}]}
    by_path = PolicyMap({"norm": "float32", "layers/1": "float8_e4m3fn"}, default="bfloat16")
    made, report = narrow(tree, by_path)
    assert [str(leaf.dtype) for leaf in jax.tree.leaves(made)] == ["bfloat16", "float8_e4m3fn", "float32"]
    assert report.to_dict()["bytes_after"] == 4 + 2 + 8
    with pytest.warns(UnmatchedPatternWarning, match="'nrom'"):
        narrow(tree, PolicyMap({"nrom": "float32"}, default="bfloat16"))


def test_mixed_policy_and_traced_arrays_are_refused():
    with pytest.raises(ArgumentError, match=r"'mixed_bfloat16', which stores them in float32; use 'bfloat16'"):
        narrow({}, "mixed_bfloat16")
    with pytest.raises(ArgumentError, match=r"'w' is traced; call it outside of jax\.jit"):
        jax.jit(lambda w: narrow({"w": w}, "bfloat16").tree)(jnp.ones(2))


@pytest.mark.parametrize(
    ("policy", "jitted"), [("mixed_bfloat16", True), ("infer", False), slow("float32", True), slow("infer", True)]
)
def test_cast_variables_keeps_the_dtypes_of_computation(policy, jitted):
    x = np.linspace(-1, 1, 24, dtype="float32").reshape(8, 3)
    model = nn.SequentialNetwork([nn.Dense(4, "relu"), nn.BatchNorm(), nn.Dense(2)], dtype=policy)
    nn.initialize(model, x)
    call = jax.jit(lambda x: model(x)) if jitted else model
    before = call(x)
    report = nn.cast_variables(model, "bfloat16")
    after = (jax.jit(lambda x: model(x)) if jitted else model)(x)
    assert after.dtype == before.dtype
    np.testing.assert_allclose(np.asarray(after, "float32"), np.asarray(before, "float32"), atol=2**-6)
    assert {path: str(each.true_dtype) for path, each in model.variables.items()} == {
        path: "float32" if "batch_norm" in path else "bfloat16" for path in model.variables
    }
    assert [row.path for row in report.rows] == ["dense/bias", "dense/kernel", "dense_1/bias", "dense_1/kernel"]
    assert max(row.relative_error for row in report.rows) <= 2**-8
    for row in report.rows:
        assert row.bytes_before == 2 * row.bytes_after == 2 * model.variables[row.path].nbytes


def test_cast_variables_of_a_trained_model_chooses_by_path_and_saves(tmp_path):
    x, y = np.ones((8, 3), "float32"), np.ones((8, 2), "float32")
    model = training.Sequential([nn.Dense(4), nn.Dense(2)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    before = model.predict(x, verbose=0)
    nn.cast_variables(model, PolicyMap({"dense_1/kernel": "float32"}, default="bfloat16"))
    assert [str(each.dtype) for each in model.variables.values()] == ["bfloat16", "bfloat16", "float32", "bfloat16"]
    np.testing.assert_allclose(model.predict(x, verbose=0), before, atol=0.02)
    model.save_weights(tmp_path / "narrow.safetensors")
    assert {str(each.dtype) for each in training.load_arrays(tmp_path / "narrow.safetensors")[0].values()} == {
        "bfloat16", "float32",
    }  # fmt: skip


def test_narrow_model_is_exported_at_half_the_size():
    model = nn.SequentialNetwork([nn.Input((64,)), nn.Dense(128, "relu"), nn.Dense(64)], dtype="mixed_bfloat16")
    nn.initialize(model)
    x = jax.ShapeDtypeStruct((1, 64), "float32")

    def exported():
        return jax.export.export(jax.jit(lambda x: model(x)))(x)

    wide = exported()
    report = nn.cast_variables(model, "bfloat16")
    narrow_one = exported()
    saved = len(wide.mlir_module_serialized) - len(narrow_one.mlir_module_serialized)
    assert saved == pytest.approx(report.bytes_before - report.bytes_after, rel=0.05)
    given = np.linspace(-1, 1, 64, dtype="float32")[None]
    np.testing.assert_array_equal(narrow_one.call(given), model(given))
    assert mixed_precision.narrow({}, "bfloat16").report.bytes_after == 0
