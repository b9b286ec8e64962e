"""Which parameters count as annotated with `Any`."""

import pytest

from count_any import aliases_of_any, count, main, parameters, share

SOURCES = {
    "any": ("def f(a: Any): ...", [("f(a)", True, True)]),
    "optional": ("def f(a: Any | None): ...", [("f(a)", True, True)]),
    "alias": ("def f(a: Raw, *, b: PyTree): ...", [("f(a)", True, True), ("f(b)", True, False)]),
    "container": ("def f(a: list[Any], b: int, c): ...", [(f"f({name})", True, False) for name in "abc"]),
    "variadic": ("def f(*a: Any, **b: Any): ...", [("f(a)", True, True), ("f(b)", True, True)]),
    "private": ("def _f(a: Any): ...", [("_f(a)", False, True)]),
    "private class": ("class _A:\n    def f(self, a: Any): ...", [("f(a)", False, True)]),
    "constructor": ("class A:\n    def __init__(self, a: Any): ...", [("__init__(a)", True, True)]),
    "other special method": ("class A:\n    def __eq__(self, a: Any): ...", [("__eq__(a)", False, True)]),
    "class method": ("class A:\n    async def f(cls, a: int): ...", [("f(a)", True, False)]),
    "conditional": ("if x:\n    def f(a: int): ...", [("f(a)", True, False)]),
}


@pytest.mark.parametrize(("source", "expected"), SOURCES.values(), ids=SOURCES)
def test_parameters_are_found(source, expected):
    rows = parameters(source, "file.py", {"Any", "Raw"})
    assert [(row.place.split()[1], row.is_public, row.is_any) for row in rows] == expected


def test_aliases_of_any_are_found():
    assert aliases_of_any(["Raw: TypeAlias = Any\nPyTree: TypeAlias = Any", "N: TypeAlias = int"]) == {"Any", "Raw"}


def test_few_public_parameters_are_annotated_with_any():
    rows = [row for rows in count().values() for row in rows if row.is_public]
    assert share(rows) < 0.06, "run tools/count_any.py"


def test_each_package_has_a_line_and_the_total_is_the_last(capsys):
    assert main(["render"]) == 0
    lines = capsys.readouterr().out.splitlines()
    packages = [line.split()[0] for line in lines if " public " in line]
    assert packages == [*count(), "total"]


def test_unknown_packages_are_reported(capsys):
    assert main(["no package"]) == 2
    assert "unknown package no package; use one of" in capsys.readouterr().err
