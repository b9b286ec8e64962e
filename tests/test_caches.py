"""Caches have a bounded size, or keep entries only as long as the objects they describe."""

import functools
import gc
import importlib
import pkgutil
import subprocess
import sys
import weakref
from contextlib import suppress
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from slowly import slow
from supremum import mixed_precision
from supremum.arrays import backends, fix_trials
from supremum.bounded_cache import Bounded
from supremum.formats import as_format
from supremum.jaxprs import positions
from supremum.mixed_precision.autocasting import reports
from supremum.rules import memory_of

# Functions with an unbounded cache, because they have few possible arguments.
FINITE = {
    "_computes_in": "formats",
    "_forms": "no argument",
    "_intent_of_form": "Python's operators",
    "_cpu_flags": "no argument",
    "_cuts": "no argument",
    "_is_direct": "pairs of formats",
    "_is_known": "formats",
    "_combined_class": "the classes of errors that libraries raise",
    "_load": "the names of our rule sets",
    "namespace_in": "libraries",
    "_range": "formats",
    "icon_link": "our own files",
    "page_part": "our own files",
    "in_library": "the names of functions that we try",
    "standard_backend": "libraries that are installed",
    "on_device": "the products of JAX",
}
# Containers that are empty after the import of their module and filled later.
FILLED = {
    "supremum.arrays.backends.base._KEYS": "formats, libraries and their devices",
    "supremum.mixed_precision.policy.hardware._warned": "formats",
    "supremum.nn.logits_registry._origins": "arrays that are alive",
    "supremum.rules.jax_flags._configs": "JAX's configuration",
    "supremum.jaxprs.mutable_arguments._adapters": "libraries whose objects change in place",
}


def modules():
    for found in pkgutil.walk_packages(supremum.__path__, "supremum."):
        if not found.name.endswith("__main__"):
            with suppress(ModuleNotFoundError):  # PyTorch is not a dependency
                yield importlib.import_module(found.name)


def test_functions_with_unbounded_caches_have_few_arguments():
    unbounded = {
        name
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, functools._lru_cache_wrapper) and value.cache_parameters()["maxsize"] is None
    }
    assert unbounded == FINITE.keys()


@pytest.mark.slow
def test_module_containers_filled_later_are_listed():
    """A new container of this kind is empty at first and fails this test: it must be bounded or weak, or be listed."""
    code = "import test_caches; print(*test_caches.filled_later(), sep='\\n')"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert set(result.stdout.split()) == FILLED.keys()


def filled_later():
    return [
        f"{module.__name__}.{name}"
        for module in modules()
        for name, value in vars(module).items()
        if type(value) in (dict, list, set) and not value and not name.startswith("__")
    ]


def new_function(number):
    """Make a function with a new code object."""
    code = compile(f"def f(x, w): return jnp.tanh(x @ w) + {number}", f"<cell {number}>", "exec")
    namespace = {"jnp": jnp}
    exec(code, namespace)
    return namespace["f"]


def array_of_new_class(number):
    return np.ones(2).view(type(f"Mine{number}", (np.ndarray,), {}))


@functools.cache
def shared_array():
    return supremum.asarray(np.ones(2, "float32"))


FEW_TYPES = ("int8", "uint8", "float16")
# Functions that add an entry to an unbounded set of keys, and functions that count the cached entries.
KEYS = {
    "numbers": (lambda number: shared_array() * float(number), lambda: len(memory_of("jax").numbers)),
    "values": (lambda number: supremum.namespace("numpy").full(1, number), lambda: len(memory_of("jax").prepared)),
    "operands": (
        lambda number: supremum.explain(*(FEW_TYPES[int(each)] for each in np.base_repr(number, 3)), rules="numpy"),
        lambda: len(supremum.get_rules("numpy").memory.verdicts),
    ),
    "code": (lambda number: positions.position_of(new_function(number).__code__, 0), lambda: len(positions._known)),
    "classes of arrays": (
        lambda number: backends.backend_of(array_of_new_class(number)),
        lambda: len(backends._BY_TYPE),
    ),
}


def test_a_full_bounded_table_is_cleared():
    table = Bounded(3)
    for number in range(10):
        table[number] = number
        assert number in table
        assert len(table) <= 3
        assert table.setdefault(number, "other") == number
    assert table.setdefault("new", 1) == table["new"] == 1
    assert len(table) <= 3


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("count", [500, slow(20_000)])
def test_caches_stay_bounded_with_many_keys(kind, count):
    make, entries = KEYS[kind]
    for number in range(count):
        make(number)
    assert 0 < entries() <= 16_384


@pytest.mark.parametrize("count", [50, slow(500), pytest.param(5000, marks=pytest.mark.exhaustive)])
def test_autocast_functions_are_freed(count):
    x, w = jnp.ones((2, 2)), jnp.ones((2, 2))
    alive = []
    for number in range(count):
        function = new_function(number)
        alive.append(weakref.ref(function))
        mixed_precision.autocast(function)(x, w)
        mixed_precision.autocast(function).report(x, w)
    del function
    positions._known.clear()
    gc.collect()
    assert sum(each() is not None for each in alive) == 0


def test_error_caches_are_bounded():
    assert isinstance(fix_trials._KNOWN, Bounded)
    assert isinstance(reports._said, Bounded)
    for name in range(5000):
        with pytest.raises(supremum.UnknownDtypeError):
            as_format(f"float{name}x")
