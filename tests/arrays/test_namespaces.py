"""The namespaces of the array API standard: promotion, creation of arrays, dtypes, and the namespace itself."""

import functools
import inspect
import itertools
import json
import pickle
import re
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest

import supremum
from arrays import every_format
from optional_packages import import_or_skip
from slowly import for_each
from supremum import Array, PromotionError, explain, namespace, result_type, use_rules
from supremum.arrays import InPlaceError, LibraryError, RuntimeDtypeError, array_api_names
from supremum.arrays.functions.creation import CREATION_FUNCTIONS
from supremum.arrays.functions.promoting import PROMOTING_FUNCTIONS
from supremum.errors import ArgumentError, UnknownDtypeError, UnknownNameError
from supremum.formats import FORMATS, as_format, is_available
from supremum.operations import OPERATIONS

ORACLE = json.loads((Path(__file__).parents[1] / "conformance/oracles/array-api-promotion.json").read_text("utf-8"))
STANDARD = list(ORACLE["table"])
# The dtypes that torch cannot add.
UNADDED = [("supremum.arrays.torch", f"uint{bits}") for bits in (16, 32, 64)]
# The standard's page has these cells too, but the suite does not.
MIXED = {
    ("float32", "complex64"): "complex64", ("float32", "complex128"): "complex128",
    ("float64", "complex64"): "complex128", ("float64", "complex128"): "complex128",
}  # fmt: skip
CLASSIC = [row.name for row in FORMATS if row.is_builtin or row.name == "bfloat16"]
RULE_SETS = ["jax-x64", "numpy", "torch", "array-api", "keras", "tf-rfc-all"]
RULE_SETS = [name for name in RULE_SETS if name in supremum.rules.rule_names()]


# Promotion


@pytest.mark.slow
def test_array_api_rules_agree_with_the_table_of_the_standard_suite(xp):
    table = ORACLE["table"]
    arrays = {name: xp.asarray(np.ones(1), dtype=name) for name in STANDARD}
    with use_rules("array-api"):
        for a, b in itertools.product(STANDARD, repeat=2):
            expected = table[a].get(b) or MIXED.get((a, b)) or MIXED.get((b, a))
            if expected is None:
                for refused in (xp.result_type, lambda a, b: xp.add(arrays[a.name], arrays[b.name])):
                    with pytest.raises(PromotionError):
                        refused(np.dtype(a), np.dtype(b))
            else:
                assert xp.result_type(arrays[a], np.dtype(b)) == expected
                if a != "bool" and (xp.__name__, expected) not in UNADDED:  # the standard does not add bools
                    assert xp.add(arrays[a], arrays[b]).dtype == expected, (a, b)
                assert xp.can_cast(arrays[a], expected)


VECTORS = {
    "concat": lambda xp, a, b: xp.concat([a, b]),
    "stack": lambda xp, a, b: xp.stack([a, b]),
    "where": lambda xp, a, b: xp.where(xp.asarray([True, False, True]), a, b),
    "diff": lambda xp, a, b: xp.diff(a, prepend=b),
    "tensordot": lambda xp, a, b: xp.tensordot(a, b, axes=1),
    "vecdot": lambda xp, a, b: xp.vecdot(a, b),
    "matmul": lambda xp, a, b: xp.matmul(a, b),
    "@": lambda xp, a, b: a @ b,
    "outer": lambda xp, a, b: xp.linalg.outer(a, b),
    "cross": lambda xp, a, b: xp.linalg.cross(a, b),
}
WITHOUT_KERNEL = (RuntimeDtypeError, RuntimeError, TypeError, ValueError)


@for_each("rules", RULE_SETS, one_in=0)
def test_functions_of_two_arrays_promote_as_the_rules_decide(xp, rules):
    for name in VECTORS:
        if xp is not namespace("jax"):
            _check_pairs(xp, name, rules, step=1)
        elif rules == "jax-x64" or name == "concat":  # JAX compiles each call
            _check_pairs(xp, name, rules, step=13)


def _check_pairs(xp, name, rules, step):
    pairs = list(itertools.product(CLASSIC, repeat=2))[::step]
    vectors = {dtype: xp.asarray(np.ones(3), dtype=dtype) for dtype in CLASSIC}
    accepted = computed = 0
    with use_rules(rules):
        for a, b in pairs:
            decision = explain(vectors[a], vectors[b], operation=name.replace("@", "matmul"))
            if not decision:
                with pytest.raises(PromotionError, match=re.escape(f"{name.replace('@', 'matmul')}({a}, {b})")):
                    VECTORS[name](xp, vectors[a], vectors[b])
                continue
            accepted += 1
            try:
                result = VECTORS[name](xp, vectors[a], vectors[b])
            except WITHOUT_KERNEL:  # torch lacks products of bool and unsigned integers; bools cannot be subtracted
                dtype = as_format(decision.dtype)
                assert name not in ("concat", "stack", "where"), (a, b)
                assert not dtype.is_inexact, (a, b)
                continue
            computed += 1
            assert (result.dtype, result.weak_type) == (decision.dtype, decision.weak), (a, b)
            expected = VECTORS[name](namespace("numpy"), *(np.ones(3, decision.dtype),) * 2)
            np.testing.assert_array_equal(np.asarray(result, np.complex128), np.asarray(expected, np.complex128))
    assert computed > accepted / 2 > 1 / 2


@pytest.mark.one_in(2)
def test_searchsorted_isin_solve_and_clip_promote_as_the_rules_decide(xp):
    # 0.1 in float16 is less than 0.1 in float64, which only a comparison in float64 shows.
    halves = xp.asarray([0.0, 0.1], dtype="float16")
    assert int(xp.searchsorted(halves, xp.asarray(0.1, dtype="float64"))) == 2
    assert not xp.isin(halves, xp.asarray(0.1, dtype="float64"))[1]
    assert xp.isin(halves, xp.asarray(0.1, dtype="float16"))[1]
    assert int(xp.searchsorted(halves, halves[1], sorter=np.array([0, 1]))) == 1
    eye = xp.eye(2, dtype="int8")
    for rules in ("jax-x64", "numpy", "torch"):
        with use_rules(rules):
            decision = explain(eye, eye, operation="solve")
            assert bool(decision) == (rules != "torch")
            if decision:
                assert xp.linalg.solve(eye, xp.asarray([1, 2], dtype="int8")).dtype == decision.dtype
            else:
                with pytest.raises(PromotionError, match="solve does not accept integer operands"):
                    xp.linalg.solve(eye, eye)
            assert xp.clip(eye, 0, 1).dtype == np.int8
            assert xp.clip(halves, xp.zeros(1, dtype="float32")).dtype == np.float32
    with use_rules("array-api"), pytest.raises(PromotionError, match="solve"):
        xp.linalg.solve(eye, eye)


def test_functions_treat_python_numbers_as_weak(xp):
    small = xp.asarray([1, 2], dtype="int8")
    assert xp.where(small > 1, small, 3).dtype == np.int8
    assert xp.where(True, 1, 2).weak_type
    assert xp.result_type(small, 3) == np.int8
    assert xp.result_type("bfloat16", small) == ml_dtypes.bfloat16
    weak = xp.stack([xp.asarray(1), xp.asarray(2)])
    assert weak.weak_type
    assert xp.concat([weak, small]).dtype == np.int8
    both = xp.matmul(weak, weak)
    assert (both.weak_type, int(both)) == (True, 5)


def test_functions_convert_numpy_arrays_and_numbers_to_arrays_of_the_library(xp):
    for result in (
        xp.add(np.ones(2, "float32"), 1), xp.sin(np.float32(0)), xp.multiply(2, 3), xp.sqrt(4), xp.sum(np.ones(3)),
        xp.where(np.array([True]), 1, 2.0), xp.clip(np.arange(3), 1), xp.concat([np.ones(2), np.ones(1)]),
        xp.where(True, 1, 2), xp.astype(np.ones(2), "float32"), xp.flip(np.ones(2)),
    ):  # fmt: skip
        assert isinstance(result, Array)
        assert result.__array_namespace__() is xp
    assert xp.add(xp.asarray([1.0], dtype="float32"), np.ones(1, "float32")).dtype == np.float32


def test_aliases_from_other_libraries_work(xp):
    half = xp.asarray([4.0], dtype="bfloat16")
    assert xp.power(half, 2).dtype == xp.true_divide(half, 2).dtype == ml_dtypes.bfloat16


# Creation of arrays

MADE = {
    "float": [
        lambda xp: xp.zeros(2), lambda xp: xp.ones((2, 1)), lambda xp: xp.empty(2), lambda xp: xp.eye(2),
        lambda xp: xp.linspace(0, 1, 3), lambda xp: xp.full(2, 0.5), lambda xp: xp.arange(0, 1, 0.5),
        lambda xp: xp.fft.fftfreq(4), lambda xp: xp.fft.rfftfreq(4), lambda xp: xp.asarray([1.0]),
    ],
    "integer": [lambda xp: xp.full(2, 1), lambda xp: xp.arange(3), lambda xp: xp.asarray([1])],
    "complex": [lambda xp: xp.full(2, 1j), lambda xp: xp.linspace(0, 1j, 3), lambda xp: xp.asarray([1j])],
}  # fmt: skip
DEFAULTS = {  # float, integer and complex
    "numpy": ("float64", "int64", "complex128"),
    "torch": ("float32", "int64", "complex64"),
    "jax-x32": ("float32", "int32", "complex64"),
    "jax-x64": ("float64", "int64", "complex128"),
    "array-api": ("float64", "int64", "complex128"),
}


@for_each("rules", DEFAULTS, one_in=4)
def test_arrays_created_without_a_dtype_have_the_default_of_the_rules(xp, rules):
    with use_rules(rules):
        for (category, functions), expected in zip(MADE.items(), DEFAULTS[rules], strict=True):
            assert [str(make(xp).dtype) for make in functions] == [expected] * len(functions), category
        kinds = ("real floating", "integral", "complex floating")
        defaults = xp.__array_namespace_info__().default_dtypes()
        assert tuple(str(defaults[kind]) for kind in kinds) == DEFAULTS[rules]
        assert xp.full(2, True).dtype == np.bool_


def test_creation_functions_accept_dtypes_in_every_form(xp):
    for dtype in ("bfloat16", ml_dtypes.bfloat16, xp.bfloat16, np.dtype("bfloat16"), as_format("bfloat16")):
        for made in (
            xp.zeros(2, dtype=dtype), xp.ones(2, dtype=dtype), xp.full(2, 3, dtype=dtype), xp.eye(2, dtype=dtype),
            xp.zeros_like(xp.arange(2), dtype=dtype), xp.full_like(xp.arange(2), 3.5, dtype=dtype),
            xp.asarray([1, 2], dtype=dtype), xp.astype(xp.arange(2), dtype), xp.sum(xp.arange(2), dtype=dtype),
        ):  # fmt: skip
            assert made.dtype == xp.bfloat16
    with pytest.raises(UnknownDtypeError, match="did you mean 'float32'"):
        xp.zeros(2, dtype="flaot32")
    with pytest.raises(OverflowError):
        xp.full(2, 300, dtype="int8")


def test_creation_functions_give_the_right_values(xp):
    assert xp.arange(1, 7, 2).tolist() == [1, 3, 5]
    assert xp.arange(5.0, 3.0, -1).tolist() == [5.0, 4.0]
    assert xp.linspace(0, 1, 2, endpoint=False).tolist() == [0.0, 0.5]
    assert xp.full((2, 1), xp.asarray(3, dtype="int8")).tolist() == [[3], [3]]
    assert xp.full((1,), xp.asarray(3, dtype="int8")).dtype == np.int8
    assert xp.arange(xp.asarray(3, dtype="int16")).dtype == np.int16
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert xp.tril(xp.ones((2, 2))).tolist() == [[1, 0], [1, 1]]
    shared = xp.from_dlpack(xp.arange(3))
    assert shared.tolist() == [0, 1, 2]
    assert xp.asarray([1], device=shared.device).device == shared.device


def test_full_like_follows_the_rules(xp):
    ints = xp.asarray([1, 2], dtype="int8")
    assert xp.full_like(ints, 7).tolist() == [7, 7]
    assert xp.full_like(xp.asarray(1), 7).weak_type
    assert xp.full_like(xp.asarray([1.5], dtype="float32"), 7).dtype == np.float32
    for wrong in (1.5, 300, xp.asarray(1, dtype="int16")):
        with pytest.raises(InPlaceError):
            xp.full_like(ints, wrong)


def test_64_bit_dtypes_raise_on_jax_without_x64():
    xp = namespace("jax")
    with jax.enable_x64(False):
        for make in (xp.zeros, xp.ones, xp.empty, xp.eye, xp.arange, xp.fft.fftfreq):
            with pytest.raises(RuntimeDtypeError, match="jax_enable_x64"):
                make(3, dtype="float64")
            with use_rules("numpy"), pytest.raises(RuntimeDtypeError):
                make(3)
            assert make(3).dtype in (np.float32, np.int32)
        narrow = xp.ones(2)
        for call in (
            lambda: xp.full(2, 1, dtype="int64"), lambda: xp.linspace(0, 1, 3, dtype="complex128"),
            lambda: xp.sum(narrow, dtype="float64"), lambda: xp.astype(narrow, "float64"),
            lambda: xp.zeros_like(narrow, dtype="int64"), lambda: xp.from_dlpack(np.ones(2)),
            lambda: xp.flip(np.ones(2)),
        ):  # fmt: skip
            with pytest.raises(RuntimeDtypeError):
                call()
        assert "float64" not in xp.__array_namespace_info__().dtypes()
        assert xp.float64 == np.float64  # the name exists in every mode


# Dtypes


def test_finfo_and_iinfo_agree_with_ml_dtypes_for_every_format(xp):
    for row in FORMATS:
        if row.category == "integer":
            info = xp.iinfo(row.dtype)
            theirs = ml_dtypes.iinfo(row.dtype)
            assert (info.max, info.min, info.bits) == (theirs.max, theirs.min, theirs.bits)
        elif row.is_inexact:
            info, theirs = xp.finfo(row.dtype), ml_dtypes.finfo(row.component.dtype)
            assert info.dtype == row.component.dtype
            for name in ("bits", "eps", "max", "min", "smallest_normal"):
                assert getattr(info, name) == float(getattr(theirs, name)), (row, name)
    assert xp.finfo(xp.asarray([1j], dtype="complex64")).dtype == np.float32
    assert isinstance(xp.finfo("float16").max, float)
    for function, dtype in ((xp.finfo, "int8"), (xp.iinfo, "float32"), (xp.iinfo, "bool")):
        with pytest.raises(ArgumentError):
            function(dtype)


def test_isdtype_agrees_with_the_standard_and_knows_ml_dtypes(xp):
    theirs = namespace("numpy").zeros(1).backend.xp
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    for dtype, kind in itertools.product(STANDARD, [*kinds, ("bool", "integral"), np.dtype("int8")]):
        assert xp.isdtype(np.dtype(dtype), kind) == theirs.isdtype(np.dtype(dtype), kind)
    assert xp.isdtype("float8_e4m3fn", "real floating")
    assert xp.isdtype("int4", "signed integer")
    with pytest.raises(UnknownNameError, match="did you mean 'integral'"):
        xp.isdtype("int8", ("numeric", "intgral"))


def test_can_cast_follows_the_rules(xp):
    for rules in RULE_SETS:
        with use_rules(rules):
            for a, b in itertools.product(CLASSIC, repeat=2):
                decision = explain(a, b)
                assert xp.can_cast(np.dtype(as_format(a).dtype), b) == (bool(decision) and decision.dtype == b)
    assert xp.result_type(np.dtype("int8"), np.dtype("uint8")) == result_type("int8", "uint8")


# The namespace itself


def test_namespace_has_and_lists_every_name_of_the_standard(xp):
    assert set(dir(xp)) >= array_api_names.FUNCTIONS | array_api_names.CONSTANTS | {
        "linalg",
        "fft",
        "float32",
        "bfloat16",
    }
    assert set(dir(xp.linalg)) >= array_api_names.LINALG
    assert set(dir(xp.fft)) >= array_api_names.FFT
    aliases = {alias: row.name for row in OPERATIONS.values() for alias in row.aliases}
    for part in (xp, xp.linalg, xp.fft):
        for name in dir(part):
            found = getattr(part, name)
            assert getattr(part, name) is found
            if callable(found):
                assert found.__name__ == (aliases.get(name, name) if part is xp else name)
    assert (xp.pi, xp.newaxis, xp.float32, xp.__array_api_version__) == (np.pi, None, np.float32, "2024.12")
    assert xp.linalg.matmul(xp.eye(2), xp.eye(2)).dtype == xp.matmul(xp.eye(2), xp.eye(2)).dtype
    names = {"": array_api_names.FUNCTIONS, "linalg": array_api_names.LINALG, "fft": array_api_names.FFT}
    for name in (PROMOTING_FUNCTIONS | CREATION_FUNCTIONS).keys() - {"isin"}:
        part, _, last = name.rpartition(".")
        assert last in names[part]


def test_namespace_behaves_like_a_module(xp):
    name = xp.__name__.rpartition(".")[2]
    assert namespace(name) is xp is namespace(name, api_version="2022.12") is xp.ones(1).__array_namespace__()
    assert pickle.loads(pickle.dumps(xp)) is xp
    assert pickle.loads(pickle.dumps(xp.linalg)) is xp.linalg
    assert repr(xp.fft) == f"<namespace {name!r} of supremum, fft>"
    with pytest.raises(AttributeError, match="has no 'conact': did you mean 'concat'"):
        _ = xp.conact
    assert hasattr(xp, "complex32") == (name != "jax" and is_available("complex32"))
    assert not hasattr(xp.linalg, "zeros")
    with pytest.raises(UnknownNameError, match=r"2021\.12, 2022\.12"):
        xp.ones(1).__array_namespace__(api_version="1999.12")
    with pytest.raises(UnknownNameError, match="did you mean 'numpy'"):
        namespace("nunpy")


def test_namespace_info_describes_the_library(xp):
    info = xp.__array_namespace_info__()
    assert info.capabilities() == xp.ones(1).backend.xp.__array_namespace_info__().capabilities()
    assert sorted(info.dtypes()) == sorted(STANDARD)
    assert list(info.dtypes(kind="complex floating")) == ["complex64", "complex128"]
    assert sorted(info.dtypes(kind=("bool", "real floating"))) == ["bool", "float32", "float64"]
    assert info.default_dtypes()["indexing"] == xp.argmax(xp.ones(3)).dtype


def test_arrays_of_other_libraries_are_refused_with_a_working_fix():
    a, b = namespace("jax").ones(2), namespace("numpy").ones(2, dtype="float32")
    xp = namespace("numpy")
    for call in (
        lambda: xp.add(b, a),
        lambda: xp.sin(a),
        lambda: xp.concat([b, a]),
        lambda: xp.flip(a),
        lambda: xp.where(True, a, b),
    ):
        with pytest.raises(
            LibraryError, match=r"as the namespace, must be an array of numpy, got one of jax"
        ) as caught:
            call()
    fix = str(caught.value).rpartition("use ")[2]
    letter = fix[-2]
    assert eval(fix, {"supremum": supremum, letter: a}).backend.name == "numpy"


def test_namespace_functions_work_under_jit():
    xp = namespace("jax")

    @jax.jit
    def f(x, y):
        z = xp.concat([x, y]).reshape(2, 2) @ xp.ones((2, 2), dtype="int8")
        return xp.where(z > 0, z, xp.zeros_like(z)).sum(axis=0)

    result = f(xp.asarray([1, 2], dtype="int8"), xp.asarray([1.0, 2.0], dtype="bfloat16"))
    assert (result.dtype, result.tolist()) == (ml_dtypes.bfloat16, [6.0, 6.0])


# Methods and operators of arrays


def test_shapes_are_tuples_or_numbers(xp):
    x = xp.asarray([[4.0, 1.0], [2.0, 3.0]], dtype="float32")
    assert x.reshape(4).shape == x.reshape((4,)).shape == x.reshape(-1).shape == x.reshape([4]).shape == (4,)
    assert x.reshape(1, 2, 1, 2, copy=True).squeeze().shape == (2, 2)
    assert x.reshape(1, 2, 1, 2).squeeze(2).shape == x.reshape(1, 2, 1, 2).squeeze(axis=(2,)).shape == (1, 2, 2)


def test_matmul_operator_promotes_on_both_sides_and_in_place(xp):
    a, ints = xp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="bfloat16"), np.array([[1, 0], [1, 1]], "int8")
    theirs = xp.asarray(ints).unwrap()  # a raw array, which leaves the operator to the other operand
    right, left = [[3, 2], [7, 4]], [[1, 2], [4, 6]]
    for product, wanted in ((a @ ints, right), (a @ theirs, right), (ints @ a, left), (theirs @ a, left)):
        assert (product.dtype, product.tolist()) == (ml_dtypes.bfloat16, wanted)
        assert product.__array_namespace__() is xp
    with pytest.raises(TypeError):
        a @ 3
    with pytest.raises(TypeError):
        3 @ a
    c = a
    c @= ints
    assert (c is a, c.dtype, c.tolist()) == (a.backend.mutable, ml_dtypes.bfloat16, [[3, 2], [7, 4]])
    with pytest.raises(InPlaceError):
        c @= a.astype("float32")
    with pytest.raises(PromotionError, match=re.escape("matmul(bfloat16, float8_e5m2)")):
        a @ ints.astype("float8_e5m2")
    with use_rules("numpy"):  # which store a float64 product in float32, but never a float in integers
        d = narrow = xp.eye(2, dtype="float32")
        narrow @= np.full((2, 2), 0.1)
        whole = xp.asarray(ints)
        with pytest.raises(InPlaceError):
            whole @= np.full((2, 2), 0.1)
    assert (narrow is d, narrow.dtype) == (d.backend.mutable, np.float32)
    assert narrow.tolist() == [[np.float32(0.1)] * 2] * 2


# Arguments after the first that the standard lets users give by name, for an array of the shape (2, 3).
BY_NAME = {
    "reshape": {"shape": (3, 2)}, "permute_dims": {"axes": (1, 0)}, "broadcast_to": {"shape": (2, 2, 3)},
    "roll": {"shift": 1}, "squeeze": {"axis": 0}, "clip": {"min": 1, "max": 2}, "expand_dims": {"axis": 0},
    "full_like": {"fill_value": 2.0},
}  # fmt: skip


def test_arguments_may_be_given_by_name(xp):
    strict = import_or_skip("array_api_strict")
    plain = [strict.asarray(np.arange(6.0).reshape(2, 3))]
    names = set()
    for name in array_api_names.FUNCTIONS:
        parameters = list(inspect.signature(getattr(strict, name)).parameters.values())
        by_either = [each.name for each in parameters[1:] if each.kind is each.POSITIONAL_OR_KEYWORD]
        if by_either and parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY:
            names.add(name)
    assert names - {"linspace", "finfo", "iinfo", "arange", "eye", "meshgrid"} == BY_NAME.keys()  # they take no array
    for name, options in BY_NAME.items():
        given = plain[0][:1, :] if name == "squeeze" else plain[0]
        wanted = np.asarray(getattr(strict, name)(given, **options))
        found = getattr(xp, name)(xp.asarray(np.asarray(given)), **options)
        assert np.array_equal(np.asarray(found), wanted), name
    for name in ("zeros", "ones", "empty"):
        assert getattr(xp, name)(shape=(2, 3)).shape == (2, 3)


def test_unique_functions_sort(xp):
    for dtype in ("int32", "float32"):
        x = xp.asarray([3, 1, 2, 1, *range(5000, 4, -7)], dtype=dtype)
        wanted = sorted(set(np.asarray(x).tolist()))
        for found in (xp.unique_values(x), xp.unique_counts(x).values, xp.unique_inverse(x).values):
            assert found.tolist() == wanted


NUMBERS = {"rtol": 0.1, "atol": 0.1, "ord": 2, "axis": 0, "stop": 2, "nan": 0.5}
"""Numbers for options without a number as their default."""
OF_SEVERAL = ("fft.fftshift", "fft.ifftshift")
"""Functions with an option that must not be an array without dimensions, because libraries loop over it."""


@pytest.mark.one_in(2)
def test_options_may_be_arrays_and_scalars_instead_of_numbers(xp):
    """Of a library that compiles, only some functions are called."""
    different, compared = [], 0
    for name, function in itertools.islice(
        every_format.functions(xp).items(), 0, None, 6 if "jax" in xp.__name__ else 1
    ):
        for each in every_format.parameters(name, function):
            number = each.default if type(each.default) in (int, float) else NUMBERS.get(each.name)
            given = every_format.values(xp, as_format("float32"), (2, 2))
            ask = functools.partial(_outcome, name, function, given, each.name)
            is_required = each.kind is not each.KEYWORD_ONLY and each.default is each.empty
            if number is None or is_required or name in OF_SEVERAL or (wanted := ask(number)) is None:
                continue
            compared += 1
            others = (np.asarray(number), np.asarray(number)[()], xp.asarray(number))
            different += [(name, each.name, type(value)) for value in others if ask(value) != wanted]
    assert different == []
    assert compared > 8


def _outcome(name, function, given, parameter, value):
    """The shapes and values of the results of a call with an option; None if it fails."""
    try:
        results = every_format.call(name, function, given | {parameter: value}, chosen=parameter)
    except Exception:
        return None
    parts = results if isinstance(results, (list, tuple)) else [results]
    return [np.asarray(part).astype("complex64").round(4).tolist() for part in parts]
