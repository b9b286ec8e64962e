"""What in-place operators, `out=` and assignment store in arrays, compared with the installed NumPy."""

import itertools

import numpy as np
import pytest

from conformance.assignment_judge import IN_PLACE, REFUSED, STORED, check, pairs, set_all
from conformance.numpy_judge import NAMES, array, stored_in_place, stores
from slowly import for_each
from supremum import explain
from supremum.formats import CATEGORIES, as_format

pytestmark = [
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


@for_each("name", ("divide", *(IN_PLACE.keys() - {"divide"})), one_in=12)
def test_in_place_operators_store_what_numpy_stores(name):
    check("numpy", "in_place", stored_in_place(name))


@pytest.mark.parametrize("name", ["sqrt", "negative", "isfinite", "abs"])
def test_out_of_unary_functions_differs_from_numpy_only_for_ml_dtypes_targets(name):
    differing = set()
    for source, target in itertools.product(NAMES, repeat=2):
        try:
            getattr(np, name)(array(source), out=array(target))
            theirs = STORED
        except TypeError:
            theirs = REFUSED
        decision = explain(source, operation=name, into=target, rules="numpy")
        if (STORED if decision else REFUSED) != theirs:
            differing.add((theirs, explain(source, operation=name, rules="numpy").dtype.name, target))
    # NumPy treats the formats of ml_dtypes as its highest kind, whatever they can hold.
    assert differing or name == "isfinite"
    for theirs, given, target in differing:
        heights = [CATEGORIES.index(as_format(each).category) for each in (given, target)]
        assert (theirs, heights[0] > heights[1]) == (STORED, True), (given, target)
        assert not as_format(target).is_builtin


def test_assignment_to_elements_stores_what_numpy_stores():
    check("numpy", "item", {("assign", *pair): stores(set_all, *pair) for pair in pairs(NAMES)})
