"""Methods of `Array` with the names of NumPy's and JAX's, compared with both under their rules."""

import inspect
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from arrays.calls import DTYPES, VALUES, made, result_of
from arrays.libraries import NAMES, library
from supremum import Array, OperandError, ops, use_rules
from supremum.arrays import ArrayVariable, ComputationError, InPlaceError, asarray

CALLS = {
    "sum": [(), (0,), (0, "float32")], "prod": [(), (1,)], "mean": [(), (0,)], "std": [(), (1,)], "var": [(), (0,)],
    "min": [(), (0,)], "max": [(), (1,)], "any": [(), (0,)], "all": [(), (1,)], "argmin": [(), (0,)],
    "argmax": [(), (1,)], "cumsum": [(), (0,)], "cumprod": [(), (1,)], "argsort": [(0,)],
    "round": [(), (1,)], "clip": [(1, 2), (None, 1), (2,)], "copy": [()], "flatten": [()], "ravel": [()],
    "transpose": [(), (1, 0), ((0, 1),)], "nonzero": [()], "repeat": [(2,), (2, 1), ([1, 2], 0)],
    "swapaxes": [(0, 1)], "take": [([0, 5],), ([1], 0)], "conj": [()], "conjugate": [()], "reshape": [(3, 2), (-1,)],
    "squeeze": [()], "tolist": [()],
}  # fmt: skip


def _is_same(found, wanted):
    if isinstance(wanted, tuple):
        return all(map(_is_same, found, wanted))
    if isinstance(wanted, list):
        return found == wanted
    values = [np.asarray(each).astype("float64") for each in (found, wanted)]
    is_close = np.allclose(*values, rtol=1e-6 if wanted.dtype.itemsize > 2 else 1e-2, equal_nan=True)
    return found.dtype == wanted.dtype and is_close and found.shape == wanted.shape


def _differences(make, wrap, dtypes=DTYPES):
    different, compared = [], 0
    for dtype, (name, calls) in itertools.product(dtypes, CALLS.items()):
        plain = make(dtype)
        for args in calls:
            if plain.dtype != dtype or (wanted := result_of(getattr(plain, name), *args)) is None:
                continue
            compared += 1
            found = result_of(getattr(wrap(plain), name), *args)
            if found is None or not _is_same(found, wanted):
                different.append((name, args, dtype, found, wanted))
    return different, compared


def test_methods_give_the_results_of_numpy():
    with use_rules("numpy"):
        different, compared = _differences(made, Array)
    assert different == []
    assert compared > 550


@pytest.mark.slow
@pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])
def test_methods_give_the_results_of_jax(x64):
    def make(dtype):
        return jnp.asarray(made(dtype))

    with jax.enable_x64(x64), use_rules("jax"):
        different, compared = _differences(make, Array, ("int8", "float32", "bfloat16"))
    # The rules decide about `cumulative_sum`, which widens small integers in JAX, unlike `jnp.cumsum`.
    assert {(name, dtype) for name, _, dtype, *_ in different} == {("cumsum", "int8")}
    assert compared > 100


@pytest.mark.parametrize("name", NAMES)
def test_dot_promotes_by_the_rules(name):
    with library(name) as xp:
        for rules in ("numpy", "jax-x64", "tf-rfc-all"):
            with use_rules(rules):
                x, y = xp.asarray(VALUES, dtype="int8"), xp.asarray([1, 2, 3], dtype="uint8")
                assert x.dot(y).tolist() == [8, 8]
                assert x.dot(y).dtype == "int16"
                assert x.dot(2).tolist() == (x * 2).tolist()


def test_dot_gives_the_dtypes_of_numpy_for_every_pair():
    different, compared = [], 0
    with use_rules("numpy"):
        for a, b in itertools.product(DTYPES, repeat=2):
            x, y = made(a), made(b).T
            wanted = result_of(x.dot, y)
            if wanted is None or wanted.dtype == object:
                continue
            compared += 1
            if not _is_same(Array(x).dot(y), wanted):
                different.append((a, b, Array(x).dot(y), wanted))
    assert different == []
    assert compared > 120


def test_methods_take_the_arguments_of_numpy_by_name():
    x, plain = Array(made("float32")), made("float32")
    with use_rules("numpy"):
        for name, options in (
            ("sum", {"axis": 0, "keepdims": True}), ("std", {"axis": 1, "ddof": 1}), ("var", {"axis": 0}),
            ("clip", {"max": 1}), ("round", {"decimals": 2}), ("take", {"indices": [0], "axis": 1}),
            ("argsort", {"axis": None, "stable": True}), ("cumsum", {"axis": None, "dtype": "float64"}), ("copy", {}),
            ("mean", {"axis": (0, 1)}), ("argmax", {"axis": 1, "keepdims": True}),
            ("repeat", {"repeats": 2, "axis": 1}),
        ):  # fmt: skip
            assert _is_same(getattr(x, name)(**options), getattr(plain, name)(**options)), name
        out = np.zeros(3, "float64")
        assert x.sum(axis=0, out=out) is out
        assert out.tolist() == [3, 2, 3]
        assert Array(made("float64"))[0].searchsorted(1.5).tolist() == 2


@pytest.mark.parametrize("name", NAMES)
def test_copy_and_flatten_do_not_share_memory(name):
    with library(name) as xp:
        x = xp.asarray(VALUES, dtype="float32")
        assert x.block_until_ready() is x
        assert (x.itemsize, x.nbytes) == (4, 24)
        copies = [x.copy(), x.flatten()]
        if x.backend.mutable:
            x[0, 0] = 9
        assert [each.tolist() for each in copies] == [VALUES, [0, 1, 2, 3, 1, 1]]


def test_methods_work_in_jitted_functions_and_on_variables():
    x = asarray(VALUES, dtype="float32", library="jax")
    found = jax.jit(lambda x: (x.cumsum(0), x.flatten(), x.dot(x.T), x.round(1), x.transpose().copy()))(x)
    assert found[0].tolist() == [[0, 1, 2], [3, 2, 3]]
    variable = ArrayVariable(made("float32"))
    assert type(variable.cumsum(0)) is type(variable.round()) is type(variable.sum(0)) is Array


def test_wrong_arguments_name_the_argument():
    x = Array(made("float32"))
    with pytest.raises(OperandError, match=r"np\.copy takes no order .* np\.copy\(np\.asarray\(x\), order=\.\.\.\)"):
        x.copy(order="F")
    with pytest.raises(OperandError, match="decimals must be a whole number"):
        x.round("a")
    for call in (lambda: x.swapaxes("a", 0), lambda: x.transpose("a"), lambda: x.transpose(0, 0), lambda: x.take([9])):
        with pytest.raises(ComputationError):
            call()


@pytest.mark.parametrize("name", NAMES[:2])
def test_methods_that_libraries_disagree_about_say_what_to_use(name):
    for method, values in (("sort", [1, 3]), ("fill", [2, 2])):
        x = asarray([3.0, 1.0], library=name, dtype="float32")
        with pytest.raises(AttributeError, match=f"no method {method}") as error:
            getattr(x, method)
        *others, fix = re.search("use (.*)", str(error.value))[1].removesuffix(" on JAX").split(", or ")
        names = {"np": np, "x": x, "value": 2}
        exec(others[0] if others and x.backend.mutable else fix, names)
        assert names["x"].tolist() == values


# at

UPDATES = ("add", "subtract", "multiply", "divide", "power", "min", "max")


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["jax-x32"])
def test_at_updates_give_the_results_of_jax_where_they_keep_the_dtype(rules):
    """JAX changes the dtype of an integer array that is divided; Supremum refuses, as in `x /= y`."""
    different, stored, refused = [], 0, 0
    index = jnp.array([0, 2, 0])
    with jax.enable_x64(rules == "jax-x64"), use_rules(rules):
        for name, (a, b) in itertools.product(
            UPDATES, itertools.product(("bool", "int8", "uint8", "float16", "float32"), repeat=2)
        ):
            x, value = jnp.asarray(made(a, [5, 1, 7])), jnp.asarray(made(b, [1, 2, 3]))
            if name == "subtract" and a == "bool":
                continue
            ours = result_of(getattr(Array(x).at[index], name), value)
            is_promoted = jnp.promote_types(x.dtype, value.dtype) == x.dtype
            theirs = result_of(getattr(x.at[index], name), value) if is_promoted else None
            if ours is None:
                refused += 1
                if theirs is not None and theirs.dtype == x.dtype:
                    different.append((name, a, b, "refused"))
            else:
                stored += 1
                if theirs is None or not _is_same(ours, theirs):
                    different.append((name, a, b, ours, theirs))
    assert different == []
    assert (stored > 60, refused > 50) == (True, True)


def test_at_divide_power_and_apply_decide_as_in_place_operators():
    x = asarray([2.0, 4.0, 8.0], dtype="float32", library="jax")
    ints = x.astype("int32")
    with use_rules("jax-x32"):
        assert x.at[0].divide(4).tolist() == [0.5, 4, 8]
        assert x.at[jnp.array([1, 1])].divide(2).tolist() == [2, 1, 8]
        assert x.at[1:].power(2).tolist() == [2, 16, 64]
        assert ints.at[2].power(2).tolist() == [2, 4, 64]
        assert x.at[0].apply(ops.sqrt).tolist()[1:] == [4, 8]
        assert x.at[jnp.array([0, 0])].apply(lambda each: each * 3).tolist() == [18, 4, 8]
        assert x.at[1].apply(lambda each: jnp.sin(each.unwrap() * 0)).tolist() == [2, 0, 8]
        assert x.at[5].apply(lambda _: 1.5, mode="drop").tolist() == [2, 4, 8]
        assert x.at[0].apply(lambda _: 1).tolist() == [1, 4, 8]
        assert jax.jit(lambda x: x.at[0].set(5.0).at[1].add(1.5))(x).tolist() == [5, 5.5, 8]
        assert jax.jit(lambda x: x.at[0].apply(ops.negative).at[1].divide(2))(x).tolist() == [-2, 2, 8]
        for call in (
            lambda: ints.at[0].divide(2), lambda: ints.at[0].power(0.5), lambda: ints.at[0].apply(ops.sqrt),
            lambda: x.at[0].apply(lambda each: each * 1j), lambda: ints.at[0].apply(lambda _: 1.5),
        ):  # fmt: skip
            with pytest.raises(InPlaceError, match="into="):
                call()
        assert x.tolist() == [2, 4, 8]
        with pytest.raises(ComputationError, match=r"at\[\.\.\.\]\.apply"):
            x.at[0].apply(jnp.sin)


def test_the_array_itself_is_a_positional_argument_of_its_methods():
    for name in ("sum", "mean", "argmax"):
        first = next(iter(inspect.signature(getattr(Array, name)).parameters.values()))
        assert (first.name, first.kind) == ("self", inspect.Parameter.POSITIONAL_ONLY)


@pytest.mark.parametrize("name", ["numpy", "jax"])
def test_astype_without_copy_returns_the_array_only_if_it_has_the_dtype(name):
    x = supremum.namespace(name).asarray([1, 2], dtype="int32")
    assert x.astype("int32", copy=False) is x
    assert x.astype("int32") is not x
    assert x.astype("float32", copy=False).dtype == "float32"
