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


LONGEST = "test_every_format.py", "test_fixes.py", "test_without_jax.py", "test_flax_attention.py", "test_operators.py"
"""Files of slow tests that take minutes. They start first, so that the workers finish at about the same time."""


TURN = os.environ.get("SUPREMUM_TURN")
"""An integer that says which part of the longest products to run; None runs all of them."""
SHARE = int(os.environ.get("SUPREMUM_SHARE", "1"))
"""With a turn, one in this many fast tests runs. Set if another environment has run the same tests completely."""
_MANY_SETS = 10
"""A slow test with at least this many sets of parameters runs one in twelve of them in each turn."""


@pytest.hookimpl(tryfirst=True)  # before slow tests are deselected
def pytest_collection_modifyitems(config, items):
    """Mark tests as slow, and deselect the tests that do not run in this turn.

    Pages of the documentation are slow. Of a test marked `one_in(n)`, all sets of parameters except every nth are slow;
    sets that already have the mark are not counted.
    """
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
    counted = Counter()
    for item in items:
        if item.path.suffix == ".md" and item.path.parent.name == "docs":
            item.add_marker(pytest.mark.slow)
        marker = item.get_closest_marker("one_in")
        if marker is not None and item.get_closest_marker("slow") is None:
            test = item.nodeid.partition("[")[0]
            if counted[test] % marker.args[0]:
                item.add_marker(pytest.mark.slow)
            counted[test] += 1
    if TURN is not None:
        left = set(not_in_turn(items, int(TURN)))
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def not_in_turn(items, turn):
    """Yield the tests that run in other turns.

    These are: of slow tests marked `in_turns(n)`, all sets of parameters except every nth; of other slow tests with
    many sets of parameters, all except every twelfth; of fast tests, all except one in `SHARE`.
    """
    slow = Counter(item.nodeid.partition("[")[0] for item in items if item.get_closest_marker("slow"))
    counted = Counter()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if not item.get_closest_marker("slow"):
            test, count = "", SHARE
        elif marker := item.get_closest_marker("in_turns"):
            count = marker.args[0]
        else:
            count = 12 if slow[test] >= _MANY_SETS else 1
        if (counted[test] + turn) % count:
            yield item
        counted[test] += 1


@pytest.fixture(autouse=True)
def repeat_autocast_warnings():
    """Let autocast repeat in each test the warnings that it gives once per function."""
    reports._said.clear()
