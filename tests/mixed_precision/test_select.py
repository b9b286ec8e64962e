import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.mixed_precision import select_tree

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


@either_mode
@pytest.mark.parametrize("pred", [True, False])
def test_select_tree_takes_all_leaves_from_one_tree(pred, jitted):
    def tree(number):
        wide = {"f2": jnp.full(2, number, "float16"), "bf": jnp.full((), number, "bfloat16"), "np": np.full(2, number)}
        return [wide, {"key": jax.random.key(number), "i": jnp.int8(number), "b": jnp.asarray(bool(number)), "n": None}]

    select = jax.jit(select_tree) if jitted else select_tree
    out, want = select(pred if jitted else jnp.asarray(pred), tree(1), tree(0)), tree(int(pred))
    assert jax.random.key_data(out[1].pop("key")).tolist() == jax.random.key_data(want[1].pop("key")).tolist()
    assert jax.tree.structure(out) == jax.tree.structure(want)
    for got, leaf in zip(jax.tree.leaves(out), jax.tree.leaves(want), strict=True):
        assert got.dtype == jax.dtypes.canonicalize_dtype(leaf.dtype)
        np.testing.assert_array_equal(got, leaf)


@pytest.mark.parametrize("pred", [True, np.True_, np.array(True), jnp.asarray(True)], ids=repr)
def test_any_bool_scalar_is_a_predicate(pred):
    assert float(select_tree(pred, jnp.float32(3), jnp.float32(4))) == 3


@pytest.mark.parametrize("pred", [1, 0.0, "yes", None, jnp.asarray(1), np.array([True]), [True]], ids=repr)
def test_a_predicate_that_is_not_a_bool_scalar_raises(pred):
    with pytest.raises(ValueError, match="predicate of select_tree must be a bool scalar, got"):
        select_tree(pred, jnp.ones(2), jnp.ones(2))


def test_unequal_static_leaves_raise():
    static = {"name": "dense", "fn": np.sin, "n": 3, "x": jnp.float32(1), "times": np.array(["a", "b"])}
    changed = {**static, "x": jnp.float32(2), "times": np.array(["a", "b"])}
    out = select_tree(jnp.asarray(False), static, changed)
    assert (out["name"], out["fn"], out["n"], float(out["x"])) == ("dense", np.sin, 3, 2)
    for name, other in (("name", "conv"), ("fn", np.cos), ("n", 4), ("n", 3.0), ("n", jnp.asarray(3)), ("x", 1.0)):
        with pytest.raises(
            TypeError, match=rf"needs arrays or two equal values, got .* \(at {name}\): use jnp.asarray"
        ):
            select_tree(jnp.asarray(False), static, {**static, name: other})
    with pytest.raises(TypeError, match=r"\(at times\): use jnp.asarray"):
        select_tree(True, static, {**static, "times": np.array(["a", "c"])})


def test_different_structures_dtypes_and_shapes_raise():
    with pytest.raises(ValueError, match="needs two trees of the same structure, got"):
        select_tree(True, {"a": jnp.ones(2)}, {"b": jnp.ones(2)})
    with pytest.raises(TypeError, match=r"got float32\[2\] and float16\[2\] \(at a/0\)"):
        select_tree(True, {"a": [jnp.ones(2)]}, {"a": [jnp.ones(2, "float16")]})
    with pytest.raises(TypeError, match=r"got float32\[2\] and float32\[3\] \(at the root\)"):
        select_tree(True, jnp.ones(2), jnp.ones(3))


def test_numpy_arrays_that_jax_cannot_hold_must_be_equal():
    # Float0 is the dtype of gradients of integers.
    nothing, wide = np.zeros(2, jax.dtypes.float0), np.ones(2, np.longdouble)
    assert select_tree(jnp.asarray(False), nothing, nothing.copy()).dtype == jax.dtypes.float0
    assert select_tree(jnp.asarray(False), wide, wide.copy()).dtype == np.longdouble
    with pytest.raises(TypeError, match=r"needs arrays or two equal values, got .* \(at wide\)"):
        select_tree(True, {"wide": wide}, {"wide": 2 * wide})
