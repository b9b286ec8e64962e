import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax
from jax.extend.core import Primitive

from mixed_precision.autocasting.found import W, X, dtypes, products
from supremum.errors import ArgumentError, UnknownNameError
from supremum.jax_compat import open_jaxpr
from supremum.jaxprs import Rewriter
from supremum.jaxprs.mutable_arguments import nnx_adapter
from supremum.mixed_precision import (
    AUTOCAST_OPERATIONS,
    Policy,
    PolicyMap,
    UnmatchedPatternWarning,
    autocast,
    register_operation,
)
from supremum.mixed_precision.autocasting.equation_rules import AutocastRule, Context
from supremum.mixed_precision.autocasting.operations import Row
from supremum.mixed_precision.autocasting.settings import as_settings
from supremum.tracing import register_adapter

# Operations and policies

MINE = Primitive("mine_alone")
MINE.def_abstract_eval(lambda x: x)


def layer(x):
    return jnp.exp(x @ W)


def mine(x):
    return MINE.bind(x @ W)


# A function, the policy, `ops`, a primitive, and the dtype in which it runs.
ASKED = [
    *((layer, None, {"dot_general": rule}, "dot_general", "float32") for rule in ("float32", jnp.float32, "declared")),
    (layer, None, {"dot_general": np.dtype("float32")}, "dot_general", "float32"),
    (layer, None, {"dot_general": "float16"}, "dot_general", "float16"),
    (layer, None, {"exp": "compute"}, "exp", "bfloat16"),
    (lambda x: jnp.exp(x.astype("bfloat16")), None, {"exp": "float32"}, "exp", "float32"),  # in place of a cast by hand
    (lambda x: x.astype("float16") @ W, None, {"dot_general": "widest"}, "dot_general", "float32"),
    (mine, None, None, "mine_alone", "float32"),
    (mine, None, {"mine_alone": "compute"}, "mine_alone", "bfloat16"),
    *((layer, policy, None, "dot_general", "float16") for policy in ("mixed_float16", "float16")),
    (layer, "bfloat16", None, "dot_general", "bfloat16"),
    (layer, Policy("float32"), None, "dot_general", "float32"),
]


@pytest.mark.parametrize(("function", "policy", "ops", "primitive", "expected"), ASKED)
def test_operations_run_in_the_dtype_that_is_asked_for(function, policy, ops, primitive, expected):
    assert dtypes(autocast(function, policy, ops=ops), primitive, X) == [expected]


IDENTITY = lambda x: x  # noqa: E731
CHOICES = "compute, float32, widest, each, declared, bfloat16, float16"
INVALID = [
    *(
        (lambda policy=policy: autocast(IDENTITY, policy), ValueError, f"policy that computes in one of .*{policy}")
        for policy in ("float64", "int32", "float8_e4m3fn", "complex64")
    ),
    (lambda: autocast(IDENTITY, "infer"), ValueError, "'infer', which computes in the dtype of its inputs"),
    (lambda: autocast(IDENTITY, PolicyMap({"a": "int32"}, "bfloat16")), ValueError, "'int32', which computes in int32"),
    (lambda: autocast(IDENTITY, ops={"exp": "flaot32"}), UnknownNameError, "unknown rule 'flaot32': .* 'float32'"),
    (lambda: autocast(IDENTITY, ops={"exp": "int32"}), ArgumentError, f"must be one of {CHOICES}, got int32"),
    (lambda: autocast(IDENTITY, ops={"exp": "inside"}), UnknownNameError, r"ops\['exp'\]: unknown rule 'inside'"),
    (lambda: autocast(IDENTITY, ops={"pure_callback": "each"}), ArgumentError, "'declared', got 'each': code outside"),
    (lambda: autocast("mixed_float16")(2), TypeError, r"got 2: use autocast\(function, 'mixed_float16'\)"),
    (lambda: autocast("mixed_float16", "bfloat16"), TypeError, r"got 'mixed_float16': .* or @autocast\('bfloat16'\)"),
    (lambda: autocast(IDENTITY, enabled="no"), TypeError, "enabled must be True or False, got 'no'"),
    (lambda: register_operation("mine", "bfloat16", "x"), UnknownNameError, "choose from compute, float32"),
    (lambda: register_operation("mine", "compute", ""), ArgumentError, "reason must say why"),
]


@pytest.mark.parametrize(("call", "error", "message"), INVALID)
def test_invalid_arguments_raise(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_ops_applies_to_whole_functions():
    @jax.jit
    def attention(x):
        return jax.jit(lambda x: jnp.exp(x @ W))(x) @ W

    program = lambda x: attention(x) @ W  # noqa: E731
    assert products(autocast(program, ops={"attention": "float32"}), X) == ["float32", "float32", "bfloat16"]
    assert products(autocast(program, ops={"attention": "declared"}), X) == ["float32", "float32", "bfloat16"]
    cast = autocast(program, ops={"attention": "float16"})
    assert (products(cast, X), dtypes(cast, "exp", X)) == (["float16", "float16", "bfloat16"], ["float16"])
    adds = jax.jit(lambda x: jnp.zeros(8).at[jnp.arange(4)].add((x @ W)[:, 0]))
    adds.__wrapped__.__name__ = "adds"
    cast = autocast(jax.jit(adds.__wrapped__), ops={"adds": "float16"})
    assert (products(cast, X), dtypes(cast, "scatter-add", X)) == (["float16"], ["float32"])


# Operations of a product and a bias that do not run in the widest dtype here: their dtype, and the widest.
EXCEPTIONS = {
    "mul": (lambda y, b: y * y, "float32", "bfloat16"),
    "div": (lambda y, b: 1 / y, "float32", "bfloat16"),
    "add": (lambda y, b: y + b, "bfloat16", "float32"),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_ops_widest_overrides_the_exceptions_of_a_row(name):
    function, usual, widest = EXCEPTIONS[name]
    layer = jax.jit(function)

    def ran(ops):
        return dtypes(autocast(lambda x, b: layer(x @ W, b), ops=ops), name, X, W[0])

    assert ran(None) == [usual]
    assert ran({name: "widest"}) == ran({"<lambda>": "widest"}) == [widest]


def test_rows_with_an_exception_have_the_rule_widest():
    assert {row.name for row in AUTOCAST_OPERATIONS.values() if row.exception} == EXCEPTIONS.keys()
    assert {AUTOCAST_OPERATIONS[name].rule for name in EXCEPTIONS} == {"widest"}


def test_autocast_rule_uses_the_rows_it_is_given():
    def ran(*rows):
        rewriter = Rewriter(AutocastRule(as_settings("mixed_bfloat16", None, True), rows))
        closed = jax.make_jaxpr(lambda x: x @ W)(X)
        values = [rewriter.rule.value(var.aval) for var in closed.jaxpr.invars]
        (entry,) = rewriter.rewrite(closed, values, Context()).record
        return entry.action.note[:2]

    assert ran(Row("dot_general", "compute", "so it is")) == (jnp.bfloat16, "so it is")
    assert ran(Row("dot_general", "float32", "or so")) == (jnp.float32, "or so")
    assert ran() == (jnp.float32, "autocast has no row for it")


def test_register_operation_replaces_a_row():
    row = AUTOCAST_OPERATIONS["tanh"]
    function = lambda x: jnp.tanh(x @ W)  # noqa: E731
    assert dtypes(autocast(function), "tanh", X) == ["bfloat16"]
    try:
        register_operation("tanh", "float32", "to see what happens")
        assert dtypes(autocast(function), "tanh", X) == ["float32"]
        assert "to see what happens" in str(autocast(function).report(X))
    finally:
        AUTOCAST_OPERATIONS["tanh"] = row
    assert dtypes(autocast(function), "tanh", X) == ["bfloat16"]


def scoped(x):
    with jax.named_scope("encoder"):
        for number in range(2):
            with jax.named_scope(str(number)):
                x = x @ W
                with jax.named_scope("norm"):
                    x = jax.jit(lambda x: x @ W)(x)
    return lax.scan(lambda c, _: (jax.named_scope("cell")(jnp.matmul)(c, W), None), x, length=2)[0]


def test_a_policy_map_sets_policies_by_scope():
    by_path = PolicyMap({"encoder/.*/norm": "float32", "encoder/1": "mixed_float16"}, default="mixed_bfloat16")
    expected = ["bfloat16", "float32", "float16", "float32", "bfloat16"]
    assert products(autocast(scoped, by_path), X) == expected
    # The backward pass of a layer is treated like its forward pass, in either order.
    loss = lambda f: lambda x: f(x).sum()  # noqa: E731
    assert sorted(products(autocast(jax.grad(loss(scoped)), by_path), X)) == sorted(expected * 2)
    assert sorted(products(jax.grad(loss(autocast(scoped, by_path))), X)) == sorted(expected * 2)

    def scope(name, function):
        return lambda x: jax.named_scope(name)(jax.jit(function))(x)

    nested = scope("encoder", scope("norm", scope("dense", lambda x: x @ W)))
    by_path = PolicyMap({"encoder/norm/dense": "float16"}, default="bfloat16")
    assert products(autocast(nested, by_path), X) == ["float16"]
    inside = PolicyMap({"cell": "float32"}, default="mixed_bfloat16")
    assert products(autocast(scoped, inside), X) == ["bfloat16"] * 4 + ["float32"]


def test_unmatched_patterns_and_ops_warn():
    with pytest.warns(UnmatchedPatternWarning, match=r"'encodr/.*' \(paths are 'encoder"):
        autocast(scoped, PolicyMap({"encodr/.*": "float32"}, default="mixed_bfloat16"))(X)
    with pytest.warns(UnmatchedPatternWarning, match=r"ops has 'dot_genral'.*did you mean 'dot_general'"):
        autocast(scoped, ops={"dot_genral": "float32"})(X)
    autocast(scoped, ops={"conv_general_dilated": "float32"})(X)  # a known primitive, but unused here


# Decorators


@pytest.mark.parametrize("policy", ["mixed_float16", Policy("mixed_float16"), PolicyMap({}, "mixed_float16")])
def test_policy_in_place_of_the_function_makes_a_decorator(policy):
    @autocast(policy)
    def product(x):
        return x @ x

    assert product.report(jnp.ones((2, 2))).summary() == "float16  1 x dot_general"


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_disabled_decorator_runs_the_declared_dtypes(jitted):
    @autocast("mixed_float16", enabled=False)
    def product(x):
        return x @ x

    def around(x):
        return product(x) + 0 * (x @ x)

    x = jnp.full((2, 2), 1 + 2**-11)  # float16 rounds it to 1
    run = jax.jit if jitted else lambda function: function
    assert float(run(product)(x)[0, 0]) == float((x @ x)[0, 0]) > 2
    assert float(run(autocast(around, "mixed_float16"))(x)[0, 0]) > 2
    assert product.report(x).summary() == "float32  1 x dot_general"
    assert "enabled=False" in repr(product)
    assert product != autocast(product._function, "mixed_float16")


# Arguments and results


def test_arguments_and_results_pass_through_unchanged():
    def function(tree, flag, *, power=2, name="x"):
        assert (flag, power, name) == (True, 2, "y")
        return {"y": tree["x"] @ W, "count": 3, "name": name, "call": jnp.tanh, "none": None}

    out = autocast(function)({"x": np.asarray(X), "f": jnp.exp}, True, name="y")
    assert (out["y"].dtype, out["count"], out["name"], out["call"], out["none"]) == (
        jnp.float32,
        3,
        "y",
        jnp.tanh,
        None,
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:autocast casts nothing")
def test_functions_that_change_their_arguments_raise():
    def changes_a_leaf(tree):
        tree["x"] = 2 * tree["x"]
        return tree["x"]

    for function in (changes_a_leaf, lambda tree: tree.update(y=1) or tree["x"], lambda tree: tree.pop("x")):
        with pytest.raises(ArgumentError, match="the function changes its arguments"):
            autocast(function)({"x": X})
    norm = nnx.BatchNorm(8, rngs=nnx.Rngs(0))
    register_adapter("flax.nnx", None)
    try:
        with pytest.raises(ArgumentError, match="the function changes its arguments"):
            autocast(lambda norm, x: norm(x))(norm, X)
    finally:
        register_adapter("flax.nnx", nnx_adapter())
    assert autocast(lambda norm, x: norm(x))(norm, X).shape == X.shape


def test_numpy_values_are_traced_and_python_numbers_are_not():
    seen = []
    autocast(lambda *args: seen.extend(args) or X)(np.ones(2), np.float32(1), 1.0, 2, True, None)
    assert [isinstance(arg, jax.core.Tracer) for arg in seen] == [True, True, False, False, False, False]
    assert autocast(lambda names, x: (names, x @ W))(np.array(["a"]), X)[0].tolist() == ["a"]


@pytest.mark.filterwarnings("ignore:autocast casts nothing")
def test_prng_keys_and_empty_arrays_work():
    key = jax.random.key(0)
    assert autocast(lambda key, x: (jax.random.normal(key, (2,)), x @ W))(key, X[:0])[1].shape == (0, 8)
    assert autocast(lambda x: x)(X).dtype == jnp.float32
    assert float(autocast(lambda: 2.0 * jnp.ones(()))()) == 2


def test_autocast_decorates_functions_and_methods():
    @autocast
    def first(x):
        """Doc."""
        return x @ W

    class Model:
        w = W

        @autocast(policy="mixed_float16")
        def __call__(self, x):
            return x @ self.w

    assert (first.__doc__, first.__name__) == ("Doc.", "first")
    assert (products(first, X), products(Model().__call__, X)) == (["bfloat16"], ["float16"])
    assert Model().__call__.report(X).rows[0].dtype == "float16"


def test_equal_autocast_functions_are_traced_once():
    traces = []

    def function(x):
        traces.append(1)
        return x @ W

    step = jax.jit(lambda f, x: f(x), static_argnums=0)
    step(autocast(function), X)
    step(autocast(function), X)
    assert len(traces) == 1
    assert autocast(function) != autocast(function, "mixed_float16")
    assert autocast(function) != function
    assert repr(autocast(function)).endswith("'mixed_bfloat16')")


@pytest.mark.slow
def test_the_rewriter_frees_deleted_programs():
    rewriter = Rewriter(AutocastRule(as_settings("mixed_bfloat16", None, True), AUTOCAST_OPERATIONS.values()))
    closed = jax.make_jaxpr(lambda x: jax.checkpoint(lambda x: jax.nn.relu(x @ W))(x))(X)
    rewriter.rewrite(closed, [rewriter.rule.value(var.aval) for var in closed.jaxpr.invars], Context())
    assert len(rewriter._known) >= 3
    gone = weakref.ref(closed)
    del closed
    gc.collect()
    assert gone() is None
    # At most one remains, a function that JAX itself traces once and caches.
    kept = [open_jaxpr(function) for function in rewriter._known]
    assert len(kept) <= 1
    assert not any("dot_general" in str(function) for function in kept)


# Reports


def test_a_report_lists_dtypes_paths_and_lines():
    def program(x):
        with jax.named_scope("encoder"), jax.named_scope("norm"):
            y = lax.scan(lambda c, _: (jnp.exp(c) @ W, None), x, length=3)[0]
        return lax.while_loop(lambda c: c.sum() < 0, lambda c: c @ W, y)

    report = autocast(program).report(jax.ShapeDtypeStruct(X.shape, X.dtype))
    rows = {(row.operation, row.runs): row for row in report.rows}
    row = rows["exp", 3]
    assert (row.dtype, row.declared, row.path, row.count) == ("float32", "float32", "encoder/norm", 1)
    assert __file__.rsplit("/", 1)[1] in row.line
    assert (rows["dot_general", 3].dtype, rows["dot_general", None].dtype) == ("bfloat16", "bfloat16")
    assert "products are most of the work" in str(report)
    assert report.to_dict()["rows"][0]["path"] == "encoder/norm"
    assert report.summary().splitlines()[0].startswith("bfloat16  2 x dot_general")


def test_report_rows_name_user_lines_for_functions_cached_by_jax():
    function = lambda x: jnp.where(x > 0, jnp.exp(x @ W), 0.0)  # noqa: E731
    autocast(function).report(X)
    rows = autocast(function).report(X).rows
    assert len(rows) >= 3  # the product, the exponential and the comparison
    assert all(__file__.rsplit("/", 1)[1] in row.line for row in rows)


def test_a_report_shows_explicit_casts():
    rows = autocast(lambda x: x.astype("float16") @ W).report(X).rows
    assert [(r.operation, r.dtype, r.why) for r in rows] == [
        ("convert_element_type", "float16", "cast by hand"),
        ("dot_general", "float16", "takes a value that was cast by hand"),
    ]


def test_a_report_of_integer_operations_has_an_empty_summary():
    assert autocast(lambda x: x + 1).report(jnp.arange(3)).summary() == ""
