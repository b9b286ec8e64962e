"""Programs of other libraries, and JAX features that programs rarely use, are measured without editing them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from numerics import real_programs
from numerics.real_programs import KEY, STEPS
from slowly import mostly_slow
from supremum.mixed_precision import autocast
from supremum.numerics import attribute, profile

X = jnp.linspace(-2.0, 5.0, 12).reshape(3, 4)


def check(function, *args):
    """Profile a call, whose results must be those of the jitted function.

    They are bit-equal under XLA's default flags, as `test_counts.py` checks; the tests' flags change what is fused.
    """
    found = profile(function)(*args)
    for value, expected in zip(jax.tree.leaves(found.outputs), jax.tree.leaves(jax.jit(function)(*args)), strict=True):
        if jnp.issubdtype(expected.dtype, jax.dtypes.prng_key):
            value, expected = jax.random.key_data(value), jax.random.key_data(expected)
        np.testing.assert_allclose(np.asarray(value), np.asarray(expected), rtol=1e-5, atol=1e-7)
    assert len(found) > 0
    assert len(str(found).splitlines()) > 2
    return found


def passes(found, primitive):
    """The passes in which a primitive runs, and how often."""
    return {(row.backward, row.values.runs) for row in found.rows if row.primitive == primitive}


def unchanged(function):
    return function


PROGRAMS = {
    # what is profiled of a program, and what the profile has; the result that is attributed, and what its rows have
    "equinox_mlp": (
        jax.value_and_grad, lambda found: passes(found, "dot_general") == {(False, 1), (True, 1)},
        None, lambda rows: True,
    ),
    "equinox_gru": (
        jax.value_and_grad, lambda found: passes(found, "dot_general") == {(False, STEPS), (True, STEPS)},
        None, lambda rows: STEPS in {row.runs for row in rows},
    ),
    "linen_residual": (
        lambda loss: jax.value_and_grad(loss, has_aux=True),
        lambda found: passes(found.matching("*/Conv_0"), "conv_general_dilated") >= {(False, 1), (True, 1)},
        0, lambda rows: any(row.primitive == "conv_general_dilated" for row in rows),
    ),
    "optax_step": (
        unchanged, lambda found: (True, 1) in passes(found, "dot_general"),
        None, lambda rows: any(row.backward for row in rows),
    ),
    "keras_loss": (
        jax.value_and_grad, lambda found: STEPS in {row.values.runs for row in found.rows},
        None, lambda rows: STEPS in {row.runs for row in rows},
    ),
    "diffrax_solve": (
        unchanged, lambda found: max(row.values.runs for row in found.rows) >= 10,
        None, lambda rows: rows[0].effect == "loop",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", mostly_slow(PROGRAMS, "equinox_mlp", "keras_loss"))
def test_programs_of_other_libraries_are_profiled(name):
    differentiated, expected, *_ = PROGRAMS[name]
    function, arguments = getattr(real_programs, name)()
    assert expected(check(differentiated(function), *arguments))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_shares_of_a_program_add_up_to_its_error(name):
    *_, output, expected = PROGRAMS[name]
    function, arguments = getattr(real_programs, name)()
    found = attribute(function, output=output)(*arguments)
    assert 0 < found.relative_error < 0.1
    assert found.predicted == pytest.approx(found.error, rel=0.5)
    assert expected(found.rows)


@pytest.mark.slow
def test_a_planted_line_in_a_transformer_block_of_nnx_comes_first():
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs, width=8, dtype=jnp.bfloat16):
            self.attention = nnx.MultiHeadAttention(2, width, dtype=dtype, rngs=rngs, decode=False)
            self.first = nnx.Linear(width, 2 * width, dtype=dtype, rngs=rngs)
            self.second = nnx.Linear(2 * width, width, dtype=dtype, rngs=rngs)

        def norm(self, x):
            mean = jnp.mean(x, -1, keepdims=True)
            squares = jnp.mean(x * x, -1, keepdims=True)
            variance = squares - mean * mean
            exact = jnp.mean(x.astype("float32"), -1, keepdims=True)  # so that only the variance cancels
            return (x - exact).astype(x.dtype) * jax.lax.rsqrt(jnp.abs(variance) + 1e-6)

        def __call__(self, x):
            x = x + self.attention(self.norm(x))
            return x + self.second(nnx.gelu(self.first(self.norm(x))))

    x = (jax.random.normal(KEY, (2, 4, 8)) + 12).astype(jnp.bfloat16)
    found = attribute(lambda block, x: block(x), "declared")(Block(nnx.Rngs(0)), x)
    assert (found.rows[0].expression, found.rows[0].effect) == ("squares - mean * mean", "cancellation")


def test_a_model_with_functions_among_its_leaves():
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0))
    found = profile(lambda model, x: jax.vmap(model)(x))(model, X)
    np.testing.assert_allclose(found.outputs, jax.jit(jax.vmap(lambda x: model(x)))(X), rtol=1e-5, atol=1e-7)


def test_linen_scopes_are_those_of_the_layers():
    linen = pytest.importorskip("flax.linen")
    model = linen.Sequential([linen.Dense(8), linen.relu, linen.LayerNorm()])
    variables = model.init(jax.random.key(0), X)
    found = check(lambda variables, x: model.apply(variables, x), variables, X)
    assert {"Sequential/layers_0", "Sequential/layers_2"} <= set(found.by("scope"))
    assert {row.scope for row in found.matching("Sequential/layers_0").rows} == {"Sequential/layers_0"}


@pytest.mark.slow
def test_random_keys_in_loops_and_branches():
    def function(key, x):
        def step(key, row):
            key, inner = jax.random.split(key)
            return key, lax.cond(row[0] > 0, lambda k: row + jax.random.normal(k, row.shape), lambda k: row, inner)

        return lax.scan(step, key, x)

    check(function, jax.random.key(0), X)

    def looped(key, x):
        return lax.while_loop(
            lambda state: jnp.sum(state[1]) < 9, lambda state: (jax.random.split(state[0])[0], state[1] + 1.5), (key, x)
        )

    check(jax.vmap(looped), jax.random.split(jax.random.key(1), 3), X)


def test_custom_vmap_linear_solve_and_callback():
    @jax.custom_batching.custom_vmap
    def double(x):
        return 2 * x

    double.def_vmap(lambda size, batched, x: (2 * x, True))

    def function(x):
        solved = lax.custom_linear_solve(lambda v: 3 * v, x, lambda matvec, b: b / 3, symmetric=True)
        called = jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return double(x) + jax.vmap(double)(x) + solved + called

    found = check(function, X)
    assert {"custom_linear_solve", "pure_callback"} <= {row.primitive for row in found.rows}


@pytest.mark.slow
def test_linear_algebra_fft_and_sorting():
    def function(x):
        matrix = x @ x.T + jnp.eye(3)
        values, _ = jnp.linalg.eigh(matrix)
        return values, jnp.linalg.cholesky(matrix), jnp.abs(jnp.fft.fft(x)), jnp.sort(x), lax.top_k(x, 2)

    check(function, X)


def test_autocast_inside_is_counted_in_its_dtypes():
    found = check(autocast(lambda x, w: jnp.exp(x @ w), "mixed_float16"), X, jnp.ones((4, 4)))
    (product,) = (row for row in found.rows if row.primitive == "dot_general")
    assert product.types[0].startswith(("float16", "float32"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_arguments(dtype):
    x = X.astype(dtype)
    found = profile(lambda x: (x.astype("float32") * 1e3).astype(dtype))(x)
    assert {row.types[0].partition("[")[0] for row in found.rows} == {"float32", dtype}


@pytest.mark.slow
def test_shard_map_around_counts_the_values_of_each_device():
    mesh = jax.make_mesh((4,), ("i",), devices=jax.devices()[:4])
    spec = jax.sharding.PartitionSpec("i")

    def function(x):
        def step(carry, row):
            return carry + jnp.exp(row), None

        return lax.scan(step, 0 * x[0], x)[0] @ jnp.ones((3, 3))

    x = jax.device_put(jnp.arange(24.0).reshape(8, 3), jax.sharding.NamedSharding(mesh, spec))
    sharded = jax.shard_map(
        lambda x: jax.tree.map(lambda leaf: leaf[None], profile(function, histogram=True)(x)),
        mesh=mesh,
        in_specs=spec,
        out_specs=spec,
    )
    for found in (sharded(x), jax.jit(sharded)(x)):
        rows = {row.primitive: row.values for row in found.rows}
        assert (rows["exp"].runs, rows["exp"].values, sum(rows["exp"].exponents.values())) == (8, 24, 24)
        assert rows["exp"].formats["float16"].overflow == int((np.exp(np.arange(24.0)) >= 65520).sum())
        np.testing.assert_allclose(
            found.outputs, [function(part) for part in np.arange(24, dtype="float32").reshape(4, 2, 3)], rtol=1e-6
        )
