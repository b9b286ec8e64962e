"""The script that runs the tests with the oldest and the newest versions of all dependencies."""

import sys
import tomllib
from pathlib import Path

import pytest

import check_versions

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture
def environments():
    return [
        check_versions.Environment(versions, minor, Path(f"/{minor}"))
        for minor in ("3.11", "3.12")
        for versions in ("oldest", "newest")
    ]


def test_every_dependency_of_every_extra_and_of_the_tests_has_a_floor():
    floors = check_versions.floors(PYPROJECT)
    assert {"numpy", "ml-dtypes", "jax", "typer", "matplotlib", "orbax-checkpoint", "scikit-learn", "flax"} <= {*floors}
    assert "supremum" not in floors
    assert all(version[0].isdigit() for version in floors.values())


def test_a_dependency_without_a_floor_is_refused():
    project = {"name": "a", "dependencies": ["numpy<3"], "optional-dependencies": {}}
    with pytest.raises(ValueError, match=r"'numpy<3' must have exactly one floor, such as numpy>=1.0"):
        check_versions.floors({"project": project, "dependency-groups": {"test": []}})


def test_versions_are_compared_with_floors_as_versions():
    installed = {"numpy": "2.2.0", "matplotlib": "3.9.2", "jaxlib": "0.10.2"}
    assert check_versions.above_floors(installed, {"numpy": "2.2", "matplotlib": "3.9"}) == {"matplotlib": "3.9.2"}


def test_the_newest_patch_release_of_each_supported_python_is_found(monkeypatch):
    versions = {"a": (3, 12, 1), "b": (3, 12, 4), "c": (3, 10, 9), "d": None, "e": (3, 11, 0)}
    monkeypatch.setattr(check_versions, "candidates", lambda: [*versions])
    monkeypatch.setattr(check_versions, "version_of", versions.get)
    assert check_versions.interpreters(">=3.11") == {"3.11": "e", "3.12": "b"}


def test_the_version_of_the_running_interpreter_is_known():
    assert check_versions.version_of(Path(sys.executable)) == sys.version_info[:3]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("", "oldest-3.11 newest-3.11 oldest-3.12 newest-3.12"),
        ("oldest", "oldest-3.11 oldest-3.12"),
        ("3.12", "oldest-3.12 newest-3.12"),
        ("oldest-3.11 3.12", "oldest-3.11 oldest-3.12 newest-3.12"),
    ],
)
def test_words_choose_environments(environments, words, names):
    assert [each.name for each in check_versions.chosen(environments, words.split())] == names.split()


def test_unknown_words_are_refused(environments):
    with pytest.raises(ValueError, match=r"^unknown: 3.10; choose from 3.11, 3.12, newest, newest-3.11, newest-3.12, "):
        [*check_versions.chosen(environments, ["3.10", "newest"])]
