"""NumPy's functions on an `Array`: they call the namespace of its library, or raise an error with a fix."""

import inspect
import re
from operator import attrgetter

import jax
import ml_dtypes
import numpy as np
import numpy.fft  # NumPy loads it lazily
import pytest
from numpy.testing.overrides import get_overridable_numpy_array_functions

import supremum
from arrays.libraries import NAMES, library
from conformance.numpy_function_judge import TABLES
from optional_packages import import_or_skip
from rule_sets import FRAMEWORK_RULES
from slowly import for_each
from supremum import Array, PromotionError, namespace, use_rules
from supremum.arrays import LibraryError, NarrowingError, RuntimeDtypeError, numpy_functions
from supremum.arrays.numpy_signatures import numpy_signature
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format

AMBIGUOUS = r"dtype must not be '..', which is u?int. here and u?int\d\d in NumPy"
SQUARE = [[4.0, 1.0], [1.0, 3.0]]
OTHER = [[1.0, 2.0], [3.0, 5.0]]
# How to call each function with two matrices; functions that are neither here nor in `TABLES` get the first one only.
_CALLS = """
np.sum(a,axis=0,keepdims=True) np.prod(a,1) np.mean(a,axis=(0,1)) np.std(a,ddof=1) np.var(a,axis=0,correction=1)
np.argmax(a,axis=1) np.argmin(a,axis=1) np.cumsum(a,axis=1) np.cumprod(a,axis=1)
np.cumulative_sum(a,axis=1,include_initial=True) np.cumulative_prod(a,axis=0) np.diff(a,n=1,prepend=b)
np.imag(a.astype("complex64")) np.clip(a,2,b) np.where(a>2,a,b) np.concatenate((a,b),1) np.stack([a,b],axis=-1)
np.unstack(a,axis=1) np.expand_dims(a,1) np.broadcast_to(a,(3,2,2)) np.broadcast_arrays(a,b[0])
np.meshgrid(a[0],b[1],indexing="ij") np.moveaxis(b,0,1) np.flip(a,axis=0) np.roll(a,1,axis=1) np.repeat(a,2,axis=0)
np.tril(a,-1) np.triu(a,k=1) np.take(a,b[0].astype("int64")-1,axis=1)
np.take_along_axis(a,b[:1].astype("int64")-1,axis=0) np.sort(a,axis=0) np.argsort(a,axis=0,stable=True)
np.searchsorted(b[0],a[0],side="right") np.isin(a,b,invert=True) np.astype(a,"float32") np.zeros_like(a,dtype="int8")
np.empty_like(a).shape np.full_like(a,3) np.matmul(a,b) np.vecdot(a,b) np.tensordot(a,b,axes=1) np.result_type(a,b)
np.linalg.cholesky(a,upper=False) np.linalg.cross(np.stack([a[0],a[0],a[1]]).T,np.stack([b[0],b[1],b[0]]).T)
np.linalg.diagonal(a,offset=1) np.linalg.matmul(a,b) np.linalg.matrix_norm(a,ord=1) np.linalg.matrix_power(a,2)
np.linalg.outer(a[0],b[0]) np.linalg.pinv(a,rtol=1e-9) np.linalg.solve(a,b) np.linalg.svd(a,full_matrices=False)
np.linalg.tensordot(a,b,axes=1) np.linalg.trace(a,offset=1) np.linalg.vecdot(a,b)
np.linalg.vector_norm(a,axis=0,ord=1) np.fft.fft(a,n=3,norm="ortho") np.fft.irfft(a.astype("complex128"))
np.fft.hfft(a.astype("complex128")) np.fft.irfftn(a.astype("complex128")) np.transpose(b,(1,0)) np.squeeze(a[:1])
np.reshape(a,-1) np.tile(a,(2,1)) np.swapaxes(b,0,-1) np.dot(a,b[0]) np.inner(a,b) np.outer(a,b)
"""
CALLS = {call[3 : call.index("(")]: call for call in _CALLS.split()}


def _leaves(value):
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, (tuple, list)) else [value]


def _called(name, make):
    """The result of a call of a function of NumPy with arrays of float64."""
    if name in TABLES:
        return TABLES[name][0](np, make, np.int64 if name == "bincount" else np.float64)
    a, b = make(np.array(SQUARE)), make(np.array(OTHER))
    return eval(CALLS.get(name, f"np.{name}(a)"), {"np": np, "a": a, "b": b})


@pytest.fixture(params=NAMES)
def xp(request):
    with library(request.param) as found, use_rules("numpy"):
        yield found


# JAX compiles each function, and the routes do not depend on the library, so a few functions of each kind are enough.
ON_JAX = ("sum", "std", "where", "concatenate", "take", "dot", "linalg.solve", "fft.fft", "transpose", "matmul", "clip")


ROUTED = {
    "numpy": numpy_functions.ROUTES,
    "jax": ON_JAX,
    "torch": numpy_functions.ROUTES.keys() - {"unique_all"},  # torch has no unique_all
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_routed_functions_give_the_results_of_numpy(name):
    with library(name) as xp, use_rules("numpy"):
        for function in ROUTED[name]:
            _check_routed(xp, function)


def _check_routed(xp, name):
    result, expected = _leaves(_called(name, xp.asarray)), _leaves(_called(name, np.asarray))
    if name in ("linalg.eigh", "linalg.qr", "linalg.svd"):  # signs depend on the library
        result, expected = ([abs(each) for each in leaves] for leaves in (result, expected))
    for found, wanted in zip(result, expected, strict=True):
        # Before NumPy 2.3 its count_nonzero returns a Python int.
        assert isinstance(found, Array) == (isinstance(wanted, (np.ndarray, np.generic)) or name == "count_nonzero")
        if isinstance(found, Array):
            assert (found.__array_namespace__() is xp, found.dtype) == (True, np.asarray(wanted).dtype), name
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-12, err_msg=name)
        else:
            assert found == wanted, name


# They ask for 64 bits by name, or NumPy gives no common dtype for them.
WIDE = ("take", "take_along_axis", "bincount", "fft.irfft", "fft.hfft", "fft.irfftn")


@pytest.mark.slow
def test_routed_functions_run_on_jax_without_x64():
    xp = namespace("jax")
    with jax.enable_x64(False), use_rules("jax"):
        ours = [xp.asarray(each, dtype="float32") for each in (SQUARE, OTHER)]
        plain = [np.array(each, "float32") for each in (SQUARE, OTHER)]
        for name in CALLS.keys() - {*WIDE}:
            found, wanted = (_leaves(eval(CALLS[name], {"np": np, "a": a, "b": b})) for a, b in (ours, plain))
            if name == "linalg.svd":
                found, wanted = ([abs(each) for each in leaves] for leaves in (found, wanted))
            for one, other in zip(found, wanted, strict=True):
                if isinstance(one, Array):
                    np.testing.assert_allclose(np.asarray(one), other, rtol=2e-5, atol=2e-5, err_msg=name)


def test_positions_of_numpy_serve_on_jax_without_x64():
    xp = namespace("jax")
    with jax.enable_x64(False), use_rules("jax"):
        x = xp.asarray([1.0, 2.0, 3.0], dtype="float32")
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
            np.testing.assert_array_equal(np.asarray(np.pad(x, 2, mode)), np.pad([1.0, 2.0, 3.0], 2, mode))
        assert x.take(np.asarray([2, 0])).tolist() == [3.0, 1.0]
        assert xp.take_along_axis(x, np.asarray([2, 0])).tolist() == [3.0, 1.0]
        assert xp.repeat(x, np.asarray([0, 2, 1])).tolist() == [2.0, 2.0, 3.0]
        with pytest.raises(NarrowingError, match="does not hold 1099511627776"):
            x.take(np.asarray([2**40]))
        with pytest.raises(RuntimeDtypeError, match="int64"):  # elements keep their dtype
            xp.take(np.asarray([1, 2]), xp.asarray([0]))


@for_each("rules", FRAMEWORK_RULES, one_in=9, one_slow_in=4)
def test_positions_inside_of_functions_follow_no_rules(rules):
    xp = namespace("jax")
    with jax.enable_x64(False), use_rules(rules):
        x = xp.asarray(np.asarray([1.0, 2.0, 4.0], "float32"))
        assert xp.histogram(x, bins=3)[0].tolist() == [1, 1, 1]
        assert xp.interp(x, x, x).tolist() == [1.0, 2.0, 4.0]
        if rules != "pyarrow":  # its averages are float64
            assert xp.median(x).item() == 2.0


def test_numpy_functions_follow_the_rules(xp):
    a, b = xp.asarray([1, 2], dtype="int8"), np.array([1, 2], "uint8")
    half = xp.asarray([1, 2], dtype="bfloat16")
    products = (
        lambda a, b: np.dot(a, b), lambda a, b: np.matmul(a, b), lambda a, b: a @ b, lambda a, b: np.tensordot(a, b, 1),
        lambda a, b: np.inner(a, b),
    )  # fmt: skip
    for call in (
        lambda a, b: np.concatenate([a, b]), lambda a, b: np.stack([a, b]),
        lambda a, b: np.where(np.arange(2) > 0, a, b),
        lambda a, b: np.outer(a, b), lambda a, b: np.clip(a, b, b), *products,
    ):  # fmt: skip
        for x, y in ((a, b), (b, a)):
            with use_rules("torch" if call not in products else "jax-x64"):
                result = call(x, y)
            assert (result.dtype, result.__array_namespace__()) == (np.int16, xp)
            with use_rules("torch"):  # torch has products of tensors of one dtype only
                if call in products:
                    with pytest.raises(PromotionError, match="needs arrays of one dtype"):
                        call(x, y)
        with use_rules("jax-x64"):
            assert call(half, b).dtype == ml_dtypes.bfloat16
        with use_rules("array-api"), pytest.raises(PromotionError):
            call(a, b.astype("float32"))


def test_numpy_functions_treat_python_numbers_as_weak():
    small = namespace("numpy").asarray([1, 5], dtype="int8")
    for result in (np.clip(small, 1, 3), np.where(small > 2, small, 0), np.full_like(small, 2), np.dot(small, 2)):
        assert result.dtype == np.int8


OVERRIDABLE = sorted(get_overridable_numpy_array_functions(), key=lambda function: function.__name__)


def test_clip_takes_each_bound_by_any_of_its_names():
    x = Array(np.array([1.0, 5.0], "float32"))
    expected = {("a_min",): [2, 5], ("a_max",): [1, 2], ("min",): [2, 5], ("max",): [1, 2], ("a_min", "a_max"): [2, 2]}
    for names, values in expected.items():
        for _ in range(2):
            assert np.clip(x, **dict.fromkeys(names, 2)).tolist() == values, names


def test_functions_without_a_route_are_refused():
    a = Array(np.array(SQUARE))
    routed = 0
    for function in OVERRIDABLE:
        name = numpy_functions.name_of(function)
        if name in numpy_functions.ROUTES:
            routed += 1
            continue
        with pytest.raises(OperandError, match=re.escape(f"np.{name} does not support an Array")):
            a.__array_function__(function, (Array,), (a,), {})
    # NumPy dispatches every function of the table to us.
    ufuncs = {"matmul", "vecdot"}
    aliases = {"amax", "amin", "around", "permute_dims"}
    names = {numpy_functions.name_of(function) for function in OVERRIDABLE}
    assert set(numpy_functions.ROUTES) <= names | ufuncs | aliases | {"concatenate"}
    assert routed >= len(numpy_functions.ROUTES) - len(ufuncs | aliases)


def test_signatures_have_the_arguments_and_options_of_the_routes():
    for name, route in numpy_functions.ROUTES.items():
        parameters = numpy_signature(attrgetter(name)(np)).parameters
        wanted = {each.lstrip("*") for each in (*route.arguments, *route.options)}
        takes_more = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        assert wanted <= parameters.keys() or takes_more, name


@pytest.mark.skipif(
    tuple(map(int, np.__version__.split(".")[:2])) < (2, 4), reason="NumPy's functions in C have no signatures"
)
def test_signatures_are_those_of_numpy():
    for name in numpy_functions.ROUTES:
        function = attrgetter(name)(np)
        assert numpy_signature(function) == inspect.signature(function), name


def test_refused_functions_name_a_call_that_works():
    a = Array(np.array(SQUARE))
    for call in (
        lambda x: np.nanmedian(x), lambda x: np.linalg.cond(x), lambda x: np.ptp(x), lambda x: np.cov(x),
        lambda x: np.dstack([x, x]), lambda x: np.linalg.eigvals(x),
    ):  # fmt: skip
        with pytest.raises(OperandError, match="does not support an Array") as caught:
            call(a)
        fix = re.search(r"(np\.[\w.]+)\(np\.asarray\(x\)\)", str(caught.value))
        assert fix, caught.value
        assert callable(eval(fix[1]))
        assert isinstance(np.asarray(call(np.asarray(a))), np.ndarray)
    with pytest.raises(OperandError, match=r"np\.nanmedian\(np\.asarray\(x\)\)"):
        np.nanmedian(a)


@for_each(
    "option, call",
    [
        ("shape", lambda x: np.empty_like(x, shape=3)),
        ("initial", lambda x: np.sum(x, initial=2.0)),
        ("where", lambda x: np.mean(x, where=x > 0)),
        ("overwrite_input", lambda x: np.median(x, overwrite_input=True)),
        ("weights", lambda x: np.quantile(x, 0.5, weights=x, method="inverted_cdf")),
        ("axis", lambda x: np.unique(x, axis=0)),
        ("optimize", lambda x: np.einsum("ij->i", x, optimize="greedy")),
        ("end_values", lambda x: np.pad(x, 1, mode="linear_ramp", end_values=2)),
        ("period", lambda x: np.interp(x, x[0], x[1], period=3)),
        ("dtype", lambda x: np.vstack([x, x], dtype="float32")),
        ("dtype", lambda x: np.concatenate([x, x], dtype="float32")),
        ("kind", lambda x: np.sort(x, kind="heapsort")),
        ("mode", lambda x: np.take(x, [0], mode="clip")),
        ("order", lambda x: np.reshape(x, -1, order="F")),
        ("compute_uv", lambda x: np.linalg.svd(x, compute_uv=False)),
        ("casting", lambda x: np.matmul(x, x, casting="unsafe")),
        ("subok", lambda x: np.zeros_like(x, subok=False)),
    ],
)
def test_options_outside_the_standard_are_refused_by_name(option, call):
    with pytest.raises(OperandError, match=rf"takes no {option} with an Array, .*{option}=\.\.\."):
        call(Array(np.array(SQUARE)))


def test_options_with_default_values_are_accepted():
    a = Array(np.array(SQUARE))
    assert np.sum(a, axis=None, dtype=None, out=None).tolist() == 9.0
    assert np.sort(a, -1, None).shape == np.sort(a, kind=None, order=None).shape == (2, 2)
    assert np.concatenate([a, a], axis=0, out=None, dtype=None, casting="same_kind").shape == (4, 2)
    assert np.take(a, [0], axis=0, out=None, mode="raise").shape == (1, 2)
    assert np.matmul(a, a, casting="same_kind", order="K").shape == np.dot(a, a, out=None).shape == (2, 2)
    assert np.empty_like(a, order="K", subok=True, shape=None, device=None).shape == (2, 2)
    assert np.round(a, 0).tolist() == SQUARE
    assert [x.tolist() for x in np.where(a > 3)] == [[0], [0]]


def test_result_library_is_that_of_the_arrays():
    jax_array, plain = namespace("jax").ones((2, 2)), Array(np.ones((2, 2), "float32"))
    assert np.concatenate([np.ones((1, 2), "float32"), jax_array]).backend.name == "jax"
    assert np.concatenate([plain, np.ones((1, 2), "float32")]).backend.name == "numpy"
    assert np.dot(plain, jax_array).backend.name == "jax"
    torch = import_or_skip("torch")
    with pytest.raises(LibraryError, match="as the namespace, must be an array of jax"):
        np.concatenate([jax_array, supremum.asarray(torch.ones(2, 2))])


def test_dtypes_that_numpy_reads_otherwise_are_refused():
    x = supremum.asarray([1, 300])
    for call in (
        lambda: np.zeros_like(x, dtype="i8"),
        lambda: np.sum(x, 0, "u4"),
        lambda: np.astype(x, "i8"),
        lambda: np.add.reduce(x, dtype="i8"),
        lambda: x.sum(dtype="i8"),
        lambda: x.astype("i8"),
        lambda: x.astype("i8", copy=False),
    ):
        with pytest.raises(ArgumentError, match=AMBIGUOUS):
            call()
    assert np.sum(x, dtype="f32").dtype == x.astype("f32").dtype == "float32"


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_dtypes_that_numpy_reads_otherwise_are_refused_by_every_function_with_a_dtype(library):
    xp = namespace(library)
    given = {"shape": 2, "fill_value": 1000, "start": 1, "stop": 3, "num": 2, "n_rows": 2, "n": 4, "obj": [1000]}
    given |= {"x": xp.asarray([[1, 300]]), "kind": "integral"}
    refused = []
    for space in (xp, xp.linalg, xp.fft):
        functions = {name: getattr(space, name) for name in dir(space) if callable(getattr(space, name))}
        for name, function in functions.items():
            parameters = inspect.signature(function).parameters
            if "dtype" not in parameters or name == "Array":
                continue
            named = given | {"dtype": "i8"}
            args = [named[each] for each, its in parameters.items() if each in named and its.default is its.empty]
            options = {} if "i8" in args else {"dtype": "i8"}
            with pytest.raises(ArgumentError, match=AMBIGUOUS):
                function(*args, **options)
            refused.append(name)
    assert {"asarray", "zeros", "arange", "full", "full_like", "linspace", "eye", "sum", "cumulative_sum"} < {*refused}
    for call in (
        lambda: supremum.asarray([1000], dtype="i8", library=library),
        lambda: supremum.ArrayVariable(1000, dtype="i8", library=library),
        lambda: xp.can_cast("i8", "int16"),
        lambda: xp.iinfo("i8"),
    ):
        with pytest.raises(ArgumentError, match=AMBIGUOUS):
            call()


@pytest.mark.parametrize("name", NAMES)
def test_unique_returns_an_inverse_of_the_shape_of_the_array(name):
    values = np.array([[3, 1], [1, 2]], "int32")
    with library(name) as xp:
        found, inverse = np.unique(xp.asarray(values), return_inverse=True)
    assert found.tolist() == [1, 2, 3]
    assert inverse.tolist() == [[2, 0], [0, 1]]


CLOSE = {
    "jax-x64": ("bool", "int4", "uint4", "int8", "uint8", "int64", "float8_e5m2", "bfloat16", "float32", "complex64"),
    "torch": ("bool", "int8", "uint8", "int64", "bfloat16", "float32", "complex64"),
    "numpy": ("bool", "int2", "int4", "uint4", "int8", "uint64", "float16", "complex64"),
}


@pytest.mark.parametrize("rules", CLOSE)
def test_isclose_takes_the_dtypes_of_the_framework(rules):
    for dtype in CLOSE[rules]:
        x = supremum.asarray(np.array([1, 0, 1]).astype(as_format(dtype).dtype))
        with use_rules(rules):
            assert np.isclose(x, x[::-1]).tolist() == [True, True, True], dtype
            assert np.isclose(x, x[:1]).tolist() == [True, False, True], dtype
            if "float8" not in dtype:
                assert np.isclose(x, 1).tolist() == np.isclose(x, True).tolist() == [True, False, True], dtype


def test_einsum_takes_lists_of_dimensions():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    ours = [supremum.asarray(each) for each in (a, b)]
    with use_rules("numpy"):
        for result in ([0, 2], [2, 0], []):
            found = np.einsum(ours[0], [0, 1], ours[1], [1, 2], result)
            np.testing.assert_array_equal(np.asarray(found), np.einsum(a, [0, 1], b, [1, 2], result))
        found = np.einsum(ours[0], [0, 1], ours[1], [1, 2])
        np.testing.assert_array_equal(np.asarray(found), a @ b)


@pytest.mark.parametrize("axis", [(0, 1), (1, 0), (0, 2), (1, 2)])
def test_norms_of_matrices_keep_their_dimensions(axis):
    values = np.arange(24.0).reshape(2, 3, 4)
    found = np.linalg.norm(supremum.asarray(values), axis=axis, keepdims=True)
    wanted = np.linalg.norm(values, axis=axis, keepdims=True)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(found), wanted)
