"""The table of operations, row by row: each primitive runs in the dtypes of its rule in a small program."""

import gc
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import pallas
from jax.experimental.custom_partitioning import custom_partitioning
from jax.experimental.layout import Layout, with_layout_constraint
from jax.extend.core import Primitive, check_jaxpr
from jax.extend.core import primitives as p
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from supremum.jaxprs import ENTERED, walk
from supremum.mixed_precision import AUTOCAST_OPERATIONS, autocast

ROWS = dict(AUTOCAST_OPERATIONS)  # a copy, since some tests register rows
POLICIES = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16", "float32": "float32"}
SIZE = 4
EYE = jnp.eye(SIZE)
# Positive definite, within (0, 1), and exact in every dtype.
MATRIX = jnp.asarray(np.eye(SIZE) / 2 + np.arange(SIZE * SIZE).reshape(SIZE, SIZE) / 128 + 1 / 64, jnp.float32)
WIDE = MATRIX + 0.25
KEY = jax.random.key(0)
WINDOW = {"window_dimensions": (2, 2), "window_strides": (1, 1), "padding": "VALID"}
COMPLEX = np.float32(0) + 1j * np.ones(SIZE, np.complex64)


def one_device(axis_type=AxisType.Auto):
    return jax.make_mesh((1,), ("i",), axis_types=(axis_type,), devices=jax.devices()[:1])


WHOLE = P()


def mapped(function, check_vma=True, out=WHOLE):
    """Run a function of arrays on one device, with the axis `i`."""

    def on_devices(*operands):
        return jax.shard_map(function, mesh=one_device(), in_specs=P(), out_specs=out, check_vma=check_vma)(*operands)

    return on_devices


def varying(function):
    return mapped(lambda *operands: function(*(lax.pcast(x, "i", to="varying") for x in operands)), out=P("i"))


def of_diagonals(function):
    """Call a function with the diagonals of a tridiagonal matrix."""
    return lambda h, other: function(h[0], h[1] + 2, h[2], other)


def host(function):
    return lambda h: function(lambda x: np.asarray(x), jax.ShapeDtypeStruct((SIZE, SIZE), jnp.float32), h)


@custom_partitioning
def partitioned(x):
    return jnp.exp(x)


partitioned.def_partition(
    partition=lambda mesh, shapes, result: (mesh, jnp.exp, result.sharding, [shapes[0].sharding]),
    infer_sharding_from_operands=lambda mesh, shapes, result: shapes[0].sharding,
    sharding_rule="i j -> i j",
)


def copy_kernel(source, target):
    target[...] = source[...]


def reference(function):
    """Call a function with a reference that holds the operand."""

    def of_array(h):
        ref = jax.new_ref(h)
        result = function(ref)
        return jax.freeze(ref) if result is None else result

    return of_array


def writes(ref):
    ref[0, 0] = 1.0


def of_primitive(name):
    return lambda h, other: getattr(p, f"{name}_p").bind(h, other)


def scattered(method):
    return lambda h, other: getattr(h.at[jnp.array([0, 2])], method)(other[:2])


def select_and_scatter(h, other):
    return p.select_and_scatter_p.bind(
        h, other[:3, :3], jnp.float32(0),
        select_jaxpr=jax.make_jaxpr(lambda a, b: a >= b)(1.0, 1.0).jaxpr, select_consts=(),
        scatter_jaxpr=jax.make_jaxpr(lambda a, b: a + b)(1.0, 1.0).jaxpr, scatter_consts=(),
        window_dimensions=(2, 2), window_strides=(1, 1), padding=((0, 0), (0, 0)),
    )  # fmt: skip


def largest_in_window(h):
    return lax.reduce_window(h, -jnp.inf, lax.max, **WINDOW)


def linear_solve(h):
    return lax.custom_linear_solve(lambda x: 2 * x, h, lambda _, b: b / 2, symmetric=True)


def bits(h):
    return lax.bitcast_convert_type(h, jnp.int32)


def of_bits(name, *operands):
    return lambda h: h + getattr(lax, name)(bits(h), *operands)


# Primitives with a function of the same name in `jax.lax`.
NAMESAKES = """
exp expm1 exp2 pow square rsqrt log log1p tan acos asin cosh sinh erf_inv lgamma digamma igamma igammac
igamma_grad_a bessel_i0e bessel_i1e cumsum cumprod cumlogsumexp stop_gradient cummax cummin add sub mul neg abs
sign floor ceil round max min rem div atan2 sin cos atan tanh logistic erf erfc sqrt cbrt asinh atanh eq ne lt
le gt ge is_finite nextafter
"""
# Functions of `h`, and of a second operand if the primitive can combine two dtypes.
PROGRAMS = {
    **{name: getattr(lax, name) for name in NAMESAKES.split()},
    **{name: of_primitive(name) for name in ("eq_to", "le_to", "lt_to")},
    **{f"scatter-{method[:3]}": scattered(method) for method in ("add", "subtract", "multiply", "min", "max")},
    "scatter": scattered("set"),
    **{name: of_bits(f"bitwise_{name}", 255) for name in ("and", "or", "xor")},
    **{name: of_bits(name, 1) for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic")},
    **{name: of_bits(name) for name in ("population_count", "clz")},
    "not": of_bits("bitwise_not"),
    "dot_general": lambda h, other: lax.dot(h, other),
    "ragged_dot_general": lambda h, other: lax.ragged_dot(h, other[None], jnp.array([SIZE])),
    "conv_general_dilated": lambda h, other: lax.conv(h[None, None], other[None, None], (1, 1), "SAME"),
    "integer_pow": lambda h: lax.integer_pow(h, 3),
    "random_gamma": lambda h: jax.random.gamma(KEY, h),
    "regularized_incomplete_beta": lambda h, other: lax.betainc(h, other, h),
    "polygamma": lambda h, other: lax.polygamma(other + 1, h),
    "zeta": lambda h, other: lax.zeta(h + 1, other),
    "reduce_sum": lambda h: jnp.sum(h, 0),
    "reduce_prod": lambda h: jnp.prod(h, 0),
    "reduce_window_sum": lambda h: lax.reduce_window(h, 0.0, lax.add, **WINDOW),
    "select_and_scatter_add": jax.grad(lambda h: jnp.sum(largest_in_window(h))),
    "psum": mapped(lambda h: lax.psum(h, "i"), check_vma=False),
    "psum_invariant": varying(lambda h: lax.pcast(lax.psum(h, "i"), "i", to="varying")),
    "reduce_scatter": varying(lambda h: lax.psum_scatter(h, "i", tiled=True)),
    "reduce_max": lambda h: jnp.max(h, 0),
    "reduce_min": lambda h: jnp.min(h, 0),
    "cholesky": lax.linalg.cholesky,
    "lu": lambda h: lax.linalg.lu(h)[0],
    "qr": lambda h: lax.linalg.qr(h)[0],
    "householder_product": lambda h, other: lax.linalg.householder_product(h, other[0]),
    "eigh": lambda h: lax.linalg.eigh(h)[1],
    "eig": lambda h: jnp.abs(lax.linalg.eig(h, compute_left_eigenvectors=False)[0]),
    "svd": lambda h: lax.linalg.svd(h, compute_uv=False),
    "schur": lambda h: lax.linalg.schur(h)[0],
    "hessenberg": lambda h: lax.linalg.hessenberg(h)[0],
    "triangular_solve": lambda h, other: lax.linalg.triangular_solve(h, other, lower=True),
    "cholesky_update": lambda h, other: lax.linalg.cholesky_update(lax.linalg.cholesky(h).T, other[0]),
    "symmetric_product": lambda h, other: lax.linalg.symmetric_product(h, other),
    "tridiagonal": lambda h: lax.linalg.tridiagonal(h, lower=True)[1],
    "tridiagonal_solve": of_diagonals(lax.linalg.tridiagonal_solve),
    "fft": lambda h: jnp.abs(jnp.fft.rfft(h)),
    "broadcast_in_dim": lambda h: lax.broadcast(h, (2,)),
    "reshape": lambda h: lax.reshape(h, (2, 8)),
    "squeeze": lambda h: lax.squeeze(lax.reshape(h, (1, 16)), (0,)),
    "transpose": lambda h: lax.transpose(h, (1, 0)),
    "slice": lambda h: lax.slice(h, (0, 1), (2, 3)),
    "dynamic_slice": lambda h: lax.dynamic_slice(h, (jnp.int32(1), jnp.int32(1)), (2, 2)),
    "rev": lambda h: lax.rev(h, (0,)),
    "copy": lambda h: jnp.copy(h),
    "pvary": mapped(lambda h: lax.pcast(h, "i", to="varying"), out=P("i")),
    "pbroadcast": mapped(lambda h: lax.pbroadcast(h, "i", 0), check_vma=False),
    "gather": lambda h: jnp.take(h, jnp.array([2, 0]), axis=0),
    "name": lambda h: checkpoint_name(h, "kept"),
    "sharding_constraint": lambda h: lax.with_sharding_constraint(h, NamedSharding(one_device(), P())),
    "layout_constraint": lambda h: with_layout_constraint(h, Layout((1, 0))),
    "reshard": lambda h: jax.sharding.reshard(h, NamedSharding(one_device(AxisType.Explicit), P())),
    "all_gather": varying(lambda h: lax.all_gather(h, "i", tiled=True)),
    "all_to_all": varying(lambda h: lax.all_to_all(h, "i", 0, 0, tiled=True)),
    "ppermute": varying(lambda h: lax.ppermute(h, "i", [(0, 0)])),
    "pmax": mapped(lambda h: lax.pmax(h, "i")),
    "pmin": mapped(lambda h: lax.pmin(h, "i")),
    "reduce_precision": lambda h: lax.reduce_precision(h, 5, 5),
    "split": lambda h: lax.split(h, (1, 3))[1],
    "tile": lambda h: jnp.tile(h, (2, 1)),
    "unstack": lambda h: jnp.unstack(h)[1],
    "stack": lambda h, other: jnp.stack([h, other]),
    "concatenate": lambda h, other: lax.concatenate([h, other], 0),
    "dynamic_update_slice": lambda h, other: lax.dynamic_update_slice(h, other[:2], (jnp.int32(1), jnp.int32(0))),
    "select_n": lambda h, other: lax.select_n(jnp.array([[True, False] * 2] * 4), h, other),
    "pad": lambda h, other: lax.pad(h, other[0, 0], ((1, 1, 0), (0, 0, 0))),
    "sort": lambda h, other: lax.sort((h, other), num_keys=1),
    "top_k": lambda h: lax.top_k(h, 2)[0],
    "approx_top_k": lambda h: lax.approx_max_k(h, 2)[0],
    "optimization_barrier": lambda h, other: lax.optimization_barrier((h, other)),
    "device_put": lambda h, other: jax.device_put((h, other)),
    "add_any": lambda h, other: p.add_jaxvals_p.bind(h, other),
    "clamp": lambda h, other: lax.clamp(jnp.full((), 0.25, h.dtype), h, other),
    "acosh": lambda h: lax.acosh(h + 2),
    "argmax": lambda h: lax.argmax(h, 0, jnp.int32),
    "argmin": lambda h: lax.argmin(h, 0, jnp.int32),
    "reduce_window_max": largest_in_window,
    "reduce_window_min": lambda h: lax.reduce_window(h, jnp.inf, lax.min, **WINDOW),
    "bitcast_convert_type": bits,
    "select_and_gather_add": lambda h, other: jax.jvp(largest_in_window, (h,), (other,))[1],
    "complex": lambda h, other: jnp.abs(lax.complex(h, other)),
    "real": lambda h: h[0] + lax.real(COMPLEX + h[0]),
    "imag": lambda h: h[0] + lax.imag(COMPLEX + h[0]),
    "conj": lambda h: h[0] + jnp.abs(lax.conj(COMPLEX + h[0])),
    "get": reference(lambda ref: ref[...]),
    "swap": reference(writes),
    "addupdate": reference(lambda ref: jax.ref.addupdate(ref, (0, 0), 1.0)),
    "pure_callback": host(jax.pure_callback),
    "io_callback": host(jax.experimental.io_callback),
    "debug_callback": lambda h: jax.debug.callback(lambda x: None, h) or h,
    "debug_print": lambda h: jax.debug.print("{}", h) or h,
    "ffi_call": lambda h: jax.ffi.ffi_call("absent", jax.ShapeDtypeStruct(h.shape, jnp.float32))(h),
    "pallas_call": lambda h: pallas.pallas_call(copy_kernel, jax.ShapeDtypeStruct(h.shape, h.dtype), interpret=True)(h),
    "reduce": lambda h: lax.reduce(h, 0.5, lambda a, b: a * b + 1, (0,)),
    "reduce_window": lambda h: lax.reduce_window(h, 1.0, lambda a, b: a * b + 1, **WINDOW),
    "select_and_scatter": select_and_scatter,
    "custom_linear_solve": linear_solve,
    "linear_call": lambda h: jax.custom_derivatives.linear_call(lambda _, x: 2 * x, lambda _, x: 2 * x, (), h),
    "custom_partitioning": lambda h: partitioned(h),
    "iota": lambda h: h + lax.iota(jnp.float32, SIZE),
    "rng_uniform": lambda h: h + lax.rng_uniform(0.0, h[0, 0], (SIZE, SIZE)),
    "rng_bit_generator": lambda h: h + lax.rng_bit_generator(np.zeros(4, np.uint32), (SIZE,))[1].astype(jnp.float32),
    "random_bits": lambda h: h * jax.random.bits(KEY, (SIZE,)).astype(jnp.float32),
    "random_seed": lambda h: h * jax.random.uniform(jax.random.key(jnp.int32(1))),
    "random_wrap": lambda h: h * jax.random.uniform(jax.random.wrap_key_data(np.zeros(2, np.uint32))),
    "random_unwrap": lambda h: h * jax.random.key_data(KEY).astype(jnp.float32)[0],
    "random_fold_in": lambda h: h * jax.random.uniform(jax.random.fold_in(KEY, 1)),
    "random_split": lambda h: h * jax.random.uniform(jax.random.split(KEY)[0]),
    "random_clone": lambda h: h * jax.random.uniform(jax.random.clone(KEY)),
    "threefry2x32": lambda h: h * p.threefry2x32_p.bind(*[np.arange(SIZE, dtype=np.uint32)] * 4)[0].astype(jnp.float32),
    "axis_index": mapped(lambda h: h + lax.axis_index("i").astype(jnp.float32), check_vma=False),
    "reduce_and": lambda h: h * jnp.all(h > 0),
    "composite": lambda h: lax.composite(jnp.tanh, "mine.tanh")(h),
    "reduce_or": lambda h: h * jnp.any(h > 0),
    "reduce_xor": lambda h: h + lax.reduce_xor(bits(h), (0,)),
}  # fmt: skip

# Primitives that the oldest supported version of JAX lacks.
LATER = {
    "log2": lambda h: jnp.log2(h),
    "one_minus_square": lambda h: lax.one_minus_square(h),
    "polynomial": lambda h: lax.polynomial(h, (1.0, 2.0, 3.0)),
}
MISSING = {name for name in LATER if not hasattr(p, f"{name}_p")}
PROGRAMS |= {name: program for name, program in LATER.items() if name not in MISSING}

NO_PROGRAM = {
    **dict.fromkeys(MISSING, f"added after JAX {jax.__version__}"),
    **dict.fromkeys(
        ["unreduced_psum", "all_gather_invariant", "ragged_all_to_all"], "made for several devices by JAX itself"
    ),
    "custom_lin": "stands in the middle of a derivative and never in a finished program",
    **dict.fromkeys(["empty", "empty2"], "memory without values"),
    **dict.fromkeys(["create_token", "after_all"], "orders effects and takes no arrays"),
}


def arity(program):
    return sum(each.default is each.empty for each in inspect.signature(program).parameters.values())


def sites_of(name, function, *operands):
    closed = jax.make_jaxpr(function)(*operands)
    check_jaxpr(closed.jaxpr)
    return [site.equation for site in walk(closed) if site.equation.primitive.name == name], closed


def product(x):
    """Return the product of `x` and the identity, which is `x` in the compute dtype."""
    return lax.dot(EYE, x)


def applied(program, other):
    """Return a function of two arrays that runs a program on their products: on both, or only on the first."""
    prepare = product if other == "narrow" else lambda x: x

    # Jitted, so that the traced program has the function as autocast rewrote it, with the types of its variables.
    @jax.jit
    def function(x, y):
        return program(product(x), prepare(y)) if arity(program) == 2 else program(product(x))

    return function


CASES = [(name, other) for name in PROGRAMS for other in ("narrow", "wide")[: arity(PROGRAMS[name])]]
RULES = ["compute", "float32", "widest", "each", "declared"]


def dtypes_of(atoms):
    return [str(getattr(atom.aval, "dtype", None)) for atom in atoms]


def expected(row, atoms, narrow, other):
    """Return the dtypes that the rule gives operands or results. Only float32 ones change."""
    if row.rule == "each":
        given = [narrow, narrow if other == "narrow" else "float32"]
        return [given[i] if dtype == "float32" else dtype for i, dtype in enumerate(dtypes_of(atoms))]
    target = {
        "compute": narrow,
        "float32": "float32",
        "widest": "float32" if other == "wide" else narrow,
        "declared": "float32",
    }[row.rule]
    return [target if dtype == "float32" else dtype for dtype in dtypes_of(atoms)]


def every_dtype(sites, closed):
    """Return the dtypes of a program's results, and of the operands and results of the primitive in it."""
    return dtypes_of(closed.jaxpr.outvars), [(dtypes_of(site.invars), dtypes_of(site.outvars)) for site in sites]


@pytest.mark.parametrize("rule", RULES)
def test_primitives_run_in_the_dtypes_of_their_rule(rule):
    differing = {}
    for name, other in ((name, other) for name, other in CASES if ROWS[name].rule == rule):
        function = applied(PROGRAMS[name], other)
        sites, closed = sites_of(name, function, MATRIX, WIDE)
        assert sites, name
        results, declared = dtypes_of(closed.jaxpr.outvars), [(site.invars, site.outvars) for site in sites]
        for policy, narrow in POLICIES.items():
            dtypes = [tuple(expected(ROWS[name], atoms, narrow, other) for atoms in both) for both in declared]
            found = every_dtype(*sites_of(name, autocast(function, policy), MATRIX, WIDE))
            if found != (results, dtypes):
                differing[name, other, policy] = found, (results, dtypes)
    assert not differing


WITHOUT_FLOAT_RESULTS = {"eq", "ne", "lt", "le", "gt", "ge", "eq_to", "le_to", "lt_to", "is_finite", "argmax", "argmin"}
# These return some of their operands' values here, but they compare or add them.
SELECTING = {"max", "min", "clamp", "rem", "abs", "reduce_max", "reduce_min"}
SELECTING |= {"psum", "psum_invariant", "reduce_scatter"}
SLOW = ["igamma", "igammac", "igamma_grad_a", "random_gamma", "regularized_incomplete_beta", "polygamma", "zeta"]
NOT_RUN = {
    "pbroadcast": "CPUs have none",
    **dict.fromkeys(SLOW, "takes seconds to compile"),
    "cholesky_update": "likewise",
}
RUN = [name for name in PROGRAMS if ROWS[name].rule != "declared" and name not in NOT_RUN]


def differences(name, found, want):
    """Return the errors in results of a program that are larger than its rounding, which may be none."""
    exact = ROWS[name].rule == "float32" or ROWS[name].moves
    results = jax.tree.leaves(want)
    if name not in WITHOUT_FLOAT_RESULTS | SELECTING | {"reduce_precision"}:
        assert ROWS[name].moves == all(np.isin(each, [MATRIX, WIDE]).all() for each in results), name
    for a, b in zip(jax.tree.leaves(found), results, strict=True):
        assert a.dtype == b.dtype, name
        largest = (1e-6 if exact else 2**-9) * np.max(np.abs(b), initial=0, where=np.isfinite(b))
        if not np.allclose(a, b, rtol=0, atol=largest, equal_nan=True):
            yield a, b


@pytest.mark.compiled
def test_values_match_the_programs_without_autocast():
    """Operations in float32 and those that only move values are exact, since the operands are exact in every dtype."""

    @jax.jit
    def run(*operands):
        functions = {name: applied(PROGRAMS[name], "narrow") for name in RUN}
        return {name: (autocast(each, "mixed_float16")(*operands), each(*operands)) for name, each in functions.items()}

    made = run(MATRIX, WIDE)
    differing = {name: list(differences(name, *made[name])) for name in RUN}
    assert {name: each for name, each in differing.items() if each} == {}


def test_every_row_has_a_program_or_a_reason():
    assert set(ROWS) - set(PROGRAMS) == set(NO_PROGRAM)


@pytest.mark.slow
def test_every_row_has_a_primitive():
    # Not isinstance(), which may run the code of objects that fake their class.
    existing = {each.name for each in gc.get_objects() if issubclass(type(each), Primitive)}
    assert set(ROWS) - existing == MISSING


HANDLED_BY_THE_REWRITER = {"convert_element_type", *ENTERED}


def test_every_public_primitive_has_a_row():
    public = {each.name for each in vars(p).values() if isinstance(each, Primitive)}
    assert public - set(ROWS) == public & HANDLED_BY_THE_REWRITER


WIDEST_OR_EACH = [
    name for name in PROGRAMS if ROWS[name].rule in ("widest", "each") and name not in WITHOUT_FLOAT_RESULTS
]


def test_explicit_casts_survive_only_operations_that_move_values():
    def dtypes_after(name):
        def function(x, y):
            operands = [each.astype(jnp.float16) for each in (x, y)[: arity(PROGRAMS[name])]]
            moved = jnp.ravel(jax.tree.leaves(PROGRAMS[name](*operands))[-1])
            return lax.dot(moved, moved)

        (*_, last), _ = sites_of("dot_general", autocast(function, "mixed_bfloat16"), MATRIX, WIDE)
        return dtypes_of(last.invars)

    expected = {name: ["float16" if ROWS[name].moves else "bfloat16"] * 2 for name in WIDEST_OR_EACH}
    assert {name: dtypes_after(name) for name in WIDEST_OR_EACH} == expected


def test_constants_count_as_numbers_after_operations_that_keep_them_constant():
    def dtypes_after(name):
        def function(x):
            numbers = [jnp.full((SIZE, SIZE), 0.5)] * arity(PROGRAMS[name])
            return product(x)[0, 0] * jax.tree.leaves(PROGRAMS[name](*numbers))[-1]

        (*_, last), _ = sites_of("mul", autocast(function, "mixed_float16"), MATRIX)
        return dtypes_of(last.invars)

    moving = [name for name in WIDEST_OR_EACH if ROWS[name].moves]
    expected = {name: ["float16" if ROWS[name].fills else "float32"] * 2 for name in moving}
    assert {name: dtypes_after(name) for name in moving} == expected


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_softmax_and_logsumexp_run_in_float32_throughout(name, policy):
    closed = jax.make_jaxpr(autocast(lambda x: getattr(jax.nn, name)(product(x)), policy))(MATRIX)
    computed = {"reduce_max", "max", "sub", "exp", "reduce_sum", "log", "div", "add"}
    found = [site.equation for site in walk(closed) if site.equation.primitive.name in computed]
    assert len(found) >= 5
    assert {dtype for equation in found for dtype in dtypes_of(equation.outvars)} == {"float32"}


SAME_RULE = {
    "dot_general": "ragged_dot_general conv_general_dilated",
    "exp": "exp2 expm1 pow cosh sinh",
    "integer_pow": "square",
    "log": "log1p",
    "lgamma": "digamma igamma igammac polygamma zeta bessel_i0e bessel_i1e regularized_incomplete_beta",
    "reduce_sum": "cumsum reduce_window_sum select_and_scatter_add psum psum_invariant reduce_scatter",
    "reduce_max": "reduce_min",
    "cholesky": "lu qr eigh svd triangular_solve tridiagonal_solve",
    "add": "sub mul div max min neg abs",
    "tanh": "logistic erf sqrt sin cos",
    "sort": "top_k optimization_barrier device_put",
    "scatter-add": "scatter scatter-mul scatter-min scatter-max",
}


def test_similar_primitives_have_the_same_rule():
    rules = {name: {ROWS[other].rule for other in others.split()} for name, others in SAME_RULE.items()}
    assert rules == {name: {ROWS[name].rule} for name in SAME_RULE}


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_operations_with_a_float8_operand_are_not_cast(dtype):
    def function(x, small):
        return lax.dot(product(x), small, preferred_element_type=jnp.float32)

    (*_, last), _ = sites_of("dot_general", autocast(function, "mixed_float16"), MATRIX, MATRIX.astype(dtype))
    assert dtypes_of((*last.invars, *last.outvars)) == ["float32", dtype, "float32"]


# Numbers

FINFO = {name: jnp.finfo(name) for name in ("float16", "bfloat16", "float32")}
NUMBERS = [1e-8, 1e-5, 6e-5, 6.2e-5, 65504, 65505, 70000, -1e9, 3.39e38, np.inf, np.nan, 0, 0.1, -1.5]
NUMBERS += [float(FINFO["float32"].min), 1e-38, 1.2e-38]


def dtype_with_number(number, dtype):
    """Return the array's dtype if the number is in its normal range, and float32 otherwise."""
    info = FINFO[dtype]
    fits = not np.isfinite(number) or number == 0 or float(info.smallest_normal) <= abs(number) <= float(info.max)
    return dtype if fits else "float32"


def in_scan(h, number):
    return lax.scan(lambda carry, row: (carry, row + number), 0, h)[1]


def in_while(h, number):
    return lax.fori_loop(0, 2, lambda _, carry: carry * jnp.sum(h + number), 0.0)


def in_cond(h, number):
    return lax.cond(jnp.bool_(True), lambda h: h + number, lambda h: h + number, h)


NUMBER_FORMS = {
    "on the right": lambda h, number: h + number,
    "on the left": lambda h, number: number + h,
    "of NumPy": lambda h, number: h + np.float32(number),
    "made an array": lambda h, number: h + jnp.asarray(number, jnp.float32),
    "like another array": lambda h, number: h + jnp.full_like(h, number),
    "filling an array": lambda h, number: h + jnp.full(h.shape, number, jnp.float32),
    "filling and moved": lambda h, number: h + jnp.full((1, *h.shape), number, jnp.float32)[0].T,
    "broadcast": lambda h, number: h + jnp.broadcast_to(jnp.float32(number), h.shape),
    "chosen": lambda h, number: jnp.where(h > 0, h, number),
    "chosen from the left": lambda h, number: jnp.where(h > 0, number, h),
    "padding": lambda h, number: jnp.pad(h, 1, constant_values=number),
    "clipping": lambda h, number: jnp.maximum(h, number),
    "within a jitted function": lambda h, number: jax.jit(lambda h: h + number)(h),
    "handed to a jitted function": lambda h, number: jax.jit(lambda h, number: h + number)(h, number),
    "within a checkpoint": lambda h, number: jax.checkpoint(lambda h: h + number)(h),
    "within a scan": in_scan,
    "within a loop": in_while,
    "within a branch": in_cond,
    "mapped over": lambda h, number: jax.vmap(lambda row: row + number)(h),
}
OPERATION = {"chosen": "select_n", "chosen from the left": "select_n", "padding": "pad", "clipping": "max"}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("written", NUMBER_FORMS)
def test_a_number_takes_the_dtype_of_an_array_that_can_hold_it(written, policy):
    found, name = {}, OPERATION.get(written, "add")
    for number in NUMBERS:
        sites, _ = sites_of(
            name, autocast(lambda x, number=number: NUMBER_FORMS[written](product(x), float(number)), policy), MATRIX
        )
        # Loop counters are ignored.
        (found[number],) = {tuple(dtypes_of(site.invars[-2:])) for site in sites} - {("int32", "int32")}
    assert found == {number: (dtype_with_number(number, POLICIES[policy]),) * 2 for number in NUMBERS}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", [1.0, 1e-8, 70000.0, 0.0])
def test_a_number_divided_by_an_array_runs_in_float32(number, policy):
    for function in (lambda x: number / product(x), lambda x: jnp.full((SIZE, SIZE), number) / product(x)):
        (site,), _ = sites_of("div", autocast(function, policy), MATRIX)
        assert dtypes_of(site.invars) == ["float32"] * 2
    (site,), _ = sites_of("div", autocast(lambda x: product(x) / (number or 2.0), policy), MATRIX)
    assert dtypes_of(site.invars) == [dtype_with_number(number, POLICIES[policy])] * 2


@pytest.mark.compiled
@pytest.mark.parametrize("number", [1e-8, 70000.0, -1e9])
def test_numbers_outside_the_narrow_range_are_kept_exactly(number):
    found = jax.jit(autocast(lambda x: jnp.where(x > 2, product(x), number), "mixed_float16"))(MATRIX)
    np.testing.assert_array_equal(found, np.full((SIZE, SIZE), number, np.float32))


def test_computed_scalars_count_as_arrays():
    (site,), _ = sites_of("add", autocast(lambda x: product(x) + jnp.sin(jnp.float32(0.5)), "mixed_float16"), MATRIX)
    assert dtypes_of(site.invars) == ["float32"] * 2
