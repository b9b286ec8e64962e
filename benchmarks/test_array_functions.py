"""What each function of `Array` costs beside NumPy's, JAX's and PyTorch's own, for small arrays and large ones.

make bench
"""

import timeit
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import Array
from supremum.arrays import RuntimeDtypeError

ROUNDS = 15
SMALL, LARGE = 4, 1_000_000
# Each function as NumPy, JAX and an Array write it; where there are two texts, the second one is for JAX. `xp` is the
# library or a namespace. x and y are float32 arrays, b bool, i int8; s and t are square matrices of about as many
# elements.
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
    "prod": "xp.prod(y)",
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
# Functions of NumPy and PyTorch that are called with an Array.
PROTOCOLS = {
    "numpy": (
        "np.add(x, y)", "np.exp(x)", "np.sum(x)", "np.sum(x, axis=0)", "np.mean(x)", "np.max(x)", "np.argmax(x)",
        "np.concatenate((x, y))", "np.stack((x, y))", "np.where(b, x, y)", "np.clip(x, 0.5, 2.0)", "np.matmul(s, t)",
        "np.dot(x, y)", "np.reshape(x, (2, -1))", "np.transpose(s)", "np.take(x, index)", "np.sort(x)",
        "np.cumsum(x)",
    ),
    "torch": ("torch.add(x, y)", "torch.exp(x)", "torch.maximum(x, y)", "torch.abs(x)", "torch.less(x, y)"),
}  # fmt: skip
LIBRARIES = {"numpy": np, "jax": jnp}


def arrays(as_array, n, make):
    side = int(n**0.5)
    raw = {
        "x": np.linspace(0.5, 3, n, dtype="float32"), "y": np.linspace(1, 1 + 1 / n, n, dtype="float32"),
        "b": np.arange(n) % 2 == 0, "i": (np.arange(n) % 3).astype("int8"), "row": np.ones((1, n), "float32"),
        "s": np.ones((side, side), "float32"), "t": np.ones((side, side), "float32"), "index": np.arange(n // 2),
        "small": np.arange(4, dtype="float32"), "k": np.arange(1, n + 1, dtype="int32"),
    }  # fmt: skip
    made = {name: make(as_array(value)) for name, value in raw.items()}
    return made | {"n": n, "numbers": [1.0, 2.0, 3.0, 4.0], "np": np}


def statement_of(function, library):
    text = STATEMENTS[function]
    return text if isinstance(text, str) else text[library == "jax"]


def sides(library, n):
    """The variables of statements for the library alone, and for arrays that are wrapped."""
    xp = LIBRARIES[library]
    theirs, ours = (arrays(xp.asarray, n, make) for make in (lambda raw: raw, Array))
    return theirs | {"xp": xp}, ours | {"xp": supremum.namespace(library)}


def _measured(benchmark, figures, rules, where, statements, theirs, ours, wait=None):
    """Note what both sides take for each statement, by its title; both take turns in every round.

    Args:
        benchmark, figures: the fixtures.
        rules: the name of the rules in force, and of the library.
        where: of which arrays, and called how.
        statements: what is timed, by title.
        theirs, ours: the variables of both sides.
        wait: a function that waits for results; None if they are computed at once.
    """
    scopes = {"theirs": theirs | {"wait": wait}, "ours": ours | {"wait": wait}}
    taken, missing = {}, []
    for title, text in statements.items():
        try:
            with supremum.use_rules(rules):
                for scope in scopes.values():
                    exec(text, scope)
        except (AttributeError, TypeError, ValueError) as error:
            missing.append(f"{title}, {where}: {error}")
            continue
        taken[title] = {side: [] for side in scopes}
    timed = {title: statements[title] if wait is None else f"wait({statements[title]})" for title in taken}
    calls = {title: _calls_of(text, scopes["theirs"]) for title, text in timed.items()}

    def measure():
        with supremum.use_rules(rules):
            for title, seconds in taken.items():
                for side, each in seconds.items():
                    each.append(timeit.timeit(timed[title], globals=scopes[side], number=calls[title]) / calls[title])

    benchmark.pedantic(measure, rounds=ROUNDS, warmup_rounds=1)
    for title, seconds in taken.items():
        figures.compare(f"`{title}`, {where}", seconds["ours"], seconds["theirs"], rules)
    print("", *missing, sep="\n")


def _calls_of(text, scope):
    """How many calls take about a millisecond, at least one."""
    once = min(timeit.repeat(text, globals=scope, number=1, repeat=3))
    return max(1, min(1000, int(1e-3 / once)))


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("library", LIBRARIES)
def test_functions(benchmark, figures, library, n):
    statements = {function: statement_of(function, library) for function in STATEMENTS}
    wait = jax.block_until_ready if library == "jax" and n == LARGE else None
    _measured(benchmark, figures, library, f"{n:,} elements", statements, *sides(library, n), wait)


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("library", PROTOCOLS)
def test_functions_of_other_libraries(benchmark, figures, library, n):
    if not find_spec(library):
        pytest.skip("PyTorch is not installed: make torch")
    module = __import__(library)
    theirs, ours = (arrays(module.asarray, n, make) | {library: module} for make in (lambda raw: raw, Array))
    statements = {text: text for text in PROTOCOLS[library]}
    _measured(benchmark, figures, library, f"{n:,} elements", statements, theirs, ours)


# The functions whose result has a dtype that rules decide, with operands about which rules differ.
MIXED = {
    "add": "x + k", "multiply": "x * k", "divide": "k / k", "power": "x ** k", "floor_divide": "k // x",
    "remainder": "k % x", "where": "xp.where(b, x, k)", "clip": "xp.clip(k, x, x)", "exp": "xp.exp(k)",
    "log": "xp.log(k)", "sqrt": "xp.sqrt(k)", "sin": "xp.sin(k)", "sum": "xp.sum(k)", "mean": "xp.mean(k)",
    "prod": "xp.prod(k)", "cumulative_sum": "xp.cumulative_sum(k)", "concat": "xp.concat((x, k))",
    "stack": "xp.stack((x, k))", "matmul": "x @ k", "tensordot": "xp.tensordot(x, k, axes=1)",
    "dot": "x.dot(k)", "einsum": "xp.einsum('i,i->', x, k)",
    "np.add": "np.add(x, k)", "np.sum": "np.sum(k)", "np.mean": "np.mean(k)",
    "np.concatenate": "np.concatenate((x, k))",
    "np.where": "np.where(b, x, k)", "np.clip": "np.clip(k, x, x)", "np.matmul": "np.matmul(x, k)",
    "zeros": "xp.zeros(n)", "asarray of a list": "xp.asarray(numbers)",
}  # fmt: skip
# The functions whose result has the dtype of one array or a fixed one, whatever the rules.
KEPT = {
    "less": "x < k", "equal": "x == k", "logical_and": "xp.logical_and(b, b)", "abs": "xp.abs(k)", "min": "xp.min(k)",
    "max": "xp.max(k)", "any": "xp.any(b)", "all": "xp.all(b)", "transpose": "s.T", "reshape": "x.reshape((2, -1))",
    "squeeze": "xp.squeeze(row, axis=0)", "expand_dims": "xp.expand_dims(x, axis=0)", "getitem": "x[1:]",
    "broadcast_to": "xp.broadcast_to(x, (2, n))", "take": "xp.take(x, index)", "sort": "xp.sort(x)",
    "unique_values": "xp.unique_values(small)", "astype": "x.astype('float16')", "argmax": "xp.argmax(x)",
}  # fmt: skip


def _dtypes(text, scope):
    found = {}
    for rules in ("numpy", "jax-x32", "torch", "tf-rfc-all", "array-api"):
        with supremum.use_rules(rules):
            try:
                found[rules] = str(eval(text, scope).dtype)
            except (supremum.PromotionError, RuntimeDtypeError):
                found[rules] = "refused"
    return found


@pytest.mark.parametrize("library", LIBRARIES)
def test_functions_are_decided_by_the_rules(library):
    """Under rules that are not the library's, so that a result that is only passed through has another dtype."""
    _, ours = sides(library, SMALL)
    assert [function for function, text in MIXED.items() if len({*_dtypes(text, ours).values()}) == 1] == []
    for function, text in KEPT.items():
        assert len({*_dtypes(text, ours).values()} - {"refused"}) == 1, function
    plain = {"setitem", "sum of int8", "sum, a method"}  # the first has no result; the others are other rows again
    assert {*STATEMENTS} - {*MIXED} - {*KEPT} == plain
