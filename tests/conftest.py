"""Compiled programs are kept between tests and workers: the same network is trained many times over.

They are compiled without LLVM's optimisations and fused by XLA's older emitters, which takes a third of the time: most
run once. XLA's own passes stay.
"""

import gc
import os
from pathlib import Path

import jax
import pytest

# JAX keeps millions of small objects: looking through them for cycles would be a third of the time of all tests.
gc.set_threshold(200_000, 50, 100)
# Read when first used.
flags = ["--xla_backend_optimization_level=0"]
if jax.__version_info__ < (0, 11):
    # XLA ends the process when it is given a flag that it does not know, and later versions do not know this one.
    flags.append("--xla_cpu_use_fusion_emitters=false")
os.environ["XLA_FLAGS"] = " ".join((os.environ.get("XLA_FLAGS", ""), *flags)).strip()
# Tests of many devices run beside those of one, which use the first.
jax.config.update("jax_num_cpu_devices", 8)
CACHE = {
    "jax_compilation_cache_dir": str(Path(__file__).parent.parent / ".pytest_cache/jax"),
    "jax_persistent_cache_min_compile_time_secs": 0.03,
}
for name, value in CACHE.items():
    jax.config.update(name, value)
    os.environ[name.upper()] = str(value)  # programs that tests start share it


@pytest.fixture(scope="module", autouse=True)
def programs_are_forgotten_when_there_are_many():
    """Thousands of compiled programs, which other files have no use for, would fill the memory of small machines."""
    yield
    try:
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # only Linux says it there
        return
    if resident > 2 * 2**30:
        jax.clear_caches()
        gc.collect()
