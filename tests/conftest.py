"""How JAX and XLA are set up for the tests, and which tests `make test` leaves out.

Compiled programs are kept between tests and workers: the same network is trained many times over. They are compiled
without LLVM's optimizations, and on JAX 0.10 without XLA's fusion emitters, which takes a third of the time: most
programs run once. XLA's own passes stay. Users have both, so `make test-xla` runs the tests whose results depend on
them with SUPREMUM_XLA=default, which leaves XLA as it is.
"""

import gc
import os
from collections import Counter
from pathlib import Path

import jax
import pytest

import xla
from supremum.mixed_precision.autocasting import reports

# JAX keeps millions of small objects: looking through them for cycles would be a third of the time of all tests.
gc.set_threshold(200_000, 50, 100)


def xla_flags():
    """Flags for XLA, which ends the process when it is given one that it does not know, an empty one included."""
    given = os.environ.get("XLA_FLAGS", "").split()
    if not xla.OPTIMIZES:
        given.append("--xla_backend_optimization_level=0")
        if jax.__version_info__ < (0, 11):  # the older emitters are gone from 0.11 on
            given.append("--xla_cpu_use_fusion_emitters=false")
    return " ".join(given)


if xla_flags():
    os.environ["XLA_FLAGS"] = xla_flags()  # read when JAX first computes
# Tests of many devices run beside those of one, which use the first.
jax.config.update("jax_num_cpu_devices", 8)
CACHE = {
    "jax_compilation_cache_dir": str(Path(__file__).parent.parent / ".pytest_cache/jax"),
    "jax_persistent_cache_min_compile_time_secs": 0.005,
}
for name, value in CACHE.items():
    jax.config.update(name, value)
    os.environ[name.upper()] = str(value)  # programs that tests start share it


LONGEST = "test_every_format.py", "test_fixes.py", "test_without_jax.py", "test_flax_attention.py", "test_operators.py"
"""Files of slow tests that take minutes, begun first, so that no worker waits for another one's in the end."""


TURN = os.environ.get("SUPREMUM_TURN")
"""Which part of the longest products to run, a whole number; None for all of them."""
SHARE = int(os.environ.get("SUPREMUM_SHARE", "1"))
"""With a turn, one of how many tests that are not slow runs, where others have run them all in another environment."""
_MANY_SETS = 10


@pytest.hookimpl(tryfirst=True)  # before slow tests are deselected
def pytest_collection_modifyitems(config, items):
    """Mark slow pages of the documentation, and of a test marked `one_in(n)` all sets of parameters but every nth.

    Sets that are marked slow already are not counted.
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
    """The tests of other turns.

    Of slow tests marked `in_turns(n)` all sets of parameters but every nth; of other slow tests with many sets every
    second one; of tests that are not slow all but a share.
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
            count = 2 if slow[test] >= _MANY_SETS else 1
        if (counted[test] + turn) % count:
            yield item
        counted[test] += 1


@pytest.fixture(autouse=True)
def autocast_warns_in_every_test():
    """Autocast warns once of a function; what one test was told is not kept from the next."""
    reports._said.clear()
