"""What every operation gives for JAX's arrays: traced over every pair, eager and jitted to the last bit."""

import collections
import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from arrays import calls
from arrays.calls import BINARY, FORMAT_OF, NUMBERS, REFUSED, RULE_SETS, UNARY
from arrays.departures import JAX_LACKS
from supremum import get_rules, use_rules
from supremum.arrays.array import wrap
from supremum.arrays.losses import LOSSES
from supremum.arrays.operators import APPLIED

ABSENT = ("complex32", "bcomplex32")  # no dtypes of JAX
NAMES = [name for name in FORMAT_OF if name not in ABSENT]
WIDE = ("int64", "uint64", "float64", "complex128")
WEAK = {"int*": 1, "float*": 1.0, "complex*": 1j}
JAX_REFUSES = (TypeError, ValueError, NotImplementedError)
either_width = pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])


def _plain(name):
    """The operation of `jax.numpy`; the losses' first steps."""
    if name == "where":
        return lambda a, b: jnp.where(True, a, b)
    return (lambda a, b: abs(a - b)) if name in LOSSES else getattr(jnp, name)


def _lacks_at(x64):
    def lacks(name, compute, result):
        """Whether JAX has no dtype for it, or no function of arrays of the dtypes."""
        if {*map(str, compute), str(result)} & {*ABSENT, *(() if x64 else WIDE)}:
            return True
        try:
            jax.eval_shape(_plain(name), *(jax.ShapeDtypeStruct((1,), dtype) for dtype in compute))
        except JAX_REFUSES:
            return True
        return False

    return lacks


class New:
    """Which calls are of a kind that was not there before: a kernel, or casts that lead to it."""

    def __init__(self):
        self.seen = set()

    def __call__(self, name, call, said, compute):
        dtypes = tuple((getattr(each, "dtype", type(each)), getattr(each, "weak_type", None)) for each in call)
        kinds = {(name, compute, said), (dtypes, compute)}
        new = not kinds <= self.seen
        self.seen |= kinds
        return new


def _traced(x64, ask):
    """Run a function on traced arrays: of every format, and weak ones."""

    def run(arrays, weak):
        ask({name: wrap(raw) for name, raw in arrays.items()}, {name: wrap(raw) for name, raw in weak.items()})
        return 0

    names = [name for name in NAMES if x64 or name not in WIDE]
    jax.eval_shape(run, {name: jax.ShapeDtypeStruct((1,), np.dtype(name)) for name in names}, WEAK)


@either_width
def test_every_decision_traced(x64):
    """Each kernel of each rule set once, and each cast of a pair of operands; refusals of all pairs."""
    cells, new = calls.Cells(_lacks_at(x64)), New()

    def ask(arrays, weak):
        for rules, name in itertools.product(RULE_SETS, (*BINARY, *UNARY)):
            rule_set, function = get_rules(rules), calls.function_of(name)
            operands = [*arrays.values(), *NUMBERS.values(), *(weak.values() if rule_set.weak_arrays else ())]
            with use_rules(rules):
                for call in itertools.product(operands, repeat=APPLIED[name].operation.arity):
                    if not any(hasattr(each, "unwrap") for each in call):
                        continue
                    said, compute = calls.decided(rule_set, name, call)
                    if said == REFUSED and name not in ("add", "where") or not new(name, call, said, compute):
                        continue
                    cells.ask(rule_set, name, function, call)

    with jax.enable_x64(x64):
        _traced(x64, ask)
    print(cells.number, {name: " ".join(sorted(found)) for name, found in cells.lacking.items()})
    cells.check()
