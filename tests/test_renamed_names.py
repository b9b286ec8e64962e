"""Renamed names still work in this version, with a warning that gives the new name."""

import importlib
import warnings

import jax.numpy as jnp
import pytest

import supremum
from supremum import mixed_precision, nn
from supremum.optimizers import SGD
from supremum.renamed_names import ARGUMENTS, MODULES, NAMES


@pytest.mark.parametrize("old", NAMES)
def test_an_old_name_returns_the_new_object_and_warns(old):
    new = NAMES[old]
    (package, _, name), (home, _, renamed) = old.rpartition("."), new.rpartition(".")
    loaded = importlib.import_module(package)
    assert name not in getattr(loaded, "__all__", ())
    assert renamed in getattr(importlib.import_module(home), "__all__", [renamed])
    with pytest.warns(DeprecationWarning, match=f"^{old} is now {new}; ") as caught:
        found = getattr(loaded, name)
    assert caught[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        assert found is getattr(importlib.import_module(home), renamed)


@pytest.mark.parametrize("old", MODULES)
def test_an_old_module_forwards_the_names_of_its_package_and_warns(old):
    new = importlib.import_module(MODULES[old])
    with warnings.catch_warnings(action="error"):
        module = importlib.import_module(old)
    assert getattr(supremum, old.rpartition(".")[2]) is module
    for name in new.__all__:
        with pytest.warns(DeprecationWarning, match=f"^{old}.{name} is now {MODULES[old]}.{name}; ") as caught:
            assert getattr(module, name) is getattr(new, name)
        assert caught[0].filename == __file__
    with pytest.raises(AttributeError):
        module.nothing  # noqa: B018


def test_an_old_argument_works_and_warns():
    assert ARGUMENTS.keys() == {"supremum.mixed_precision.autocast", "supremum.optimizers.Optimizer.minimize"}

    def program(x):
        half = x.astype("float16")
        return (half @ half).sum()

    x = jnp.ones((2, 2))
    with pytest.warns(DeprecationWarning, match="respect_explicit_casts") as caught:
        old = mixed_precision.autocast(program, honour_casts=False)
    assert caught[0].filename == __file__
    new = mixed_precision.autocast(program, respect_explicit_casts=False)
    assert str(old.report(x)) == str(new.report(x)) != str(mixed_precision.autocast(program).report(x))


def test_the_old_argument_of_minimize_works_and_warns():
    w = nn.Variable(1.0)
    with pytest.warns(DeprecationWarning, match="var_list") as caught:
        SGD(0.25).minimize(lambda: w**2, variables=w)
    assert caught[0].filename == __file__
    assert float(w) == 0.5


def test_unknown_names_raise_attribute_error():
    for package in ("supremum", *{old.rpartition(".")[0] for old in NAMES}):
        with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
            importlib.import_module(package).nothing  # noqa: B018
