"""Autocast inside and outside of JAX's transformations, on programs that use different parts of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import check_jaxpr
from jax.sharding import PartitionSpec

from mixed_precision.autocasting.found import W, X, products
from mixed_precision.autocasting.programs import PROGRAMS, warns_of_left
from models import by_hand, init, plain, train_step
from supremum.jaxprs import walk
from supremum.mixed_precision import autocast

ORDERS = {
    "forward": lambda f, cast: cast(f),
    "grad of autocast": lambda f, cast: jax.grad(cast(f), (0, 1)),
    "autocast of grad": lambda f, cast: cast(jax.grad(f, (0, 1))),
    "autocast of jitted grad of jitted": lambda f, cast: cast(jax.jit(jax.grad(jax.jit(f), (0, 1)))),
    "grad of remat of autocast": lambda f, cast: jax.grad(jax.checkpoint(cast(f)), (0, 1)),
    "vmap of autocast": lambda f, cast: lambda w, x: jax.vmap(cast(f), (None, 0))(w, jnp.stack([x, x])),
    "autocast of vmap": lambda f, cast: lambda w, x: cast(jax.vmap(f, (None, 0)))(w, jnp.stack([x, x])),
    "jvp of autocast": lambda f, cast: lambda w, x: jax.jvp(cast(f), (w, x), (w, x)),
    "scan of autocast": lambda f, cast: lambda w, x: lax.scan(lambda c, _: (c + cast(f)(w, x), c), 0.0, length=2),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:autocast left")
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_order_of_transformations_keeps_shapes_and_dtypes(name):
    function = PROGRAMS[name]
    for order, transform in ORDERS.items():
        want = jax.eval_shape(transform(function, lambda f: f), W, X)
        closed, got = jax.make_jaxpr(transform(function, autocast), return_shape=True)(W, X)
        check_jaxpr(closed.jaxpr)
        described = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree) for tree in (got, want)]
        assert described[0] == described[1], order


# Programs of many operations, each of which compiles separately without `jax.jit`: up to a second per program.
COMPILED_ONE_BY_ONE = {
    "convolved", "linear_algebra", "indexed", "ordered", "attention", "einsums", "cumulated", "random", "differentiated"
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_close_to_float32(name):
    function = PROGRAMS[name]
    want = jax.jit(jax.value_and_grad(function, (0, 1)))(W, X)
    cast = autocast(function, "mixed_float16")
    with warns_of_left(name):
        got = jax.jit(jax.value_and_grad(cast, (0, 1)))(W, X)
    for leaf, wanted in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        # Float16 has eleven bits of precision, and the programs chain about six products.
        assert float(jnp.linalg.norm(leaf - wanted)) <= 16 * 2.0**-11 * max(1.0, float(jnp.linalg.norm(wanted)))
    if name not in COMPILED_ONE_BY_ONE:
        eager, (jitted, _) = cast(W, X), got
        assert (eager.dtype, eager.weak_type) == (jitted.dtype, jitted.weak_type)
        # XLA may skip a rounding between two operations that it fuses.
        np.testing.assert_allclose(eager, jitted, rtol=2.0**-11, atol=2.0**-11)


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_step_compiles_to_no_more_casts_than_a_hand_written_one(dtype):
    args = init(8, 2), jnp.ones((8, 8)), jnp.zeros(8, int)

    def casts(function):
        lowered = jax.jit(train_step(function)).lower(*args)
        return lowered.as_text().count("stablehlo.convert"), lowered.compile().as_text().count(" convert(")

    ours, theirs = casts(autocast(plain, f"mixed_{dtype}")), casts(by_hand(dtype))
    assert all(0 < mine <= other for mine, other in zip(ours, theirs, strict=True)), (ours, theirs)


@jax.custom_jvp
def tenfold(x):
    return jnp.tanh(x)


tenfold.defjvp(lambda p, t: (tenfold(*p), 10 * t[0]))


@jax.custom_vjp
def hundredfold(x, w):
    return jnp.tanh(x @ w)


hundredfold.defvjp(lambda x, w: (jnp.tanh(x @ w), (x, w)), lambda saved, g: (100 * (g @ saved[1].T), None))


@pytest.mark.slow
def test_custom_jvp_rules_are_kept():
    cast = autocast(lambda x: tenfold(x @ W).sum())
    np.testing.assert_allclose(jax.grad(cast)(X), 10 * jnp.ones((4, 8)) @ W.T, rtol=0.05, atol=0.1)
    assert set(products(jax.grad(cast), X)) == {"bfloat16"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("ops", [{"hundredfold": "declared"}, {"hundredfold": "inside"}, {"hundredfold": "compute"}])
def test_backward_rules_are_kept_and_cast_only_on_request(ops):
    cast = autocast(lambda x: hundredfold(x, W).sum(), ops=ops)
    np.testing.assert_allclose(jax.grad(cast)(X), 100 * jnp.ones((4, 8)) @ W.T, rtol=0.05, atol=1)
    expected = "float32" if "declared" in ops.values() else "bfloat16"
    assert set(products(cast, X)) == set(products(jax.grad(cast), X)) == {expected}
    # Under "inside" the table decides, under "compute" everything computes in bfloat16.
    # Narrow operands are cast back to the declared dtype.
    after = autocast(lambda x: hundredfold(x @ W, W).sum(), ops=ops)
    check_jaxpr(jax.make_jaxpr(jax.jit(jax.grad(after)))(X).jaxpr)
    (call,) = [s.equation for s in walk(jax.make_jaxpr(after)(X)) if s.equation.primitive.name == "custom_vjp_call"]
    assert {str(atom.aval.dtype) for atom in (*call.invars, *call.outvars)} == {"float32"}
    tanhs = [
        s.equation.outvars[0].aval.dtype for s in walk(jax.make_jaxpr(cast)(X)) if s.equation.primitive.name == "tanh"
    ]
    assert [str(dtype) for dtype in tanhs] == [expected]


@pytest.mark.parametrize("order", ["inside", "outside"])
def test_autocast_works_inside_and_outside_shard_map(order):
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    specs = {"mesh": mesh, "in_specs": (PartitionSpec(), PartitionSpec("d")), "out_specs": PartitionSpec()}

    def local(w, x):
        return jax.nn.relu(x @ w).sum()

    def summed(function):
        return jax.shard_map(lambda w, x: lax.psum(function(w, x), "d"), **specs)

    loss = autocast(summed(local)) if order == "outside" else summed(autocast(local))
    closed = jax.make_jaxpr(jax.grad(loss))(W, X)
    check_jaxpr(closed.jaxpr)
    assert set(products(jax.grad(loss), W, X)) == {"bfloat16"}
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(W, X), jax.grad(local)(W, X), rtol=0.05, atol=0.1)
    # The sum over devices is in float32.
    sums = [s.equation for s in walk(jax.make_jaxpr(loss)(W, X)) if s.equation.primitive.name.startswith("psum")]
    assert [str(equation.invars[0].aval.dtype) for equation in sums] == ["float32"]


def test_a_pallas_kernel_gets_the_dtypes_it_declares():
    from jax.experimental import pallas as pl

    def kernel(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2

    def program(x):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((4, 8), jnp.float32), interpret=True)(x @ W)

    np.testing.assert_allclose(jax.jit(autocast(program))(X), 2 * X @ W, rtol=0.02, atol=0.05)
    (row,) = [row for row in autocast(program).report(X).rows if row.operation == "pallas_call"]
    assert row.dtype == "float32"


def test_a_callback_gets_the_dtypes_it_declares():
    seen = []

    def program(x):
        jax.debug.callback(lambda value: seen.append(value.dtype), x @ W)
        return (x @ W).sum()

    jax.jit(autocast(program))(X).block_until_ready()
    jax.effects_barrier()
    assert seen == [jnp.float32]


def test_references_keep_their_dtype():
    def program(x):
        ref = jax.new_ref(x @ W)
        ref[...] = ref[...] @ W
        return ref[...].sum()

    np.testing.assert_allclose(jax.jit(autocast(program))(X), program(X), atol=0.05)


def test_a_mesh_with_explicit_axes_keeps_its_shardings():
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        w = jax.device_put(W, jax.sharding.NamedSharding(mesh, PartitionSpec(None, "d")))
        b = jax.device_put(jnp.ones(8), jax.sharding.NamedSharding(mesh, PartitionSpec("d")))
        gradient = jax.jit(jax.grad(autocast(lambda w, x: (x @ w + b).sum())))(w, X)
        assert gradient.sharding.spec == PartitionSpec(None, "d")
        x = jax.device_put(X, jax.sharding.NamedSharding(mesh, PartitionSpec("d", None)))
        layer = autocast(jax.jit(lambda x, b: x @ W + b))  # the bias is spread over a sharded axis
        check_jaxpr(jax.make_jaxpr(layer)(x, jnp.ones(8)).jaxpr)
        assert jax.jit(layer)(x, jnp.ones(8)).sharding.spec == PartitionSpec("d", None)


def test_casts_of_a_nested_autocast_are_not_explicit_casts():
    inner = autocast(lambda x: x @ W, "mixed_float16")
    assert products(autocast(lambda x: jnp.exp(inner(x) @ W) @ W), X) == ["float16", "bfloat16", "bfloat16"]


def test_an_eager_call_compiles_a_jitted_function_once():
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: (
            compiled.append(event) if event == "/jax/core/compile/backend_compile_duration" else None
        )
    )
    layer = jax.jit(lambda x: jnp.tanh(x @ W) @ W)
    autocast(layer)(X).block_until_ready()
    first = len(compiled)
    autocast(layer)(X).block_until_ready()
    assert 0 < first == len(compiled)


def test_donated_operands_stay_donated():
    step = jax.jit(lambda w, x: w - 0.1 * (x.T @ (x @ w)), donate_argnums=0)
    w = W + 0
    autocast(step)(w, X).block_until_ready()  # a donation that fails warns, and warnings are errors here
    assert w.is_deleted()
    narrows, x = jax.jit(lambda w, x: jnp.tanh(x @ w), donate_argnums=1), X + 0
    autocast(narrows)(W, x).block_until_ready()
    assert x.is_deleted()
    (call,) = [s.equation for s in walk(jax.make_jaxpr(autocast(step))(W, X)) if s.equation.primitive.name == "jit"]
    assert {str(atom.aval.dtype) for atom in (*call.invars, *call.outvars)} == {"float32"}
