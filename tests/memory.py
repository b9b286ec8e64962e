"""Limit the memory of a test process, because as many run at once as the machine has cores.

XLA compiles in separate threads. The C library keeps the memory that these threads free, up to 4 GB, until
`malloc_trim` returns it to the system. The caches of compiled programs and of decisions also grow, to a million
decisions. To fill them again takes longer than most tests, so they are cleared only when they use much memory.
"""

import ctypes
import gc
import os
import sys
from pathlib import Path

import jax

from supremum.rules import find_rules, memory_of
from supremum.rules.names import HOMES, rule_names

MIB = 2**20
GROWTH_BEFORE_TRIM, GROWTH_BEFORE_FORGETTING = 250 * MIB, 500 * MIB
FORGET_THRESHOLD = 1500 * MIB

_LIBC = ctypes.CDLL("libc.so.6") if sys.platform == "linux" else None
_after_trim, _after_forgetting = 500 * MIB, 0


def resident_bytes():
    """Return the resident memory of this process, or 0 if it is unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # only Linux has this file
        return 0


def give_back():
    """Return unused memory to the system if this process has grown.

    A fixture calls this after every test. Tests that compile many programs also call it themselves.
    """
    global _after_trim, _after_forgetting
    if _LIBC is None or resident_bytes() < _after_trim + GROWTH_BEFORE_TRIM:
        return
    _LIBC.malloc_trim(0)
    _after_trim = resident_bytes()
    if _after_trim > max(FORGET_THRESHOLD, _after_forgetting + GROWTH_BEFORE_FORGETTING):
        jax.clear_caches()
        forget_decisions()
        gc.collect()
        _LIBC.malloc_trim(0)
        _after_trim = _after_forgetting = resident_bytes()


def forget_decisions():
    """Clear the cached decisions of every named rule set."""
    for memory in (*map(memory_of, rule_names()), *(find_rules(name).memory for name in HOMES)):
        for table in (memory.verdicts, memory.pairs, memory.prepared, memory.numbers):
            table.clear()
