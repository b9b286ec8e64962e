"""NumPy's functions beyond the standard on arrays: values, dtypes, shapes and errors, compared with NumPy and JAX."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from arrays.libraries import library
from conformance import numpy_function_judge as judge
from conformance.array_departures import JAX_FUNCTION_DEPARTURES, NUMPY_FUNCTION_DEPARTURES
from slowly import for_each
from supremum import Array, namespace, use_rules
from supremum.arrays import RuntimeDtypeError
from supremum.errors import OperandError

ULPS = 8  # in units of the last place: sums in a different order


def _kind(different):
    """What a difference is listed as: without the dtype of the other side."""
    return different.partition(" for ")[0]


def _listed(departures):
    return {key: {*dtypes.split()} for key, (dtypes, _) in departures.items()}


@pytest.mark.slow
def test_functions_agree_with_installed_numpy_for_all_dtypes_and_dimensions():
    compared, different = 0, collections.defaultdict(set)
    with use_rules("numpy"):
        for name, calls in judge.TABLES.items():
            for dtype in (*judge.REAL, *judge.COMPLEX):
                for call in calls:
                    ours = judge.answer(call, np, Array, dtype)  # through NumPy's protocol
                    theirs = judge.answer(call, np, lambda array: array, dtype)
                    compared += 1
                    if found := judge.difference(ours, theirs, ULPS):
                        different[name, _kind(found)].add(dtype)
    assert different == _listed(NUMPY_FUNCTION_DEPARTURES)
    assert compared == 14 * sum(map(len, judge.TABLES.values())) > 4000


# JAX compiles each call, so a few of each function are compared, in dtypes with rules of their own.
ON_JAX = ("int8", "float16", "float64")
EAGER = ("unique", "bincount", "bincount(weights=)")  # the shape of their result depends on the values


@for_each("name", judge.TABLES, one_in=0, one_slow_in=4)
def test_functions_agree_with_installed_jax(name):
    compared, different = 0, collections.defaultdict(set)
    calls = judge.TABLES[name]
    with library("jax") as xp, use_rules("jax"):
        for dtype in ON_JAX:
            for call in {calls[0], calls[-1]}:
                if name in EAGER:
                    ours = judge.answer(call, xp, xp.asarray, dtype)
                    theirs = judge.answer(call, jnp, jnp.asarray, dtype)
                else:
                    ours, theirs = (
                        judge.jitted(call, xp, xp.asarray, dtype),
                        judge.jitted(call, jnp, jnp.asarray, dtype),
                    )
                compared += 1
                if found := judge.difference(ours, theirs, ULPS):
                    different[name, _kind(found)].add(dtype)
    expected = {key: dtypes for key, dtypes in _listed(JAX_FUNCTION_DEPARTURES).items() if key[0] == name}
    assert different == expected
    assert compared == len(ON_JAX) * len({calls[0], calls[-1]})


def test_constants_are_stored_in_arrays_that_jax_traces():
    xp = namespace("jax")
    padded = jax.jit(lambda x: xp.pad(x, (1, 2), constant_values=(3, 4)))(xp.asarray([1, 2], dtype="int8"))
    assert (padded.tolist(), padded.dtype) == ([3, 1, 2, 4, 4], np.int8)
    assert jax.jit(lambda x: xp.full_like(x, 7))(xp.ones(2)).tolist() == [7.0, 7.0]


CUBE, LINE = np.arange(24.0).reshape(2, 3, 4), np.arange(5.0)
WRONG = [
    *(lambda f, wrap, name=name: getattr(f, name)(wrap(CUBE), axis=3) for name in ("median", "nansum", "nanmean")),
    *(lambda f, wrap, name=name: getattr(f, name)(wrap(CUBE), 0.5, axis=(0, 0)) for name in ("quantile", "percentile")),
    lambda f, wrap: f.quantile(wrap(CUBE), 1.5),
    lambda f, wrap: f.percentile(wrap(CUBE), [50, -1]),
    lambda f, wrap: f.quantile(wrap(CUBE), 0.5, method="nearly"),
    lambda f, wrap: f.quantile(wrap(CUBE + 1j), 0.5),
    lambda f, wrap: f.hstack([wrap(CUBE), wrap(LINE)]),
    lambda f, wrap: f.vstack([wrap(LINE), wrap(LINE[1:])]),
    lambda f, wrap: f.isclose(wrap(CUBE), wrap(LINE)),
    lambda f, wrap: f.einsum("ij,jk->ik", wrap(CUBE), wrap(CUBE)),
    lambda f, wrap: f.einsum("i,i,i->", wrap(LINE), wrap(LINE), wrap(LINE[1:])),
    lambda f, wrap: f.einsum("i,i->", wrap(LINE), wrap(LINE), wrap(LINE)),
    lambda f, wrap: f.linalg.norm(wrap(CUBE), 2),
    lambda f, wrap: f.linalg.norm(wrap(LINE), "fro"),
    lambda f, wrap: f.linalg.norm(wrap(CUBE), axis=(0, 1, 2)),
    lambda f, wrap: f.pad(wrap(CUBE), -1),
    lambda f, wrap: f.pad(wrap(CUBE), ((1, 1), (1, 1))),
    lambda f, wrap: f.pad(wrap(LINE), 1, mode="nearly"),
    lambda f, wrap: f.histogram(wrap(LINE), 0),
    lambda f, wrap: f.histogram(wrap(LINE), [3, 1]),
    lambda f, wrap: f.histogram(wrap(LINE), range=(2, 1)),
    lambda f, wrap: f.histogram(wrap(LINE + np.nan)),
    lambda f, wrap: f.histogram(wrap(LINE), weights=wrap(LINE[1:])),
    lambda f, wrap: f.bincount(wrap(LINE)),
    lambda f, wrap: f.bincount(wrap(np.array([1, -1]))),
    lambda f, wrap: f.bincount(wrap(np.array([1, 1])), weights=wrap(LINE)),
    lambda f, wrap: f.bincount(wrap(np.array([1, 1])), minlength=-1),
    lambda f, wrap: f.interp(wrap(LINE), wrap(LINE), wrap(LINE[1:])),
    lambda f, wrap: f.interp(wrap(LINE), wrap(LINE[:0]), wrap(LINE[:0])),
    lambda f, wrap: f.gradient(wrap(LINE), edge_order=3),
    lambda f, wrap: f.gradient(wrap(LINE[:1])),
    lambda f, wrap: f.gradient(wrap(LINE), 1.0, 2.0),
    lambda f, wrap: f.gradient(wrap(LINE), wrap(LINE[1:])),
    lambda f, wrap: f.convolve(wrap(LINE), wrap(CUBE)),
    lambda f, wrap: f.convolve(wrap(LINE), wrap(LINE[:0])),
    lambda f, wrap: f.convolve(wrap(LINE), wrap(LINE), mode="nearly"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["numpy", pytest.param("jax", marks=pytest.mark.slow)])
def test_wrong_arguments_raise_the_errors_of_numpy(name):
    with library(name) as xp, use_rules("numpy"):
        for position, call in enumerate(WRONG):
            with pytest.raises((ValueError, TypeError, IndexError)) as theirs:
                call(np, lambda array: array)
            # JAX has a TypeError for some shapes that NumPy has a ValueError for.
            kinds = (ValueError, TypeError, IndexError)
            expected = kinds if name == "jax" else tuple(kind for kind in kinds if isinstance(theirs.value, kind))
            with pytest.raises(expected) as ours:
                print("accepted", position, call(np, xp.asarray))
            assert not isinstance(ours.value, RuntimeDtypeError)  # it is not about dtypes


def test_results_are_those_of_numpy_for_empty_arrays_and_single_elements():
    none, one = np.zeros((0, 3)), np.array([[2.5]])
    calls = {
        "median": [none.T], "nanmean": [none.T], "unique": [none], "nansum": [none], "hstack": [[none, none]],
        "histogram": [none], "bincount": [np.zeros(0, "int64")], "pad": [none, ((1, 0), (0, 2))],
        "vstack": [[one, one]],
    }  # fmt: skip
    with use_rules("numpy"):
        for name, args in calls.items():
            wrapped = [*map(Array, args[0])] if isinstance(args[0], list) else Array(args[0])
            ours = judge.answer(lambda f, a, _, n=name, r=args[1:]: getattr(f, n)(a, *r), np, wrapped, "float64")
            theirs = judge.answer(lambda f, a, _, n=name, r=args[1:]: getattr(f, n)(a, *r), np, args[0], "float64")
            assert judge.difference(ours, theirs, 0) is None, (name, ours, theirs)
        for function in (np.median, np.nanmean, lambda x: np.quantile(x, 0.3), np.linalg.norm):
            assert function(Array(one)).tolist() == function(one)


def test_functions_follow_the_rules_and_not_numpy():
    small, wide = Array(np.array([1, 2, 4], "int8")), Array(np.array([1, 2, 4], "float32"))
    with use_rules("torch"):
        assert np.quantile(small, 0.5).dtype == np.float32
        assert np.hstack([small, np.ones(1, "uint8")]).dtype == np.int16
        for refused in (lambda: np.median(small), lambda: np.nanmean(small), lambda: np.einsum("i,i", small, wide)):
            with pytest.raises(supremum.PromotionError):
                refused()
    with use_rules("jax-x32"):
        assert np.median(small).dtype == np.interp(small, small, wide).dtype == np.float32
        assert np.nansum(small).dtype == np.int32
    with use_rules("array-api"):
        for refused in (
            lambda: np.allclose(small, wide), lambda: np.gradient(small), lambda: np.convolve(small, wide),
        ):  # fmt: skip
            with pytest.raises(supremum.PromotionError):
                refused()
        assert np.convolve(wide, wide).dtype == np.float32
    with use_rules("jax"):
        half = namespace("jax").asarray([1, 2, 4], dtype="bfloat16")
        assert np.median(half).dtype == np.quantile(half, 0.2).dtype == np.einsum("i,i", half, half).dtype == half.dtype


def test_products_of_formats_that_numpy_does_not_know_are_rounded_once():
    half = Array(np.array([256.0, 1.0, 1.0], "float32")).astype("bfloat16")
    ones = np.ones(3, half.dtype)
    with use_rules("numpy"):
        for result in (np.einsum("i->", half), np.einsum("i,i", half, ones), np.convolve(half, ones)[2]):
            assert (result.dtype, float(result)) == (half.dtype, 258.0)  # 257 is not a bfloat16


def test_refused_functions_and_options_name_what_to_type_instead():
    x = Array(np.array([1.0, 2.0, 4.0]))
    with pytest.raises(ValueError, match="histogram_bin_edges") as caught:
        np.histogram(x, bins="auto")
    edges = eval(str(caught.value).partition("use ")[2], {"np": np, "x": x})
    assert np.histogram(x, bins=edges)[0].tolist() == np.histogram([1.0, 2.0, 4.0], bins="auto")[0].tolist()
    with pytest.raises(OperandError, match=r"xp\.real\(x\)"):
        np.quantile(x + 1j, 0.5)
    assert np.quantile(namespace("numpy").real(x + 1j), 0.5).tolist() == 2.0
    with pytest.raises(ValueError, match=r"use xp\.unique\(x, return_counts=True\)"):
        np.bincount(Array(np.array([-1, 2])))
