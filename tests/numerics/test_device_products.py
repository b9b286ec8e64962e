"""A product on a device has the bits that NumPy computes from rounded operands."""

import os
import re
import subprocess
import sys
import textwrap
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from numerics import device_reference as reference
from slowly import for_each, slow
from supremum.numerics import on
from supremum.numerics.devices import ALGORITHMS
from supremum.numerics.rounding import round_to, truncate

RNG = np.random.default_rng(0)
LEFT, RIGHT = reference.whole(RNG, (5, 4)), reference.whole(RNG, (4, 3))
COLUMN, ROW = reference.full(RNG, (5, 1)), reference.full(RNG, (1, 3))


def same(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_the_digits_posted_for_a_tpu_come_out():
    # jax#9973
    x, y = np.array([[0.3744, 0.1656], [0.4707, 0.1663]]), np.array([[0.3946, 0.1186], [0.1569, 0.3145]])
    for mode in (lambda function: function, jax.jit):
        found = mode(on("tpu", jnp.dot))(jnp.asarray(x, "float32"), jnp.asarray(y, "float32"))
        same(found, np.array([[0.17405128, 0.09669876], [0.21180916, 0.10805416]], np.float32))


def test_products_with_a_vector_have_the_digits_posted_for_a_tpu():
    # jax#16349
    with jax.threefry_partitionable(False):
        _, one, other = jax.random.split(jax.random.key(0), 3)
        x, k = jax.random.normal(one, (1, 2, 4)), jax.random.normal(other, (4, 2))
    multiply = on("tpu", lambda x, k: lax.dot_general(x, k, (((2,), (0,)), ((), ()))))
    posted = [[0.31184387, 5.3089447], [0.5985794, 3.6086464]]
    np.testing.assert_allclose(multiply(x, k)[0], posted, rtol=3e-7)
    posted = [[0.31908777, 5.3246055], [0.60039854, 3.6162388]]
    rows = jnp.concatenate([multiply(x[:, :1], k), multiply(x[:, 1:], k)], axis=1)
    # The random numbers of a TPU differ in the fifth digit, which bfloat16 does not show.
    np.testing.assert_allclose(rows[0], posted, rtol=5e-5)


def convolution(x, k, groups=1):
    """A convolution with stride (2, 1), kernel dilation (1, 2) and no padding, in loops."""
    n, _, height, width = x.shape
    outputs, per_group, tall, wide = k.shape
    found = np.zeros((n, outputs, (height - tall) // 2 + 1, width - 2 * (wide - 1)))
    for o, i, j in np.ndindex(found.shape[1:]):
        first = o // (outputs // groups) * per_group
        window = x[:, first : first + per_group, 2 * i : 2 * i + tall, j : j + 2 * wide - 1 : 2]
        found[:, o, i, j] = (window * k[o]).sum((1, 2, 3))
    return found


def matmul(precision):
    return lambda x, y: jnp.matmul(x, y, precision=precision)


def to_float32(x, y):
    return lax.dot(x, y, preferred_element_type="float32")


LEVELS = [None, "default", "high", "highest"]
ARITHMETIC = {
    "v100": dict.fromkeys(LEVELS, reference.float32),
    "a100": {**dict.fromkeys(LEVELS, reference.tf32), "highest": reference.float32},
}
PASSES = {"high": 3, "highest": 6}
SPLIT = {
    "BF16_BF16_F32_X3": (7, 3), "BF16_BF16_F32_X6": (7, 6), "BF16_BF16_F32_X9": (7, 9), "TF32_TF32_F32_X3": (10, 3),
}  # fmt: skip
ONCE = {
    "F16_F16_F16": reference.float16, "F16_F16_F32": reference.float16, "BF16_BF16_BF16": reference.bfloat16,
    "BF16_BF16_F32": reference.bfloat16, "TF32_TF32_F32": reference.tf32, "F32_F32_F32": reference.float32,
}  # fmt: skip
ACCUMULATORS = {"F16_F16_F16": reference.float16, "BF16_BF16_BF16": reference.bfloat16}
FLOAT8 = [name for name in ALGORITHMS if name.startswith("ANY_F8")]
ROUNDINGS = [("h100", reference.tf32), ("tpu", reference.bfloat16)]


def precisions():
    """Precisions of both operands, of which the higher one counts."""
    for device, one, other in product(ARITHMETIC, LEVELS[1:], LEVELS[1:]):
        rounding = ARITHMETIC[device][max(one, other, key=LEVELS.index)]
        yield device, matmul((one, other)), (COLUMN, ROW), reference.outer(COLUMN, ROW, rounding)
    for device in ARITHMETIC:
        yield device, jnp.matmul, (COLUMN, ROW), reference.outer(COLUMN, ROW, ARITHMETIC[device][None])
    for level in (None, "default"):
        yield "tpu", matmul(level), (COLUMN, ROW), reference.outer(COLUMN, ROW, reference.bfloat16)
    for level, count in PASSES.items():
        yield "tpu", matmul(level), (COLUMN, ROW), reference.passes(np.matmul, COLUMN, ROW, 7, count)


def algorithms():
    for name, dtype in product(ONCE, ["float32", "bfloat16", "float16"]):
        x, y = COLUMN.astype(dtype), ROW.astype(dtype)
        rounded = reference.outer(x.astype("float32"), y.astype("float32"), ONCE[name])
        yield "tpu", matmul(name), (x, y), ACCUMULATORS.get(name, reference.float32)(rounded).astype(dtype)
    for name, (bits, count) in SPLIT.items():
        # A product of two parts in TF32 has 22 bits, so it is exact as well.
        expected = reference.passes(np.matmul, COLUMN, ROW, bits, count, reference.cut)
        yield "h100", matmul(name), (COLUMN, ROW), expected
    x, y = LEFT + np.float32(2**-20), RIGHT + np.float32(2**-20)
    in_float64 = (x.astype("float64") @ y.astype("float64")).astype("float32")
    yield "a100", matmul("F64_F64_F64"), (x, y), in_float64
    x, y = LEFT.astype(ml_dtypes.float8_e4m3fn), RIGHT.astype(ml_dtypes.float8_e5m2)
    for name in FLOAT8:
        multiply = partial(lax.dot, precision=name, preferred_element_type="float32")
        yield "h100", multiply, (x, y), x.astype("float32") @ y.astype("float32")


def operands():
    """Operands of two dtypes, complex ones, batches, convolutions and ragged products."""
    for one, other in (("float32", "bfloat16"), ("float16", "float32"), ("float32", "float32")):
        x, y = LEFT.astype(one), RIGHT.astype(other)
        rounded = (reference.tf32(each.astype("float32")) for each in (x, y))
        yield "h100", to_float32, (x, y), reference.exact(np.matmul, *rounded)
    x, y = LEFT[:, :2] + 1j * LEFT[:, 2:], RIGHT[:2] + 1j * RIGHT[2:]
    parts = [reference.tf32(each.real) + 1j * reference.tf32(each.imag).astype("float64") for each in (x, y)]
    yield "a100", jnp.matmul, (x, y), (parts[0] @ parts[1]).astype("complex64")
    for device, rounding in ROUNDINGS:
        x, y = reference.whole(RNG, (3, 2, 5, 2)), reference.whole(RNG, (2, 2, 4, 3))
        expected = reference.once(partial(np.einsum, "bkil,lkjb->bij"), x, y, rounding)
        yield device, partial(jnp.einsum, "bkil,lkjb->bij"), (x, y), expected
        x, w, sizes = reference.whole(RNG, (6, 4)), reference.whole(RNG, (2, 4, 3)), jnp.array([4, 2])
        ragged = reference.once(lambda x, w: np.concatenate([x[:4] @ w[0], x[4:] @ w[1]]), x, w, rounding)
        yield device, lax.ragged_dot, (x, w, sizes), ragged
    for (device, rounding), groups in product(ROUNDINGS, [1, 2]):
        x, k = reference.whole(RNG, (2, 2, 5, 6)), reference.whole(RNG, (4, 2 // groups, 2, 1))
        options = {"window_strides": (2, 1), "padding": "VALID", "rhs_dilation": (1, 2), "feature_group_count": groups}
        expected = reference.once(partial(convolution, groups=groups), x, k, rounding)
        yield device, partial(lax.conv_general_dilated, **options), (x, k), expected


@pytest.mark.parametrize("mode", [pytest.param(lambda f: f, id="eager"), slow(jax.jit, id="jitted")])
@for_each("device, function, arguments, expected", [*precisions(), *algorithms(), *operands()])
def test_a_product_is_that_of_rounded_operands(device, function, arguments, expected, mode):
    same(mode(on(device, function))(*arguments), expected)
    assert not jax.config.jax_enable_x64


def test_default_matmul_precision():
    for mode in (lambda function: function, jax.jit):
        multiply = mode(on("tpu", jnp.matmul))
        with jax.default_matmul_precision("highest"):
            same(multiply(COLUMN, ROW), reference.passes(np.matmul, COLUMN, ROW, 7, 6))
        same(multiply(COLUMN, ROW), reference.outer(COLUMN, ROW, reference.bfloat16))


def test_every_preset_of_jax_is_known():
    assert {*ALGORITHMS, "DEFAULT"} == {preset.name for preset in lax.DotAlgorithmPreset}
    assert {*SPLIT, *ONCE, *FLOAT8, "F64_F64_F64"} == set(ALGORITHMS)


def test_float64_algorithm_with_64_bits():
    with jax.enable_x64(True):
        multiply = on("a100", matmul("F64_F64_F64"))
        x, y = COLUMN.astype("float64") / 3, ROW.astype("float64") / 7
        np.testing.assert_array_equal(np.asarray(multiply(x, y)), x @ y)
        same(multiply(COLUMN, ROW), (COLUMN.astype("float64") @ ROW.astype("float64")).astype("float32"))


def test_a_dot_algorithm_is_the_preset_with_its_types():
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    algorithm = lax.DotAlgorithm(bfloat16, bfloat16, np.dtype("float32"), num_primitive_operations=3)
    one, other = (on("a100", matmul(each))(COLUMN, ROW) for each in (algorithm, "BF16_BF16_F32_X3"))
    same(one, other)


@for_each("device, dtype", list(product(["h100", "tpu"], ["bfloat16", "float16", "int8", "float8_e4m3fn", "float64"])))
def test_other_operands_are_multiplied_as_here(device, dtype):
    with jax.enable_x64(True):
        x, y = (jnp.asarray(each).astype(dtype) for each in (LEFT, RIGHT))
        result = {"int8": "int32", "float8_e4m3fn": "float32"}.get(dtype, dtype)
        multiply = partial(lax.dot, preferred_element_type=result)
        same(on(device, multiply)(x, y), multiply(x, y))


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.data())
def test_only_products_with_a_vector_stay_in_float32_on_a_tpu(data):
    sizes = st.lists(st.integers(1, 3), max_size=2)
    batch, free, other, summed = (data.draw(sizes) for _ in range(4))
    x = reference.whole(RNG, (*batch, *free, *summed)) + np.float32(2**-12)
    y = reference.whole(RNG, (*batch, *other, *summed)) + np.float32(2**-12)
    x, y = (each[..., None] for each in (x, y))  # one more contracted axis
    axes = [range(each.ndim - len(summed) - 1, each.ndim) for each in (x, y)]
    shared = range(len(batch))
    multiply = lambda x, y: lax.dot_general(x, y, (axes, (shared, shared)))  # noqa: E731
    is_vector = all(size == 1 for size in free) or all(size == 1 for size in other)
    found = on("tpu", multiply)(x, y)
    operands = (x, y) if is_vector else (reference.bfloat16(x), reference.bfloat16(y))
    same(found, multiply(*map(jnp.asarray, operands)))


ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -3e-42, 1.00390625, 3.4e38, 1 + 2**-23]


@for_each("device, precision", list(product(["tpu", "h100"], [*LEVELS[1:], "BF16_BF16_F32_X9", "TF32_TF32_F32_X3"])))
def test_infinity_nan_and_zero_stay_what_they_are(device, precision):
    values = np.array([v for v in ODD if not 0 < abs(v) < 1e-30 and v != 3.4e38], np.float32)
    with np.errstate(invalid="ignore"):
        exact = np.outer(values, values)
    found = np.asarray(on(device, matmul(precision))(values[:, None], values[None]))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(exact))
    np.testing.assert_allclose(found, exact, rtol=1e-2)


@pytest.mark.parametrize(("exponent", "mantissa", "rounding"), [
    (8, 10, reference.tf32), (8, 7, reference.bfloat16), (5, 10, reference.float16),
])  # fmt: skip
def test_rounding_of_all_exponents(exponent, mantissa, rounding):
    bits = RNG.integers(0, 2**32, 200_000, dtype=np.uint32)
    ties = (np.arange(2**16, dtype=np.uint32) << np.uint32(16)) | np.uint32(1 << (22 - mantissa))
    halves = np.arange(2**12).astype(np.float32) * np.float32(2.0**-26)  # ties of subnormal numbers of float16
    values = np.concatenate([bits.view(np.float32), ties.view(np.float32), halves, -halves, np.float32(ODD)])
    found = np.asarray(round_to(values, exponent, mantissa))
    expected = rounding(values)
    finite = ~np.isnan(values)
    np.testing.assert_array_equal(found[finite].view(np.uint32), expected[finite].view(np.uint32))
    assert np.isnan(found[~finite]).all()


def test_cut_values_keep_infinity_and_nan():
    values = np.float32([np.nan, np.inf, -np.inf, 1.9999, -3e-42])
    values[0] = np.uint32(0x7F800001).view(np.float32)  # only the last bit says that it is a NaN
    found = np.asarray(truncate(values, 7))
    assert np.isnan(found[0])
    np.testing.assert_array_equal(found[1:], reference.cut(values[1:], 7))


# Without the flags of the tests, and with the optimizations that users have.
PROGRAM = """
    import jax, jax.numpy as jnp, numpy as np, ml_dtypes
    from supremum.numerics import on

    values = np.random.default_rng(0).integers(2**12, 2**13, (2, 4, 4)).astype("float32")
    x, y = values
    def narrow(x, y):
        return jnp.matmul(x, y, precision="F16_F16_F32")
    for device, function in (("h100", jnp.matmul), ("tpu", jnp.matmul), ("a100", narrow)):
        compiled = jax.jit(on(device, function)).lower(x, y).compile()
        text = compiled.as_text()
        print(device, text.count("reduce-precision("), text.count("round-nearest-even"), float(compiled(x, y)[0, 0]))
    for rounded in (values.astype(ml_dtypes.bfloat16), values.astype("float16")):
        x, y = rounded.astype("float64")
        print(float((x @ y)[0, 0]))
"""


@pytest.mark.slow
def test_xla_does_not_undo_the_rounding():
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], env=environment, capture_output=True, text=True, check=True
    )
    h100, tpu, a100, bfloat16, float16 = run.stdout.splitlines()
    for line, kept in ((h100, 2), (tpu, 2), (a100, 0)):
        assert int(line.split()[1]) >= kept
    assert tpu.split()[-1] == bfloat16
    assert a100.split()[-1] == h100.split()[-1] == float16  # TF32 has the mantissa of float16
    assert not re.search("error", run.stderr, re.IGNORECASE)


@pytest.mark.slow
def test_the_error_posted_for_tf32_comes_out():
    # tensorflow#127346
    rng = np.random.default_rng(133006)
    x = rng.standard_normal((64, 197, 1536)).astype("float32") * 1000.0
    w = rng.standard_normal((384, 1536)).astype("float32") * 50.0
    b = rng.standard_normal((384,)).astype("float32") * 50.0
    layer = jax.jit(lambda x: x.reshape(-1, 1536) @ w.T + b)
    full, found = layer(x), jax.jit(on("a100", layer))(x)
    error = float(jnp.abs(found - full).max() / jnp.abs(full).max())
    assert error == pytest.approx(2.9477e-4, rel=0.05)
