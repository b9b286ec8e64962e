import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import check_jaxpr

from mixed_precision.autocasting.found import W, X, dtypes, products
from supremum.formats import as_format
from supremum.jaxprs import walk
from supremum.mixed_precision import (
    UncastProductsWarning,
    autocast,
)

LAYER = jax.jit(lambda x: x @ W)
NARROW, NARROW_W, WEAK = X.astype("bfloat16"), W.astype("bfloat16"), jnp.full((4, 4), 2.0)
F32_ALGORITHM = lax.DotAlgorithmPreset.F32_F32_F32
IGNORE = {"respect_explicit_casts": False}


def half(x):
    return x.astype("float16")


def branch(x):
    return lax.cond(x[0, 0] > 0, lambda y: y, lambda y: 2 * y, half(x)) @ W


def rows_times(w, x):
    return lax.scan(lambda c, row: (c, row @ w), 0.0, x[:, None])[1]


# Sums of products and what may be a bias.
BIASES = [
    (lambda x, b: x @ W + b[0], "bfloat16"),  # one value per column of W
    (lambda x, b: b[0] + x @ W, "bfloat16"),
    (lambda x, b: (W @ x.T).T + b[0], "bfloat16"),  # as Equinox writes it
    (lambda x, b: (jnp.exp(x)[None] @ W).transpose(2, 0, 1) + b[:, :1, None], "bfloat16"),
    (lambda x, b: (x[None] @ W).transpose(2, 0, 1) + b[None, None, 0, :4], "bfloat16"),
    (lambda x, b: x @ W + b[:4, :1], "bfloat16"),  # one value per row of x
    (lambda x, b: x @ W + b[:4], "float32"),  # one value per element: a residual, not a bias
    (lambda x, b: jnp.exp(x) @ jnp.exp(W) + b[0], "float32"),  # neither is a weight
    (lambda x, b: x @ W + jnp.exp(b[0]), "float32"),  # computed
    (lambda x, b: 2 * (x @ W) + b[0], "float32"),  # no longer a product
    (lambda x, b: x @ W - b[0], "float32"),
    (lambda x, b: jnp.einsum("bij,bjk->bik", x[None], b[None]) + b[:1, :1], "bfloat16"),
]
# The dtype of a primitive, a function, its arguments, and the settings of autocast.
DTYPES = [
    ("float16", "dot_general", lambda x: half(x).T @ x, [X], {}),
    ("float32", "dot_general", lambda x: half(x).T @ x, [X], {"policy": "float32"}),  # x is wider there
    ("bfloat16", "exp", lambda x: jnp.exp(x.astype("bfloat16")), [X], {}),
    ("float32", "dot_general", lambda x: x.astype("float32") @ W, [NARROW], {"policy": "mixed_float16"}),
    ("float16", "dot_general", lambda x: half(x) @ half(x), [WEAK], {}),
    ("bfloat16", "dot_general", lambda x: (x * half(jnp.full((), 2.0))) @ W, [X], {}),  # a number
    ("float16", "dot_general", lambda x: half(x).reshape(8, 4)[:2].T @ jnp.ones((2, 3)), [X], {}),  # only moved
    ("bfloat16", "dot_general", lambda x: (half(x) + 1) @ W, [X], {}),
    ("float16", "dot_general", lambda x: LAYER(half(x)), [X], {}),
    ("bfloat16", "dot_general", branch, [X], {}),  # one of the branches computes with it
    ("bfloat16", "dot_general", lambda x: x.T @ half(x), [X], IGNORE),
    ("float32", "exp", lambda x: jnp.exp(x.astype("bfloat16")), [X], IGNORE),
    ("bfloat16", "dot_general", lambda x: jnp.matmul(x, x.T, preferred_element_type="float32"), [NARROW], {}),
    ("float32", "add", lambda x: jnp.matmul(x, x.T, preferred_element_type="float32") + 0, [NARROW], {}),
    ("float32", "dot_general", lambda x: lax.dot(x, W, precision=F32_ALGORITHM), [X], {}),
    ("bfloat16", "dot_general", lambda x: jnp.matmul(x, W, precision="highest"), [X], {}),
    ("bfloat16", "div", lambda x: (x @ W) / (x @ W), [X], {}),
    ("bfloat16", "tanh", lambda x, s: jnp.tanh((x @ W) * s), [X, jnp.asarray(2.0)], {}),
    # In a bfloat16 program, jnp.where first casts the number to bfloat16.
    ("float16", "sin", lambda x, w: jnp.sin(jnp.where(x > 0, x @ w, 0.0)), [NARROW, NARROW_W], {"policy": "float16"}),
    ("float32", "mul", lambda x: (x @ W) * jnp.sin(jnp.float32(0.5)), [X], {}),  # computed: not a number
    # Axes that are tracked inside of a loop: one value per iteration, not per column of W.
    ("float32", "tanh", lambda w, x: jnp.tanh(rows_times(w, x) + x[:, :1, None]), [W, X], {}),
    *((expected, "tanh", lambda x, b, add=add: jnp.tanh(add(x, b)), [X, W], {}) for add, expected in BIASES),
]


@pytest.mark.parametrize(("expected", "primitive", "function", "arguments", "settings"), DTYPES)
def test_operations_run_in_their_dtypes(expected, primitive, function, arguments, settings):
    assert dtypes(autocast(function, **settings), primitive, *arguments) == [expected]


# Explicit casts


def test_autocast_astype_marks_casts_to_the_same_dtype():
    assert products(autocast(lambda x: x.astype("float32") @ W), X) == ["bfloat16"]  # leaves no trace in the program
    kept = lambda x: autocast.astype(x, "float32") @ W  # noqa: E731
    assert products(autocast(kept), X) == ["float32"]
    assert products(autocast(lambda x: autocast.astype(x, jnp.float16) @ W), X) == ["float16"]
    np.testing.assert_array_equal(kept(X), X @ W)
    assert autocast.astype(np.ones(2), "float16").dtype == jnp.float16


def test_disabled_turns_autocast_off_in_a_region():
    def program(x):
        y = x @ W
        with autocast.disabled():
            y = jnp.tanh(jax.jit(lambda y: y @ W)(y) @ W)
        return y @ W

    assert products(autocast(program), X) == ["bfloat16", "float32", "float32", "bfloat16"]
    assert dtypes(autocast(program), "tanh", X) == ["float32"]
    assert set(products(jax.grad(lambda x: autocast(program)(x).sum()), X)) == {"bfloat16", "float32"}
    in_function = autocast(jax.jit(program))
    assert products(in_function, X) == ["bfloat16", "float32", "float32", "bfloat16"]


@pytest.mark.parametrize(
    "name", ["autocast", "autocast_disabled", "autocast.disabled", "supremum", "autocast_astype", "astype"]
)
def test_user_scopes_and_functions_with_similar_names_have_no_effect(name):
    def function(x):
        with jax.named_scope(name):
            return jnp.exp(x @ W) @ W

    function.__name__ = name
    for program in (function, jax.jit(function)):
        assert (products(autocast(program), X), dtypes(autocast(program), "exp", X)) == (["bfloat16"] * 2, ["float32"])
        assert {row.path for row in autocast(program).report(X).rows} == {name}


@pytest.mark.parametrize("name", ["autocast_astype", "autocast", "astype"])
def test_functions_with_similar_names_compute_the_same(name):
    def function(x):
        return jnp.exp(x @ W)

    function.__name__ = name
    layer = jax.jit(function)
    assert products(autocast(layer), X) == ["bfloat16"]
    np.testing.assert_allclose(autocast(layer)(X), layer(X), rtol=0.1)


def test_autocast_scopes_stay_in_the_program():
    def program(x):
        with autocast.disabled():
            return autocast.astype(x, "float32") @ W

    sites = list(walk(jax.make_jaxpr(lambda x: autocast(program)(x))(X)))
    assert {site.scopes for site in sites} == {("supremum.autocast", "supremum.autocast.disabled")}


# Where autocast casts


def casts_of(function, shape, *args):
    sites = walk(jax.make_jaxpr(function)(*args))
    casts = [s.equation for s in sites if s.equation.primitive.name == "convert_element_type"]
    return [str(cast.params["new_dtype"]) for cast in casts if cast.invars[0].aval.shape == shape]


def test_a_weight_used_twice_is_cast_once():
    layer = jax.jit(lambda w, x: jnp.tanh(x @ w))
    for function in (lambda w, x: x @ w @ w, lambda w, x: layer(w, layer(w, x)), jax.jit(lambda w, x: layer(w, x @ w))):
        assert casts_of(autocast(function), (8, 8), W, X) == ["bfloat16"]


def operands(function, primitive, *args):
    """Return the dtypes of the operands and the results of the only equation of a primitive."""
    (found,) = [s.equation for s in walk(jax.make_jaxpr(function)(*args)) if s.equation.primitive.name == primitive]
    return [[str(atom.aval.dtype) for atom in atoms] for atoms in (found.invars, found.outvars)]


def test_calls_and_loops_take_and_return_what_their_bodies_need():
    widens = jax.jit(lambda y: jnp.exp(y))
    assert operands(autocast(lambda x: widens(x @ W)), "jit", X)[0] == ["bfloat16"]
    both = jax.jit(lambda w, x: ((x @ w).sum() + w.sum(), w))
    assert operands(autocast(both), "jit", W, X) == [["float32", "bfloat16"], ["float32", "float32"]]
    np.testing.assert_array_equal(autocast(both)(W, X)[1], W)
    narrows = jax.checkpoint(lambda w, x: jnp.sin(x @ w))
    assert operands(autocast(narrows), "remat2", W, X)[0] == ["float32", "float32"]
    scans = autocast(lambda x: lax.scan(lambda c, _: (c @ W, c @ W), x, length=3))
    assert operands(scans, "scan", X)[1] == ["float32", "bfloat16"]
    loops = jax.jit(autocast(lambda x: lax.while_loop(lambda c: c.sum() < 0, lambda c: c @ W, x @ W) @ W))
    assert operands(loops, "while", X)[1] == ["float32"]
    check_jaxpr(jax.make_jaxpr(loops)(X).jaxpr)


def test_a_bias_is_added_in_bfloat16_and_its_gradient_summed_in_float32():
    x, r = jnp.ones((20000, 8)), jax.random.uniform(jax.random.key(0), (20000, 8))

    def loss(b):
        return jnp.sum((x @ W + b) * r)

    gradient = jax.jit(jax.grad(autocast(loss)))(jnp.zeros(8))
    # If the bias were cast before the broadcast, its gradient would be summed in bfloat16, with an error of 18 %.
    np.testing.assert_allclose(gradient, np.asarray(r, np.float64).sum(0), rtol=2e-3)
    assert dtypes(autocast(lambda b: X @ W + b), "add", jnp.zeros(8)) == ["bfloat16"]


@pytest.mark.slow
def test_gradients_of_a_weight_in_a_loop_are_summed_in_float32():
    def loss(w):
        return lax.scan(lambda c, x: (c + (x @ w).sum(), None), 0.0, jnp.ones((4096, 1, 8)))[0]

    gradient = jax.jit(jax.grad(autocast(loss)))(W)
    np.testing.assert_array_equal(gradient, jnp.full((8, 8), 4096.0))  # bfloat16 would stop at 256


def test_float64_complex_integers_and_float8_are_never_cast():
    with jax.enable_x64(True):
        x = jnp.ones((4, 4), "float64")
        for function in (lambda x: jnp.exp(x) @ x, lambda x: x @ jnp.ones((4, 2), "float32")):
            with pytest.warns(UncastProductsWarning, match="left 1 of 1 products in float64, which is never cast"):
                assert products(autocast(function), x) == ["float64"]
        gives = autocast(lambda x: jnp.matmul(x, x, preferred_element_type="float64"))
        assert products(gives, x.astype("float32")) == ["float32"]
        assert products(autocast(lambda x: x.astype("float64") @ x.astype("float64")), X[:, :4]) == ["float64"]
    with pytest.warns(UncastProductsWarning, match="autocast casts nothing"):
        assert products(autocast(lambda x: (x + 1j) @ W), X) == ["complex64"]
    assert products(autocast(lambda x: x.astype(int) @ W.astype(int)), X) == ["int32"]
    eight = autocast(lambda x: x.astype("float8_e4m3fn") @ W.astype("float8_e4m3fn"))
    assert products(eight, X) == ["float8_e4m3fn"]


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_products_accumulate_in_float32_and_round_once(dtype):
    x = jax.random.normal(jax.random.key(0), (16, 4096)).astype(dtype).astype("float32")
    w = jax.random.normal(jax.random.key(1), (4096, 16)).astype(dtype).astype("float32")
    got = np.asarray(jax.jit(autocast(jnp.matmul, f"mixed_{dtype}"))(x, w), np.float64)
    exact = np.asarray(x, np.float64) @ np.asarray(w, np.float64)
    ulp = as_format(dtype).eps * 2.0 ** np.floor(np.log2(np.abs(exact)))
    assert np.max(np.abs(got - exact) / ulp) < 0.51 + 4096 * 2.0**-24 / as_format(dtype).eps
