"""What is special about PyArrow: reductions, the order of columns, safe casts, quotients, and what is stored."""

import collections
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from conformance.measured import cells, document
from conformance.measured_rules import ORACLE_OF
from conformance.test_casts import number
from optional_packages import import_or_skip
from slowly import for_each
from supremum import explain, use_rules
from supremum.formats import as_format
from supremum.operations import REDUCTIONS
from supremum.rules.pyarrow import PYARROW

MEASURED, ARRAYS, CASTS = ORACLE_OF["pyarrow"], document("pyarrow-arrays"), document("pyarrow-casts")


def test_reductions_and_concat_agree_with_measured_pyarrow():
    compared = collections.Counter()
    for (operation, _, left, right), cell in cells(ARRAYS["tables"], ARRAYS["columns"]):
        assert MEASURED.ours(operation, left, right) == MEASURED.codes.get(cell, "refused"), (operation, left, right)
        compared[operation] += 1
    assert compared.keys() == {*REDUCTIONS, "concat"}
    assert sum(compared.values()) == 312


def test_accepted_python_numbers_keep_their_values():
    tables = MEASURED.document
    values = [float(text) if "." in text or "e" in text else int(text) for text in tables["numbers"].split()]
    accepted = 0
    for left, rows in tables["values"].items():
        for operation, outcomes in rows.items():
            for value, outcome in zip(values, outcomes.split(), strict=True):
                if outcome != "!":
                    operand = 1 if left == "int*" else MEASURED.codes[left]
                    assert explain(operand, value, operation=operation, rules=PYARROW).number_changes == ()
                    accepted += 1
    assert accepted == 668


def test_concat_depends_on_the_order_of_two_integers_and_a_float_that_holds_each_of_them():
    by_order = set()
    for operation, codes, _ in MEASURED.triples_of_operands():
        operation = {"maximum": "clip"}.get(operation, operation)
        orders = {MEASURED.ours(operation, *order) for order in itertools.permutations(codes)}
        by_order |= {(operation, *sorted(set(codes)))} if len(orders) > 1 else set()
    assert by_order == {
        ("concat", *each.split()) for each in ("f2 i1 u1", "f2 i1 u2", "f2 i2 u2", "f4 i1 u2", "f4 i2 u2")
    }


def is_cast_safely(value, source, target):
    """Whether a safe cast accepts a value; it never checks narrower floats, and float16 like a float of the source."""
    if target.category == "integer" and source.category != "bool":
        return math.isfinite(value) and value == int(value) and target.min <= value <= target.max
    if source.category != "integer" or not target.is_inexact:
        return True
    row = as_format(f"float{max(32, source.bits)}") if target.name == "float16" else target
    return abs(value) <= 2 ** (row.mantissa + 1)


def test_safe_casts_raise_for_the_values_that_explanations_name():
    """An operation casts its operands safely, so these are the values for which it raises."""
    assert {ARRAYS["version"], CASTS["version"]} == {MEASURED.document["version"]}
    counts = collections.Counter()
    for name, row in CASTS["safe"].items():
        source = as_format(name)
        texts = CASTS["values"][source.category].split()
        for other, answers in row.items():
            if answers == "refused":
                assert {name, other} == {"bool", "float16"}
                continue
            for text, cell in zip(texts, answers, strict=True):
                if cell != ".":
                    expected = is_cast_safely(number(text, source.category), source, as_format(other))
                    assert cell == "!="[expected], (name, other, text)
                    counts[cell] += 1
    assert counts == {"=": 3329, "!": 1945}


@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
def test_quotients_of_integers_are_those_of_pyarrow(library):
    wrap = {"numpy": np, "jax": jnp}.get(library) or import_or_skip(library)
    pairs = [tuple(map(int, pair.split())) for pair in MEASURED.document["quotients"]]
    with use_rules("pyarrow"), jax.enable_x64(True):
        left, right = (supremum.asarray(wrap.asarray(np.array(side))) for side in zip(*pairs, strict=True))
        quotient = left / right
        assert str(quotient.dtype) == "int64"
        assert [int(each) for each in quotient] == list(MEASURED.document["quotients"].values())
        assert [[int(each) for each in side] for side in (left[:2] / 2, 7 / left[:2])] == [[3, -3], [1, -1]]


@for_each(
    "value, into, stored",
    [
        ("int8", "int8", True),
        ("int8", "int16", False),
        (1, "int8", True),
        (1000, "int8", False),
        (1.5, "int8", False),
        (True, "int8", False),
        (True, "float32", True),
        (1e300, "float32", False),
        (2**24, "float32", True),
        (2**24 + 1, "float32", False),
        (2**12 + 1, "float16", True),
        (1, "bool", False),
    ],
)
def test_python_numbers_are_stored_as_fill_null_stores_them_if_they_are_in_range(value, into, stored):
    assert bool(explain(value, operation="assign", into=into, rules=PYARROW)) == stored
