"""Keeps a test process small: eight of them run on eight cores.

XLA compiles in threads of its own, whose memory the C library keeps for them once it is free: up to 4 GB. It gives it
back when it is asked to. What is left after that are compiled programs and, after full products, a million decisions.
To make them again takes longer than most tests, so they are forgotten only when they are many.
"""

import ctypes
import gc
import os
import sys
from pathlib import Path

import jax

from supremum.rules.names import HOMES, rule_names
from supremum.rules.registry import find_rules, memory_of

MIB = 2**20
GROWTH_BEFORE_TRIM, GROWTH_BEFORE_FORGETTING = 80 * MIB, 120 * MIB
MUCH = 750 * MIB

_LIBC = ctypes.CDLL("libc.so.6") if sys.platform == "linux" else None
_after_trim, _after_forgetting = 500 * MIB, 0


def resident_bytes():
    """The memory of this process; 0 where it is not known."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # only Linux says it there
        return 0


def give_back():
    """Give memory back to the system if much was taken; after every test, and within those that compile a lot."""
    global _after_trim, _after_forgetting
    if _LIBC is None or resident_bytes() < _after_trim + GROWTH_BEFORE_TRIM:
        return
    _LIBC.malloc_trim(0)
    _after_trim = resident_bytes()
    if _after_trim > max(MUCH, _after_forgetting + GROWTH_BEFORE_FORGETTING):
        jax.clear_caches()
        forget_decisions()
        gc.collect()
        _LIBC.malloc_trim(0)
        _after_trim = _after_forgetting = resident_bytes()


def forget_decisions():
    """Forget what was found out under every rule set that has a name."""
    for memory in (*map(memory_of, rule_names()), *(find_rules(name).memory for name in HOMES)):
        for table in (memory.verdicts, memory.pairs, memory.prepared, memory.numbers, memory.by_number):
            table.clear()
