"""Methods and `out=` of NumPy's ufuncs and functions on an `Array`, compared with NumPy under its own rules."""

import itertools
import re

import jax
import numpy as np
import pytest

from arrays.calls import DTYPES, VALUES, made, result_of
from optional_packages import import_or_skip
from supremum import Array, OperandError, namespace, use_rules
from supremum.arrays import InPlaceError, LibraryError, asarray
from supremum.errors import ArgumentError, SupremumError
from supremum.formats import as_format

REDUCED = ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or")
CUMULATED = (*REDUCED, "fmax", "fmin", "bitwise_and", "bitwise_or")
PAIRED = (*CUMULATED, "subtract", "divide", "floor_divide", "power", "less", "equal", "hypot", "left_shift")
UPDATING = (*CUMULATED, "subtract", "divide", "floor_divide", "remainder")


def _equals(found, wanted):
    """Whether two arrays have equal values; integers of 64 bits are small here."""
    return np.array_equal(np.asarray(found).astype("float64"), np.asarray(wanted).astype("float64"), equal_nan=True)


def _is_same(found, wanted):
    return isinstance(found, Array) and found.dtype == wanted.dtype and _equals(found, wanted)


def _differences(calls):
    """The calls that give something else with an `Array` than NumPy gives, and how many were compared."""
    different, compared = [], 0
    for name, method, args, options in calls:
        function = getattr(getattr(np, name), method)
        wanted = result_of(function, *args, **options)
        if wanted is None:
            continue
        compared += 1
        found = result_of(function, Array(args[0]), *args[1:], **options)
        if not _is_same(found, np.asarray(wanted)):
            different.append((name, method, [each.dtype for each in args], options, found, wanted))
    return different, compared


def test_reduce_and_accumulate_give_the_results_of_numpy():
    options = ({}, {"axis": 1, "keepdims": True}, {"axis": None})
    calls = [
        *itertools.product(REDUCED, ["reduce"], [(made(dtype),) for dtype in DTYPES], options),
        *itertools.product(CUMULATED, ["accumulate"], [(made(dtype),) for dtype in DTYPES], ({}, {"axis": -1})),
        *itertools.product(
            ("add", "multiply"), ("reduce", "accumulate"), [(made(dtype),) for dtype in DTYPES],
            ({"dtype": "float32"}, {"axis": 1, "dtype": np.int64}),
        ),
    ]  # fmt: skip
    with use_rules("numpy"):
        different, compared = _differences(calls)
    assert different == []
    assert compared > 500


@pytest.mark.slow
def test_outer_gives_the_results_of_numpy():
    pairs = [(made(a), made(b)[0]) for a, b in itertools.product(DTYPES, repeat=2)]
    with use_rules("numpy"):
        different, compared = _differences(itertools.product(PAIRED, ["outer"], pairs, [{}]))
    assert different == []
    assert compared > 1800


def test_outer_takes_numbers_and_writes_into_out():
    x, row = made("int8"), made("int8")[0]
    with use_rules("numpy"):
        assert np.add.outer(2, Array(x)).dtype == "int8"
        out = np.zeros((2, 3, 3), "float32")
        assert np.add.outer(Array(x), row, out=out) is out
        assert out.tolist() == np.add.outer(x, row).tolist()


@pytest.mark.slow
def test_at_updates_repeated_elements_as_numpy_does():
    """NumPy would also truncate fractions and wrap integers around here, which it refuses in `+=`."""
    index, different, stored, refused = [0, 2, 0, 0], [], 0, 0
    with use_rules("numpy"):
        for name, (a, b) in itertools.product(UPDATING, itertools.product(DTYPES, repeat=2)):
            ufunc, value, before = getattr(np, name), made(b, [1, 2, 3, 1]), made(a, [5, 3, 7])
            result = result_of(ufunc, before, value[:3])
            theirs = before.copy()
            keeps = result is not None and np.can_cast(result.dtype, theirs.dtype, "same_kind")
            if keeps:
                ufunc.at(theirs, index, value)
            for target, other in ((Array(before.copy()), value), (before.copy(), Array(value))):
                try:
                    ufunc.at(target, index, other)
                except SupremumError:
                    refused += 1
                    is_right = not keeps
                else:
                    stored += 1
                    is_right = keeps
                if not is_right or not _equals(target, theirs):
                    different.append((name, a, b, target, theirs))
    assert different == []
    assert stored > 2500
    assert refused > 1500


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_at_updates_tensors(dtype):
    torch = import_or_skip("torch")
    with use_rules("torch"):
        tensor = torch.zeros(3, dtype=getattr(torch, dtype))
        ours = Array(tensor)
        np.add.at(ours, torch.tensor([0, 0, 2]), 2)
        np.add.at(ours, (Array(torch.tensor([1, 1])),), Array(torch.tensor([1, 2], dtype=torch.uint8)))
        assert tensor.tolist() == [4, 3, 2]
        np.multiply.at(ours, [0, 0], 3)
        assert tensor.tolist() == [36, 3, 2]


def test_at_refuses_what_the_rules_do_not_store():
    with use_rules("numpy"):
        for value in (1.5, np.ones(2), Array(np.ones(2, "complex64"))):
            ints = Array(np.zeros(3, "int8"))
            with pytest.raises(InPlaceError, match=r"add\(int8.*into=int8\)"):
                np.add.at(ints, [0, 1], value)
            assert ints.tolist() == [0, 0, 0]
        narrow = np.zeros(3, "int8")
        with pytest.raises(InPlaceError, match="out of range"):
            np.add.at(narrow, [0, 0], Array(np.array([1, 200])))
        assert narrow.tolist() == [0, 0, 0]
        with pytest.raises(IndexError, match=r"np\.add\.at\(int8\[3\], \[9\], 1\) failed"):
            np.add.at(Array(narrow), [9], 1)


# out=

WRITTEN = {
    "sum": lambda x, **out: np.sum(x, axis=0, **out), "prod": lambda x, **out: np.prod(x, axis=0, **out),
    "mean": lambda x, **out: np.mean(x, axis=0, **out), "max": lambda x, **out: np.max(x, axis=0, **out),
    "any": lambda x, **out: np.any(x, axis=0, **out), "argmax": lambda x, **out: np.argmax(x, axis=0, **out),
    "std": lambda x, **out: np.std(x, 0, None, *out.values()), "cumsum": lambda x, **out: np.cumsum(x[0], **out),
    "clip": lambda x, **out: np.clip(x[0], 1, 2, **out), "round": lambda x, **out: np.round(x[0], 1, **out),
    "concatenate": lambda x, **out: np.concatenate([x[0, :1], x[0, 1:]], **out),
    "take": lambda x, **out: np.take(x[0], [0, 2, 1], **out),
    "matmul": lambda x, **out: np.matmul(x[:, :2], x, **out)[0],
    "dot": lambda x, **out: np.dot(x[0, :2], x, **out), "reduce": lambda x, **out: np.add.reduce(x, **out),
    "accumulate": lambda x, **out: np.maximum.accumulate(x[0], **out),
    "add": lambda x, **out: np.add(x[0], x[1], **out),
    "sqrt": lambda x, **out: np.sqrt(x[0], **out), "less": lambda x, **out: np.less(x[0], x[1], **out),
}  # fmt: skip


@pytest.mark.slow
def test_functions_write_into_out_what_numpy_writes_without_losing_values():
    """NumPy casts to any dtype in some functions; Supremum stores what NumPy's ufuncs store."""
    different, stored, refused = [], 0, 0
    with use_rules("numpy"):
        for name, (a, into) in itertools.product(WRITTEN, itertools.product(DTYPES, repeat=2)):
            call, x, shape = WRITTEN[name], made(a), (2, 3) if name == "matmul" else (3,)
            result = result_of(call, x)
            if result is None:
                continue
            wanted = np.asarray(result).astype(into) if np.can_cast(result.dtype, into, "same_kind") else None
            for out in (np.zeros(shape, as_format(into).dtype), Array(np.zeros(shape, as_format(into).dtype))):
                found = result_of(call, Array(x), out=out)
                if found is None:
                    refused += 1
                    if not np.any(np.asarray(out)) and wanted is None:
                        continue
                else:
                    stored += 1
                    kept = np.asarray(out)[0] if name == "matmul" else np.asarray(out)
                    if wanted is not None and kept.dtype == wanted.dtype and _equals(kept, wanted):
                        continue
                different.append((name, a, into, found, wanted))
    assert different == []
    assert stored > 2000
    assert refused > 1000


def test_out_has_the_shape_and_library_of_theresult_of():
    x = Array(np.ones((2, 3), "float32"))
    with pytest.raises(ArgumentError, match=r"sum in place must have the array's shape \(2,\), got \(3,\)"):
        np.sum(x, axis=0, out=np.zeros(2, "float32"))
    with pytest.raises(LibraryError, match="must be an array of numpy, got one of jax"):
        np.sum(asarray(x, library="jax"), axis=0, out=np.zeros(3, "float32"))


def test_out_held_by_jax_is_refused_with_calls_that_work():
    xp = namespace("jax")
    a, b, x = xp.ones(3), xp.ones(3) * 2, xp.zeros(3)
    index, value = 1, 5.0
    for call in (
        lambda: np.add(a, b, out=x), lambda: np.clip(a, 0, 1, out=x), lambda: np.multiply.at(x, index, value),
        lambda: np.logical_or.at(x, index, value), lambda: np.maximum.accumulate(a, out=x),
    ):  # fmt: skip
        with pytest.raises(OperandError, match="arrays of JAX are immutable") as error:
            call()
        fixes = re.findall(r"x = (?:np\.|x\.at).*?(?= without|, or| to keep|$)", str(error.value))
        assert 1 <= len(fixes) <= 2
        for fix in fixes:
            names = {"np": np, "x": x, "index": index, "value": value}
            called = fix.replace("np.clip(...)", "np.clip(a, 0, 1)").replace("np.maximum(...)", "np.maximum(a, b)")
            exec(called.replace("np.add(...)", "np.add(a, b)"), {"a": a, "b": b}, names)
            assert type(names["x"]) is Array
            assert names["x"].dtype == "float32"
    assert x.tolist() == [0, 0, 0]


def test_methods_and_options_without_rules_name_a_call_that_works():
    x, indices = Array(np.array(VALUES)), [0, 1]
    for call, options in (
        (lambda: np.subtract.reduce(x), ""), (lambda: np.hypot.accumulate(x), ""),
        (lambda: np.add.reduceat(x, [0]), ""),
        (lambda: np.negative.at(x, [0]), ""), (lambda: np.maximum.reduce(x, dtype="float32"), " with dtype"),
        (lambda: np.add.outer(x, x, dtype="float32"), " with dtype"),
        (lambda: np.sqrt(x, casting="unsafe"), " with casting"),
        (lambda: np.modf(x), ""), (lambda: np.fmax.reduce(x), ""),
    ):  # fmt: skip
        with pytest.raises(OperandError, match=f"{options} does not support an Array") as error:
            call()
        fix = re.search(r"arrays, (np\..*)$", str(error.value))[1]
        if "outer" not in fix:
            eval(fix, {"np": np, "x": Array(np.array(VALUES)), "indices": indices})
    with pytest.raises(OperandError, match=r"np.sum takes no initial .* np.sum\(np.asarray\(x\), initial=...\)"):
        np.add.reduce(x, initial=3)
    with pytest.raises(OperandError, match=r"np\.prod takes no where"):
        np.multiply.reduce(x, where=np.array([True, False, True]))


def test_defaults_of_ufuncs_are_accepted():
    x = Array(np.array(VALUES))
    given = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
    assert np.add(x, x, out=None, **given).tolist() == np.add(VALUES, VALUES).tolist()
    assert np.add.reduce(x, keepdims=False, where=True, dtype=None).tolist() == [3, 2, 3]


def test_methods_of_ufuncs_work_in_jitted_functions_and_follow_the_rules():
    x = asarray(VALUES, dtype="int8", library="jax")

    def compute(x):
        return np.maximum.accumulate(x, axis=1), np.add.reduce(x), np.multiply.outer(x[0], np.ones(2, "uint8"))

    for rules, dtypes in (("jax-x32", ["int8", "int32", "int16"]), ("tf-rfc-all", ["int8", "int8", "int16"])):
        with use_rules(rules):
            for results in (compute(x), jax.jit(compute)(x)):
                assert [str(each.dtype) for each in results] == dtypes
                assert [each.tolist() for each in results[:2]] == [[[0, 1, 2], [3, 3, 3]], [3, 2, 3]]
