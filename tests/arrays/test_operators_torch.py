"""What every operation gives for every pair of PyTorch's tensors, and tensors on either side of an `Array`."""

import itertools
import warnings

import pytest

from arrays import calls
from arrays.calls import (
    BINARY,
    OPERATORS,
    RULE_SETS,
    UNARY,
)
from conformance import torch_judge as judge
from supremum import explain, get_rules, use_rules
from supremum.arrays.array import wrap
from supremum.arrays.losses import LOSSES

torch = judge.torch
# Those of one and two bits hold nothing that torch could fill or compute with.
NAMES = [name for name in judge.DTYPES if name not in judge.SHELL]
ARRAYS = {name: wrap(torch.ones(1, dtype=judge.DTYPES[name])) for name in NAMES}
ZERO_D = {name: wrap(torch.ones((), dtype=judge.DTYPES[name])) for name in NAMES}
RULES = ("torch", "numpy", "jax-x64", "tf-rfc-safe")
IN_FULL = ("add", "divide", "pow", "less", "bitwise_and")
SYMBOLS = {name: function for name, function in OPERATORS.items() if name in BINARY}


def _lacks(name, compute, result, _to_int=False):
    """Torch itself asked, of tensors that are in the dtype already; losses are ours, and lack what their steps lack."""
    if {*map(str, compute), str(result)} - judge.DTYPES.keys():
        return True
    tensors = [torch.ones(1, dtype=judge.DTYPES[str(dtype)]) for dtype in compute]
    try:
        if name in LOSSES:
            torch.abs(tensors[0] - tensors[1])
            if name == "poisson_nll_loss":
                torch.exp(tensors[0])
        else:
            judge.ASKED[name](*tensors)
    except (RuntimeError, TypeError):
        return True
    return False


def _asked(rules, names, tables):
    cells, rule_set = calls.Cells(_lacks), get_rules(rules)
    with use_rules(rules), warnings.catch_warnings():
        for name in names:
            function = calls.function_of(name)
            for table in tables:
                for call in itertools.product(*(each.values() for each in table)):
                    cells.ask(rule_set, name, function, call)
    cells.check()
    return cells


@pytest.mark.parametrize("rules", RULE_SETS)
def test_every_pair_of_tensors(rules):
    cells = _asked(rules, BINARY, [(ARRAYS, ARRAYS)])
    assert sum(cells.number.values()) == len(BINARY) * len(NAMES) ** 2
    assert cells.number["given"] > 200
    _asked(rules, UNARY, [(ARRAYS,), (ZERO_D,)])


@pytest.mark.parametrize("rules", ["torch", "paddle", "jax-x64"])
def test_every_pair_with_0d_tensors(rules):
    adding = [name for name in NAMES if explain(name, name, operation="add", rules=rules)]
    some, zero_d = {name: ARRAYS[name] for name in adding}, {name: ZERO_D[name] for name in adding}
    cells = _asked(rules, BINARY, [(some, zero_d), (zero_d, some), (zero_d, zero_d)])
    assert cells.number["given"] > 3000
