"""Paddle's rules compared with measurements of Paddle 3.3.1 and with "Paddle type promotion", cell by cell."""

import collections
import dataclasses
import functools
import itertools
import json
import pathlib

import numpy as np
import pytest

from conformance.departures import DEPARTURES
from supremum import explain, result_type
from supremum.formats import FORMATS, as_format
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS, Operation, Result, as_operation
from supremum.rules.paddle import PADDLE

ORACLES = pathlib.Path(__file__).parent / "oracles"
MEASURED = json.loads((ORACLES / "paddle.json").read_text())
PAGE = json.loads((ORACLES / "paddle-type-promotion-md.json").read_text())
CODES = MEASURED["codes"]
SCALARS = ["bool()", "int*", "float*", "complex*"]
# A missing kernel and shapes that do not fit say nothing about promotion.
UNMEASURED = {sign for sign, reason in MEASURED["refusals"].items() if reason in ("no-kernel", "rank")}


def full(code):
    """Spell out a code: `"f4[]"` becomes `"float32[]"`."""
    return CODES.get(code.removesuffix("[]"), code.removesuffix("[]")) + "[]" * code.endswith("[]")


@functools.cache
def operand(name):
    if name == "bool()":
        return as_operand(True)
    if name.endswith("[]"):
        return dataclasses.replace(as_operand(name.removesuffix("[]")), ndim=0)
    return as_operand(name)


def measured_cells():
    """List ((operation, form, left, right), cell) for all calls that were measured in eager mode."""
    columns = [full(code) for code in MEASURED["columns"].split()]
    for table in MEASURED["tables"]:
        for measured, (row, cells) in itertools.product(table["measured"], table["rows"].items()):
            operation, form = measured.split()
            for column, cell in zip(columns, cells.split(), strict=True):
                if cell != ".":
                    yield (
                        (row, form, column, "") if operation == "unary" else (operation, form, full(row), column),
                        cell,
                    )


def static_cells():
    """List the cells in which running a static program gives a different type than eager mode."""
    for form, tables in MEASURED["differing"].items():
        for operations, rows in tables.items():
            for operation, (row, cells) in itertools.product(operations.split(), rows.items()):
                for column, cell in (pair.split("=") for pair in cells.split()):
                    yield (operation, form, full(row), full(column)), cell


def page_cells():
    """List the cells of both tables for all 31 functions of the page, with full names of dtypes."""
    for operation, rules in PAGE["functions"].items():
        for rule, form in zip(rules, ("tensors", "scalars"), strict=True):
            for left, row in PAGE[form].items():
                for right, cell in row.items():
                    yield (operation, f"page {form}", left, right), page_rule(rule, cell)


def page_rule(rule, cell):
    """Apply the rule that the page's list of functions names to a cell of the page's tables."""
    if "-" in (rule, cell):
        return "refused"
    category = as_format(cell).category
    if rule == "Logic":
        return "refused" if category == "complex" else "bool"
    return "float32" if rule == "Divide" and category in ("bool", "integer") else cell


def theirs_of(cell):
    if cell in MEASURED["refusals"]:
        return "refused"
    return CODES.get(cell.strip("()"), cell)


def ours_for(cell, operation, *names):
    """Our dtype; our dtype of computation if the cell is in parentheses, the dtype of Paddle's missing kernel."""
    decision = PADDLE.decide(operation, [operand(name) for name in names if name])
    if not decision:
        return "refused"
    return str(decision.casts[0].target if cell.startswith("(") else decision.dtype)


def test_oracles_have_the_expected_version_and_cells():
    assert MEASURED["version"] == "3.3.1"
    forms = collections.Counter(form for (_, form, _, _), _ in measured_cells())
    assert forms == {"function": 30000, "operator": 18256}
    measured = {as_operation(operation).name for (operation, *_), _ in measured_cells()}
    assert measured == ELEMENTWISE.keys()
    assert len(PAGE["functions"]) == 31
    assert {as_operation(name).name for name in PAGE["functions"]} <= measured
    assert sum(map(len, PAGE["tensors"].values())) == 144
    assert sum(map(len, PAGE["scalars"].values())) == 48


@pytest.mark.slow
def test_dtypes_agree_with_measured_paddle_and_its_page_except_departures():
    compared, unmeasured, covered, unexplained = (collections.Counter() for _ in range(4))
    for key, cell in itertools.chain(measured_cells(), static_cells(), page_cells()):
        operation, form, left, right = key
        ours, theirs = ours_for(cell, operation, left, right), theirs_of(cell)
        if cell in UNMEASURED:
            unmeasured[form, MEASURED["refusals"][cell]] += 1
            continue
        compared[form] += 1
        if ours != theirs:
            rows = [row for row in DEPARTURES if row.rules == "paddle" and row.covers(*key, ours, theirs)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[*key, ours, theirs] = len(rows)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == "paddle"}
    assert compared == {
        "function": 25496, "operator": 15628, "static function": 172, "static operator": 292,
        "page tensors": 4464, "page scalars": 1488,
    }  # fmt: skip
    assert unmeasured == {
        ("function", "no-kernel"): 4084, ("function", "rank"): 420, ("operator", "no-kernel"): 2628,
    }  # fmt: skip


def test_numbers_out_of_range_are_accepted_as_in_paddle():
    refused, accepted = [], 0
    for case, outcomes in MEASURED["values"].items():
        dtype, number = case.split(",")
        value = float(number) if "." in number or "e" in number else int(number)
        for operation, outcome in outcomes.items():
            decision = explain(dtype, value, operation=operation, rules=PADDLE)
            if "refused" in outcome:
                refused.append((case, operation, MEASURED["refusals"][outcome["refused"]]))
            else:
                assert str(decision.dtype) == CODES[outcome["type"]], (case, operation)
                accepted += 1
    assert accepted == 35
    # Paddle crashes before it finds a kernel, which is not a rule: it adds the same number without an error.
    assert refused == [(f"int64,{2**63}", "less_than", "overflow")]


BINARY = [row.name for row in OPERATIONS.values() if row.arity == 2]
TENSORS = [name + shape for shape in ("", "[]") for name in CODES.values()]


@pytest.mark.slow
def test_pairs_commute():
    accepted = 0
    for operation, (a, b) in itertools.product(BINARY, itertools.combinations(TENSORS + SCALARS, 2)):
        there, back = (PADDLE.decide(operation, [operand(name) for name in pair]).result for pair in ((a, b), (b, a)))
        assert there == back, (operation, a, b)
        accepted += there is not None
    assert accepted > 1000


@pytest.mark.parametrize("operation", [row.name for row in OPERATIONS.values() if row.arity != 1])
def test_equal_dtypes_are_kept(operation):
    """Two operands of one dtype always work if the operation accepts their category."""
    compared = 0
    for name in CODES.values():
        accepted = PADDLE.accepts.get(operation, OPERATIONS[operation].accepts)
        if as_format(name).category in accepted and name not in PADDLE.lacks.get(operation, ()):
            target = PADDLE.decide(operation, [operand(name)] * 2).casts[0].target
            # Some operations compute integers in a float dtype.
            assert str(target) == name or as_format(name).category == "integer"
            compared += 1
    assert compared >= 2


def test_three_operands_promote_at_once_and_agree_with_every_accepted_grouping():
    """Paddle promotes two operands at a time; three operands are refused if a pair of them is."""

    def promoted(*names):
        decision = PADDLE.decide("result_type", [operand(name) for name in names])
        return str(decision.dtype) if decision else None

    everything = [*CODES.values(), "bool[]", "int64[]", "float64[]", "complex128[]", "float8_e5m2[]", *SCALARS]
    groupings = 0
    for triple in itertools.combinations_with_replacement(everything, 3):
        together = promoted(*triple)
        assert {promoted(*order) for order in itertools.permutations(triple)} == {together}, triple
        pairs = [promoted(*pair) for pair in itertools.combinations(triple, 2) if not {*pair} <= {*SCALARS}]
        if not {*triple} <= {*SCALARS}:
            assert (together is None) == (None in pairs), triple
        if together and all(name in CODES.values() for name in triple):
            groupings += 1
            left = promoted(promoted(*triple[:2]), triple[2])
            assert {left, promoted(triple[0], promoted(*triple[1:]))} == {together}, triple
    assert groupings == 94  # triples of floats, of complex with other dtypes, and of the same dtype three times
    assert "all are promoted at once" in str(explain("float16", "bfloat16", "complex64", rules=PADDLE))


def test_decisions_depend_on_dimensions_and_on_python_bools():
    one, none, zero = (dataclasses.replace(as_operand("float64"), ndim=ndim) for ndim in (1, None, 0))
    narrow = as_operand("float32")
    for wide, dtype in ((one, "float64"), (none, "float64"), (zero, "float32")):
        assert str(PADDLE.decide("add", [narrow, wide]).dtype) == dtype
    # A Python bool differs from a bool tensor: it is accepted where a 0-d tensor is refused.
    assert explain(np.ones(3, "int8"), True, operation="bitwise_and", rules=PADDLE)
    assert not explain(np.ones(3, "int8"), np.bool_(True), operation="bitwise_and", rules=PADDLE)
    assert not explain(np.ones(3, "int8"), True, operation="fmax", rules=PADDLE)


def test_python_scalars_without_a_tensor_get_default_dtypes():
    assert [str(result_type(*pair, rules=PADDLE)) for pair in [(1,), (True, 1), (1, 2.0), (2.0, 1j)]] == [
        "int64", "int64", "float32", "complex64",
    ]  # fmt: skip
    assert str(explain(3, 2, operation="divide", rules=PADDLE).dtype) == "float32"


@pytest.mark.parametrize("name", [row.name for row in FORMATS if row.name not in CODES.values()])
def test_formats_without_paddle_tensors_are_refused(name):
    for operands in ((name, name), (name, "float32"), (name, 1.0), ("int8", name)):
        decision = explain(*operands, operation="add", rules=PADDLE)
        assert decision.reason == (f"Paddle has no {name} tensors",)


def test_unmeasured_operations_are_refused():
    decision = PADDLE.decide(Operation("gcd", 2, Result.COMMON, ("integer",)), [operand("int8")] * 2)
    assert (decision.reason, decision.fix) == (("these rules have no measurement of Paddle's gcd",), None)


FIXED = ["add", "equal", "floor_divide", "where", "copysign", "fmax", "poisson_nll_loss"]
FIXED += ["bitwise_and", "bitwise_left_shift"]


@pytest.mark.one_in(9)
@pytest.mark.parametrize("operation", FIXED)
def test_rules_accept_the_operands_after_the_fix_of_every_refusal(operation):
    refused = 0
    for a, b in itertools.product([*(row.name for row in FORMATS), "int64[]", "float32[]", *SCALARS], repeat=2):
        decision = PADDLE.decide(operation, [operand(a), operand(b)])
        if decision:
            continue
        refused += 1
        assert PADDLE.decide(operation, decision.fix.apply(decision.operands)), (a, b)
        if "complex32" in a + b and ".real" in str(decision.fix):
            continue  # NumPy's `real` does not work for the complex formats of ml_dtypes
        values = {"a": _value(a), "b": _value(b)}
        values |= {name: eval(text, {"np": np}, values) for name, text in decision.fix.expressions().items()}
        assert explain(values["a"], values["b"], operation=operation, rules=PADDLE), (a, b, str(decision.fix))
    assert refused > 1000


def _value(name):
    scalars = {"bool()": True, "int*": 1, "float*": 1.0, "complex*": 1j}
    return scalars[name] if name in scalars else np.ones(() if name.endswith("[]") else 3, name.removesuffix("[]"))


@pytest.mark.parametrize(
    ("operation", "operands", "reason"),
    [
        ("add", ("int32", "float32"), "Paddle promotes tensors only if both are floats or one is complex"),
        ("add", ("int8", np.float64(1)), "Paddle's table promotes int8 and float64 to float64"),
        ("add", (np.ones(2, "int8"), np.int64(1)), "tensors with dimensions outrank 0-d int64 of the same category"),
        ("add", ("float8_e5m2", "float16"), "Paddle's table has no row for float8_e5m2, which works only with itself"),
        ("add", ("float8_e5m2", 1j), "Paddle's table has no row for float8_e5m2, which a Python complex needs"),
        ("add", ("int8", 1000), "a Python int takes the tensors' type, int8"),
        ("add", ("int8", 1.5), "a Python float counts as float32 next to int8, which is of a lower category: float32"),
        ("pow", (np.float64(1), 1j), "a Python complex converts 0-d tensors to complex64 here, even wider ones"),
        ("divide", ("int8", "int8"), "divide converts int8 to float32"),
        ("less", ("float16", "bfloat16"), "less always gives bool"),
        ("where", ("float16", 1.0), "a Python float counts as float32"),
        ("fmax", ("float16", 1.0), "Paddle's fmax does not accept Python float"),
        ("bitwise_and", ("int8", "int16"), "Paddle's bitwise_and does not promote: its tensors must have one type"),
        ("bitwise_and", ("float32", "float32"), "bitwise_and does not accept float operands, got float32"),
        ("abs", ("complex64",), "abs of complex64 is float32"),
    ],
)
def test_reason_names_the_rule_that_decided(operation, operands, reason):
    assert reason in str(explain(*operands, operation=operation, rules=PADDLE))
