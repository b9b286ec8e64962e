"""Rule sets compared with the measurements of their frameworks: every cell, every triple, and Python numbers."""

import collections
import itertools

import pytest

from conformance.departures import DEPARTURES
from conformance.measured import NUMBERS, REFUSED, Comparison, number
from conformance.measured_rules import ORACLES_OF_RULES
from supremum import explain
from supremum.formats import COLUMN_FORMATS, FORMATS
from supremum.number_conversion import converted
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS
from supremum.rules import get_rules


def every_oracle(has):
    """Run a test for each oracle that has what the test compares."""
    asked = [oracle for oracle in ORACLES_OF_RULES if has(oracle)]
    return pytest.mark.parametrize("oracle", asked, ids=[each.title for each in asked])


def has_own_rules(oracle):
    return oracle.framework != "pandas-mixed"


@every_oracle(lambda oracle: True)
def test_dtypes_agree_with_the_measured_framework_except_departures(oracle):
    found = Comparison(oracle.rules, oracle.departures(*oracle.forms), oracle.label)
    for (operation, form, left, right), cell in oracle.cells():
        ours, theirs = oracle.ours(operation, left, right, cell=cell), oracle.theirs(cell)
        if oracle.lacks_kernel(cell, ours):
            found.skipped[form] += 1
        else:
            found.add(operation, form, left, right, ours=ours, theirs=theirs)
    found.check()
    assert (found.compared, found.skipped) == (oracle.forms, oracle.skipped)


@pytest.mark.slow
@every_oracle(lambda oracle: oracle.rules in ("paddle", "tinygrad"))
def test_pairs_commute_in_every_operation(oracle):
    names = [*oracle.codes, *(f"{code}[]" for code in oracle.codes if oracle.rules == "paddle"), *NUMBERS]
    wrong, accepted = [], 0
    for row, (a, b) in itertools.product(OPERATIONS.values(), itertools.combinations(names, 2)):
        if row.arity == 2:
            answers = oracle.ours(row.name, a, b), oracle.ours(row.name, b, a)
            accepted += answers[0] != REFUSED
            if len(set(answers)) > 1:
                wrong.append((row.name, a, b, *answers))
    assert wrong == []
    assert accepted > 1000


def test_every_counted_departure_has_a_form_that_a_test_compares():
    forms = {form for oracle in ORACLES_OF_RULES for form in oracle.forms}
    measured = {oracle.rules for oracle in ORACLES_OF_RULES}
    others = {row.form for row in DEPARTURES if row.rules in measured and row.cells} - forms
    assert others == {"number of a method"}


@every_oracle(has_own_rules)
def test_oracle_has_the_expected_version_and_operations(oracle):
    assert {key: oracle.document[key] for key in oracle.facts} == oracle.facts
    rule_set, unmeasured = get_rules(oracle.rules), set(oracle.unmeasured.split())
    asked = {
        operation for (operation, form, *_), cell in oracle.cells()
        if form != "numpy" and not (oracle.skips_equal and oracle.lacks_kernel(cell, ""))
    }  # fmt: skip
    stand_ins = rule_set.stands_in.keys() & ELEMENTWISE.keys()
    assert asked.isdisjoint(unmeasured | rule_set.stands_in.keys())  # a measured operation needs no stand-in
    measured = rule_set.measured & ELEMENTWISE.keys()
    assert asked | stand_ins | unmeasured == measured | set(oracle.others.split())
    assert set(oracle.codes.values()) == getattr(rule_set.columns, "dtypes", set(oracle.codes.values()))
    formats = (*FORMATS, *COLUMN_FORMATS)
    assert {row.name for row in formats if rule_set.decide(None, [as_operand(row)])} <= set(oracle.codes.values())


@every_oracle(lambda oracle: oracle.triples)
def test_three_operands_agree_with_the_measured_framework(oracle):
    compared, differing, wrong = collections.Counter(), collections.Counter(), []
    for operation, codes, cell in oracle.triples_of_operands():
        # `maximum` takes two arrays here, but `clip`, which is decided like it, takes three.
        operation = {"maximum": "clip"}.get(operation, operation)
        ours = oracle.ours(operation, *codes)
        compared[operation] += 1
        if ours != oracle.theirs(cell):
            differing[ours == REFUSED, cell] += 1
            wrong.append((operation, *map(oracle.full, codes), ours, oracle.theirs(cell)))
    assert differing == oracle.differing_triples, wrong[:60]
    assert compared == oracle.triples


@every_oracle(lambda oracle: oracle.valued)
def test_python_numbers_agree_with_the_measured_framework_except_departures(oracle):
    found, differing, wrong = Comparison(oracle.rules, oracle.departures("number of a method")), {}, []
    for left, operation, given, cell, value in oracle.numbers_of_calls():
        name, theirs = oracle.full(left), oracle.theirs(cell)
        decision = explain(1 if left == "int*" else name, given, operation=operation, rules=oracle.rules)
        ours = oracle.written(decision) if decision else REFUSED
        if ours != theirs and operation in oracle.valued_differing:
            differing[operation] = differing.get(operation, 0) + 1
            ours = theirs
        kind = as_operand(type(given)).name
        found.add(operation, "number of a method", name, kind, ours=ours, theirs=theirs)
        call = f"{operation}({name}, {given})"
        if cell in oracle.out_of_range and isinstance(given, int) and not decision.verdict.overflow:
            wrong.append(f"{call} is refused, but not as an overflow")
        if value and ours == theirs != REFUSED and operation in ("multiply", "where", "logical_and"):
            becomes, computed = converted(given, decision.verdict.number_steps[1]), number(value)
            if operation == "multiply":  # the product with a complex infinity is not a number in one of its parts
                becomes, computed = becomes.real, computed.real
            if (bool(becomes) if operation == "logical_and" else becomes) != computed:
                wrong.append(f"{call} becomes {becomes}, theirs {value}")
    found.check()
    assert wrong == []
    assert differing == oracle.valued_differing
    assert sum(found.compared.values()) == oracle.valued
