"""An `Array` in JAX's functions of pytrees, including weak arrays and arrays of other libraries."""

import copy
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from slowly import for_each
from supremum import use_rules
from supremum.arrays import Array, asarray, ops
from supremum.arrays.wrapped import wrap

NESTED = {"a": (wrap(np.ones(2, "int8")), [wrap(np.ones((), "float16"))]), "b": None}


def _described(array):
    return array.dtype.name, array.weak_type, array.shape


def test_array_is_a_pytree_of_one_leaf_with_a_path():
    array = asarray(jnp.arange(3.0))
    leaves, structure = jax.tree.flatten(array)
    assert len(leaves) == 1
    assert leaves[0] is array.unwrap()
    again = jax.tree.unflatten(structure, leaves)
    assert type(again) is Array
    assert _described(again) == ("float32", False, (3,))
    ((path, leaf),) = jax.tree_util.tree_leaves_with_path({"w": array})
    assert leaf is array.unwrap()
    assert jax.tree_util.keystr(path, simple=True, separator=".") == "w.raw"
    doubled = jax.tree.map(lambda x: x * 2, {"w": array})
    assert type(doubled["w"]) is Array
    assert doubled["w"].tolist() == [0.0, 2.0, 4.0]


def test_array_can_be_unflattened_with_any_object():
    structure = jax.tree.structure(asarray(jnp.ones(2)))
    shaped = jax.core.ShapedArray((2,), np.dtype("float32"))
    for thing in (object(), None, "text", 3, shaped, jax.ShapeDtypeStruct((2,), "float32"), asarray(jnp.ones(2))):
        made = jax.tree.unflatten(structure, [thing])
        assert type(made) is Array
        repr(made)
    assert jax.tree.map(lambda x: None, asarray(jnp.ones(2))).unwrap() is None


def test_jit_accepts_and_returns_arrays_in_containers():
    seen = []

    @jax.jit
    def run(tree, scale):
        seen.append(jax.tree.map(type, tree, is_leaf=lambda x: isinstance(x, Array)))
        a, (b,) = tree["a"]
        assert type(a) is Array
        return {"sum": a + b, "scaled": (b * scale, None)}

    with use_rules("torch"):
        result = run(NESTED, asarray(2.0, library="jax"))
        assert _described(result["sum"]) == ("float16", False, (2,))
        assert type(result["scaled"][0]) is Array
        run(NESTED, asarray(3.0, library="jax"))
    assert len(seen) == 1


def test_gradients_are_arrays_in_the_dtype_of_the_parameters():
    params = {"w": wrap(jnp.ones((2, 2), "float16")), "b": wrap(jnp.ones(2, "float32"))}
    x = wrap(np.ones((2, 2), "int8"))

    def loss(params, x):
        y = ops.square(params["w"] * x + params["b"] * 2)
        return jnp.sum(y.unwrap())

    for function in (jax.grad(loss), jax.jit(jax.grad(loss)), lambda p, x: jax.value_and_grad(loss)(p, x)[1]):
        with use_rules("jax"):
            grads = function(params, x)
        assert {name: _described(each) for name, each in grads.items()} == {
            "w": ("float16", False, (2, 2)),
            "b": ("float32", False, (2,)),
        }
        assert grads["w"].tolist() == [[6.0, 6.0], [6.0, 6.0]]
        assert grads["b"].tolist() == [24.0, 24.0]


def test_rules_treat_rows_under_vmap_as_0d_arrays():
    """Under vmap a row of a vector is 0-d, which matters to the rules of PyTorch."""
    matrix, vector = wrap(jnp.ones((3, 2), "float16")), wrap(jnp.ones(3, "float32"))
    with use_rules("torch"):
        assert _described(jax.vmap(lambda row, x: row + x)(matrix, vector)) == ("float16", False, (3, 2))
        assert _described(matrix.T + vector) == ("float32", False, (2, 3))


def test_forward_and_higher_order_derivatives():
    def cube(x):
        return (x**3).unwrap()

    x = wrap(jnp.ones((), "float32") * 2)
    value, tangent = jax.jvp(cube, (x,), (wrap(jnp.ones(())),))
    assert (float(value), float(tangent)) == (8.0, 12.0)
    assert float(jax.grad(lambda y: jax.grad(cube)(y).unwrap())(x)) == 12.0
    assert _described(jax.jacobian(lambda y: (y * wrap(jnp.ones(2))).unwrap())(x)) == ("float32", False, (2,))


@pytest.mark.parametrize("library", ["jax", "numpy"])
def test_scan_keeps_a_weak_carry_weak(library):
    """The carry is weak before and after each step, whichever library the first one is from."""
    with use_rules("jax"):
        start = asarray(2.0, library=library)
        assert start.weak_type
        carry, out = jax.lax.scan(lambda c, x: (c * 2, c + x), start, wrap(jnp.arange(3, dtype="int16")))
        assert _described(carry) == ("float32", True, ())
        assert _described(out) == ("float32", True, (3,))
        assert out.tolist() == [2.0, 5.0, 10.0]


def test_scan_refuses_a_carry_that_changes_its_dtype():
    with use_rules("torch"), pytest.raises(TypeError, match="carry"):
        jax.lax.scan(lambda c, x: (c + x, None), wrap(jnp.ones((), "int8")), wrap(jnp.ones(3, "float32")))


def test_loops_and_branches_keep_dtypes_and_weak_flags():
    with use_rules("jax"):
        found = jax.lax.while_loop(lambda c: (c < 10).unwrap(), lambda c: c * 2, wrap(jnp.ones((), "int8")))
        assert _described(found) == ("int8", False, ())
        assert found.item() == 16
        counted = jax.lax.fori_loop(0, 3, lambda i, c: c + i, wrap(jnp.zeros((), "float16")))
        assert _described(counted) == ("float16", False, ())
        chosen = jax.lax.cond(True, lambda c: c * 2, lambda c: c - 1, asarray(3, library="jax"))
        assert _described(chosen) == ("int32", True, ())
        with pytest.raises(TypeError):
            jax.lax.cond(True, lambda c: c * 2, lambda c: c / 2, wrap(jnp.ones((), "int8")))


def test_eval_shape_returns_an_array_of_a_shape_struct():
    with use_rules("torch"):
        shaped = jax.eval_shape(lambda a, b: a / b, *(wrap(jnp.ones((3, 1), "int8")), wrap(jnp.ones(2, "uint8"))))
    assert type(shaped) is Array
    assert shaped.unwrap() == jax.ShapeDtypeStruct((3, 2), np.dtype("float32"))
    assert "ShapeDtypeStruct" in repr(shaped)


def test_donated_arrays_are_deleted():
    array = wrap(jnp.ones(2))
    result = jax.jit(lambda x: x + 1, donate_argnums=0)(array)
    assert result.tolist() == [2.0, 2.0]
    assert array.unwrap().is_deleted()


def test_device_put_and_block_until_ready_return_arrays():
    placed = jax.device_put({"w": asarray(np.ones(2, "float32"))}, jax.devices()[0])
    assert type(placed["w"]) is Array
    assert placed["w"].backend.name == "jax"
    assert jax.block_until_ready(placed)["w"].tolist() == [1.0, 1.0]


MADE = {
    "strong, NumPy": lambda: wrap(np.ones(2, "bfloat16")),
    "weak, NumPy": lambda: asarray(2.0),
    "strong, JAX": lambda: wrap(jnp.ones(2, "int8")),
    "weak, JAX": lambda: asarray(2.0, library="jax"),
    "strong, PyTorch": lambda: asarray(np.ones(2, "bfloat16"), library=import_or_skip("torch").__name__),
    "weak, PyTorch": lambda: asarray(2.0, library=import_or_skip("torch").__name__),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_copies_keep_library_dtype_and_weak_flag(make):
    with use_rules("jax"):
        array = make()
    for made in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)):
        assert type(made) is Array
        assert (made.backend, *_described(made)) == (array.backend, *_described(array))
        assert made.tolist() == array.tolist()
    assert ("weak_type=True" in repr(array)) == array.weak_type
    mapped = jax.tree.map(lambda x: x, array)
    assert (type(mapped), mapped.weak_type, mapped.tolist()) == (Array, array.weak_type, array.tolist())


def test_deep_copies_share_no_memory():
    array = wrap(np.ones(2, "float32"))
    deep, shallow = copy.deepcopy(array), copy.copy(array)
    array[0] = 5
    assert (deep.tolist(), shallow.tolist()) == ([1.0, 1.0], [5.0, 1.0])


MADE_BEFORE_JAX = """
import sys
before = list(sys.meta_path)
import numpy as np
import supremum
from supremum import ops
from supremum.arrays import Array, asarray, namespace
with supremum.use_rules("torch"):
    made = Array(np.ones(2, "int8")), asarray(2.0)
    made[0] + made[0], made[1] + 1, ops.add(made[0], made[0])
assert "jax" not in sys.modules
import jax
assert sys.meta_path == before
with supremum.use_rules("torch"):
    {after}
    result = jax.jit(lambda a, b: a * b)(*made)
assert type(result) is Array and result.dtype == "float32", result
print("done")
"""
AFTER = {
    "a new array": "Array(np.ones(2))",
    "asarray": "asarray([1, 2])",
    "an operator": "made[0] + made[0]",
    "an operator with a number": "made[1] + 1",
    "a function": "ops.add(made[0], made[0])",
    "a reduction": "made[0].sum()",
    "a function of the namespace": 'namespace("numpy").reshape(made[0], (2, 1))',
    "an element": "made[0][0]",
}


@for_each("after", AFTER.values(), one_in=8)
def test_array_created_before_the_import_of_jax_is_a_pytree_after_any_use(after):
    code = MADE_BEFORE_JAX.replace("{after}", after)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout == "done\n", found.stderr


def test_jitted_functions_are_traced_once_per_rule_set():
    traces = []

    @jax.jit
    def add(a, b):
        traces.append(1)
        return a + b

    a, b = wrap(jnp.ones(2, "int32")), wrap(jnp.ones(2, "float16"))
    with jax.enable_x64(True):
        found = []
        for rules in ("jax-x64", "numpy", "torch", "numpy", "jax-x64"):
            with use_rules(rules):
                found.append(add(a, b).dtype.name)
    assert found == ["float16", "float64", "float16", "float64", "float16"]
    assert len(traces) == 3


def test_rules_set_inside_a_jitted_function_are_used():
    @jax.jit
    def add(a, b):
        with use_rules("numpy"):
            return a + b

    a, b = wrap(jnp.ones(2, "int8")), wrap(jnp.ones(2, "uint8"))
    with use_rules("tf-rfc-none"):
        assert add(a, b).dtype == "int16"


def test_jaxpr_has_no_calls_and_only_the_necessary_casts():
    def run(a, b):
        return ops.maximum(a * 2 + b, 0) / (b - 1) ** 3 < a

    with use_rules("jax"):
        jaxpr = jax.make_jaxpr(run)(wrap(jnp.ones(2, "bfloat16")), wrap(jnp.ones(2, "float32")))
    names = [equation.primitive.name for equation in jaxpr.jaxpr.eqns]
    assert not {"pjit", "jit", "closed_call", "custom_jvp_call"} & set(names), names
    assert names.count("convert_element_type") == 2
