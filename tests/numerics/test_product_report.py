"""`products` has a row for each product, and says what is not emulated."""

import json

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from slowly import for_each
from supremum.numerics import on, products

W, X = jax.ShapeDtypeStruct((16, 4), jnp.float32), jax.ShapeDtypeStruct((8, 16), jnp.float32)


def row(function, device, *operands):
    (found,) = products(function, device)(*operands).rows
    return found


def typed(*dtypes):
    return [jax.ShapeDtypeStruct((8, 8), dtype) for dtype in dtypes]


def test_a_row_has_the_line_and_the_shapes():
    def layer(w, x):
        with jax.named_scope("dense"):
            return x @ w

    found = row(layer, "h100", W, X)
    assert found.file == __file__
    assert found.line == layer.__code__.co_firstlineno + 2
    assert (found.expression, found.scope, found.primitive) == ("x @ w", "dense", "dot_general")
    assert found.operands == ("float32[8,16]", "float32[16,4]")
    assert found.result == "float32[8,4]"
    assert (found.precision, found.computed, found.passes, found.emulated) == ("", "tf32", 1, True)
    assert (found.runs, found.flops, found.backward) == (1, 2 * 8 * 16 * 4, False)


PRECISIONS = [
    # the precision, as the row names it, what a TPU computes in how many passes, and what an H100 computes
    ("default", "default", "bfloat16", 1, "tf32"),
    ("high", "high", "bfloat16 x 3", 3, "tf32"),
    ("highest", "highest", "bfloat16 x 6", 6, "float32"),
    (("high", "default"), "high, default", "bfloat16 x 3", 3, "tf32"),
    ("TF32_TF32_F32", "TF32_TF32_F32", "tf32", 1, "tf32"),
    ("F16_F16_F16", "F16_F16_F16", "float16", 1, ""),
    (lax.DotAlgorithmPreset.BF16_BF16_F32_X9, "BF16_BF16_F32_X9", "bfloat16 x 9", 9, "bfloat16 x 9"),
    ("DEFAULT", "DEFAULT", "bfloat16", 1, "tf32"),
]


@for_each("precision, name, tpu, passes, h100", PRECISIONS)
def test_precision_and_the_arithmetic_of_devices(precision, name, tpu, passes, h100):
    def multiply(w, x):
        return jnp.matmul(x, w, precision=precision)

    found = row(multiply, "tpu", W, X)
    assert (found.precision, found.computed, found.passes) == (name, tpu, passes)
    assert row(multiply, "h100", W, X).computed == h100


def test_a_refused_algorithm_has_a_row():
    refused = row(lambda w, x: jnp.matmul(x, w, precision="TF32_TF32_F32"), "t4", W, X)
    assert (refused.computed, refused.emulated, refused.why) == ("", False, "TF32_TF32_F32 is not supported")


DTYPES = [
    ("tpu", ("bfloat16", "bfloat16"), True, "bfloat16"),
    ("tpu", ("float16", "float16"), False, "float16"),
    ("tpu", ("float64", "float64"), False, "float64"),
    ("h100", ("float64", "float64"), True, "float64"),
    ("tpu", ("complex64", "complex64"), False, "complex64"),
    ("h100", ("complex64", "complex64"), True, "tf32"),
    ("h100", ("complex64", "float32"), True, "tf32"),
    ("tpu", ("float16", "float32"), False, "float16 and float32"),
    ("tpu", ("float32", "bfloat16"), True, "bfloat16"),
    ("tpu", ("int8", "int8"), True, "int8"),
    ("h100", ("float8_e4m3fn", "float8_e5m2"), False, "float8_e4m3fn and float8_e5m2"),
    ("cpu", ("float16", "float16"), True, "float16"),
    ("v100", ("float32", "float32"), True, "float32"),
]


@for_each("device, dtypes, emulated, computed", DTYPES)
def test_dtypes_of_operands(device, dtypes, emulated, computed):
    with jax.enable_x64(True):
        wide = "float32" if "float32" in dtypes and "complex64" not in dtypes else None
        found = row(lambda x, y: lax.dot(x, y, preferred_element_type=wide), device, *typed(*dtypes))
    assert (found.emulated, found.computed) == (emulated, computed)
    assert emulated or "not" in found.why


def test_runs_of_loops_and_gradients():
    def loss(w, x):
        y = lax.fori_loop(0, 5, lambda _, c: c @ x[:, :8], x @ w @ w.T)
        return lax.while_loop(lambda c: c.sum() < 9, lambda c: c @ c.T, y @ x.T).sum()

    square = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    assert [each.runs for each in products(loss)(square, square).rows] == [1, 1, 5, 1, None]
    gradient = products(jax.grad(lambda w, x: ((x @ w) ** 2).sum(), (0, 1)))(W, X).rows
    assert [each.backward for each in gradient] == [False, True, True]
    assert [each.flops for each in gradient] == [2 * 8 * 16 * 4] * 3


def test_products_that_nothing_depends_on_have_no_row():
    def function(w, x):
        x @ w
        return x.sum()

    assert products(function)(W, X).rows == ()
    assert str(products(function)(W, X)) == "0 products on h100"


def test_flops_of_convolutions_and_ragged_products():
    x, k = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((2, 4, 9, 9), (6, 2, 3, 3)))
    found = row(lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID", feature_group_count=2), "tpu", x, k)
    assert found.flops == 2 * (2 * 6 * 7 * 7) * (2 * 3 * 3)
    x, w, n = (jax.ShapeDtypeStruct(*each) for each in (((8, 4), "float32"), ((2, 4, 3), "float32"), ((2,), "int32")))
    assert row(lax.ragged_dot, "tpu", x, w, n).flops == 2 * 8 * 4 * 3
    assert row(jnp.matmul, "h100", *typed("complex64", "complex64")).flops == 4 * 2 * 8**3


def test_products_with_a_vector():
    vector = jax.ShapeDtypeStruct((4,), jnp.float32)
    found = row(jnp.dot, "tpu", W, vector)
    assert (found.computed, found.why) == ("float32", "a product with a vector")
    assert row(jnp.dot, "h100", W, vector).computed == "tf32"
    assert row(jax.vmap(jnp.dot, (None, 0)), "tpu", W, jax.ShapeDtypeStruct((8, 4), jnp.float32)).computed == "bfloat16"


def test_what_is_not_emulated_is_said():
    found = products(jnp.linalg.solve, "tpu")(*typed("float32", "float32")).rows
    assert found
    assert not any(each.emulated for each in found)
    assert {each.primitive for each in found} <= {"lu", "custom_linear_solve", "triangular_solve"}

    def kernel(x, out):
        out[...] = x[...] @ x[...]

    from jax.experimental import pallas as pl

    call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 8), jnp.float32))
    found = row(call, "tpu", *typed("float32"))
    assert (found.primitive, found.emulated, found.flops) == ("pallas_call", False, None)
    assert "not emulated" in found.why


def test_products_that_another_device_computes_keep_their_row():
    assert row(on("tpu", lambda w, x: x @ w), "h100", W, X).computed == "bfloat16"


def test_functions_without_arguments_and_with_numbers():
    assert len(products(lambda: jnp.ones((2, 2)) @ jnp.ones((2, 2)))().rows) == 1
    assert len(products(lambda x, n: x @ x.T * n)(X, 2).rows) == 1


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_text_fits_into_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    found = products(lambda w, x: jnp.matmul(jnp.tanh(x @ w), w.T, precision="highest"), "tpu")(W, X)
    text = str(found)
    assert max(map(len, text.splitlines())) <= columns
    assert text.startswith("2 products on tpu: 1 bfloat16, 1")
    assert "default precision" in " ".join(text.split())
    assert repr(found) == f"Products({found.title})"


def test_plain_data_and_html():
    found = products(lambda w, x: x @ w)(W, X)
    (plain,) = json.loads(json.dumps(found.to_dict()))["rows"]
    assert plain["computed"] == "tf32"
    assert plain["operands"] == ["float32[8,16]", "float32[16,4]"]
    assert "tf32" in found._repr_html_()
    assert found.to_dict()["device"] == "h100"
