"""What is special about Polars 2 and Polars 1: schemas, literals, three operands, ints that become null, reductions."""

import collections
import itertools

import pytest

from conformance.departures import DEPARTURES
from conformance.measured import REFUSED, triples
from conformance.measured_rules import ORACLE_OF
from supremum import explain, result_type
from supremum.formats import as_format
from supremum.operands import as_operand
from supremum.operations import OPERATIONS, as_operation
from supremum.rules import get_rules
from supremum.rules.polars import POLARS, POLARS_1

both = pytest.mark.parametrize("rules", ["polars", "polars-1"])


def test_only_polars_2_has_float16_and_bitwise_and_of_bools_is_logical():
    assert [("float16" in ORACLE_OF[rules].codes.values()) for rules in ("polars", "polars-1")] == [True, False]
    for rules in ("polars", "polars-1"):
        answers = {ORACLE_OF[rules].ours(name, "bool", "bool") for name in ("logical_and", "bitwise_and")}
        assert answers == {"bool"}


@both
def test_schemas_differ_from_results_only_where_polars_promises_and_then_refuses(rules):
    """`collect_schema` gives the measured dtype, or one for a call that fails when it runs, or none."""
    measured, differing = ORACLE_OF[rules], collections.Counter()
    ran = {key: cell for key, cell in measured.cells() if key[1] == "expression"}
    for operations, rows in measured.document["differing"]["schema"].items():
        for name, (left, row) in itertools.product(operations.split(), rows.items()):
            for right, promise in (pair.split("=") for pair in row.split()):
                operation = as_operation(name).name
                key = (operation, "expression", *((right, "") if left == "unary" else (left, right)))
                fails = measured.theirs(ran[key]) == "refused"
                has_promise = measured.theirs(promise) != "refused"
                differing["fails" if fails else "another dtype" if has_promise else "no dtype"] += 1
    assert differing == SCHEMAS[rules]


SCHEMAS = {
    "polars": {"fails": 443, "another dtype": 5},
    "polars-1": {"fails": 415, "another dtype": 84, "no dtype": 68},
}


@both
def test_numbers_in_literals_count_as_bare_ones(rules):
    measured = ORACLE_OF[rules]
    literals = measured.document["differing"]["literal"]
    assert literals.keys() == {"atan2"}
    compared = 0
    for left, row in literals["atan2"].items():
        for right, cell in (pair.split("=") for pair in row.split()):
            assert measured.ours("atan2", left, right) == measured.full(cell)
            compared += 1
    assert compared == next(row.cells for row in DEPARTURES if row.rules == rules and row.operations == "atan2")


@both
def test_three_operands_promote_from_left_to_right(rules):
    """As in `pl.concat` and `pl.max_horizontal`; a chain of `when` and `then` begins with the last two."""
    measured, compared = ORACLE_OF[rules], collections.Counter()
    codes = " ".join(measured.codes)
    for function, rows in measured.document["triples"].items():
        columns = codes if function == "concat" else f"{codes} bool() int* float*"
        for keys, cell in triples(rows, columns):
            with_numbers = any(key in measured.numbers for key in keys)
            # `max_horizontal` of Polars 1 promotes in another order; `where` is decided for two operands.
            is_asked = rules == "polars" if function == "maximum" else not with_numbers
            if not is_asked:
                continue
            if function == "where":
                inner = measured.ours("where", *keys[1:])
                answer = inner if inner == REFUSED else measured.ours("where", keys[0], inner)
            else:
                answer = measured.ours("concat" if function == "concat" else "result_type", *keys)
            compared[function] += 1
            assert answer == measured.theirs(cell), (function, keys)
    assert compared == TRIPLES[rules]


TRIPLES = {
    "polars": {"maximum": 4913, "where": 2744, "concat": 2744},
    "polars-1": {"where": 1728, "concat": 1728},
}


@both
def test_python_ints_out_of_range_agree_with_measured_polars_except_counted_ones(rules):
    compared, differing = 0, collections.Counter()
    for dtype, name, number, cell, value in _valued(rules):
        *form, operation = name.split()
        operands = [as_operand(dtype), as_operand(number)][:: -1 if form == ["reversed"] else 1]
        decision = get_rules(rules).decide(operation, operands + operands[1:] * (operation == "clip"))
        answer, theirs = str(decision.dtype) if decision else REFUSED, ORACLE_OF[rules].theirs(cell)
        compared += 1
        if answer != theirs:
            differing[_why(form, operation, value)] += 1
            assert form == ["series"] or answer == REFUSED, (dtype, name, number)
    assert (compared, differing) == VALUES[rules]


def _valued(rules):
    """List (dtype, operation, number, cell, value) of the calls with a Python int."""
    found = ORACLE_OF[rules].document
    for dtype, rows in found["values"].items():
        for name, outcomes in rows.items():
            for number, outcome in zip(found["numbers"].split(), outcomes.split(), strict=True):
                cell, _, value = outcome.partition("=")
                yield dtype, name, int(number), cell, value


def _why(form, operation, value):
    """Why our rules differ from Polars with an int of this size."""
    if form == ["series"]:
        return "a Series refuses an int that its type does not hold, and takes any next to a float"
    return "Polars makes the int null" if value == "null" else f"{operation} skips the null that the int becomes"


VALUES = {
    "polars": (
        5740,
        {
            "a Series refuses an int that its type does not hold, and takes any next to a float": 248,
            "Polars makes the int null": 132,
            "maximum skips the null that the int becomes": 43,
        },
    ),
    "polars-1": (
        4920,
        {"a Series refuses an int that its type does not hold, and takes any next to a float": 210},
    ),
}


@both
def test_ints_next_to_floats_are_converted_as_in_polars(rules):
    compared = 0
    for dtype, name, number, _, value in _valued(rules):
        if name == "where" and as_format(dtype, columns=True).category == "float" and value:
            decision = get_rules(rules).decide("where", [as_operand(dtype), as_operand(number)])
            becomes = {change.position: change.becomes for change in decision.number_changes}
            assert float(value) == becomes.get(1, number), (dtype, number)
            compared += 1
    assert compared == {"polars": 111, "polars-1": 74}[rules]


@both
def test_reductions_accumulate_as_measured(rules):
    measured = ORACLE_OF[rules]
    for operation, row in measured.document["accumulates"].items():
        for code, how in row.items():
            dtype = measured.full(code)
            decision = explain(dtype, operation=operation, rules=rules)
            assert (decision.casts[0].target == as_format(dtype).dtype) == (how == "own"), operation
    assert bool(measured.document["accumulates"].get("sum")) == (rules == "polars")


def test_polars_2_gives_int128_where_polars_1_gave_float64():
    assert str(result_type("uint64", "int8", rules=POLARS)) == "int128"
    assert str(result_type("uint64", "int8", rules=POLARS_1)) == "float64"
    assert explain("bool", "int8", operation="bitwise_and", rules=POLARS_1)
    assert not explain("bool", "int8", operation="bitwise_and", rules=POLARS)


@both
def test_equal_dtypes_are_kept_or_converted_without_a_loss(rules):
    compared, operations = set(), [row.name for row in OPERATIONS.values() if row.arity != 1]
    for operation, name in itertools.product(operations, get_rules(rules).floats.keys() | {"float32", "float64"}):
        decision = get_rules(rules).decide(operation, [as_operand(name)] * 2)
        if decision:
            source = as_format(name, columns=True)
            assert as_format(decision.casts[0].target).holds(source) or source.bits >= 64, (operation, name)
            compared.add(operation)
    assert compared == {*operations}
