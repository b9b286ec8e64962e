"""The oldest versions are those of pyproject.toml."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def check_versions(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    spec = importlib.util.spec_from_file_location("check_versions", TOOLS / "check_versions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_dependency_of_every_extra_is_pinned_to_its_floor(check_versions):
    pins = dict(pin.split("==") for pin in check_versions.oldest_versions(check_versions.project()))
    assert {"numpy", "ml_dtypes", "jax", "typer", "matplotlib", "orbax-checkpoint", "scikit-learn"} <= pins.keys()
    assert "supremum" not in pins
    assert all(version[0].isdigit() for version in pins.values())


def test_a_dependency_without_a_floor_is_refused(check_versions):
    table = {"name": "a", "dependencies": ["numpy<3"], "optional-dependencies": {}}
    with pytest.raises(ValueError, match=r"'numpy<3' must have exactly one floor, such as numpy>=1.0"):
        check_versions.oldest_versions(table)


def test_the_running_interpreter_is_among_those_that_are_found(check_versions):
    found = check_versions.interpreters(check_versions.project()["requires-python"])
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in found
    assert "3.10" not in found
