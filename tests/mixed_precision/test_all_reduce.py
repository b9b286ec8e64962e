import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mixed_precision.meshes import all_reduces, compiled_sums, mesh, on_replicas
from mixed_precision.replica_groups import collectives
from supremum import OperandError
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.mixed_precision import DynamicLossScale, all_reduce_gradients
from supremum.mixed_precision.all_reduce import bound_axes, replica_mean, replica_sum, varying

STATE = DynamicLossScale(2.0**15).init()


def reduced(*args, **kwargs):
    return lambda grads: all_reduce_gradients(grads, "data", *args, **kwargs)


def random_parts(count, *shape, scale=1.0):
    return np.random.default_rng(count).normal(scale=scale, size=(count, *shape)).astype("float32")


# Values


@pytest.mark.compiled
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_the_mean_is_exact_up_to_rounding_in_the_dtype(count):
    """One program reduces in every dtype, with and without a loss scale."""
    parts, dtypes = random_parts(count, 100), (None, "float32", "float16", "bfloat16")

    def local(part):
        scaled = {(dtype, 1e-2): reduced(dtype, STATE)(part * 1e-2) for dtype in dtypes}
        return {(dtype, 1.0): reduced(dtype)(part) for dtype in dtypes} | scaled

    results = on_replicas(lambda part: list(local(part).values()), count)(parts)
    cells = [(dtype, factor) for factor in (1.0, 1e-2) for dtype in dtypes]
    for (dtype, factor), result in zip(cells, map(np.asarray, results), strict=True):
        assert result.dtype == "float32", (dtype, factor)
        assert np.all(result == result[0]), (dtype, factor)
        exact = parts.astype("float64").mean(0) * factor
        eps = as_format(dtype or "float32").eps
        bound = np.abs(parts).mean(0) * factor * eps / 2 * (count + 2)
        error = np.abs(result[0] - exact)
        assert np.all(error <= bound), (dtype, factor)
        assert eps < 1e-6 or error.max() > 1e-6 * np.abs(exact).max()  # the sum did run in that dtype


def mean_of(part):
    return replica_mean(part, "data", "float16")


def sum_of(part):
    return replica_sum(part, "data", "float16")


LARGEST = jnp.full((8, 3), 6e4, jnp.float16)
# A function of each replica, its parts, and the number that every replica gets, to the rounding of one operation.
RESULTS = {
    "the mean does not overflow in float16": (reduced("float16"), LARGEST, 6e4),
    "nor in bfloat16": (reduced("bfloat16"), LARGEST, 6e4),
    "the sum does": (sum_of, LARGEST, np.inf),
    # An eighth of it is zero in float16.
    "division in float32": (reduced(), jnp.full((8, 2), 2.0**-24, jnp.float16), 2.0**-24),
    "replica_mean divides": (mean_of, jnp.arange(8.0)[:, None], 3.5),
    "replica_sum does not": (sum_of, jnp.arange(8.0)[:, None], 28),
    "beyond float16": (reduced("float16"), jnp.zeros((8, 1)).at[2].set(1e6), np.inf),
    "within bfloat16": (reduced("bfloat16"), jnp.zeros((8, 1)).at[2].set(2.0**20), 2.0**17),
}


@pytest.mark.compiled
def test_replicas_get_the_mean_or_the_sum():
    for name, (function, parts, expected) in RESULTS.items():
        rounded = {"the mean does not overflow in float16": "float16", "nor in bfloat16": "bfloat16"}.get(name)
        bound = as_format(rounded).eps if rounded else 0
        np.testing.assert_allclose(on_replicas(function, 8)(parts), expected, rtol=bound, err_msg=name)


def test_small_gradients_survive_float16_only_with_the_loss_scale():
    small = random_parts(8, 50, scale=1e-7)
    exact = small.astype("float64").mean(0)
    lost = np.asarray(on_replicas(reduced("float16"), 8)(small))[0]
    assert np.abs(lost - exact).max() > 0.1 * np.abs(exact).max()
    kept = np.asarray(on_replicas(reduced("float16", STATE), 8)(small))[0]
    assert np.abs(kept - exact).max() < 2e-3 * np.abs(exact).max()


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_scaled_and_unscaled_gradients_give_the_same_mean(dtype):
    parts = random_parts(4, 50, scale=1e-3)
    unscaled = on_replicas(reduced(dtype, STATE), 4)(parts)
    scaled = on_replicas(reduced(dtype, STATE, scaled=True), 4)(parts * 2.0**15)
    np.testing.assert_array_equal(scaled, unscaled)
    np.testing.assert_allclose(np.asarray(unscaled)[0], parts.mean(0), atol=4e-5)


@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_infs_and_nans_on_one_replica_reach_all(dtype):
    parts = np.ones((8, 4), np.float32)
    parts[5, 1:] = np.inf, -np.inf, np.nan
    out = on_replicas(reduced(dtype, STATE, scaled=True), 8)(parts)
    assert np.isfinite(out).tolist() == [[True, False, False, False]] * 8


def test_results_are_at_least_float32_and_keep_the_structure():
    tree = {
        "half": jnp.full((2, 3, 1), 3, jnp.float16), "brain": jnp.full((2,), 5, jnp.bfloat16), "none": None,
        "complex": jnp.full((2, 2), 1 + 2j, jnp.complex64), "empty": jnp.ones((2, 0, 4)),
        "list": [jnp.full((2, 1), 7.0)],
    }  # fmt: skip
    for dtype in (None, "bfloat16"):
        out = on_replicas(reduced(dtype), 2)(tree)
        assert jax.tree.structure(out) == jax.tree.structure(tree)
        assert {name: leaf.dtype for name, leaf in out.items() if hasattr(leaf, "dtype")} == {
            "half": "float32", "brain": "float32", "complex": "complex64", "empty": "float32",
        }  # fmt: skip
        jax.tree.map(np.testing.assert_array_equal, out, tree)
    assert on_replicas(reduced("float16", STATE), 2)({"none": None}) == {"none": None}


def test_float64_is_kept_with_x64():
    with jax.enable_x64(True):
        third = jnp.full((2, 1), 1 / 3)
        for dtype in (None, "float64"):
            out = on_replicas(reduced(dtype), 2)(third)
            assert (out.dtype, float(out[0, 0])) == ("float64", 1 / 3)
        assert float(on_replicas(reduced("float32"), 2)(third)[0, 0]) == np.float32(1 / 3)
        assert on_replicas(reduced("float64"), 2)(third.astype("float32")).dtype == "float32"


@pytest.mark.slow
@pytest.mark.parametrize("jitted", [False, True])
def test_all_reduce_works_under_strict_promotion_with_and_without_vma(jitted):
    parts = random_parts(2, 3)
    with jax.numpy_dtype_promotion("strict"):
        for check_vma in (True, False):
            made = on_replicas(reduced("bfloat16", STATE), 2, jitted=jitted, check_vma=check_vma)(parts)
            np.testing.assert_allclose(np.asarray(made)[1], parts.mean(0), rtol=0.02)


def test_all_reduce_works_in_vmap_with_an_axis_name():
    parts = random_parts(4, 3)
    mapped = jax.vmap(reduced("float16", STATE), axis_name="data")
    for each in (mapped, jax.jit(mapped)):
        np.testing.assert_allclose(each(parts), np.tile(parts.mean(0), (4, 1)), rtol=1e-2)


def test_all_reduce_accepts_several_axes():
    parts = random_parts(8, 3)

    def local(part):
        return all_reduce_gradients(part[0], ("data", "more"), "float32")

    mapped = jax.shard_map(local, mesh=mesh((4, 2), ("data", "more")), in_specs=P(("data", "more")), out_specs=P())
    np.testing.assert_allclose(jax.jit(mapped)(parts), parts.mean(0), rtol=1e-5, atol=1e-7)


def test_gradients_may_vary_along_different_axes():
    """In one array with "some", "all" would seem to vary along "model", which its out_specs do not allow."""

    def local(tree):
        return all_reduce_gradients(tree, "data")

    specs = {"all": P("data"), "some": P("data", "model")}
    out_specs = {"all": P(), "some": P(None, "model")}
    mapped = jax.shard_map(local, mesh=mesh((4, 2), ("data", "model")), in_specs=(specs,), out_specs=out_specs)
    tree = {"all": random_parts(4, 3), "some": random_parts(4, 6)}
    out = jax.jit(mapped)(tree)
    jax.tree.map(lambda leaf, parts: np.testing.assert_allclose(leaf[0], parts.mean(0), rtol=1e-5), out, tree)


# Communication


def tree_of(count, **sizes):
    return {name: jnp.ones((count, size)) for name, size in sizes.items()}


@pytest.mark.compiled
@pytest.mark.parametrize(("dtype", "kind"), [(None, "f32"), ("float32", "f32"), ("float16", "f16")])
def test_one_all_reduce_runs_in_the_requested_dtype(dtype, kind):
    assert all_reduces(on_replicas(reduced("bfloat16", STATE), 8), tree_of(8, a=3, b=5)) == [("bf16", 3), ("bf16", 5)]
    found = collectives(
        jax.jit(on_replicas(reduced(dtype, STATE), 8)).lower(tree_of(8, a=3, b=5, c=7)).compile().as_text()
    )
    assert [(each.name, each.dtype, sorted(each.sizes)) for each in found] == [("all-reduce", kind, [3, 5, 7])]


@pytest.mark.compiled
@pytest.mark.parametrize(("check_vma", "dtype", "kind"), [(True, "float16", "f16"), (False, None, "f32")])
def test_gradients_sharded_along_other_axes_are_not_gathered(check_vma, dtype, kind):
    """The model axis is left to JAX; in a joined array, the pieces of a gradient would have to be gathered."""
    both = mesh((2, 4), ("data", "model"))

    def local(parts):
        return all_reduce_gradients(jax.tree.map(lambda part: part[0], parts), "data", dtype)

    mapped = jax.jit(
        jax.shard_map(local, mesh=both, in_specs=P("data"), out_specs=P(), axis_names={"data"}, check_vma=check_vma)
    )
    specs = {"columns": P("data", None, "model"), "rows": P("data", "model"), "whole": P("data")}
    tree = {name: random_parts(2, 4, 8) for name in specs}
    parts = jax.tree.map(lambda part, spec: jax.device_put(part, NamedSharding(both, spec)), tree, specs)
    found = collectives(mapped.lower(parts).compile().as_text())
    assert {(each.name, each.dtype) for each in found} == {("all-reduce", kind)}
    assert sorted(size for each in found for size in each.sizes) == [8, 8, 32]
    for name, mean in mapped(parts).items():
        assert mean.sharding.is_equivalent_to(NamedSharding(both, P(*specs[name][1:])), 2)
        np.testing.assert_allclose(mean, tree[name].mean(0), atol=2e-3 if dtype else 1e-6)


def test_each_dtype_is_summed_as_it_is():
    tree = {"a": jnp.ones((2, 3)), "b": jnp.ones((2, 4), jnp.complex64), "c": jnp.ones((2, 5), jnp.bfloat16)}
    assert sorted(compiled_sums(on_replicas(reduced(), 2), tree)) == [("c64", 4), ("f32", 3), ("f32", 5)]


# Invalid arguments


def suggested_fix(message):
    """Return the code that a message suggests."""
    return re.search(r"jax\.lax\.pcast\(params, .*?, to=\"varying\"\)", str(message))[0]


@pytest.mark.parametrize(
    ("axes", "sizes", "w", "spec", "along", "mean"),
    [(("data",), 8, 2.0, P(), "'data'", 3.5), (("data", "more"), (4, 2), [2.0] * 4, P("data"), "'more'", 7)],
)
def test_gradients_summed_by_jax_raise_with_a_working_fix(axes, sizes, w, spec, along, mean):
    def run(fix=None):
        def local(params, x):
            params = eval(fix) if fix else params
            return all_reduce_gradients(jax.grad(lambda params: (params["w"] * x).sum())(params), axes)

        mapped = jax.shard_map(local, mesh=mesh(sizes, axes), in_specs=(spec, P("data")), out_specs=P())
        return jax.jit(mapped)({"w": jnp.asarray(w)}, jnp.arange(8.0))["w"]

    with pytest.raises(ArgumentError, match=f"at w is the same on all replicas along {along}; JAX has alr") as error:
        run()
    assert float(run(suggested_fix(error.value)).sum()) == mean


def test_a_gradient_at_the_root_that_jax_summed_along_one_of_two_axes_raises():
    parts = jnp.arange(4.0)

    def run(fix=None):
        def local(params):
            params = eval(fix) if fix else params
            return all_reduce_gradients(params, ("data", "more"))

        mapped = jax.shard_map(local, mesh=mesh((4, 2), ("data", "more")), in_specs=P("data"), out_specs=P())
        return jax.jit(mapped)(parts)

    with pytest.raises(ArgumentError, match="gradient at the root is the same on all replicas along 'more'") as error:
        run()
    assert float(run(suggested_fix(error.value))[0]) == 1.5


@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize(
    ("leaf", "shown"),
    [
        (jnp.ones(2, jnp.int32), r"int32\[2\]"), (jnp.ones((), bool), r"bool\[\]"), (2.0, "float"), ("w", "str"),
        (np.zeros(3, jax.dtypes.float0), r"\[\('float0', 'V'\)\]\[3\]"),
    ],
)  # fmt: skip
def test_leaves_that_are_not_gradients_raise(leaf, shown, with_state):
    def local(part):
        return all_reduce_gradients({"w": [part, leaf]}, "data", None, STATE if with_state else None)

    with pytest.raises(OperandError, match=rf"got {shown} \(at w/1\): differentiate floating-point parameters only"):
        jax.vmap(local, axis_name="data")(jnp.ones(2))


@pytest.mark.parametrize("name", ["dat", 3, None, ("data", "dat")])
def test_unknown_axes_raise(name):
    for run in (lambda f: on_replicas(f, 2), lambda f: jax.vmap(f, axis_name="data")):
        with pytest.raises(ArgumentError, match=r"there is no axis .* here: reduce gradients inside"):
            run(lambda part: all_reduce_gradients(part, name))(jnp.ones(2))
    with pytest.raises(ArgumentError, match="there is no axis 'data' here"):
        all_reduce_gradients(jnp.ones(2), "data")
    with pytest.raises(ArgumentError, match="there is no axis 'data' here"):
        jax.jit(lambda part: all_reduce_gradients(part, "data"))(jnp.ones(2))


def test_a_vmap_axis_in_shard_map_with_check_vma_raises_with_a_working_fix():
    def run(**fix):
        def local(parts):
            return jax.vmap(lambda part: all_reduce_gradients(part, ("inner", "data")), axis_name="inner")(parts)

        mapped = jax.shard_map(local, mesh=mesh(4), in_specs=P("data"), out_specs=P("data"), **fix)
        return jax.jit(mapped)(jnp.arange(8.0))

    with pytest.raises(ArgumentError, match=r"axis_name=\('inner', 'data'\)\): pass check_vma=False to jax.shard_map"):
        run()
    assert np.all(run(check_vma=False) == 3.5)


# Varying values


@pytest.mark.slow
def test_varying_gives_each_replica_separate_gradients():
    tree = {"w": jnp.float32(2), "n": 3, "key": jax.random.key(0), "name": "w", "none": None}

    def local(x):
        made = varying(varying(tree | {"x": x}, "data"), "data")
        assert {key for key in ("w", "n", "key", "x") if jax.typeof(made[key]).manual_axis_type.varying} == {
            "w", "n", "key", "x",
        }  # fmt: skip
        assert (made["name"], made["none"]) == ("w", None)
        return jax.grad(lambda w: w * x)(made["w"])

    parts = jnp.arange(4.0)
    np.testing.assert_array_equal(on_replicas(local, 4)(parts), parts)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("check_vma", [True, False])
def test_varying_has_no_effect_in_vmap_or_without_check_vma(check_vma):
    mapped = jax.vmap(lambda x: varying(x, "data") * bound_axes("data").size, axis_name="data")
    assert np.all(mapped(jnp.ones(3)) == 3)
    local = on_replicas(lambda x: x * varying(jnp.float32(2), "data"), 2, check_vma=check_vma)
    assert np.all(local(jnp.ones(2)) == 2)
    with pytest.raises(ArgumentError, match="there is no axis 'data' here"):
        varying(jnp.ones(2), "data")
