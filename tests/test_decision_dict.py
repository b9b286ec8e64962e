"""`Decision.to_dict`: all of a decision as plain data."""

import json
from itertools import product

import numpy as np
import pytest
from typer.testing import CliRunner

import supremum
from supremum import explain
from supremum.cli.app import app
from supremum.formats import format_names
from supremum.rules import HOMES

KEYS = [
    "rules", "operation", "operands", "into", "allowed", "result", "casts", "stored", "number_changes", "reason",
    "paths", "overflow", "fix",
]  # fmt: skip


def test_a_decision_in_a_lattice_as_data():
    assert explain("int8", "uint8", operation="add", rules="jax-x64").to_dict() == {
        "rules": "jax-x64",
        "operation": "add",
        "operands": [
            {"name": "int8", "dtype": "int8", "weak": False, "nullable": False, "ndim": None, "value": None},
            {"name": "uint8", "dtype": "uint8", "weak": False, "nullable": False, "ndim": None, "value": None},
        ],
        "into": None,
        "allowed": True,
        "result": {"name": "int16", "dtype": "int16", "weak": False, "nullable": False},
        "casts": [
            {"from": "int8", "to": "int16", "changes": True, "lossy": False},
            {"from": "uint8", "to": "int16", "changes": True, "lossy": False},
        ],
        "stored": None,
        "number_changes": [],
        "reason": ["int16 is the least upper bound: int8 -> int16, uint8 -> int16"],
        "paths": [["int8", "int16"], ["uint8", "int16"]],
        "overflow": False,
        "fix": None,
    }


def test_numbers_casts_and_stores_as_data():
    data = explain(np.int8(3), 1000, operation="add", rules="torch").to_dict()
    assert data["operands"][0]["ndim"] == 0
    number = {"name": "int*", "dtype": None, "weak": True, "nullable": False, "ndim": 0, "value": "1000"}
    assert data["operands"][1] == number
    assert data["casts"][1] == {"from": None, "to": data["result"]["dtype"], "changes": True, "lossy": False}
    data = explain(np.zeros(2, "int8"), 1000, operation="add", rules="torch").to_dict()
    assert data["number_changes"] == [{"position": 1, "value": "1000", "becomes": "-24", "how": "wraps"}]
    data = explain("f32", "f64", operation="add", into="f32", rules="torch").to_dict()
    assert data["into"]["name"] == "float32"
    assert data["stored"] == {"from": "float64", "to": "float32", "changes": True, "lossy": True}
    weak = {"name": "float*", "dtype": "float64", "weak": True, "nullable": False}
    assert explain(1.5, rules="jax-x64").to_dict()["result"] == weak


def test_refusals_as_data_have_a_fix_that_works():
    decision = explain("uint8", 256, rules="tf-rfc-safe")
    data = decision.to_dict()
    assert (data["allowed"], data["result"], data["casts"], data["overflow"]) == (False, None, [], True)
    assert data["fix"]["code"] == str(decision.fix)
    (cast,) = data["fix"]["casts"]
    operands = ["uint8", 256]
    operands[cast["position"]] = cast["dtype"]
    assert supremum.can_promote(*operands, rules="tf-rfc-safe")
    assert cast["code"] in data["fix"]["code"]


NUMBERS = [True, 2**300, -(10**5000), float("nan"), float("inf"), -1e-400, 1j, complex("nan+infj")]


@pytest.mark.parametrize("value", NUMBERS, ids=range(len(NUMBERS)))
def test_every_number_is_valid_json_and_keeps_its_value(value):
    text = json.dumps(explain("float32", value, rules="jax-x64").to_dict(), allow_nan=False)
    shown = json.loads(text)["operands"][1]["value"]
    read = int(shown, 0) if type(value) is int else shown == "True" if value is True else type(value)(shown)
    assert read == value or str(read) == str(value)


def test_every_rule_set_gives_valid_json_with_the_same_keys():
    count = 0
    operands = [*format_names()[::5], 300, 0.1]
    for rules, (a, b) in product(HOMES, product(operands, repeat=2)):
        decision = explain(a, b, operation="multiply", rules=rules)
        data = json.loads(json.dumps(decision.to_dict(), allow_nan=False))
        assert [*data] == KEYS
        assert data["allowed"] == bool(decision)
        assert (data["fix"] is None) == (decision.fix is None)
        count += 1
    assert count == len(HOMES) * len(operands) ** 2 > 1000


def test_the_command_prints_it():
    result = CliRunner().invoke(
        app, ["explain", "bf16", "f16", "--rules", "torch", "--rules", "numpy", "--format", "json"]
    )
    expected = [explain("bfloat16", "float16", rules=name).to_dict() for name in ("torch", "numpy")]
    assert json.loads(result.stdout) == {"decisions": expected}
    assert result.exit_code == 0
