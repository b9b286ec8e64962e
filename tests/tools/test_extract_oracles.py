"""The measurements of frameworks, which write tests/conformance/oracles/."""

import ast
import importlib
import json
import sys
from pathlib import Path

import pytest

import extract_oracles
from optional_packages import import_or_skip
from oracles import tables

ROOT = Path(__file__).parents[2]
ORACLES = ROOT / "tests/conformance/oracles"
MODULES = {path.stem: path for path in (ROOT / "tools/oracles").glob("*.py") if path.stem != "__init__"}
SHARED = ("tables", "arrays", "assignments", "casts", "missing")


def imports_of(path):
    """The modules of tools/oracles that a file imports, in functions, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "oracles":
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("oracles."):
            found.add(node.module.removeprefix("oracles."))
    return found


def test_frameworks_import_what_is_shared_and_not_each_other():
    assert imports_of(MODULES["tables"]) == set()
    assert all(imports_of(MODULES[name]) <= {"tables"} for name in SHARED)
    frameworks = {name.replace("-", "_") for name in extract_oracles.FRAMEWORKS}
    assert {*MODULES} == {*SHARED} | frameworks
    assert all({"tables"} <= imports_of(MODULES[name]) <= {*SHARED} for name in frameworks)


@pytest.mark.parametrize("framework", ["polars", "pyarrow"])
def test_a_document_is_the_stored_one_if_the_same_version_is_installed(framework, tmp_path, monkeypatch, capsys):
    name = f"{framework}-missing"
    stored = (ORACLES / f"{name}.json").read_text("utf-8")
    if import_or_skip(framework).__version__ != json.loads(stored)["version"]:
        pytest.skip("another version is installed")
    monkeypatch.setattr(sys, "argv", ["extract_oracles.py", framework, name, "--folder", str(tmp_path)])
    extract_oracles.main()
    assert (tmp_path / f"{name}.json").read_text("utf-8") == stored
    assert capsys.readouterr().out.startswith(f"{framework} ")
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.json"]


def test_every_stored_document_of_an_installed_framework_has_a_measurement():
    import_or_skip("polars")
    names = {path.stem for path in ORACLES.glob("*polars*.json") if "polars-1" not in path.stem}
    assert {*importlib.import_module("oracles.polars").DOCUMENTS} == names


def test_cells_are_codes_of_results_or_signs_of_refusals():
    cell = tables.outcome({"-": ("refused", "unsupported operand")}, lambda result: type(result).__name__[0])
    found = tables.grids(cell, "operator", {"subtract": tables.OPERATORS["subtract"]}, {"i": 1, "s": "a", "f": 1.5})
    assert found == {
        "subtract operator": {
            "i": {"i": "i", "s": "-", "f": "f"},
            "s": {"i": "-", "s": "-", "f": "-"},
            "f": {"i": "f", "s": "-", "f": "f"},
        }
    }
    with pytest.raises(ValueError, match="no pattern of a refusal matches 'division by zero'"):
        cell(lambda: 1 / 0)


def test_operations_with_the_same_cells_share_a_table():
    same = {"i4": {"i4": "i4"}, "f4": {"f4": "f4", "i4": "-"}}
    measured = {"add function": same, "multiply function": same, "less function": {"i4": {"i4": "b1"}}}
    assert tables.as_text(measured, ["i4", "f4"]) == [
        {"measured": ["add function", "multiply function"], "rows": {"i4": "i4 .", "f4": "- f4"}},
        {"measured": ["less function"], "rows": {"i4": "b1 ."}},
    ]


def test_only_cells_that_differ_are_listed_and_operations_with_the_same_ones_share_an_entry():
    before = {f"{name} operator": {"i4": {"i4": "i4", "f4": "f4"}} for name in ("add", "multiply", "pow")}
    after = {f"{name} operator": {"i4": {"i4": "i4", "f4": "-"}} for name in ("add", "multiply")}
    after["pow operator"] = before["pow operator"]
    assert tables.differing(before, after, "operator") == {"add multiply": {"i4": "f4=-"}}
    assert tables.differing(before, after, "function") == {}


def test_numbers_out_of_range_have_a_type_and_a_value_or_a_refusal():
    framework = tables.Framework(
        name="python",
        version="3",
        codes={"i": "int", "f": "float"},
        make=lambda value, name: {"int": int, "float": float}[name](value[0]),
        name_of=lambda result: type(result).__name__,
        numbers=lambda result: [result],
    )
    cell = tables.outcome({"o": ("overflow", "^OverflowError")}, framework.code_of)
    assert framework.out_of_range(cell, ("add", "pow"), [("int", 2), ("float", 10**400)]) == {
        "int,2": {"add": {"type": "i", "value": "3"}, "pow": {"type": "i", "value": "1"}},
        f"float,{10**400}": {"add": {"refused": "o"}, "pow": {"refused": "o"}},
    }
