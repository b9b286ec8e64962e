"""Warnings about products that autocast does not cast, and the `ops` that these warnings suggest."""

import ast
import re
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.custom_batching import custom_vmap, sequential_vmap
from jax.experimental import pallas
from jax.experimental.ode import odeint
from jax.extend.core import Primitive, check_jaxpr
from jax.sharding import PartitionSpec

from mixed_precision.autocasting.found import W, X, products
from slowly import mostly_slow
from supremum.mixed_precision import PolicyMap, UncastProductsWarning, autocast, register_operation
from supremum.mixed_precision.autocasting.operations import AUTOCAST_OPERATIONS

HERE = re.escape(__file__)


@jax.custom_vjp
def layer(x):
    return jnp.tanh(x @ W)


layer.defvjp(lambda x: (jnp.tanh(x @ W), x), lambda x, g: ((g * (1 - jnp.tanh(x @ W) ** 2)) @ W.T,))


@jax.custom_vjp
def outer(x):
    return layer(x) @ W


outer.defvjp(lambda x: (outer(x), x), lambda x, g: (jax.vjp(lambda x: layer(x) @ W, x)[1](g)[0],))


@custom_vmap
def batched(x):
    return jnp.tanh(x @ W)


@batched.def_vmap
def _(axis_size, in_batched, x):
    return jnp.tanh((x.reshape(-1, 8) @ W).reshape(x.shape)), in_batched[0]


def uncast(function, *args, **kwargs):
    """Return what a report says about uncast products; empty if there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncastProductsWarning)
        return autocast(function, **kwargs).report(*args).products.describe()


def suggested_ops(text, value):
    """Return the `ops` with this value that a text suggests."""
    offered = [ast.literal_eval(each) for each in re.findall(r"ops=(\{.*?\})", text)]
    return next(ops for ops in offered if set(ops.values()) == {value})


# A program, its number of products, how many of them stay uncast, and the function names that `ops` must list.
LEFT = {
    "alone": (layer, 1, 1, {"layer"}),
    "beside others": (lambda x: layer(x @ W) @ W, 3, 1, {"layer"}),
    "twice": (lambda x: layer(layer(x)), 2, 2, {"layer"}),
    "jitted": (jax.jit(lambda x: jax.jit(layer)(x)), 1, 1, {"layer"}),
    "inside of another": (outer, 2, 2, {"outer", "layer"}),
    "scanned": (lambda x: lax.scan(lambda c, _: (layer(c), None), x, length=3)[0], 1, 1, {"layer"}),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 0, layer, x), 1, 1, {"layer"}),
    "cond": (lambda x: lax.cond(x.sum() > 0, layer, lambda x: x @ W, x), 2, 1, {"layer"}),
    "rematerialised": (jax.checkpoint(lambda x: layer(x)), 1, 1, {"layer"}),
    "vmap": (jax.vmap(layer), 1, 1, {"layer"}),
    "custom_vmap": (batched, 1, 1, {"batched"}),
    "tangent of custom_vmap": (lambda x: jax.jvp(batched, (x,), (x,))[1], 3, 3, {"batched"}),
    "custom_vjp with a scan inside": (
        eqx.filter_custom_vjp(lambda x: lax.scan(lambda c, _: (c @ W, None), x, length=3)[0]), 1, 1, {"fn_wrapped"}
    ),
    "sequential_vmap": (sequential_vmap(lambda x: x @ W), 1, 1, {"<lambda>"}),
    "in a jitted function of JAX": (lambda x: jnp.where(x > 0, layer(x), x), 1, 1, {"layer"}),
}  # fmt: skip
LEFT["custom_vjp with a scan inside"][0].def_fwd(lambda _, x: (x @ W, x))
LEFT["custom_vjp with a scan inside"][0].def_bwd(lambda x, g, _p, _x: g @ W.T)


@pytest.mark.parametrize("name", LEFT)
def test_suggested_ops_cast_the_products_that_were_left(name):
    function, count, left, names = LEFT[name]
    text = uncast(function, X)
    assert text.startswith(f"autocast left {left} of {count} products in float32, inside ")
    inside, declared = suggested_ops(text, "inside"), suggested_ops(text, "declared")
    assert inside.keys() == names >= declared.keys()
    assert uncast(function, X, ops=inside) == uncast(function, X, ops=declared) == ""
    cast = autocast(function, ops=inside)
    check_jaxpr(jax.make_jaxpr(cast)(X).jaxpr)
    assert len(products(cast, X)) >= count
    assert set(products(cast, X)) == {"bfloat16"}
    assert products(autocast(function, ops=declared), X).count("float32") == left
    np.testing.assert_allclose(jax.jit(cast)(X), jax.jit(function)(X), rtol=0.05, atol=0.05)


# Programs where all products are cast, or where the user asked for those that are not.
SILENT = {
    "products": (lambda x: x @ W, {}),
    "a custom_vjp without products": (lambda x: jax.nn.relu(eqx.internal.nondifferentiable(x)) @ W, {}),
    "custom_jvp": (lambda x: jax.nn.silu(x) @ W, {}),
    "float32 asked for": (layer, {"policy": "float32"}),
    "float32 asked for by path": (
        jax.named_scope("head")(layer), {"policy": PolicyMap({"head": "float32"}, default="mixed_bfloat16")}
    ),
    "a function in float32": (jax.jit(lambda x: layer(x)), {"ops": {"<lambda>": "float32"}}),
    "a function left": (jax.jit(lambda x: layer(x)), {"ops": {"<lambda>": "declared"}}),
    "disabled": (autocast.disabled()(layer), {}),
    "autocast of its own": (lambda x: autocast(layer, ops={"layer": "inside"})(x), {}),
    "a derivative, in which the rule is dissolved": (jax.grad(lambda x: layer(x).sum()), {}),
    "integers": (lambda x: (x.astype(int) @ W.astype(int)).astype(float), {}),
    "float8": (lambda x: (x.astype("float8_e4m3fn") @ W.astype("float8_e4m3fn")).astype(float), {}),
    "a cast by hand": (lambda x: x.astype("float32") @ W, {}),
    "a dot algorithm": (lambda x: jnp.matmul(x, W, precision=lax.DotAlgorithmPreset.F32_F32_F32), {}),
    "linear algebra of JAX": (lambda x: jnp.linalg.solve(W + jnp.eye(8), x.T), {}),
    "a primitive of which nothing is known": (lambda x: UNKNOWN.bind(x @ W), {}),
    "nothing to cast, disabled": (lambda x: autocast.disabled()(lambda x: jnp.exp(x))(x), {}),
    "nothing to cast, of 16 bits": (lambda x: jnp.exp(x.astype("bfloat16")), {}),
    "nothing to cast, of integers": (lambda x: jnp.arange(3), {}),
    "autocast inside": (lambda x: autocast(lambda x: x @ W)(x), {}),
    "a callback": (lambda x: jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x @ W), {}),
}  # fmt: skip
UNKNOWN = Primitive("unknown_to_all")
UNKNOWN.def_abstract_eval(lambda x: x)


@pytest.mark.parametrize("name", SILENT)
def test_no_warning_if_all_products_are_cast_or_left_on_request(name):
    function, kwargs = SILENT[name]
    jax.make_jaxpr(autocast(function, **kwargs))(X)  # warnings are errors here
    assert uncast(function, X, **kwargs) == ""
    found = autocast(function, **kwargs).report(X).products
    assert (found.left, found.casts_nothing) == ((), False)


@jax.custom_vjp
def narrow(x, w):
    return x @ w


narrow.defvjp(lambda x, w: (x @ w, (x, w)), lambda saved, g: (g @ saved[1].T, saved[0].T @ g))


def test_16_bit_products_are_not_reported():
    half = X.astype("bfloat16"), W.astype("bfloat16")
    assert uncast(narrow, *half) == uncast(narrow, *half, policy="mixed_float16") == ""
    assert uncast(narrow, X, W).startswith("autocast left 1 of 1")


MODES = {
    "eager": lambda f: f,
    "jitted": jax.jit,
    "report": lambda f: f.report,
    "derivative": lambda f: jax.grad(lambda x: f(x).sum()),
    "jitted derivative": lambda f: jax.jit(jax.value_and_grad(lambda x: f(x).sum())),
    "vmap": jax.vmap,
    "rematerialised": jax.checkpoint,
    "scanned": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, length=2)[0],
    "jitted by Equinox": eqx.filter_jit,
    "shard_map": lambda f: jax.shard_map(
        f,
        mesh=jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,)),
        in_specs=PartitionSpec(),
        out_specs=PartitionSpec(),
        check_vma=False,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_warns_once_at_the_users_line(mode):
    def program(x):
        return layer(x) @ W + layer(2 * x) @ W

    program.__code__ = program.__code__.replace(co_firstlineno=10_000 + list(MODES).index(mode))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for shape in (X, X, X[:2]):
            MODES[mode](autocast(program))(shape)
    assert [(each.category, each.filename) for each in caught] == [(UncastProductsWarning, __file__)]
    text = str(caught[0].message)
    assert re.match(
        rf"autocast left 2 of 4 products in float32, inside 'layer' \({HERE}:\d+, called at {HERE}:\d+\)", text
    )
    line = int(text.partition("called at ")[2].partition(")")[0].rpartition(":")[2])
    assert line >= 10_000  # within the function, as its first line number was replaced


def test_a_changed_function_warns_again():
    calls = [layer]

    def program(x):
        return calls[0](x)

    cast = autocast(program)
    with pytest.warns(UncastProductsWarning, match="'layer'"):
        cast(X)
    calls[0] = outer
    with pytest.warns(UncastProductsWarning, match="'outer'"):
        cast(X)
    cast(X)


def test_the_warning_can_be_filtered():
    with pytest.warns(UncastProductsWarning):
        autocast(lambda x: layer(x) + 0)(X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", UncastProductsWarning)
        autocast(lambda x: layer(x) + 0)(X)
    assert caught == []


def test_library_functions_are_named_with_their_file_and_line():
    text = uncast(lambda x: LEFT["custom_vjp with a scan inside"][0](x), X)
    assert re.search(r"inside 'fn_wrapped' \(\S+equinox\S+\.py:\d+, called at \S+:\d+\)", text)


def test_reports_list_uncast_products_as_data_and_text():
    with pytest.warns(UncastProductsWarning):
        report = autocast(lambda x: outer(x) @ (layer(x).T @ x) * 2).report(X)
    assert report.products.count == 5
    assert [(left.function, left.enter, count) for left, count in report.products.left] == [
        ("outer", ("outer", "layer"), 1), ("outer", ("outer",), 1), ("layer", ("layer",), 1)
    ]  # fmt: skip
    text = report.products.describe()
    assert report.summary().splitlines()[-1] == str(report).splitlines()[-1] == text
    assert report.to_dict()["products"]["left"][2]["defined"].startswith(__file__)
    assert report.to_dict()["products"]["count"] == 5
    assert autocast(lambda x: x @ W).report(X).products.describe() == ""


# Operations that autocast does not rewrite


def solved(matrix_product):
    return lambda x: jax.scipy.sparse.linalg.cg(lambda v: 4 * v + matrix_product(v), x[0], maxiter=3)[0]


def symmetric(v):
    return W.T @ (W @ v)


def kernel(x_ref, w_ref, out_ref):
    out_ref[...] = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)


def in_kernel(cast):
    call = pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((4, 8), jnp.float32), interpret=True)
    return lambda x: call(cast(x), cast(W))


MINE = Primitive("mine_calls")
MINE.def_abstract_eval(lambda x, function: x)
# A program, the start of its message, what the message suggests, and the program that follows the suggestion. The
# solver's own products stay in float32, like all linear algebra of JAX.
CLOSED = {
    "solver": (
        solved(symmetric), r"left \d+ of \d+ products in float32, inside 'custom_linear_solve of .*\({}:\d+",
        "apply autocast to that function", solved(autocast(symmetric)),
    ),
    "kernel": (
        in_kernel(lambda x: x), r"left 1 of 1 products in float32, inside 'pallas_call of kernel' \({}:\d+",
        "x.astype('bfloat16')", in_kernel(lambda x: x.astype("bfloat16")),
    ),
    "primitive": (
        lambda x: MINE.bind(x, function=jax.make_jaxpr(lambda x: layer(x @ W))(x)),
        "left 2 of 2 products in float32, inside 'mine_calls of ",
        "ops={'mine_calls': 'declared'}", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", mostly_slow(CLOSED, "primitive"))
def test_products_in_operations_that_autocast_does_not_rewrite_are_reported(name):
    program, message, suggested, fixed = CLOSED[name]
    text = uncast(program, X)
    assert re.match("autocast " + message.format(HERE), text)
    assert suggested in text
    assert uncast(program, X, ops=suggested_ops(text, "declared")) == ""
    if fixed is not None:
        assert uncast(fixed, X) == ""
        np.testing.assert_allclose(jax.jit(autocast(fixed))(X), program(X), rtol=0.05, atol=0.05)
    if name == "solver":  # two products of W for each of at least four calls
        assert products(autocast(fixed), X).count("bfloat16") >= 2 * 4


def test_a_registered_primitive_is_left_on_request():
    try:
        register_operation("mine_calls", "declared", "known to be right in float32")
        assert uncast(CLOSED["primitive"][0], X) == ""
    finally:
        del AUTOCAST_OPERATIONS["mine_calls"]


def test_float64_products_are_reported():
    with jax.enable_x64(True):
        x, w = np.ones((4, 8)), np.ones((8, 8))
        text = uncast(lambda x, w: x @ w @ w, x, w)
        assert text.startswith("autocast left 2 of 2 products in float64, which is never cast")
        assert uncast(lambda x, w: x @ w @ w, x.astype("float32"), w.astype("float32")) == ""
        assert uncast(lambda x: x.astype("float64") @ W.astype("float64"), X) == ""


# Custom vmap rules, rewritten with their functions


@pytest.mark.one_in(4)
@pytest.mark.parametrize("order", ["autocast of vmap", "vmap of autocast", "vmap of vmap of autocast"])
def test_custom_vmap_rules_are_cast_with_their_function(order):
    ops, x = {"batched": "inside"}, jnp.stack([X, 2 * X])
    cast = autocast(batched, ops=ops)
    if order == "autocast of vmap":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ops names a function that vmap has inlined
            function, want = autocast(jax.vmap(batched), ops=ops), jax.vmap(batched)
            assert set(products(function, x)) == {"bfloat16"}
    elif order == "vmap of autocast":
        function, want = jax.vmap(cast), jax.vmap(batched)
    else:
        function, want, x = jax.vmap(jax.vmap(cast)), jax.vmap(jax.vmap(batched)), x[None]
    if order != "autocast of vmap":
        check_jaxpr(jax.make_jaxpr(function)(x).jaxpr)
        assert set(products(function, x)) == {"bfloat16"}
        assert jax.eval_shape(function, x) == jax.eval_shape(want, x)
        np.testing.assert_allclose(jax.jit(function)(x), want(x), rtol=0.05, atol=0.05)
        gradient = jax.grad(lambda x: function(x).sum())(x)
        np.testing.assert_allclose(gradient, jax.grad(lambda x: want(x).sum())(x), rtol=0.05, atol=0.05)


def test_suggested_ops_cast_the_products_in_odeint():
    def solved(x):
        return odeint(lambda y, t: jnp.tanh(y @ W), x[0], jnp.array([0.0, 1.0]))[-1]

    text = uncast(solved, X)
    assert re.match(
        r"autocast left (\d+) of \1 products in float32, inside '_odeint' \(\S+ode\.py:\d+, called at", text
    )
    assert uncast(solved, X, ops=suggested_ops(text, "inside")) == ""
    cast = autocast(solved, ops=suggested_ops(text, "inside"))
    assert set(products(cast, X)) == {"bfloat16"}


def spectral(x):
    """A step of a solver that computes with complex numbers, which are never cast."""
    frequencies = jnp.fft.rfft(x)
    return jnp.fft.irfft(frequencies * jnp.exp(-jnp.arange(frequencies.size) / 4.0), x.size).astype(x.dtype) + x


def test_autocast_warns_once_if_it_casts_nothing():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in (8, 16):
            for make in (autocast, lambda f: jax.jit(autocast(f))):
                make(spectral)(jnp.ones(size))
    assert [(each.category, each.filename) for each in caught] == [(UncastProductsWarning, __file__)]
    text = str(caught[0].message)
    assert text.startswith(
        "autocast casts nothing: it runs products of real floats in bfloat16, and the function has none"
    )
    with warnings.catch_warnings(action="ignore"):
        report = autocast(spectral).report(jnp.ones(8))
    assert report.products.count == 0
    assert report.products.casts_nothing
    assert "autocast casts nothing" in report.summary()
    assert "autocast casts nothing" in str(report)
    autocast(spectral, enabled=False)(jnp.ones(8))  # warnings are errors here


@pytest.mark.parametrize("function", [
    lambda x: x + 1,
    lambda x: jnp.exp(x).sum(),
    lambda x: ((x + 1j) @ W).real,
    jax.grad(lambda x: (jnp.abs(jnp.fft.fft2(x)) ** 2).sum()),
    lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.fft.irfft(jnp.fft.rfft(c)), x),
])  # fmt: skip
def test_functions_without_products_get_the_warning(function):
    assert uncast(function, X).startswith("autocast casts nothing")
