"""Set up JAX and XLA for the tests, and choose the tests that `make test` leaves out.

Tests and workers share a cache of compiled programs, because many tests train the same network. Programs are compiled
without LLVM's optimizations, and on JAX 0.10 without XLA's fusion emitters. This takes a third of the time, because
most programs run once. XLA's own passes stay on. Users have all optimizations, so `make test-xla` sets
SUPREMUM_XLA=default, which leaves XLA as it is, and runs the tests whose results depend on them.
"""

import gc
import os
from collections import Counter
from pathlib import Path

import jax
import pytest

import xla
from slowly import LONG_EXAMPLES
from supremum.mixed_precision.autocasting import reports

# JAX keeps millions of small objects. With Python's default thresholds, garbage collection takes a third of the time.
gc.set_threshold(200_000, 50, 100)


def xla_flags():
    """Return the flags for XLA, which ends the process if a flag is unknown or empty."""
    given = os.environ.get("XLA_FLAGS", "").split()
    if not xla.OPTIMIZES:
        given.append("--xla_backend_optimization_level=0")
        if jax.__version_info__ < (0, 11):  # since 0.11 XLA does not have the older emitters
            given.append("--xla_cpu_use_fusion_emitters=false")
    return " ".join(given)


if xla_flags():
    os.environ["XLA_FLAGS"] = xla_flags()  # read when JAX first computes
# The tests say for themselves how wide a terminal is, and whether it has colours.
for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
    os.environ.pop(name, None)
# Tests of several devices need eight; all other tests use the first one.
jax.config.update("jax_num_cpu_devices", 8)
CACHE = {
    "jax_compilation_cache_dir": str(Path(__file__).parent.parent / ".pytest_cache/jax"),
    "jax_persistent_cache_min_compile_time_secs": 0.005,
}
for name, value in CACHE.items():
    jax.config.update(name, value)
    os.environ[name.upper()] = str(value)  # for the processes that tests start


_MANY_SETS, _OF_MANY = 10, 20
"""Of a test with at least `_MANY_SETS` slow sets of parameters, all but one in `_OF_MANY` are exhaustive."""


@pytest.hookimpl(tryfirst=True)  # before -m deselects tests
def pytest_collection_modifyitems(items):
    """Mark tests as slow or exhaustive, the same ones on every day.

    Pages of the documentation and `LONG_EXAMPLES` are slow. Of a test marked `one_in(n)`, all sets of parameters except
    every nth are slow; sets that already have the mark are not counted. Of a test marked `one_slow_in(n)`, all slow
    sets except every nth are exhaustive; other tests with many slow sets are treated like those marked
    `one_slow_in(20)`. Exhaustive tests are slow, too.
    """
    for item in items:
        if (item.path.suffix == ".md" and item.path.parent.name == "docs") or item.name in LONG_EXAMPLES:
            item.add_marker(pytest.mark.slow)
    add_to_all_but_every("slow", [item for item in items if not item.get_closest_marker("slow")], "one_in")
    slow = [item for item in items if item.get_closest_marker("slow")]
    sets = Counter(map(function_of, slow))
    few = {item for item in slow if sets[function_of(item)] < _MANY_SETS and not item.get_closest_marker("one_slow_in")}
    add_to_all_but_every("exhaustive", [item for item in slow if item not in few], "one_slow_in", _OF_MANY)
    for item in items:
        if item.get_closest_marker("exhaustive"):
            item.add_marker(pytest.mark.slow)


def function_of(item):
    """Return the test that an item is one set of parameters of."""
    return item.nodeid.partition("[")[0]


def add_to_all_but_every(mark, items, chosen_by, default=1):
    """Add a mark to all sets of parameters of each test except every nth, where the test's mark says n.

    Args:
        mark: the name of the mark to add.
        items: the sets of parameters that are counted.
        chosen_by: the name of the mark whose argument is n.
        default: n for tests without that mark.
    """
    seen = Counter()
    for item in items:
        marker = item.get_closest_marker(chosen_by)
        if seen[function_of(item)] % (marker.args[0] if marker else default):
            item.add_marker(mark)
        seen[function_of(item)] += 1


@pytest.fixture(autouse=True)
def repeat_autocast_warnings():
    """Let autocast repeat in each test the warnings that it gives once per function."""
    reports._said.clear()
