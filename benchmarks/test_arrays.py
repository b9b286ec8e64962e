"""The time of an eager operator of `Array` compared with the library's own.

make bench
"""

import contextlib
import statistics
import timeit
from importlib.util import find_spec

import array_api_strict
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from figures import duration
from supremum import Array
from supremum.rules.names import HOMES

ROUNDS = 25
NARROW, WIDE, WHOLE = np.ones(3, "float32"), np.ones(3), np.ones(3, "int8")


def _scope(make, narrow="float32", wide="float64", whole="int8"):
    """Return arrays of a library under lower-case names, and the same ones as `Array`s under upper-case names."""
    own = {"x": make(NARROW, narrow), "y": make(NARROW, narrow), "z": make(WIDE, wide), "i": make(WHOLE, whole)}
    return own | {name.upper(): Array(raw) for name, raw in own.items()}


def _tensor(array, dtype):
    import torch

    return torch.asarray(array.astype(dtype))


NUMPY = _scope(lambda array, dtype: array.astype(dtype))
STRICT = NUMPY | {name: array_api_strict.asarray(NUMPY[name]) for name in "xyzi"}
JAX = _scope(lambda array, dtype: jnp.asarray(array, dtype), wide="bfloat16")
TORCH = _scope(_tensor) if find_spec("torch") else None
# For each case: rules, our expression, their expression, the variables, and the number of calls in a round.
CASES = {
    "NumPy, one dtype": ("numpy", "X + Y", "x + y", NUMPY, 20000),
    "NumPy, one dtype, rules jax": ("jax", "X + Y", "x + y", NUMPY, 20000),
    "NumPy, float64, rules jax": ("jax", "Z + Z", "z + z", NUMPY, 20000),
    "NumPy, two dtypes": ("numpy", "X + Z", "x + z", NUMPY, 20000),
    "NumPy, a Python number": ("numpy", "X + 2.0", "x + 2.0", NUMPY, 20000),
    "NumPy, rules array-api": ("array-api", "X + Y", "x + y", STRICT, 4000),
    "JAX, one dtype": ("jax", "X + Y", "x + y", JAX, 2000),
    "JAX, two dtypes": ("jax", "X + Z", "x + z", JAX, 2000),
    "JAX, a Python number": ("jax", "X + 2.0", "x + 2.0", JAX, 2000),
    "torch, one dtype": ("torch", "X + Y", "x + y", TORCH, 10000),
    "torch, two dtypes": ("torch", "X + Z", "x + z", TORCH, 10000),
    "torch, two dtypes, rules numpy": ("numpy", "X + I", "x + i", TORCH, 10000),
    "torch, a Python number": ("torch", "X + 2.0", "x + 2.0", TORCH, 10000),
}


@pytest.mark.parametrize("case", CASES)
def test_add(benchmark, figures, case):
    rules, ours, theirs, scope, calls = CASES[case]
    if scope is None:
        pytest.skip("PyTorch is not installed: make torch")
    taken = {ours: [], theirs: []}

    def measure():
        for statement, seconds in taken.items():
            with supremum.use_rules(rules) if statement is ours else contextlib.nullcontext():
                seconds.append(timeit.timeit(statement, globals=scope, number=calls) / calls)

    benchmark.pedantic(measure, rounds=ROUNDS, warmup_rounds=5)  # until the processor runs at full speed
    peer = "array-api-strict" if scope is STRICT else "the library's `+`"
    figures.compare(f"`+` of 3 elements, {case}", taken[ours], taken[theirs], peer)


def test_every_rule_set_costs_the_same(benchmark, figures):
    """Measure a small program of float32 arrays, in which nothing is cast, under every rule set."""
    program = "(X * Y + X - Y) * (X + Y)"
    names = list(HOMES)
    taken = {name: [] for name in names}

    def measure():
        for name, seconds in taken.items():
            with supremum.use_rules(name):
                seconds.append(timeit.timeit(program, globals=NUMPY, number=2000) / 2000)

    benchmark.pedantic(measure, rounds=ROUNDS, warmup_rounds=1)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    middle = statistics.median(medians.values())
    cheapest, dearest = (choose(medians, key=medians.__getitem__) for choose in (min, max))
    low, high = (f"{medians[name] / middle:.2f} x ({name})" for name in (cheapest, dearest))
    figures.note(
        f"a program of float32 on NumPy under each of {len(names)} rule sets",
        duration(middle),
        peer=f"{low} to {high} the median",
    )
