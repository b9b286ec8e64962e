"""How JAX and XLA are set up for the tests, and how the memory of a test process is kept small.

Compiled programs are kept between tests and workers: the same network is trained many times over. They are compiled
without LLVM's optimizations, and on JAX 0.10 without XLA's fusion emitters, which takes a third of the time: most
programs run once. XLA's own passes stay. Users have both, so `make test-xla` runs the tests whose results depend on
them with SUPREMUM_XLA=default, which leaves XLA as it is.
"""

import ctypes
import gc
import os
import sys
from pathlib import Path

import jax
import pytest

# JAX keeps millions of small objects: looking through them for cycles would be a third of the time of all tests.
gc.set_threshold(200_000, 50, 100)


def xla_flags():
    """Flags for XLA, which ends the process when it is given one that it does not know, an empty one included."""
    given = os.environ.get("XLA_FLAGS", "").split()
    if os.environ.get("SUPREMUM_XLA", "") != "default":
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
    "jax_persistent_cache_min_compile_time_secs": 0.03,
}
for name, value in CACHE.items():
    jax.config.update(name, value)
    os.environ[name.upper()] = str(value)  # programs that tests start share it

LIBC = ctypes.CDLL("libc.so.6") if sys.platform == "linux" else None
MIB = 2**20


def resident_bytes():
    """The memory of this process; 0 where it is not known."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # only Linux says it there
        return 0


class Memory:
    """Keeps a test process small: eight of them run on eight cores.

    XLA compiles in threads of its own, whose memory the C library keeps for them once it is free: up to 4 GB. It gives
    it back when it is asked to. What is left after that are compiled programs, for which later tests have no use.
    Neither is worth its time before the memory has grown again.
    """

    def __init__(self):
        self.trimmed_at = 500 * MIB
        self.cleared_at = 700 * MIB

    def give_back(self):
        if LIBC is None or resident_bytes() < self.trimmed_at + 200 * MIB:
            return
        LIBC.malloc_trim(0)
        self.trimmed_at = resident_bytes()
        if self.trimmed_at > self.cleared_at + 200 * MIB:
            jax.clear_caches()
            gc.collect()
            LIBC.malloc_trim(0)
            self.trimmed_at = self.cleared_at = resident_bytes()


MEMORY = Memory()


@pytest.fixture(autouse=True)
def memory_is_given_back():
    yield
    MEMORY.give_back()
