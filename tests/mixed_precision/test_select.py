import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.mixed_precision import select_tree

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


@either_mode
@pytest.mark.parametrize("pred", [True, False])
def test_leaves_of_every_dtype_come_from_one_side(pred, jitted):
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
def test_what_is_no_bool_scalar_is_refused(pred):
    with pytest.raises(ValueError, match="predicate of select_tree must be a bool scalar, got"):
        select_tree(pred, jnp.ones(2), jnp.ones(2))


def test_static_leaves_have_to_be_the_same():
    static = {"name": "dense", "fn": np.sin, "n": 3, "x": jnp.float32(1), "times": np.array(["a", "b"])}
    changed = {**static, "x": jnp.float32(2), "times": np.array(["a", "b"])}
    out = select_tree(jnp.asarray(False), static, changed)
    assert (out["name"], out["fn"], out["n"], float(out["x"])) == ("dense", np.sin, 3, 2)
    for name, other in (("name", "conv"), ("fn", np.cos), ("n", 4), ("n", 3.0), ("n", jnp.asarray(3)), ("x", 1.0)):
        with pytest.raises(TypeError, match=f"select_tree at {name}: .* differ and are no arrays"):
            select_tree(jnp.asarray(False), static, {**static, name: other})
    with pytest.raises(TypeError, match="select_tree at times"):
        select_tree(True, static, {**static, "times": np.array(["a", "c"])})


def test_different_structures_dtypes_and_shapes_are_refused():
    with pytest.raises(ValueError, match="trees of one structure, not"):
        select_tree(True, {"a": jnp.ones(2)}, {"b": jnp.ones(2)})
    with pytest.raises(TypeError, match=r"select_tree at a/0: float32\[2\] and float16\[2\]"):
        select_tree(True, {"a": [jnp.ones(2)]}, {"a": [jnp.ones(2, "float16")]})
    with pytest.raises(TypeError, match=r"select_tree at the root: float32\[2\] and float32\[3\]"):
        select_tree(True, jnp.ones(2), jnp.ones(3))


def test_arrays_of_numpy_that_jax_does_not_take_have_to_be_the_same():
    nothing, wide = np.zeros(2, jax.dtypes.float0), np.ones(2, np.longdouble)  # the first are gradients of integers
    assert select_tree(jnp.asarray(False), nothing, nothing.copy()).dtype == jax.dtypes.float0
    assert select_tree(jnp.asarray(False), wide, wide.copy()).dtype == np.longdouble
    with pytest.raises(TypeError, match=r"select_tree at wide: .* differ and are no arrays"):
        select_tree(True, {"wide": wide}, {"wide": 2 * wide})
