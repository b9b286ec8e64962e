"""The faults that are planted in `src/`: which there are, and what they change."""

import ast
import tomllib
from pathlib import Path

import plant_faults

ROOT = Path(__file__).parents[2]
PROGRAM = '''"""A docstring with 1 and True."""

LIMIT: int = 3


def f(x: int | None, scale=2) -> int | None:
    if x is None or not x < LIMIT:
        return -scale
    return g(x, scale) + h(x, exact=True) * len(f"{x + 1}")
'''


def test_every_kind_of_expression_is_changed_and_annotations_are_not(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    faults = plant_faults.faults_of(path, tmp_path)
    assert {(each.kind, each.line, each.before, each.after) for each in faults} == {
        ("constant", 3, "3", "(3 + 1)"),
        ("constant", 6, "2", "(2 + 1)"),
        ("comparison", 7, "is", "is not"),
        ("logic", 7, "or", "and"),
        ("logic", 7, "not ", ""),
        ("comparison", 7, "<", "<="),
        ("operator", 8, "-", ""),
        ("argument", 9, "x, scale", "scale, x"),
        ("operator", 9, "+", "-"),
        ("argument", 9, ", exact=True", ""),
        ("constant", 9, "True", "False"),
        ("operator", 9, "*", "/"),
    }
    assert {each.where for each in faults} == {"", "f"}
    for fault in faults:
        (changed,) = plant_faults.planted(tmp_path, [fault]).values()
        ast.parse(changed)
        assert sum(a != b for a, b in zip(PROGRAM.splitlines(), changed.splitlines(), strict=True)) == 1


def test_faults_of_a_file_are_planted_together(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("a = 1 + 2\n")
    faults = plant_faults.faults_of(path, tmp_path)
    assert plant_faults.planted(tmp_path, faults) == {"program.py": "a = (1 + 1) - (2 + 1)\n"}


def test_equal_faults_have_names_of_their_own(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("a = 1\nb = 1\n")
    assert [each.name for each in plant_faults.faults_of(path, tmp_path)] == [
        "program.py::#0 1 -> (1 + 1)",
        "program.py::#1 1 -> (1 + 1)",
    ]


def test_equivalent_faults_are_in_the_code_and_have_reasons():
    listed = tomllib.loads(plant_faults.EQUIVALENT.read_text())["equivalent"]
    assert listed
    for each in listed:
        file = ROOT / each["fault"].partition("::")[0]
        assert each["fault"] in {fault.name for fault in plant_faults.faults_of(file)}
        assert each["reason"]
