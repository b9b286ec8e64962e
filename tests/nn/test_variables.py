import operator
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import supremum
from nn.arrays import built
from slowly import slow
from supremum import nn
from supremum.arrays import InPlaceError
from supremum.decisions import PromotionError
from supremum.errors import ArgumentError
from supremum.mixed_precision import PolicyWarning
from supremum.optimizers import SGD

ONES = jax.nn.initializers.ones
either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


class VariableLayer(nn.Layer):
    """A layer with one variable of each kind and a `call` from the test."""

    def __init__(self, body, **kwargs):
        super().__init__(**kwargs)
        self.body = body

    def build(self, input_shape):
        floats = np.dtype(self.dtype).kind != "i"
        self.w = self.add_weight("w", (2, 2), jax.nn.initializers.normal() if floats else ONES)
        self.plain = self.add_weight("plain", (2, 2), ONES, autocast=False)
        self.count = self.add_weight("count", (2,), dtype="int32", trainable=False)
        self.phase = self.add_weight("phase", (2,), ONES, dtype="complex64")

    def call(self, x):
        return self.body(self, x)


def layer_with_body(body, dtype="mixed_float16"):
    layer = built(VariableLayer(lambda layer, x: x, dtype=dtype), jnp.ones((2, 2)))
    layer.body = body
    return layer


def summed(layer):
    """Return the sum of a layer's outputs as a function of its inputs."""
    return lambda x: layer(x).sum().astype("float32")


def square(x):
    return x * x


def recording_identity(custom_vjp, read, seen):
    """Return the identity, with a backward rule that records the dtype that it reads."""
    identity = custom_vjp(lambda x: x)
    identity.defvjp(lambda x: (x, None), lambda _, g: seen.append(read().dtype) or (g,))
    return identity


def test_only_floating_weights_of_mixed_layers_are_wrapped():
    mixed, plain, inferred = (layer_with_body(None, dtype) for dtype in ("mixed_bfloat16", "float16", "infer"))
    assert [type(v) for v in mixed.variables.values()] == [nn.AutoCastVariable, *[nn.Variable] * 3]
    for layer in (plain, inferred):
        assert {type(v) for v in layer.variables.values()} == {nn.Variable}


READS = {
    "value": lambda v: v.value,
    "read_value": lambda v: v.read_value(),
    "sparse_read": lambda v: v.sparse_read([1, 0]),
    "gather_nd": lambda v: v.gather_nd([[0, 1], [1, 1]]),
    "index": lambda v: v[0],
    "slice": lambda v: v[:, 1],
    "iteration": lambda v: next(iter(v)),
    "negative": lambda v: -v,
    "absolute": lambda v: abs(v),
    "positive": lambda v: +v,
    "times_number": lambda v: 2 * v + 1,
    "power": lambda v: v**2,
    "itself": lambda v: v @ v - v / v,
    "namespace": lambda v: jnp.dot(jnp.ones((2, 2), v.dtype), v.value),
}
EXPECTED = {
    "value": lambda w: w,
    "read_value": lambda w: w,
    "sparse_read": lambda w: w[[1, 0]],
    "gather_nd": lambda w: np.array([w[0, 1], w[1, 1]]),
    "index": lambda w: w[0],
    "slice": lambda w: w[:, 1],
}


@either_mode
def test_every_read_casts_inside_call_and_not_outside(jitted):
    layer = layer_with_body(
        lambda layer, x: {name: (read(layer.w), read(layer.plain).astype("int8")) for name, read in READS.items()}
    )

    def run(variables):
        return nn.functional_call(layer, variables, jnp.ones((2, 2)))[0]

    values = {path: variable.value for path, variable in layer.variables.items()}
    made = (jax.jit(run) if jitted else run)(values)
    outside = {name: (read(layer.w), read(layer.plain)) for name, read in READS.items()}
    dtypes = {name: (made[name][0].dtype, *(each.dtype for each in outside[name])) for name in READS}
    assert dtypes == dict.fromkeys(READS, ("float16", "float32", "float32"))
    for name, expected in EXPECTED.items():
        stored = np.asarray(values["w"])
        np.testing.assert_array_equal(made[name][0], expected(stored.astype("float16")), err_msg=name)
        np.testing.assert_array_equal(outside[name][0], expected(stored), err_msg=name)


@either_mode
def test_rows_out_of_range_give_fill_values(jitted):
    """JAX's indexing would give the last row, and the last but one for -2."""
    layer = layer_with_body(None)
    for read in (lambda i: layer.w.sparse_read(i), lambda i: layer.w.gather_nd(i[:, None])):
        rows = np.asarray((jax.jit(read) if jitted else read)(jnp.asarray([1, 2, -1])))
        np.testing.assert_array_equal(rows[0], layer.w.value[1])
        assert np.isnan(rows[1:]).all()
    assert layer.count.sparse_read([5]).tolist() == [np.iinfo("int32").min]


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
          operator.matmul, divmod]  # fmt: skip
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("other", ["jax", "numpy", "variable", "array"])
def test_operators_work_from_both_sides(other):
    others = {
        "jax": lambda v: jnp.full((2, 2), 2, "float16"),
        "numpy": lambda v: np.full((2, 2), 2, "float16"),
        "variable": lambda v: v,
        "array": lambda v: supremum.asarray(np.full((2, 2), 2, "float16"), library="jax"),
    }
    seen = {}

    def body(layer, x):
        against = others[other](layer.w)
        for function in BINARY + COMPARISONS:
            seen[function] = function(layer.w, against), function(against, layer.w)
        return x

    layer_with_body(body)(jnp.ones((2, 2)))
    for function, results in seen.items():
        wanted = np.dtype(bool) if function in COMPARISONS else np.dtype("float16")
        for found in jax.tree.leaves(results, is_leaf=lambda leaf: isinstance(leaf, supremum.Array)):
            assert found.dtype == wanted, function
            assert isinstance(found, supremum.Array if other == "array" else jax.Array), function
    assert len(seen) == len(BINARY + COMPARISONS)


FUNCTIONS = {
    "matmul": lambda v, x: jnp.matmul(x, v),
    "matmul_left": lambda v, x: jnp.matmul(v, x),
    "dot": lambda v, x: jnp.dot(x, v),
    "einsum": lambda v, x: jnp.einsum("ij,jk->ik", x, v),
    "tensordot": lambda v, x: jnp.tensordot(x, v, 1),
    "sum": lambda v, x: jnp.sum(v),
    "exp": lambda v, x: jnp.exp(v),
    "where": lambda v, x: jnp.where(x > 0, v, x),
    "concatenate": lambda v, x: jnp.concatenate([v, x]),
    "stack": lambda v, x: jnp.stack([v, v]),
    "take": lambda v, x: jnp.take(v, 0, axis=0),
    "norm": lambda v, x: jnp.linalg.norm(v),
    "zeros_like": lambda v, x: jnp.zeros_like(v),
    "asarray": lambda v, x: jnp.asarray(v),
    "relu": lambda v, x: jax.nn.relu(v),
    "softmax": lambda v, x: jax.nn.softmax(v),
    "gelu": lambda v, x: jax.nn.gelu(v),
    "jitted": lambda v, x: jax.jit(jnp.matmul)(x, v),
    "vmapped": lambda v, x: jax.vmap(jnp.dot, (0, None))(x, v),
    "checkpointed": lambda v, x: jax.checkpoint(jnp.matmul)(x, v),
    "scanned": lambda v, x: jax.lax.scan(lambda c, row: (c, row * 2), 0, v)[1],
    "at": lambda v, x: x.at[0].set(jnp.asarray(v)[0]),
    "tree": lambda v, x: jax.tree.map(lambda leaf: leaf * 2, {"w": v})["w"],
}


@pytest.mark.parametrize("jitted", [slow(False), True], ids=["eager", "jitted"])
def test_functions_of_jax_read_the_compute_dtype(jitted):
    """`jax.numpy`, `jax.nn`, transformations and trees; a variable that is not cast is read as it is stored."""

    def both(layer, x):
        return {name: (function(layer.w, x), function(layer.w.value, x)) for name, function in FUNCTIONS.items()}

    layer = layer_with_body(both)

    def run(values, x):
        return nn.functional_call(layer, values, x)[0], both(layer, x)

    values = {path: variable.value for path, variable in layer.variables.items()}
    inside, outside = (jax.jit(run) if jitted else run)(values, jnp.ones((2, 2)))
    for dtype, results in (("float16", inside), ("float32", outside)):
        assert {name: (a.dtype, b.dtype) for name, (a, b) in results.items()} == dict.fromkeys(
            FUNCTIONS, (dtype, dtype)
        )
        for name, (given, array) in results.items():
            np.testing.assert_array_equal(given, array, err_msg=name)
    assert len(inside) == len(outside) == len(FUNCTIONS)


def test_operators_and_functions_promote_as_jax_does():
    layer = layer_with_body(None)
    for rules in ("array-api", "torch"):
        with supremum.use_rules(rules):
            assert (layer.plain + jnp.ones((2, 2), "int32")).dtype == "float32"
            assert (jnp.ones(2, "float16") + layer.count).dtype == "float16"
            assert jnp.add(layer.count, jnp.ones(2, "float16")).dtype == "float16"
    with supremum.use_rules("array-api"), pytest.raises(PromotionError):
        layer.plain + supremum.asarray(jnp.ones((2, 2), "int32"))


LAX = {
    "dot": lambda v, x: jax.lax.dot(x, v),
    "exp": lambda v, x: jax.lax.exp(v),
    "add": lambda v, x: jax.lax.add(v, x),
    "broadcast": lambda v, x: jax.lax.broadcast(v, (2,)),
    "concatenate": lambda v, x: jax.lax.concatenate([x, v], 0),
}


@pytest.mark.parametrize("name", LAX)
@either_mode
def test_functions_of_lax_raise_with_the_fix(name, jitted):
    layer = layer_with_body(lambda layer, x: LAX[name](layer.w, x))
    call = jax.jit(layer) if jitted else layer
    says = rf"{name}\(\) takes arrays, got variable 'w'; use w.value, or a function of jax.numpy"
    with pytest.raises(ArgumentError, match=rf"variable_layer \(.*\), given float32\[2,2\]: {says}"):
        call(jnp.ones((2, 2)))
    outside = jax.jit(lambda x: LAX[name](layer.w, x)) if jitted else lambda x: LAX[name](layer.w, x)
    with pytest.raises(ArgumentError, match=f"^{says}"):
        outside(jnp.ones((2, 2)))
    layer.body = lambda layer, x: LAX[name](layer.w.value, x)
    assert layer(jnp.ones((2, 2))).dtype == "float16"


def test_functions_of_lax_raise_with_the_fix_in_a_loss():
    w = nn.Variable([1.0, 2.0], "w")
    with pytest.raises(ArgumentError, match=r"mul\(\) takes arrays, got variable 'w'; use w.value"):
        SGD().minimize(lambda: jax.lax.mul(w, w).sum(), w)


def test_variable_in_a_tree_is_a_leaf_with_its_value():
    variable = nn.Variable([1.0, 2.0], "scale")
    (path, leaf), = jax.tree_util.tree_leaves_with_path({"layer": variable})  # fmt: skip
    assert jax.tree_util.keystr(path, simple=True, separator="/") == "layer/value"
    assert leaf is variable.value
    structure = jax.tree.structure(variable)
    assert jax.tree.unflatten(structure, [3]) == 3

    class Named(nn.Variable):
        pass

    assert jax.tree.leaves(Named(1.0)) == [1.0]


@pytest.mark.slow
def test_dtype_is_read_dtype_and_true_dtype_is_stored_dtype():
    seen = {}
    layer = layer_with_body(lambda layer, x: seen.update({n: (getattr(layer, n).dtype, getattr(layer, n).true_dtype)
                                                  for n in ("w", "plain", "count", "phase")}) or x)  # fmt: skip
    layer(jnp.ones((2, 2)))
    assert seen == {
        "w": ("float16", "float32"),
        "plain": ("float32", "float32"),
        "count": ("int32", "int32"),
        "phase": ("complex64", "complex64"),
    }
    assert (layer.w.dtype, layer.w.shape, layer.w.ndim, layer.w.size, layer.w.nbytes) == ("float32", (2, 2), 2, 4, 16)
    assert (len(layer.w), int(nn.Variable(2)), complex(nn.Variable(1j))) == (2, 2, 1j)
    assert (bool(nn.Variable(1.5)), float(nn.Variable(1.5))) == (True, 1.5)
    assert np.asarray(layer.w).dtype == np.asarray(layer.w, "float32", copy=True).dtype == "float32"
    assert repr(layer.w) == "AutoCastVariable('w', shape=(2, 2), dtype=float32)"


TRANSFORMATIONS = {
    "plain": lambda f: f,
    "jit": jax.jit,
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, length=2)[0],
    "fori": lambda f: lambda x: jax.lax.fori_loop(0, 2, lambda _, c: f(c), x),
    "cond": lambda f: lambda x: jax.lax.cond(x.sum() > 0, f, f, x),
    "remat": jax.checkpoint,
    "vmap": jax.vmap,
    "shard_map": lambda f: jax.shard_map(
        f, mesh=jax.make_mesh((1,), ("i",)), in_specs=PartitionSpec(), out_specs=PartitionSpec(), check_vma=False
    ),
}
# Transformations between the call of a layer and a function in it with a custom backward pass.
INNER_TRANSFORMATIONS = {name: TRANSFORMATIONS[name] for name in ("plain", "vmap", "jit", "scan", "remat", "cond")}


class TestAutocastScope:
    @pytest.mark.slow
    def test_autocast_variables_of_other_layers_cast_too(self):
        inner, plain = layer_with_body(None), layer_with_body(None, "float32")
        outer = layer_with_body(lambda layer, x: (inner.w.value, plain.w.value.astype("int8"), plain.w.dtype))
        outer._policy = nn.ReLU(dtype="mixed_bfloat16").dtype_policy
        assert [str(getattr(v, "dtype", v)) for v in outer(jnp.ones((2, 2)))] == ["bfloat16", "int8", "float32"]
        assert inner.w.dtype == "float32"

    @pytest.mark.slow
    def test_inner_layer_uses_its_dtype_and_the_outer_dtype_is_restored(self):
        inner = layer_with_body(lambda layer, x: layer.w.value, "mixed_bfloat16")
        outer = layer_with_body(lambda layer, x: (inner(x), layer.w.value))
        with pytest.warns(nn.MixedDtypeWarning, match="must return its compute dtype float16, got bfloat16"):
            assert [v.dtype for v in jax.tree.leaves(outer(jnp.ones((2, 2))))] == ["bfloat16", "float16"]

    @pytest.mark.parametrize("dtype", ["infer", "int32", "complex64"])
    def test_layer_without_a_floating_dtype_suspends_casts(self, dtype):
        seen = []
        outer = layer_with_body(lambda layer, x: inner(x).astype(layer.compute_dtype))
        inner = layer_with_body(lambda layer, x: seen.append(outer.w.value.dtype) or x, dtype)
        outer(jnp.ones((2, 2)))
        assert seen == ["float32"]

    def test_scope_ends_with_an_error_and_belongs_to_its_thread(self):
        def body(layer, x):
            thread = threading.Thread(target=lambda: seen.append(layer.w.dtype))
            thread.start()
            thread.join()
            seen.append(layer.w.dtype)
            raise RuntimeError("on purpose")

        seen = []
        layer = layer_with_body(body)
        with pytest.raises(RuntimeError, match="on purpose"):
            layer(jnp.ones((2, 2)))
        assert [*seen, layer.w.dtype] == ["float32", "float16", "float32"]

    @pytest.mark.parametrize(("name", "jitted"), [("scan", False), *((name, True) for name in TRANSFORMATIONS)])
    def test_scope_applies_inside_transformations(self, name, jitted):
        def body(layer, x):
            seen.append(layer.w.dtype)
            return TRANSFORMATIONS[name](lambda x: x @ layer.w)(x)

        seen = []
        layer = layer_with_body(body)

        def loss(values, x):
            return nn.functional_call(layer, values, x)[0].sum().astype("float32")

        grad = jax.grad(loss)
        gradients = (jax.jit(grad) if jitted else grad)({"w": layer.w.value}, jnp.ones((2, 2)))
        assert gradients["w"].dtype == "float32"
        program = str(jax.make_jaxpr(loss)({"w": layer.w.value}, jnp.ones((2, 2))))
        products = [line for line in program.splitlines() if "dot_general" in line]
        assert products
        assert all("f16" in line and "f32" not in line.partition("=")[0] for line in products)

    @pytest.mark.one_in(5)
    @pytest.mark.parametrize("around", INNER_TRANSFORMATIONS)
    @pytest.mark.parametrize(
        "outside", ["grad", "jit(grad)", "grad(jit)", "grad(scan)", "grad(remat)", "jit(grad(scan))", "vjp(jit)"]
    )
    def test_scope_applies_in_backward_passes_after_call(self, around, outside):
        seen = []

        def body(layer, x):
            @nn.custom_vjp
            def product(x):
                return x @ layer.w

            def forward(x):
                return product(x), x

            def backward(x, cotangent):
                seen.append(layer.w.dtype)
                return (cotangent @ layer.w.value.T,)

            product.defvjp(forward, backward)
            return INNER_TRANSFORMATIONS[around](product)(x)

        layer = layer_with_body(body)

        run = summed(layer)

        def scanned(x):
            return jax.lax.scan(lambda c, _: (c, run(x + c)), 0.0, length=2)[1].sum()

        wrapped = {
            "grad": jax.grad(run),
            "jit(grad)": jax.jit(jax.grad(run)),
            "grad(jit)": jax.grad(jax.jit(run)),
            "grad(scan)": jax.grad(scanned),
            "grad(remat)": jax.grad(jax.checkpoint(run)),
            "vjp(jit)": lambda x: jax.vjp(jax.jit(run), x)[1](jnp.float32(1))[0],
            "jit(grad(scan))": jax.jit(jax.grad(scanned)),
        }[outside]
        gradient = wrapped(jnp.ones((2, 2)))
        assert gradient.dtype == "float32"
        assert set(seen) == {np.dtype("float16")}
        assert layer.w.dtype == "float32"

    def test_suspended_scope_applies_in_backward_passes_too(self):
        seen = []

        inner = layer_with_body(lambda _, x: recording_identity(nn.custom_vjp, lambda: outer.w, seen)(x), "infer")
        outer = layer_with_body(lambda layer, x: inner(x))
        jax.grad(summed(outer))(jnp.ones((2, 2)))
        assert set(seen) == {np.dtype("float32")}

    def test_repr_names_the_function(self):
        assert repr(nn.custom_jvp(jnp.square)) == "nn.custom_jvp(square)"

    @pytest.mark.parametrize(("custom_vjp", "read"), [(nn.custom_vjp, "float16"), (jax.custom_vjp, "float32")])
    def test_rule_of_plain_jax_reads_stored_values(self, custom_vjp, read):
        seen = []

        layer = layer_with_body(lambda layer, x: recording_identity(custom_vjp, lambda: layer.w, seen)(x))
        jax.grad(summed(layer))(jnp.ones((2, 2)))
        assert seen == [np.dtype(read)]

    @pytest.mark.parametrize("outside", [jax.grad, lambda f: jax.grad(jax.jit(f)), lambda f: jax.jit(jax.grad(f))])
    @pytest.mark.parametrize("define", ["defjvp", "defjvps"])
    def test_scope_applies_in_forward_derivatives(self, outside, define):
        seen = []

        def body(layer, x):
            @nn.custom_jvp
            def scaled(x):
                return x * layer.w

            def rule(tangent, out, x):
                seen.append(layer.w.dtype)
                return tangent * layer.w.value

            if define == "defjvps":
                scaled.defjvps(rule)
            else:
                scaled.defjvp(lambda primals, tangents: (scaled(*primals), rule(*tangents, None, *primals)))
            return scaled(x)

        layer = layer_with_body(body)
        gradient = outside(summed(layer))(jnp.ones((2, 2)))
        np.testing.assert_array_equal(gradient, np.asarray(layer.w.value.astype("float16"), "float32"))
        assert set(seen) == {np.dtype("float16")}

    @pytest.mark.parametrize("made", [nn.custom_vjp, nn.custom_jvp])
    def test_function_without_rules_raises_like_jax(self, made):
        plain = {nn.custom_vjp: jax.custom_vjp, nn.custom_jvp: jax.custom_jvp}[made]
        for function in (made, plain):
            layer = layer_with_body(lambda _, x, function=function: function(square)(x))
            gradient = jax.grad(summed(layer))
            with pytest.raises(AttributeError, match=r"No (VJP|JVP) defined for custom_(vjp|jvp) function square"):
                gradient(jnp.ones((2, 2)))


class TestAssignment:
    @pytest.mark.parametrize(
        ("name", "wanted"), [("assign", 1e-4), ("assign_add", 1e-4), ("assign_sub", -1e-4), ("assign_mul", 0.0)]
    )
    @pytest.mark.parametrize("value", [1e-4, np.float32(1e-4), jnp.float32(1e-4)])
    def test_assignment_uses_the_stored_dtype_inside_call(self, name, wanted, value):
        """Keras 3 casts the value, and 1 + 1e-4 is 1 in float16."""
        layer = layer_with_body(None)
        zero = jnp.zeros((2, 2))
        layer.w.assign(zero)
        given = value if name != "assign" else np.full((2, 2), value, "float32")
        layer.body = lambda layer, x: getattr(layer.w, name)(given) and x
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nn.Variable, "__bool__", lambda self: True)
            layer(jnp.ones((2, 2)))
        np.testing.assert_array_equal(layer.w.value, np.full((2, 2), np.float32(wanted)))

    def test_in_place_operators_use_the_stored_dtype(self):
        def body(layer, x):
            layer.w += 1e-4
            layer.w -= 2e-4
            layer.w *= 2
            return x

        layer = layer_with_body(body)
        before = np.asarray(layer.w.value)
        layer(jnp.ones((2, 2)))
        np.testing.assert_array_equal(layer.w.value, (before + np.float32(1e-4) - np.float32(2e-4)) * 2)
        assert isinstance(layer.w, nn.AutoCastVariable)

    def test_assigned_variable_gives_its_stored_value(self):
        layer = layer_with_body(lambda layer, x: layer.plain.assign(layer.w) is None or x)
        layer(jnp.ones((2, 2)))
        np.testing.assert_array_equal(layer.plain.value, layer.w.value)

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("assign", np.ones((2, 2), "complex64"), InPlaceError),
            ("assign_add", 1j, InPlaceError),
            ("assign_mul", jnp.ones((2, 2), "complex64"), InPlaceError),
            ("assign", [[1, 2], [3, 4]], TypeError),
            ("assign_add", "1", TypeError),
            ("assign", 1e39, InPlaceError),
            ("assign", jnp.ones(2), ValueError),
            ("assign", 1.0, ValueError),
            ("assign_add", jnp.ones((3, 2, 2)), ValueError),
        ],
    )
    def test_failed_assignment_changes_nothing(self, name, value, error):
        layer = layer_with_body(None)
        before = np.asarray(layer.w.value)
        with pytest.raises(error):
            getattr(layer.w, name)(value)
        np.testing.assert_array_equal(layer.w.value, before)

    def test_integers_are_not_truncated(self):
        layer = layer_with_body(None)
        with pytest.raises(InPlaceError):
            layer.count.assign_add(1.5)
        assert layer.count.assign_add(2).value.tolist() == [2, 2]

    def test_a_traced_value_needs_a_functional_call(self):
        layer = layer_with_body(lambda layer, x: layer.w.assign(x.astype("float32")) is None or x)
        with pytest.raises(
            ValueError, match="variable 'w' must get a concrete value, got a tracer, which would outlive its trace"
        ):
            jax.jit(layer)(jnp.ones((2, 2)))
        with jax.checking_leaks():
            _, values = jax.jit(lambda v, x: nn.functional_call(layer, v, x))({"w": layer.w.value}, jnp.ones((2, 2)))
        assert values["w"].tolist() == [[1, 1], [1, 1]]


class TestPlainVariables:
    @pytest.mark.parametrize("make", [nn.Variable, supremum.ArrayVariable])
    def test_plain_variable_in_a_mixed_layer_warns(self, make):
        class Careless(nn.Layer):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                self.scale = make(np.ones(2, "float32"))

            def call(self, x):
                return x

        with pytest.warns(PolicyWarning, match=r"self\.add_weight\('scale', \(2,\)\)") as caught:
            Careless(dtype="mixed_float16")
        assert caught[0].filename == __file__
        Careless(dtype="float32")
        Careless(dtype="infer")

    def test_integer_variables_and_weights_do_not_warn(self):
        layer = nn.ReLU(dtype="mixed_float16")
        layer.step = nn.Variable(0)
        layer.kept = layer.add_weight("kept", (2,), autocast=False)
        layer.cast = layer.add_weight("cast", (2,))
        assert list(layer.variables) == ["step", "kept", "cast"]


def test_checkpoints_of_plain_and_autocast_variables_load_into_each_other():
    layers = [layer_with_body(None, dtype) for dtype in ("mixed_float16", "float32")]
    states = [{path: np.asarray(variable) for path, variable in layer.variables.items()} for layer in layers]
    assert {path: (v.dtype, v.shape) for path, v in states[0].items()} == {
        path: (v.dtype, v.shape) for path, v in states[1].items()
    }
    assert "w" in states[0]
    for layer, state in zip(layers, states[::-1], strict=True):
        nn.load_variables(layer, {path: value + value.dtype.type(1) for path, value in state.items()})
        for path, variable in layer.variables.items():
            np.testing.assert_array_equal(variable, state[path] + state[path].dtype.type(1))


def test_loading_is_all_or_nothing():
    layer = layer_with_body(None)
    before = {path: np.asarray(v) for path, v in layer.variables.items()}
    good = {path: value + value.dtype.type(1) for path, value in before.items()}
    for bad in (good | {"phase": np.ones(3, "complex64")}, good | {"other": 1}, {"w": good["w"]}):
        with pytest.raises(ValueError, match=r"shape \(2,\), got \(3,\)|unknown variable 'other'|missing count"):
            nn.load_variables(layer, bad)
    assert all(np.array_equal(layer.variables[path], before[path]) for path in before)


class Unnamed(nn.Layer):
    """A layer with variables that were given no name."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Variable(jnp.ones(2), constraint="non_neg")
        self.scales = {"a": nn.Variable(jnp.ones(2)), "b": nn.Variable(jnp.ones(2), "given")}

    def build(self, input_shape):
        self.kernels = [self.add_weight(shape=(2, 2)), self.add_weight(shape=(2, 2))]
        self.bias = self.add_weight(shape=2)

    def call(self, x):
        return x @ self.kernels[0] @ self.kernels[1] + self.bias + self.shift


def test_variables_without_a_name_take_that_of_their_attribute():
    names = {"shift", "scales/a", "given", "kernels/0", "kernels/1", "bias"}
    layer = built(Unnamed(), jnp.ones((1, 2)))
    assert {*layer.variables} == {variable.name for variable in layer.variables.values()} == names
    outer = built(nn.SequentialNetwork([Unnamed()]), jnp.ones((1, 2)))
    assert {*outer.variables} == {f"unnamed/{name}" for name in names}
    assert nn.Variable(2).name == "variable"
    (shift,) = [each for each in layer.own_variables() if each.name == "shift"]
    layer.other = shift  # the first attribute gave it its name
    del layer.shift
    assert [each.name for each in layer.own_variables() if each is shift] == ["shift"]


def test_variables_have_the_constraint_that_they_were_given():
    variable = nn.Variable([-1.0, 1.0], constraint=nn.NonNeg())
    SGD(0.0).apply_gradients([(jnp.ones(2), variable)])
    assert variable.value.tolist() == [0, 1]
    assert nn.Variable([1.0], constraint="non_neg").constraint == nn.NonNeg()


def test_lists_of_weights_have_the_variables_in_order():
    layer = nn.SequentialNetwork([nn.Dense(2), nn.BatchNorm(), nn.Dense(3, trainable=False)], dtype="mixed_bfloat16")
    with pytest.raises(nn.UninitializedError, match="layer 'sequential_network' has no weights yet"):
        layer.count_params()
    with pytest.raises(ArgumentError, match="weights must have 0 arrays, got 1; call the layer first"):
        layer.set_weights([1.0])
    built(layer, jnp.ones((1, 4)))
    assert layer.weights == [*layer.variables.values()]
    assert layer.trainable_weights == layer.weights[:4]
    assert layer.non_trainable_weights == layer.weights[4:]
    values = layer.get_weights()
    assert [(each.shape, each.dtype) for each in values] == [(each.shape, each.true_dtype) for each in layer.weights]
    assert layer.count_params() == sum(each.size for each in values) == 4 * 2 + 2 + 4 * 2 + 2 * 3 + 3


def test_set_weights_is_all_or_nothing():
    layer = built(nn.Dense(2), jnp.ones((1, 3)))
    before = layer.get_weights()
    for bad, error in (
        ([before[0] + 1], ArgumentError), ([before[0] + 1, np.ones(3, "float32")], ArgumentError),
        ([before[0] + 1, np.ones(2, "complex64")], InPlaceError), (1.0, TypeError),
    ):  # fmt: skip
        with pytest.raises(error):
            layer.set_weights(bad)
        assert [*map(np.array_equal, layer.get_weights(), before)] == [True, True]
    layer.set_weights(value + 1 for value in before)
    assert [*map(np.array_equal, layer.get_weights(), [value + 1 for value in before])] == [True, True]


def test_variables_have_methods_for_users_only():
    public = {name for name in vars(nn.Variable) if not name.startswith("_")}
    assert public == {
        "assign", "assign_add", "assign_mul", "assign_sub", "dtype", "gather_nd", "is_initialized", "nbytes", "ndim",
        "read_stored", "read_value", "shape", "size", "sparse_read", "true_dtype", "value",
    }  # fmt: skip
