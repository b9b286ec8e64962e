"""How the test suite of the array API standard is run, and the lists of tests that are expected to fail."""

import os
import re

import pytest

import array_api_suite as tool

LISTS = {library: tool.xfails_file(library) for library in tool.LIBRARIES}


def test_each_list_belongs_to_a_library_that_is_tested():
    assert sorted(tool.ROOT.glob("tests/arrays/array_api_xfails_*.txt")) == sorted(LISTS.values())


@pytest.mark.parametrize("library", LISTS)
def test_expected_failures_have_reasons_and_are_those_of_the_pinned_suite(library):
    head, *groups = LISTS[library].read_text("utf-8").strip().split("\n\n")
    assert f"# Suite: {tool.COMMIT}, with the standard at " in head
    assert f"rules: {tool.RULES}." in head
    assert groups
    tests = [line for group in groups for line in group.splitlines() if not line.startswith("#")]
    assert all(group.startswith("# ") for group in groups)
    assert all(re.match(r"array_api_tests/\w+\.py::\w+", test) for test in tests)
    assert len(tests) == len({*tests})


@pytest.mark.parametrize("library", LISTS)
def test_no_argument_of_the_command_is_a_path_outside_of_the_suite(library):
    """Pytest loads the conftest.py above each argument that is a path, even after an option that it does not know."""
    paths = [each for each in tool.command(library, 5)[3:] if not each.startswith("-") and "/" in each]
    assert paths == []
    assert f"--xfails-file={LISTS[library]}" in tool.command(library, 5)
    assert "--max-examples=5" in tool.command(library, 5)


@pytest.mark.parametrize("library", LISTS)
def test_the_suite_tests_the_namespace_of_the_library_under_its_rules(library, tmp_path):
    variables = tool.environment(library, tmp_path)
    module = variables["ARRAY_API_TESTS_MODULE"]
    assert module.startswith("exec('")  # the suite looks for these quotes
    assert f'set_default_rules("{tool.RULES}")' in module
    assert f'supremum.namespace("{library}")' in module
    assert variables["PYTHONPATH"].split(os.pathsep) == [str(tmp_path), str(tool.ROOT / "tools")]
