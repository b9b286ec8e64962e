"""Scripts for NumPy run unchanged on Arrays, under every rule set that allows what they mix."""

import importlib
import itertools

import numpy as np
import pytest

from arrays.libraries import library
from slowly import for_each
from supremum import Array, PromotionError, use_rules
from supremum.rules import rule_names

SCRIPTS = ("statistics_of_samples", "n_body", "image_filter")
STRICT = ("jax-strict", "jax-strict-x64", "jax-strict-explicit-x64")
_PRODUCT = "products are of arrays of one dtype, and the masses are float32, the positions float64"
_PIXELS = "bytes do not promote with the float32 of the kernel"
_NARROWED = "float64 is computed in float32, which is not stored in the float64 positions"
REFUSED = {
    "statistics_of_samples": {},
    "n_body": dict.fromkeys((*STRICT, "torch", "paddle", "tf-off", "tf-rfc-none"), ("einsum(", _PRODUCT))
    | dict.fromkeys(("jax-x32", "jax-strict-x32"), ("into=float64", _NARROWED)),
    "image_filter": dict.fromkeys(
        (*STRICT, "jax-strict-x32", "tf-off", "tf-rfc-none", "array-api"), ("multiply(", _PIXELS)
    )
    | {"pyarrow": ("into=float32", "an array without dimensions is float64, and widens the result")},
}
"""By script and rule set: what the message of the refusal has in it, and why these rules refuse the script."""
_TOLERANCE = 2000  # in units of the last place of the largest number: the scripts add and subtract numbers of its size


def _check(name, rules, xp):
    script = importlib.import_module(f"arrays.numpy_scripts.{name}")
    arrays = [xp.asarray(each) for each in script.data()]
    with use_rules(rules):
        if rules in REFUSED[name]:
            with pytest.raises(PromotionError) as caught:
                script.run(*arrays)
            assert REFUSED[name][rules][0] in str(caught.value)
            return
        found = script.run(*arrays)
    expected = script.run(*script.data())
    assert found.keys() == expected.keys()
    # Values of a narrow dtype may be stored in a wide one on the way.
    floats = {each.dtype for each in [*found.values(), *map(np.asarray, expected.values())] if each.dtype.kind == "f"}
    if rules == "pyarrow":  # its sums of float32 are float64; those of NumPy, which are expected, are rounded
        floats.add(np.dtype("float32"))
    eps = max(np.finfo(dtype).eps for dtype in floats)
    for key, ours in found.items():
        wanted = np.asarray(expected[key])
        assert isinstance(ours, Array), key
        assert (ours.backend is xp.zeros(1).backend, ours.shape) == (True, wanted.shape), key
        if rules == "numpy" and (name, key) != ("statistics_of_samples", "totals"):  # NumPy weighs in float64
            assert ours.dtype == wanted.dtype, key
        if ours.dtype.kind != "f":
            assert ours.dtype.kind == wanted.dtype.kind
            np.testing.assert_array_equal(np.asarray(ours), wanted, err_msg=key)
            continue
        np.testing.assert_allclose(
            np.asarray(ours), wanted, rtol=0, atol=_TOLERANCE * eps * np.max(np.abs(wanted)), err_msg=f"{key} {rules}"
        )


@for_each("name, rules", itertools.product(SCRIPTS, rule_names()), one_in=0)
def test_scripts_for_numpy_run_on_arrays_of_numpy(name, rules):
    with library("numpy") as xp:
        _check(name, rules, xp)


@for_each("rules, name", itertools.product(rule_names(), SCRIPTS), one_in=0, one_slow_in=13)
def test_scripts_for_numpy_run_on_arrays_of_jax(name, rules):
    with library("jax") as xp:
        _check(name, rules, xp)


def test_a_script_of_every_kind_runs_under_the_rules_of_numpy():
    with library("numpy") as xp:
        for name in SCRIPTS:
            _check(name, "numpy", xp)
    assert all(len(refused) < len(rule_names()) / 2 for refused in REFUSED.values())
    assert all(refused.keys() <= {*rule_names()} for refused in REFUSED.values())
