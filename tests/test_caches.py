"""Whatever is kept between calls has a bound, or lives no longer than what it is about."""

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
from supremum.mixed_precision.autocasting import skipped_products
from supremum.rules.registry import memory_of

# Functions that remember all they were asked, because there are few things to ask them.
FINITE = {
    "_computes_in": "formats",
    "_cpu_flags": "no argument",
    "_cuts": "no argument",
    "_is_direct": "pairs of formats",
    "_is_known": "formats",
    "_combined_class": "the classes of errors that libraries raise",
    "_load": "the names of our rule sets",
    "_made": "libraries",
    "_range": "formats",
    "_resource": "our own files",
    "in_library": "the names of functions that we try",
    "standard_backend": "libraries that are installed",
}
# What is empty when a module has been imported, and is filled later.
FILLED = {
    "supremum.arrays.backends.base._KEYS": "formats, libraries and their devices",
    "supremum.mixed_precision.hardware._warned": "formats",
    "supremum.nn.logits_registry._origins": "arrays that are alive",
    "supremum.rules.jax_flags._configs": "JAX's configuration",
    "supremum.jaxprs.mutable_arguments._adapters": "libraries whose objects change in place",
}


def modules():
    for found in pkgutil.walk_packages(supremum.__path__, "supremum."):
        if not found.name.endswith("__main__"):
            with suppress(ModuleNotFoundError):  # PyTorch, which is no dependency
                yield importlib.import_module(found.name)


def test_functions_that_remember_everything_have_few_things_to_remember():
    unbounded = {
        name
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, functools._lru_cache_wrapper) and value.cache_parameters()["maxsize"] is None
    }
    assert unbounded == FINITE.keys()


@pytest.mark.slow
def test_what_modules_fill_is_known():
    """Whatever joins them is found by being empty at first: a table that is kept is a bounded or a weak one."""
    code = "import test_caches; print(*test_caches.filled_later(), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert set(done.stdout.split()) == FILLED.keys()


def filled_later():
    return [
        f"{module.__name__}.{name}"
        for module in modules()
        for name, value in vars(module).items()
        if type(value) in (dict, list, set) and not value and not name.startswith("__")
    ]


def function(number):
    """A function of its own: its code is made anew."""
    code = compile(f"def f(x, w): return jnp.tanh(x @ w) + {number}", f"<cell {number}>", "exec")
    made = {"jnp": jnp}
    exec(code, made)
    return made["f"]


def subclass(number):
    return np.ones(2).view(type(f"Mine{number}", (np.ndarray,), {}))


@functools.cache
def wrapped():
    return supremum.asarray(np.ones(2, "float32"))


FEW = ("int8", "uint8", "float16")
# What may be made in any number, and how many entries there are of it.
KEYS = {
    "numbers": (lambda number: wrapped() * float(number), lambda: len(memory_of("jax").by_number)),
    "numbers of a rule set": (lambda number: wrapped() * float(number), lambda: len(memory_of("jax").numbers)),
    "operands": (
        lambda number: supremum.explain(*(FEW[int(each)] for each in np.base_repr(number, 3)), rules="numpy"),
        lambda: len(supremum.get_rules("numpy").memory.verdicts),
    ),
    "code": (lambda number: positions.position_of(function(number).__code__, 0), lambda: len(positions._known)),
    "classes of arrays": (lambda number: backends.backend_of(subclass(number)), lambda: len(backends._BY_TYPE)),
}


def test_a_full_table_starts_anew():
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
def test_what_is_made_and_dropped_is_forgotten(kind, count):
    make, entries = KEYS[kind]
    for number in range(count):
        make(number)
    assert 0 < entries() <= 16_384


@pytest.mark.parametrize("count", [50, slow(5000)])
def test_functions_that_were_cast_are_freed(count):
    x, w = jnp.ones((2, 2)), jnp.ones((2, 2))
    alive = []
    for number in range(count):
        made = function(number)
        alive.append(weakref.ref(made))
        mixed_precision.autocast(made)(x, w)
        mixed_precision.autocast(made).report(x, w)
    del made
    positions._known.clear()
    gc.collect()
    assert sum(each() is not None for each in alive) == 0


def test_bounds_are_what_modules_say():
    assert isinstance(fix_trials._KNOWN, Bounded)
    assert isinstance(skipped_products._said, Bounded)
    for name in range(5000):
        with pytest.raises(supremum.UnknownDtypeError):
            as_format(f"float{name}x")
