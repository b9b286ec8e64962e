"""What NumPy stores in arrays, in-place operators, `out=` and assignment to elements, against the installed NumPy."""

import itertools

import numpy as np
import pytest

from conformance.assignment_judge import IN_PLACE, REFUSED, STORED, check, pairs, set_all
from conformance.numpy_judge import NAMES, array, stored_in_place, stores
from slowly import mostly_slow
from supremum import explain
from supremum.formats import CATEGORIES, as_format

pytestmark = [
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


@pytest.mark.parametrize("name", mostly_slow(IN_PLACE, "divide"))
def test_in_place_operators(name):
    check("numpy", "in_place", stored_in_place(name))


@pytest.mark.parametrize("name", ["sqrt", "negative", "isfinite", "abs"])
def test_out_of_functions_of_one_operand(name):
    lost = set()
    for source, target in itertools.product(NAMES, repeat=2):
        try:
            getattr(np, name)(array(source), out=array(target))
            theirs = STORED
        except TypeError:
            theirs = REFUSED
        decision = explain(source, operation=name, into=target, rules="numpy")
        if (STORED if decision else REFUSED) != theirs:
            lost.add((theirs, explain(source, operation=name, rules="numpy").dtype.name, target))
    # NumPy takes the formats of ml_dtypes for its highest kind, whatever they hold.
    for theirs, given, target in lost:
        heights = [CATEGORIES.index(as_format(each).category) for each in (given, target)]
        assert (theirs, heights[0] > heights[1]) == (STORED, True), (given, target)
        assert not as_format(target).is_builtin


def test_assignment_to_elements():
    check("numpy", "item", {("assign", *pair): stores(set_all, *pair) for pair in pairs(NAMES)})
