"""Threads with different rules fill the empty caches together, and each gets the results of its own rules."""

import itertools
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arrays import calls
from arrays.calls import CLASSIC, LACKING, REFUSED, RULE_SETS
from memory import forget_decisions
from supremum import get_rules, use_rules
from supremum.arrays.backends import base
from supremum.arrays.wrapped import wrap

THREADS = 8
SYMBOLS = ("add", "multiply", "divide", "less", "bitwise_and", "pow")


def _run_together(work):
    """Run a function in all threads at once and return the failures."""
    failures, barrier = [], threading.Barrier(THREADS)

    def body(number):
        barrier.wait()
        try:
            work(number, failures)
        except Exception as error:
            failures.append((number, repr(error)))

    threads = [threading.Thread(target=body, args=(number,)) for number in range(THREADS)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # switch in the middle of operations, not after hundreds of them
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return failures


def _expected(rules, arrays):
    """Return the decision for each call, before the threads start."""
    found = {}
    for name, (a, b) in itertools.product(SYMBOLS, itertools.product(arrays, repeat=2)):
        found[name, a, b] = calls.decided(get_rules(rules), name, (arrays[a], arrays[b]))[0]
    return found


def _check_calls(rules, arrays, expected, failures, repeats):
    with np.errstate(all="ignore"):
        for _ in range(repeats):
            for (name, a, b), said in expected.items():
                with use_rules(rules):
                    found = calls.called(calls.OPERATORS[name], (arrays[a], arrays[b]))
                if found != said and (found != LACKING or said == REFUSED):
                    failures.append((rules, name, a, b, said, found))


@pytest.mark.slow
def test_threads_with_different_rules_get_their_own_results_on_numpy():
    arrays = {name: wrap(np.ones(1, name)) for name in CLASSIC}
    rules = RULE_SETS[:THREADS]
    expected = {name: _expected(name, arrays) for name in rules}
    assert len({tuple(map(str, each.values())) for each in expected.values()}) > 5
    repeats = 1 + 100_000 // (THREADS * len(SYMBOLS) * len(CLASSIC) ** 2)
    forget_decisions()
    failures = _run_together(lambda i, failed: _check_calls(rules[i], arrays, expected[rules[i]], failed, repeats))
    assert failures == []


@pytest.mark.slow
def test_threads_with_different_rules_get_their_own_results_on_jax():
    """All threads make the same few decisions and compile them together."""
    arrays = {name: wrap(jnp.ones(1, name)) for name in ("int8", "uint8", "float16", "float32")}
    rules = [("torch", "jax-x32")[i % 2] for i in range(THREADS)]
    expected = {name: {k: v for k, v in _expected(name, arrays).items() if k[0] == "add"} for name in set(rules)}
    assert [len(each) for each in expected.values()] == [16, 16]
    forget_decisions()
    failures = _run_together(lambda i, failed: _check_calls(rules[i], arrays, expected[rules[i]], failed, 20))
    assert failures == []


def test_new_threads_use_the_default_rules_and_share_keys():
    """Keys are compared by identity, so two equal keys would fill the cache twice."""
    seen = []

    def work(number, failures):
        wrapped = [wrap(np.ones(1, name)) for name in CLASSIC]
        seen.append([each.key for each in wrapped])
        if get_rules().name != get_rules("jax").name:
            failures.append(get_rules().name)

    with use_rules("tf-rfc-none"):
        assert _run_together(work) == []
    assert len(seen) == THREADS
    assert all(mine is first for keys in seen for mine, first in zip(keys, seen[0], strict=True))
    assert base.array_key(seen[0][0].backend, seen[0][0].dtype, False, False) is seen[0][0]


def test_jitted_functions_use_the_rules_of_each_thread():
    @jax.jit
    def divide(a, b):
        return a / b

    a, b = wrap(jnp.ones(2, "int8")), wrap(jnp.ones(2, "float16"))
    rules = [("torch", "jax-x32", "numpy", "tf-rfc-all")[i % 4] for i in range(THREADS)]
    expected = {name: get_rules(name).decide("divide", (a.key.operand, b.key.operand)).dtype for name in set(rules)}

    def work(number, failures):
        for _ in range(20):
            with use_rules(rules[number]):
                found = divide(a, b).dtype
            if found != expected[rules[number]]:
                failures.append((rules[number], found))

    assert _run_together(work) == []
