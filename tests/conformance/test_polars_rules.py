"""The rules of Polars 2 and Polars 1 compared with measurements of both, cell by cell."""

import collections
import itertools

import pytest

from conformance.departures import DEPARTURES
from conformance.measured import cells, document, triples
from supremum import ScalarOverflowError, explain, result_type
from supremum.formats import FORMATS, as_format
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS, REDUCTIONS, as_operation
from supremum.rules import get_rules
from supremum.rules.polars import POLARS, POLARS_1

MEASURED = {rules: document(rules) for rules in ("polars", "polars-1")}
both = pytest.mark.parametrize("rules", MEASURED)


def operand(name):
    return as_operand(True if name == "bool()" else name)


def full(rules, code):
    return MEASURED[rules]["codes"].get(code, code)


def theirs_of(rules, cell):
    return "refused" if cell in MEASURED[rules]["refusals"] else full(rules, cell)


def ours(rules, operation, *names):
    bounds = names[1:] if operation == "clip" else ()
    result = get_rules(rules).decide(operation, [operand(name) for name in (*names, *bounds)]).result
    return "refused" if result is None else str(result.dtype)


@both
def test_dtypes_agree_with_measured_polars_except_departures(rules):
    compared, covered, unexplained = collections.Counter(), collections.Counter(), {}
    for (operation, form, *codes), cell in cells(MEASURED[rules]["tables"], MEASURED[rules]["columns"]):
        left, right = (full(rules, code) for code in codes)
        compared[form] += 1
        found, theirs = ours(rules, operation, *filter(None, (left, right))), theirs_of(rules, cell)
        if found != theirs:
            key = (operation, form, left, right, found, theirs)
            rows = [row for row in DEPARTURES if row.rules == rules and row.covers(*key)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[key] = len(rows)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == rules}
    assert compared == COMPARED[rules]


COMPARED = {
    "polars": {"expression": 8010, "series": 5404},
    "polars-1": {"expression": 6324, "series": 4236},
}


def test_oracles_have_the_expected_versions_and_operations():
    assert {rules: found["version"] for rules, found in MEASURED.items()} == {"polars": "2.1.0", "polars-1": "1.30.0"}
    for rules, found in MEASURED.items():
        measured = {operation for (operation, *_), _ in cells(found["tables"], found["columns"])}
        lacking = {*ELEMENTWISE, *REDUCTIONS} - measured
        # Polars' `&` of Booleans is measured as bitwise_and.
        assert lacking <= get_rules(rules).stands_in.keys() | {"imag", "logical_and", "logical_or", "logical_xor"}
        assert not measured & get_rules(rules).stands_in.keys()
        assert ours(rules, "logical_and", "bool", "bool") == ours(rules, "bitwise_and", "bool", "bool") == "bool"
    assert "float16" in MEASURED["polars"]["codes"].values()
    assert "float16" not in MEASURED["polars-1"]["codes"].values()


@both
def test_schemas_differ_from_results_only_where_polars_promises_and_then_refuses(rules):
    """`collect_schema` gives the measured dtype, or one for a call that fails when it runs, or none."""
    found, differing = MEASURED[rules], collections.Counter()
    ran = {key: cell for key, cell in cells(found["tables"], found["columns"]) if key[1] == "expression"}
    for operations, rows in found["differing"]["schema"].items():
        for name, (left, row) in itertools.product(operations.split(), rows.items()):
            for right, promise in (pair.split("=") for pair in row.split()):
                operation = as_operation(name).name
                key = (operation, "expression", *((right, "") if left == "unary" else (left, right)))
                fails = theirs_of(rules, ran[key]) == "refused"
                has_promise = theirs_of(rules, promise) != "refused"
                differing["fails" if fails else "another dtype" if has_promise else "no dtype"] += 1
    assert differing == SCHEMAS[rules]


SCHEMAS = {
    "polars": {"fails": 443, "another dtype": 5},
    "polars-1": {"fails": 415, "another dtype": 84, "no dtype": 68},
}


@both
def test_numbers_in_literals_count_as_bare_ones(rules):
    literals = MEASURED[rules]["differing"]["literal"]
    assert literals.keys() == {"atan2"}
    compared = 0
    for left, row in literals["atan2"].items():
        for right, cell in (pair.split("=") for pair in row.split()):
            names = full(rules, left), full(rules, right)
            assert ours(rules, "atan2", *names) == full(rules, cell)
            compared += 1
    assert compared == next(row.cells for row in DEPARTURES if row.rules == rules and row.operations == "atan2")


@both
def test_three_operands_promote_from_left_to_right(rules):
    """As in `pl.concat` and `pl.max_horizontal`; a chain of `when` and `then` begins with the last two."""
    found, compared = MEASURED[rules], collections.Counter()
    codes = " ".join(found["codes"])
    for function, rows in found["triples"].items():
        columns = codes if function == "concat" else f"{codes} bool() int* float*"
        for keys, cell in triples(rows, columns):
            names = [full(rules, key) for key in keys]
            with_numbers = any(is_number(name) for name in names)
            # `max_horizontal` of Polars 1 promotes in another order; `where` is decided for two operands.
            is_asked = rules == "polars" if function == "maximum" else not with_numbers
            if not is_asked:
                continue
            theirs = theirs_of(rules, cell)
            if function == "where":
                inner = ours(rules, "where", *names[1:])
                answer = inner if inner == "refused" else ours(rules, "where", names[0], inner)
            else:
                answer = ours(rules, "concat" if function == "concat" else "result_type", *names)
            compared[function] += 1
            assert answer == theirs, (function, names)
    assert compared == TRIPLES[rules]


def is_number(name):
    return name.endswith(("*", "()"))


TRIPLES = {
    "polars": {"maximum": 4913, "where": 2744, "concat": 2744},
    "polars-1": {"where": 1728, "concat": 1728},
}


@both
def test_python_ints_out_of_range_agree_with_measured_polars_except_counted_ones(rules):
    compared, differing = 0, collections.Counter()
    for dtype, name, number, cell, value in _valued(rules):
        *form, operation = name.split()
        operands = [operand(dtype), as_operand(number)][:: -1 if form == ["reversed"] else 1]
        decision = get_rules(rules).decide(operation, operands + operands[1:] * (operation == "clip"))
        answer, theirs = str(decision.dtype) if decision else "refused", theirs_of(rules, cell)
        compared += 1
        if answer != theirs:
            differing[_why(form, operation, value)] += 1
            assert form == ["series"] or answer == "refused", (dtype, name, number)
    assert (compared, differing) == VALUES[rules]


def _valued(rules):
    """List (dtype, operation, number, cell, value) of the calls with a Python int."""
    found = MEASURED[rules]
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
            decision = get_rules(rules).decide("where", [operand(dtype), as_operand(number)])
            becomes = {change.position: change.becomes for change in decision.number_changes}
            assert float(value) == becomes.get(1, number), (dtype, number)
            compared += 1
    assert compared == {"polars": 111, "polars-1": 74}[rules]


@both
def test_reductions_accumulate_as_measured(rules):
    for operation, row in MEASURED[rules]["accumulates"].items():
        for code, how in row.items():
            dtype = full(rules, code)
            decision = explain(dtype, operation=operation, rules=rules)
            assert (decision.casts[0].target == as_format(dtype).dtype) == (how == "own"), operation
    assert bool(MEASURED[rules]["accumulates"].get("sum")) == (rules == "polars")


@both
def test_formats_that_polars_lacks_are_refused(rules):
    absent = [row.name for row in FORMATS if row.name not in MEASURED[rules]["codes"].values()]
    assert "bfloat16" in absent
    for name in absent:
        for operands in ((name, name), (name, "float32"), (name, 1.0), ("int8", name)):
            decision = explain(*operands, operation="add", rules=rules)
            assert decision.reason == (f"Polars has no {name} columns",)
            fix = decision.fix  # a column has no imaginary part to drop
            assert (fix is None) == (as_format(name).category == "complex")
            assert fix is None or explain(*fix.apply(decision.operands), operation="add", rules=rules)


def test_polars_2_gives_int128_where_polars_1_gave_float64():
    assert str(result_type("uint64", "int8", rules=POLARS)) == "int128"
    assert str(result_type("uint64", "int8", rules=POLARS_1)) == "float64"
    assert explain("bool", "int8", operation="bitwise_and", rules=POLARS_1)
    assert not explain("bool", "int8", operation="bitwise_and", rules=POLARS)


def test_python_numbers_without_a_column_get_default_dtypes():
    pairs = [(1,), (True, 1), (1, 2.0), (2**31, 1), (2**63,)]
    assert [str(result_type(*pair, rules=POLARS)) for pair in pairs] == ["int32", "int32", "float64", "int64", "uint64"]
    assert str(result_type(-1, 2**63, rules=POLARS)) == "int128"
    assert str(result_type(-1, 2**63, rules=POLARS_1)) == "float64"


def test_ints_that_polars_makes_null_overflow():
    with pytest.raises(ScalarOverflowError, match="Polars makes a Python int null"):
        result_type("uint8", 2**64, rules=POLARS)
    assert str(result_type("float32", 2**64, rules=POLARS)) == "float32"


@pytest.mark.parametrize(
    ("operation", "operands", "reason"),
    [
        ("add", ("uint8", "int8"), "uint8 and int8 promote to int16"),
        ("add", ("uint8", 1000), "uint8 and a Python int promote to uint16"),
        ("add", ("uint64", -1), "uint64 and a Python int promote to int64"),
        ("add", ("bool", "bool"), "add converts bool to uint32"),
        ("subtract", ("bool", "bool"), "subtract does not accept bool operands"),
        ("add", ("int8", 1j), "Polars has no complex numbers"),
        ("divide", ("uint64", "int8"), "divide converts int128 to float64"),
        ("pow", ("int8", "int64"), "a power has the type of its base, int8"),
        ("pow", ("int64", "float16"), "a power has the type of its exponent, float16"),
        ("pow", ("int64", -1), "the exponent of an integer must be between 0 and 2**32 - 1"),
        ("pow", ("bool", "int8"), "Polars' pow does not accept Boolean"),
        ("atan2", ("float32", "float64"), "arctan2 takes its first operand, float32, as float32"),
        ("bitwise_and", ("bool", "int8"), "Polars' bitwise_and does not accept Boolean next to int8"),
        ("negative", ("uint8",), "Polars has no negative of uint8"),
        ("sum", ("int8",), "sum of int8 is int64"),
        ("diff", ("uint8",), "diff converts uint8 to int16"),
        ("clip", ("int8", 0, 1000), "a Python int does not fit int8, to which Polars casts the bounds"),
        ("matmul", ("int8", "int8"), "Polars has no matmul, so it is decided like vecdot"),
    ],
)
def test_reason_names_the_rule_that_decided(operation, operands, reason):
    assert reason in str(explain(*operands, operation=operation, rules=POLARS))


@both
@pytest.mark.parametrize("operation", [row.name for row in OPERATIONS.values() if row.arity != 1])
def test_equal_dtypes_are_kept_or_converted_without_a_loss(rules, operation):
    compared = 0
    for name in get_rules(rules).floats.keys() | {"float32", "float64"}:
        decision = get_rules(rules).decide(operation, [operand(name)] * 2)
        if decision:
            source = as_format(name, columns=True)
            assert as_format(decision.casts[0].target).holds(source) or source.bits >= 64
            compared += 1
    assert compared >= 1
