import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from mixed_precision.meshes import all_reduces, compiled_sums, mesh, on_replicas
from supremum.mixed_precision import DynamicLossScale, FixedLossScale, scaled_value_and_grad
from supremum.mixed_precision.scaled_gradients import differentiate_scaled

in_either_mode = pytest.mark.parametrize(
    ("jitted", "reduce_dtype"), [(False, "float16"), (True, "float16"), (True, None)]
)  # fmt: skip


def loss(w, highest):
    """Return a loss with a scaled gradient that overflows float16 at scales above `highest`, a power of two or 0."""
    return w.astype(jnp.float32) * (2.0**15 / highest)


def run(step, state, w, parts, count=8, jitted=True):
    """Run a step on all replicas with the same parameters and state, and return the results of each."""

    def local(state, w, part):
        made = step(state, w, part[0])
        return jax.tree.map(lambda leaf: leaf[None] + 0 * part.astype(leaf.dtype), made)

    specs = (P(), P(), P("data"))
    mapped = jax.shard_map(local, mesh=mesh(count), in_specs=specs, out_specs=P("data"))
    return (jax.jit(mapped) if jitted else mapped)(state, w, parts)


def same_everywhere(tree):
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    assert leaves
    return all(np.array_equal(leaf, np.broadcast_to(leaf[:1], leaf.shape), equal_nan=True) for leaf in leaves)


@pytest.mark.one_in(16)
@pytest.mark.parametrize("reduce_dtype", [None, "float16", "bfloat16"])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_gradients_equal_those_of_the_whole_batch(count, reduce_dtype):
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(3, 2)).astype("float32"), rng.normal(size=(8, 3)).astype("float32")

    def mean_square(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    scale = DynamicLossScale(1024.0)
    want_value, want = jax.value_and_grad(mean_square)(w, x)
    step = scaled_value_and_grad(mean_square, scale, axis_name="data", reduce_dtype=reduce_dtype)

    def local(w, x):
        value, grads, finite, state = step(scale.init(), w, x)
        return jax.lax.pmean(value, "data"), value[None], grads, finite, state

    out_specs = (P(), P("data"), P(), P(), P())  # JAX knows that gradients and state are equal on all replicas
    mapped = jax.shard_map(local, mesh=mesh(count), in_specs=(P(), P("data")), out_specs=out_specs)
    value, values, grads, finite, state = jax.jit(mapped)(w, x)
    np.testing.assert_allclose(value, want_value, rtol=1e-6)
    each = [mean_square(w, part) for part in np.split(x, count)]
    np.testing.assert_allclose(values, each, rtol=1e-6)  # the loss of each replica
    rounding = {None: 1e-6, "float16": 2e-3, "bfloat16": 1e-2}[reduce_dtype]
    np.testing.assert_allclose(grads, want, atol=rounding * np.abs(want).max())
    assert (grads.dtype, bool(finite), int(state.num_good_steps)) == ("float32", True, 1)


def test_a_retry_keeps_the_auxiliary_data_of_each_replica():
    def with_aux(w, highest):
        return loss(w, highest), {"mine": highest, "ours": jnp.float32(7), "count": 3}

    scale = DynamicLossScale(1024.0)
    step = scaled_value_and_grad(with_aux, scale, has_aux=True, axis_name="data", on_overflow="retry")
    made = run(step, scale.init(), jnp.float16(3), jnp.asarray([64.0, 32]), count=2)
    assert made.value[1]["mine"].tolist() == [64, 32]
    assert (made.value[1]["ours"].tolist(), made.value[1]["count"].tolist()) == ([7, 7], [3, 3])
    assert made.state.num_retries.tolist() == [5, 5]


def test_replicas_decide_separately_without_axis_name():
    scale = DynamicLossScale(1024.0)
    step = scaled_value_and_grad(lambda w, part: loss(w * 1 + 0 * part.astype(w.dtype), part), scale)
    w = jnp.float16(3)
    made = on_replicas(lambda part: step(scale.init(), jax.lax.pcast(w, "data", to="varying"), part), 2)(
        jnp.asarray([64.0, 2.0**15])
    )
    assert made.finite.tolist() == [False, True]
    assert made.state.loss_scale.tolist() == [512, 1024]


@pytest.mark.compiled
def test_one_sum_runs_in_the_requested_dtype():
    scale = DynamicLossScale(1024.0)
    params = {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}

    def narrow_loss(params, x):
        hidden = x.astype(jnp.float16) @ params["w"].astype(jnp.float16) + params["b"].astype(jnp.float16)
        return (hidden.astype(jnp.float32) ** 2).sum()

    def program(dtype, on_overflow="skip"):
        step = scaled_value_and_grad(narrow_loss, scale, axis_name="data", reduce_dtype=dtype, on_overflow=on_overflow)

        def local(params, x):
            return step(scale.init(), params, x)[1:]

        return jax.shard_map(local, mesh=mesh(8), in_specs=(P(), P("data")), out_specs=P()), params, jnp.ones((8, 3))

    for dtype, kind in ((None, "f32"), ("float16", "f16")):
        assert sorted(compiled_sums(*program(dtype))) == [(kind, 2), (kind, 6)]
    assert sorted(all_reduces(*program("bfloat16"))) == [("bf16", 2), ("bf16", 6)]
    # Once in the step and once in the retry.
    assert sorted(all_reduces(*program("float16", "retry"))) == [("f16", 2)] * 2 + [("f16", 6)] * 2


def test_gradients_are_reduced_before_unscaling():
    """Unscaled gradients would flush to zero in float16."""
    scale = DynamicLossScale(2.0**15)
    step = scaled_value_and_grad(lambda w, x: w * x * 1e-8, scale, axis_name="data", reduce_dtype="float16")
    made = run(step, scale.init(), jnp.float32(1), jnp.arange(8.0))
    np.testing.assert_allclose(made.grads, 3.5e-8, rtol=2e-3)


@pytest.mark.parametrize("argnums", [0, -1, 1, (0, 1), (-1, 0), [1]])
def test_gradients_of_all_argnums_are_averaged(argnums):
    scale = FixedLossScale(16.0)
    step = scaled_value_and_grad(lambda w, v, x=None: w * w * x + v * x, scale, argnums, axis_name="data")
    x = jnp.arange(4.0)

    def local(w, v, x):
        return step(scale.init(), w, v, x=x[0]).grads

    specs = (P(), P(), P("data"))
    grads = jax.jit(jax.shard_map(local, mesh=mesh(4), in_specs=specs, out_specs=P()))(
        jnp.float32(2), jnp.float32(3), x
    )
    by_number = {0: 6.0, 1: 1.5, -1: 1.5}
    assert grads == (by_number[argnums] if isinstance(argnums, int) else tuple(by_number[each] for each in argnums))


@pytest.mark.parametrize("on_overflow", ["skip", "retry"])
def test_scaled_gradients_work_in_vmap_with_an_axis_name(on_overflow):
    scale = DynamicLossScale(2.0**15)
    step = scaled_value_and_grad(loss, scale, axis_name="data", reduce_dtype="float16", on_overflow=on_overflow)
    mapped = jax.vmap(step, (None, None, 0), axis_name="data")
    made = jax.jit(mapped)(scale.init(), jnp.float16(3), jnp.asarray([64.0, 16, 2.0**15]))
    assert same_everywhere((made.state, made.grads, made.finite))
    retries = 11 if on_overflow == "retry" else 0
    assert (bool(made.finite[0]), int(made.state.num_retries[0])) == (retries > 0, retries)


@pytest.mark.compiled
@pytest.mark.parametrize("check_vma", [True, False])
def test_one_and_many_replicas_reach_the_same_states(check_vma):
    """Run twenty steps, some of which overflow. The reference uses the lowest limit of all replicas."""
    rng = np.random.default_rng(1)
    highest = 2.0 ** rng.integers(2, 11, size=(20, 4))
    scale = DynamicLossScale(256.0, increment_period=2)
    one = scaled_value_and_grad(loss, scale, on_overflow="retry")
    many = scaled_value_and_grad(loss, scale, on_overflow="retry", axis_name="data")

    def states(step, state, highest):
        return jax.lax.scan(lambda state, each: (step(state, jnp.float16(1), each).state,) * 2, state, highest)[1]

    def local(highest):
        return jax.tree.map(lambda leaf: leaf[None], states(many, scale.init(), highest[:, 0]))

    specs = {"in_specs": P(None, "data"), "out_specs": P("data"), "check_vma": check_vma}
    made = jax.jit(jax.shard_map(local, mesh=mesh(4), **specs))(highest)
    wanted = states(one, scale.init(), highest.min(1))
    for leaf, want in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(leaf, np.broadcast_to(want, leaf.shape))


def test_aggregate_gets_scaled_gradients_before_the_finite_check():
    seen = []

    def aggregate(grads):
        seen.append(grads)
        return jax.tree.map(lambda leaf: leaf * jnp.inf, grads)

    scale = DynamicLossScale(8.0)
    made = differentiate_scaled(lambda w: w * 3, scale, aggregate=aggregate)(scale.init(), jnp.float32(1))
    assert ([float(each) for each in seen], bool(made.finite)) == ([24], False)


# What to do, the scale, the limit of most replicas and of one, whether the step is finite on all, and their state.
DECISIONS = {
    "skip": ("skip", 2.0**15, 2.0**15, 4, False, [2.0**14, 0, 1, 1, 0]),
    "retry down to the lowest usable scale": ("retry", 2.0**15, 64, 16, True, [16, 1, 0, 0, 11]),
    "fail on one at every scale": ("retry", 1024.0, 2.0**15, 0, False, [512, 0, 1, 1, 10]),
}


@pytest.mark.slow
@in_either_mode
@pytest.mark.parametrize("name", DECISIONS)
def test_all_replicas_decide_alike(name, jitted, reduce_dtype):
    on_overflow, first, highest, lowest, finite, state = DECISIONS[name]
    scale = DynamicLossScale(first)
    step = scaled_value_and_grad(loss, scale, axis_name="data", reduce_dtype=reduce_dtype, on_overflow=on_overflow)
    limits = jnp.full(8, float(highest)).at[6].set(lowest)
    made = run(step, scale.init(), jnp.float16(3), limits, jitted=jitted)
    assert np.all(made.finite == finite)
    assert same_everywhere((made.state, made.grads))
    assert [float(leaf[0]) for leaf in made.state] == state
    if finite:
        assert float(made.grads[0]) == np.mean(2.0**15 / np.asarray(limits))
        np.testing.assert_array_equal(made.value, 3 * 2.0**15 / limits)
