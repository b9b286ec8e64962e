"""The time of each function of `Array` compared with NumPy's and JAX's own, on small and on large arrays.

make bench
"""

import statistics
import timeit

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import Array
from supremum.arrays import RuntimeDtypeError

ROUNDS = 15
SMALL, LARGE = 4, 1_000_000
# The expression for each function, the same for NumPy, JAX and Array; if there are two expressions, the second one is
# for JAX. `xp` is the library, or the namespace of an Array. x and y are float32 arrays, b is bool, i is int8; s and t
# are square matrices with about as many elements.
STATEMENTS = {
    "add": "x + y",
    "multiply": "x * y",
    "divide": "x / y",
    "power": "x ** y",
    "floor_divide": "x // y",
    "remainder": "x % y",
    "less": "x < y",
    "equal": "x == y",
    "logical_and": "xp.logical_and(b, b)",
    "exp": "xp.exp(x)",
    "log": "xp.log(x)",
    "sqrt": "xp.sqrt(x)",
    "sin": "xp.sin(x)",
    "abs": "xp.abs(x)",
    "clip": "xp.clip(x, 0.5, 2.0)",
    "where": "xp.where(b, x, y)",
    "sum": "xp.sum(x)",
    "sum of int8": "xp.sum(i)",
    "sum, a method": "x.sum()",
    "mean": "xp.mean(x)",
    "prod": "xp.prod(x)",
    "min": "xp.min(x)",
    "max": "xp.max(x)",
    "argmax": "xp.argmax(x)",
    "any": "xp.any(b)",
    "all": "xp.all(b)",
    "cumulative_sum": "xp.cumulative_sum(x)",
    "matmul": "s @ t",
    "dot": "x.dot(y)",
    "tensordot": "xp.tensordot(s, t, axes=1)",
    "einsum": "xp.einsum('ij,jk->ik', s, t)",
    "transpose": "s.T",
    "reshape": "x.reshape((2, -1))",
    "concat": "xp.concat((x, y))",
    "stack": "xp.stack((x, y))",
    "squeeze": "xp.squeeze(row, axis=0)",
    "expand_dims": "xp.expand_dims(x, axis=0)",
    "broadcast_to": "xp.broadcast_to(x, (2, n))",
    "take": "xp.take(x, index)",
    "getitem": "x[1:]",
    "setitem": ("x[0] = 1.0", "x.at[0].set(1.0)"),
    "astype": ("x.astype('float64')", "x.astype('float16')"),
    "zeros": "xp.zeros(n)",
    "asarray of a list": "xp.asarray(numbers)",
    "sort": "xp.sort(x)",
    "unique_values": "xp.unique_values(small)",
}
LIBRARIES = {"numpy": np, "jax": jnp}


def arrays(library, n, make):
    side = int(n**0.5)
    raw = {
        "x": np.linspace(0.5, 3, n, dtype="float32"), "y": np.linspace(1, 2, n, dtype="float32"),
        "b": np.arange(n) % 2 == 0, "i": (np.arange(n) % 3).astype("int8"), "row": np.ones((1, n), "float32"),
        "s": np.ones((side, side), "float32"), "t": np.ones((side, side), "float32"), "index": np.arange(n // 2),
        "small": np.arange(4, dtype="float32"), "k": np.arange(n, dtype="int32"),
    }  # fmt: skip
    made = {name: make(LIBRARIES[library].asarray(value)) for name, value in raw.items()}
    return made | {"n": n, "numbers": [1.0, 2.0, 3.0, 4.0]}


def statement_of(function, library):
    text = STATEMENTS[function]
    return text if isinstance(text, str) else text[library == "jax"]


def sides(library, n):
    """Return the variables of the expressions, once with the library's arrays and once with `Array`s."""
    xp = LIBRARIES[library]
    return arrays(library, n, lambda raw: raw) | {"xp": xp}, arrays(library, n, Array) | {
        "xp": supremum.namespace(library)
    }


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("library", LIBRARIES)
def test_functions(benchmark, library, n):
    wait = jax.block_until_ready if library == "jax" and n == LARGE else None
    variables = dict(zip(("theirs", "ours"), sides(library, n), strict=True))
    taken, missing = {}, []
    for function in STATEMENTS:
        text = statement_of(function, library)
        try:
            for each in variables.values():
                exec(text, each)
        except (AttributeError, TypeError, ValueError) as error:
            missing.append(f"| {function} | {error} | | | |")
            continue
        taken[function] = {side: [] for side in variables}
    timed = {f: statement_of(f, library) if wait is None else f"wait({statement_of(f, library)})" for f in taken}
    calls = {f: calls_of(timed[f], variables["theirs"] | {"wait": wait}) for f in taken}

    def measure():
        with supremum.use_rules(library):
            for function, seconds in taken.items():
                for side, each in seconds.items():
                    scope = variables[side] | {"wait": wait}
                    each.append(timeit.timeit(timed[function], globals=scope, number=calls[function]) / calls[function])

    benchmark.pedantic(measure, rounds=ROUNDS, warmup_rounds=1)
    lines = [
        f"{library}, {n} elements",
        "| function | theirs, us | ours, us | difference, us | ratio |",
        "|---|---|---|---|---|",
    ]
    for function, seconds in taken.items():
        theirs, ours = (statistics.median(seconds[side]) * 1e6 for side in ("theirs", "ours"))
        lines.append(f"| {function} | {theirs:.2f} | {ours:.2f} | {ours - theirs:+.2f} | {ours / theirs:.2f} |")
    lines += missing
    benchmark.extra_info["ratio"] = "\n".join(lines)
    print("", *lines, sep="\n")


def calls_of(text, scope):
    """Return how many calls take about two milliseconds; at least one."""
    once = min(timeit.repeat(text, globals=scope, number=1, repeat=3))
    return max(1, min(2000, int(2e-3 / once)))


MIXED = {
    "add": "x + k", "power": "x ** k", "floor_divide": "k // x", "where": "xp.where(b, x, k)",
    "clip": "xp.clip(k, x, x)", "sum": "xp.sum(k)", "mean": "xp.mean(k)", "cumulative_sum": "xp.cumulative_sum(k)",
    "concat": "xp.concat((x, k))", "stack": "xp.stack((x, k))", "exp": "xp.exp(k)",
}  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_measured_functions_follow_the_rules(benchmark, library):
    """The dtype of each result must depend on the rule set: a function that only calls the library would be faster."""
    _, ours = sides(library, SMALL)
    differs = set()

    def measure():
        for function, text in MIXED.items():
            found = set()
            for rules in ("numpy", "jax-x32", "torch", "tf-rfc-all"):
                with supremum.use_rules(rules):
                    try:
                        found.add(str(eval(text, ours).dtype))
                    except (supremum.PromotionError, RuntimeDtypeError):
                        found.add("refused")
            if len(found) > 1:
                differs.add(function)

    benchmark.pedantic(measure, rounds=1)  # make bench runs only tests that use the fixture
    assert differs == set(MIXED)
