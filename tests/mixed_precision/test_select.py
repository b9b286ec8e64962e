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


ONE = jnp.ones(2)
STATIC = {"name": "dense", "fn": np.sin, "n": 3, "x": jnp.float32(1), "times": np.array(["a", "b"])}
# Float0 is the dtype of gradients of integers.
NOT_OF_JAX = {"none": np.zeros(2, jax.dtypes.float0), "wide": np.ones(2, np.longdouble)}
# A predicate, two trees, and the error.
INVALID = [
    *((pred, ONE, ONE, ValueError, "predicate of select_tree must be a bool scalar, got")
      for pred in (1, 0.0, "yes", None, jnp.asarray(1), np.array([True]), [True])),
    *((jnp.asarray(False), STATIC, {**STATIC, name: other}, TypeError,
       rf"needs arrays or two equal values, got .* \(at {name}\): use jnp.asarray")
      for name, other in (("name", "conv"), ("fn", np.cos), ("n", 4), ("n", 3.0), ("n", jnp.asarray(3)), ("x", 1.0))),
    (True, STATIC, {**STATIC, "times": np.array(["a", "c"])}, TypeError, r"\(at times\): use jnp.asarray"),
    (True, {"a": ONE}, {"b": ONE}, ValueError, "needs two trees of the same structure, got"),
    (True, {"a": [ONE]}, {"a": [jnp.ones(2, "float16")]}, TypeError, r"float32\[2\] and float16\[2\] \(at a/0\)"),
    (True, ONE, jnp.ones(3), TypeError, r"got float32\[2\] and float32\[3\] \(at the root\)"),
    (True, NOT_OF_JAX, {**NOT_OF_JAX, "wide": 2 * NOT_OF_JAX["wide"]}, TypeError, r"two equal values, .* \(at wide\)"),
]  # fmt: skip


def test_equal_leaves_that_are_not_arrays_are_kept_and_others_raise():
    out = select_tree(jnp.asarray(False), STATIC, {**STATIC, "x": jnp.float32(2), "times": np.array(["a", "b"])})
    assert (out["name"], out["fn"], out["n"], float(out["x"])) == ("dense", np.sin, 3, 2)
    out = select_tree(jnp.asarray(False), NOT_OF_JAX, {name: each.copy() for name, each in NOT_OF_JAX.items()})
    assert (out["none"].dtype, out["wide"].dtype) == (jax.dtypes.float0, np.longdouble)
    for pred, one, other, error, message in INVALID:
        with pytest.raises(error, match=message):
            select_tree(pred, one, other)
