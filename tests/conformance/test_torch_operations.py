"""What every operation of PyTorch gives for every pair of operands, against the installed PyTorch.

Its kernels are asked on the CPU. Where there is none for a format, the error names the dtype that was promoted to,
which is compared instead; and a category that an operation has no kernel at all in is one it refuses.
"""

import itertools

import pytest

from conformance import torch_judge as judge
from supremum.formats import as_format
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS, Result
from supremum.rules.torch import TORCH

torch = judge.torch
SEEN = {name: as_operand(value) for name, value in judge.OPERANDS.items()}
# Each makes a dtype out of the default one in its own way; the rest is the same for every default.
FOLLOWS_DEFAULT = ("add", "divide", "copysign", "less", "where", "pow", "poisson_nll_loss", "exp", "square")
pytestmark = pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")  # the losses', of 0-d operands


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
        # What a composed operation has no kernel for is one of its steps, which says less.
        if not _agrees(outcome, decision, categories, composed=name == "poisson_nll_loss"):
            different[call] = (str(decision.dtype) if decision else judge.REFUSED, outcome)
    return different


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", judge.ASKED)
def test_every_call_of_the_installed_torch(name):
    assert _different(name, "float32") == {}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("default", [name for name in judge.DEFAULTS if name != "float32"])
@pytest.mark.parametrize("name", FOLLOWS_DEFAULT)
def test_calls_that_follow_another_default_dtype(name, default):
    assert _different(name, default) == {}


def test_every_operation_is_asked():
    assert set(judge.ASKED) == set(ELEMENTWISE)


def test_names_of_one_row_are_one_function():
    names = [(name, alias) for name in judge.ASKED for alias in OPERATIONS[name].aliases if hasattr(torch, alias)]
    assert ("trunc", "fix") in names
    for name, alias in names:
        if OPERATIONS[name].arity == 1:
            for call in judge.OPERANDS.values():
                assert judge.call(getattr(torch, alias), call) == judge.operate(name, call), (alias, call)


@pytest.mark.slow
def test_meta_tensors_give_our_dtypes_where_the_cpu_has_no_kernel():
    """Meta tensors have no kernels to miss. They also take what no kernel takes, so they judge dtypes, not refusals."""
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
