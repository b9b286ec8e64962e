import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.arrays import built, data
from supremum.formats import as_format
from supremum.nn.functional.convolution import conv, conv_transpose
from supremum.nn.layers.convolution import ConvTranspose

NARROW = ["float16", "bfloat16"]


def wide(x):
    return np.asarray(x, np.complex128 if np.iscomplexobj(x) else np.float64)


def dilate(x, distances, start):
    """Insert `distance - 1` zeros between values, along axes from `start` on."""
    for axis, distance in enumerate(distances, start):
        size = max((x.shape[axis] - 1) * distance + 1, 0)
        wider = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
        wider[(slice(None),) * axis + (slice(None, None, distance),)] = x
        x = wider
    return x


def slow_conv(x, kernel, strides, pads, input_dilation, kernel_dilation, groups=1):
    """A NumPy convolution that follows the definition."""
    count = kernel.ndim - 2
    x = np.pad(dilate(wide(x), input_dilation, 1), [(0, 0), *pads, (0, 0)])
    kernel = dilate(wide(kernel), kernel_dilation, 0)
    window = kernel.shape[:count]
    out = [(size - span) // step + 1 for size, span, step in zip(x.shape[1:-1], window, strides, strict=True)]
    result = np.zeros((x.shape[0], *out, kernel.shape[-1]), np.result_type(x, kernel))
    ins, outs = kernel.shape[-2], kernel.shape[-1] // groups
    for place in itertools.product(*map(range, out)):
        part = x[(slice(None), *(slice(p * s, p * s + w) for p, s, w in zip(place, strides, window, strict=True)))]
        for group in range(groups):
            filters = slice(group * outs, (group + 1) * outs)
            seen = part[..., group * ins : (group + 1) * ins]
            result[(slice(None), *place, filters)] = np.tensordot(seen, kernel[..., filters], count + 1)
    return result


CASES = {
    "1d": ((2, 7, 3), (3, 3, 4), {"strides": 2, "padding": [(2, 1)]}),
    "1d dilated": ((2, 5, 3), (2, 3, 4), {"padding": 1, "kernel_dilation": 3, "input_dilation": 2}),
    "2d": ((2, 5, 6, 2), (2, 3, 2, 3), {"strides": (2, 1), "padding": (1, (0, 2))}),
    "2d groups": ((2, 4, 4, 4), (2, 2, 2, 6), {"groups": 2, "padding": "VALID", "kernel_dilation": (1, 2)}),
    "3d": ((1, 3, 4, 3, 2), (2, 2, 2, 2, 3), {"strides": (1, 2, 1), "padding": 0}),
}


def options_of(options, count):
    def each(name):
        value = options.get(name, 1)
        return (value,) * count if isinstance(value, int) else value

    padding = options["padding"]
    padding = 0 if padding == "VALID" else padding
    padding = [padding] * count if isinstance(padding, int) else padding
    pads = [(pad, pad) if isinstance(pad, int) else pad for pad in padding]
    return each("strides"), pads, each("input_dilation"), each("kernel_dilation"), options.get("groups", 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
def test_conv_matches_its_definition(name, dtype):
    shape, kernel_shape, options = CASES[name]
    x, kernel, bias = data(*shape, dtype=dtype), data(*kernel_shape, dtype=dtype, seed=1), data(4, dtype=dtype, seed=2)
    bias = bias[jnp.arange(kernel_shape[-1]) % 4]
    want = slow_conv(x, kernel, *options_of(options, len(shape) - 2)) + wide(bias)
    for run in (conv, jax.jit(lambda x, k, b: conv(x, k, b, **options))):
        got = run(x, kernel, bias, **options) if run is conv else run(x, kernel, bias)
        assert got.dtype == dtype
        eps = as_format(dtype).eps
        np.testing.assert_allclose(wide(got), want, atol=2 * eps * np.abs(want).max())


@pytest.mark.one_in(5)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 2, 3, 4])
@pytest.mark.parametrize("dilation", [1, 2])
def test_named_paddings_match_explicit_ones(stride, window, dilation):
    x, kernel = data(2, 5, 2), data(window, 2, 3, seed=1)
    span = (window - 1) * dilation + 1
    outputs = -(-5 // stride)
    total = max((outputs - 1) * stride + span - 5, 0)
    pads = {"SAME": (total // 2, total - total // 2), "CAUSAL": (span - 1, 0)}
    if span <= 5:
        pads["VALID"] = (0, 0)
    expected = {name: slow_conv(x, kernel, (stride,), [pad], (1,), (dilation,)) for name, pad in pads.items()}
    around = np.pad(x, [(0, 0), ((span - 1) // 2, span // 2), (0, 0)], mode="wrap")
    expected["CIRCULAR"] = slow_conv(around, kernel, (stride,), [(0, 0)], (1,), (dilation,))

    @jax.jit
    def padded(x, kernel):
        return {name: conv(x, kernel, strides=stride, kernel_dilation=dilation, padding=name) for name in expected}

    for name, got in padded(x, kernel).items():
        np.testing.assert_allclose(got, expected[name], atol=1e-5, err_msg=name)


def test_same_padding_of_dilated_inputs_counts_their_gaps():
    x, kernel = data(1, 3, 1), data(3, 1, 1, seed=1)
    got = conv(x, kernel, input_dilation=2)
    np.testing.assert_allclose(got, slow_conv(x, kernel, (1,), [(1, 1)], (2,), (1,)), atol=1e-6)
    assert got.shape == (1, 5, 1)


def test_causal_outputs_do_not_depend_on_later_inputs():
    kernel = data(3, 2, 2)
    jacobian = jax.jacobian(lambda x: conv(x, kernel, padding="CAUSAL", kernel_dilation=2)[0].sum(-1))
    gradient = jax.jit(jacobian)(data(1, 6, 2))
    reached = np.abs(np.asarray(gradient)).sum((1, 3)) > 0
    np.testing.assert_array_equal(reached, [[j <= i and (i - j) in (0, 2, 4) for j in range(6)] for i in range(6)])


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", CASES)
def test_complex_convolutions_have_correct_gradients(name):
    """The gradient of |conv(x, k)|^2 must match the one from the outputs for unit vectors."""
    shape, kernel_shape, options = CASES[name]
    shape = (1, *shape[1:])
    x, kernel = data(*shape, dtype="complex64"), data(*kernel_shape, dtype="complex64", seed=2)

    def loss(x, kernel):
        return jnp.sum(jnp.abs(conv(x, kernel, **options)) ** 2)

    steps = options_of(options, len(shape) - 2)
    out = slow_conv(x, kernel, *steps)
    grads = jax.jit(jax.grad(loss, (0, 1)))(x, kernel)
    for place, (given, gradient) in enumerate(zip((x, kernel), grads, strict=True)):
        assert gradient.dtype == "complex64"
        for index in [0, given.size // 2, given.size - 1]:
            unit = np.zeros(given.size, complex)
            unit[index] = 1
            moved = [unit.reshape(given.shape) if place == each else array for each, array in enumerate((x, kernel))]
            # JAX's gradient of a real function is the conjugate of the direction of steepest ascent.
            want = 2 * np.sum(np.conj(out) * slow_conv(*moved, *steps))
            np.testing.assert_allclose(np.asarray(gradient).ravel()[index], want, rtol=1e-4, atol=1e-4)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", NARROW)
def test_sums_of_4096_terms_round_once(dtype):
    x, kernel = jnp.abs(data(2, 16, 256, dtype=dtype)), jnp.abs(data(16, 256, 3, dtype=dtype, seed=1))
    want = np.tensordot(wide(x), wide(kernel), 2)
    forms = (lambda *args: conv(*args, padding="VALID"), lambda *args: conv_transpose(*args, padding=15)[:, 15:16])
    for form in forms:
        got = jax.jit(form)(x, kernel)
        assert got.dtype == dtype
        error = np.abs(wide(got).reshape(2, 3) / want - 1)
        assert error.max() <= 0.51 * as_format(dtype).eps


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("form", [conv, conv_transpose])
@pytest.mark.parametrize("padding", ["SAME", "CIRCULAR"])
def test_products_stay_in_the_compute_dtype_forward_and_backward(dtype, form, padding):
    def loss(x, kernel, bias):
        return form(x, kernel, bias, strides=2, padding=padding, dtype=dtype).astype("float32").sum()

    program = jax.make_jaxpr(jax.grad(loss, (0, 1, 2)))(data(2, 4, 3), data(3, 3, 2), data(2))
    products = [e for e in program.eqns if e.primitive.name == "conv_general_dilated"]
    assert len(products) == 3
    assert {str(v.aval.dtype) for e in products for v in (*e.invars, *e.outvars)} == {dtype}


@pytest.mark.one_in(22)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("padding", ["SAME", "VALID", "CIRCULAR"])
def test_transposed_kernel_gives_the_transpose_of_conv(stride, window, padding):
    """A transposed convolution with a transposed kernel is the vector-Jacobian product of conv."""
    kernel = data(window, 2, 3)
    size = 4 * stride
    if padding == "VALID":
        size = 3 * stride + max(window, stride)
    x = np.zeros((1, size, 2), np.float32)

    def form(x):
        return conv(x, kernel, strides=stride, padding=padding)

    @jax.jit
    def both(y):
        got = conv_transpose(y, kernel, strides=stride, padding=padding, transpose_kernel=True)
        return got, jax.vjp(form, x)[1](y)[0]

    got, want = both(data(*jax.eval_shape(form, x).shape, seed=1))
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("name", ["1d", "2d", "3d"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16"])
def test_conv_transpose_is_a_convolution_of_dilated_inputs(name, dtype):
    shape, kernel_shape, _ = CASES[name]
    count = len(shape) - 2
    x, kernel = data(*shape, dtype=dtype), data(*kernel_shape, dtype=dtype, seed=1)
    pads = [(2, axis) for axis in range(count)]
    got = jax.jit(lambda *args: conv_transpose(*args, strides=2, padding=pads, kernel_dilation=1))(x, kernel)
    want = slow_conv(x, kernel, (1,) * count, pads, (2,) * count, (1,) * count)
    assert got.dtype == dtype
    np.testing.assert_allclose(wide(got), want, atol=2 * as_format(dtype).eps * np.abs(want).max())


@pytest.mark.one_in(12)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("window", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("transposed", [False, True])
def test_circular_transposes_shift_with_their_inputs(stride, window, transposed):
    """Shifting periodic inputs shifts the outputs, and every weight contributes."""
    x, kernel = data(1, 3, 2), data(window, 2, 2, seed=1)

    @jax.jit
    def run(x):
        return conv_transpose(x, kernel, strides=stride, padding="CIRCULAR", transpose_kernel=transposed)

    assert run(x).shape == (1, 3 * stride, 2)
    np.testing.assert_allclose(run(np.roll(x, 1, 1)), np.roll(run(x), stride, 1), atol=1e-5)
    matrix = np.sum(kernel, 0).T if transposed else np.sum(kernel, 0)
    np.testing.assert_allclose(np.sum(run(x), 1), np.sum(x, 1) @ matrix, atol=1e-4)


@pytest.mark.parametrize("form", [conv, conv_transpose])
def test_empty_batches_and_spaces_give_empty_results(form):
    kernel = data(3, 2, 4)
    x, empty = np.zeros((0, 5, 2), np.float32), np.zeros((2, 0, 2), np.float32)
    made = jax.jit(lambda k: (form(x, k), form(x, k, padding="CIRCULAR"), form(empty, k)))(kernel)
    assert [each.shape for each in made] == [(0, 5, 4), (0, 5, 4), (2, 0, 4)]
    gradient = jax.jit(jax.grad(lambda k: form(x, k).sum()))(kernel)
    assert not np.any(gradient)


def test_window_larger_than_inputs_has_no_outputs():
    assert conv(jnp.ones((2, 2, 1)), jnp.ones((3, 1, 1)), padding="VALID").shape == (2, 0, 1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID", "CIRCULAR"])
def test_each_group_is_a_transposed_convolution(transposed, padding):
    rng = np.random.default_rng(0)
    x, kernel = (rng.normal(size=shape).astype("float32") for shape in ((2, 5, 4), (3, 2, 4 if transposed else 6)))
    options = {"strides": 2, "padding": padding, "transpose_kernel": transposed}
    got = jax.jit(lambda *args: conv_transpose(*args, groups=2, **options))(x, kernel)
    each = jax.jit(lambda *args: conv_transpose(*args, **options))
    parts = [each(*pair) for pair in zip(np.split(x, 2, -1), np.split(kernel, 2, -1), strict=True)]
    np.testing.assert_array_equal(got, np.concatenate(parts, -1))
    if transposed and padding != "CIRCULAR":
        image = np.zeros((2, got.shape[1], 4), np.float32)

        def pulled(y):
            return jax.vjp(lambda image: conv(image, kernel, strides=2, padding=padding, groups=2), image)[1](y)[0]

        np.testing.assert_allclose(got, jax.jit(pulled)(x), rtol=1e-5, atol=1e-5)


def test_transposed_layer_has_groups():
    x = jnp.ones((1, 5, 4))
    for transposed, shape in ((False, (3, 2, 6)), (True, (3, 3, 4))):
        layer = built(ConvTranspose(6, (3,), strides=2, groups=2, transpose_kernel=transposed), x)
        assert (layer.kernel.shape, layer(x).shape) == (shape, (1, 10, 6))
