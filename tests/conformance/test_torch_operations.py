"""The dtype of every PyTorch operation for every pair of operands, compared with the installed PyTorch.

The operations run on the CPU. If a kernel is missing for a format, the error names the promoted dtype, and that is
compared instead. A category counts as refused if an operation has no kernel for any of its formats.
"""

import itertools

import pytest

from conformance import torch_judge as judge
from slowly import for_each
from supremum.formats import as_format
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS, Result
from supremum.rules.torch import TORCH

torch = judge.torch
SEEN = {name: as_operand(value) for name, value in judge.OPERANDS.items()}
# Each uses the default dtype in a different way; all other operations treat every default alike.
FOLLOWS_DEFAULT = ("add", "divide", "copysign", "less", "where", "pow", "poisson_nll_loss", "exp", "square")
OTHER_DEFAULTS = [name for name in judge.DEFAULTS if name != "float32"]
pytestmark = pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")  # losses warn about 0-d operands


def _calls(row):
    return itertools.product(judge.OPERANDS, repeat=row.arity)


def _categories_computed_in(row, theirs):
    same = {call[0]: outcome for call, outcome in theirs.items() if len(set(call)) == 1 and outcome in judge.DTYPES}
    computed_in = [call.strip("[]") for call in same] if row.result is Result.BOOL else same.values()
    return {as_format(name).category for name in computed_in if name in judge.DTYPES}


def _agrees(outcome, decision, categories, composed):
    missing = judge.without_kernel(outcome)
    if missing is None:
        return (judge.REFUSED if not decision else str(decision.dtype)) == outcome
    if missing in judge.SHELL or as_format(missing).category not in categories:
        return not decision
    return bool(decision) and (composed or str(decision.casts[0].target) == missing)


def _different(name, default):
    row, rules = OPERATIONS[name], TORCH.with_default(default)
    with judge.default_dtype(default):
        theirs = {call: judge.operate(name, *(judge.OPERANDS[o] for o in call)) for call in _calls(row)}
    categories = _categories_computed_in(row, theirs)
    different = {}
    for call, outcome in theirs.items():
        decision = rules.decide(name, [SEEN[operand] for operand in call])
        # A composed operation lacks a kernel for one of its steps, which need not have the promoted dtype.
        if not _agrees(outcome, decision, categories, composed=name == "poisson_nll_loss"):
            different[call] = (str(decision.dtype) if decision else judge.REFUSED, outcome)
    return different


@for_each("name", judge.ASKED, one_in=8, one_slow_in=4)
def test_dtypes_agree_with_installed_torch(name):
    assert _different(name, "float32") == {}


@for_each("name, default", itertools.product(FOLLOWS_DEFAULT, OTHER_DEFAULTS), one_in=8, one_slow_in=4)
def test_dtypes_agree_with_installed_torch_for_other_default_dtypes(name, default):
    assert _different(name, default) == {}


def test_every_elementwise_operation_is_compared():
    assert set(judge.ASKED) == set(ELEMENTWISE)


def test_aliases_give_the_dtypes_of_the_function():
    names = [(name, alias) for name in judge.ASKED for alias in OPERATIONS[name].aliases if hasattr(torch, alias)]
    assert ("trunc", "fix") in names
    for name, alias in names:
        if OPERATIONS[name].arity == 1:
            for call in judge.OPERANDS.values():
                assert judge.call(getattr(torch, alias), call) == judge.operate(name, call), (alias, call)


@pytest.mark.slow
def test_dtypes_agree_with_meta_tensors_where_the_cpu_has_no_kernel():
    """Meta tensors need no kernels, but also accept operands that every kernel refuses, so only dtypes are compared."""
    meta = {name: x.to("meta") if isinstance(x, torch.Tensor) else x for name, x in judge.OPERANDS.items()}
    names = ("add", "remainder", "divide", "maximum", "atan2", "exp", "abs")
    rules, cells, different = TORCH.with_default("float32"), 0, {}
    for name, call in ((asked, call) for asked in names for call in _calls(OPERATIONS[asked])):
        decision = rules.decide(name, [SEEN[operand] for operand in call])
        if decision and judge.without_kernel(judge.operate(name, *(judge.OPERANDS[o] for o in call))):
            cells += 1
            outcome = judge.operate(name, *(meta[o] for o in call))
            if outcome not in (str(decision.dtype), judge.REFUSED):
                different[name, *call] = (str(decision.dtype), outcome)
    assert cells > 1000
    assert different == {}
