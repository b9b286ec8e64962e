"""What in-place operators, `out=` and assignment store in tensors, compared with the installed PyTorch."""

import itertools

import pytest

from conformance import torch_judge as judge
from conformance.assignment_judge import IN_PLACE, NUMBERS, REFUSED, STORED, UNKNOWN, check, decide, pairs, set_all
from slowly import for_each
from supremum import explain

torch = judge.torch
COMPUTED = [name for name in judge.DTYPES if name not in judge.SHELL]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # about dropped imaginary parts and ComplexHalf


def _tensor(name):
    made = torch.empty(() if name.endswith("[]") else (1,), dtype=judge.DTYPES[name.removesuffix("[]")])
    return made if name.removesuffix("[]") in judge.SHELL else made.fill_(1)


def _stores(write, into, value):
    target = _tensor(into)
    try:
        return STORED if write(target, NUMBERS[value] if value in NUMBERS else _tensor(value)) is target else REFUSED
    except NotImplementedError as error:
        return REFUSED if "copy" in str(error) or "fill" in str(error) else UNKNOWN  # no kernel
    except (RuntimeError, TypeError) as error:
        return UNKNOWN if "not implemented for" in str(error) else REFUSED


@for_each("name", ("add", *(IN_PLACE.keys() - {"add"})), one_in=12)
def test_in_place_operators_store_what_torch_stores(name):
    cells = {(name, *pair): _stores(IN_PLACE[name], *pair) for pair in pairs(COMPUTED)}
    assert sum(theirs != UNKNOWN for theirs in cells.values()) > 900
    check("torch", "in_place", cells)


def test_assignment_to_elements_stores_what_torch_stores():
    check("torch", "item", {("assign", *pair): _stores(set_all, *pair) for pair in pairs(judge.DTYPES)})


@pytest.mark.parametrize("name", ["sqrt", "exp", "sin"])
def test_out_of_unary_functions_stores_what_torch_stores(name):
    """Only functions that return floats: others, such as `neg`, need `out=` of exactly the result's dtype."""
    compared = 0
    for source, target in itertools.product(COMPUTED, repeat=2):
        theirs = _stores(lambda into, value: judge.ASKED[name](value, out=into), target, source)
        if theirs != UNKNOWN:
            compared += 1
            ours = explain(source, operation=name, into=target, rules="torch")
            assert (STORED if ours else REFUSED) == theirs, (source, target)
    assert compared > 200


def test_refusals_name_torch_rule_or_what_would_be_lost():
    names = ("bool", "int8", "int64", "float16", "float64", "complex64")
    refusals = {"add": 0, "assign": 0}
    for into, value in itertools.product(names, repeat=2):
        decision = decide("torch", "add", into, value)
        refused = _stores(IN_PLACE["add"], into, value) == REFUSED
        refusals["add"] += refused
        assert ("casts results within their kind" in " ".join(decision.reason) and not decision) == refused, (
            into,
            value,
        )
        if not decide("torch", "assign", into, value):
            refusals["assign"] += 1
            assert _stores(set_all, into, value) == STORED
            assert "silently drop" in decide("torch", "assign", into, value).reason[-1]
    assert min(refusals.values()) > 5
