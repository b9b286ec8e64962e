"""Run the fast tests with the oldest and the newest versions of all dependencies, on every Python of this machine.

The oldest versions are the floors in pyproject.toml; where a package has no wheel of its floor for a newer Python, the
oldest version that has one. The newest versions are those of the package index. Words choose among the environments,
each by its versions, its Python or both.

    python tools/check_versions.py [oldest | newest | 3.12 | oldest-3.12 ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from environments import UV, VARIABLES, install, make_environment
from newest_python import candidates, version_of

ROOT = Path(__file__).parents[1]
EXTRA, GROUP = "all", "test"
# How uv chooses the versions of the dependencies that pyproject.toml names; their own dependencies are the newest.
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}


class Environment(NamedTuple):
    """An environment to run the tests in.

    Args:
        versions: `"oldest"` or `"newest"`.
        minor: the minor version of Python, such as `"3.11"`.
        python: the path of the interpreter.
    """

    versions: str
    minor: str
    python: Path

    @property
    def name(self) -> str:
        """The name, such as `"oldest-3.11"`."""
        return f"{self.versions}-{self.minor}"


def floors(pyproject: Mapping[str, Any]) -> dict[str, str]:
    """The oldest version of each dependency, of every extra and of the tests, by its normalized name.

    Args:
        pyproject: the content of a pyproject.toml.

    Raises:
        ValueError: for a dependency without a floor.
    """
    project = pyproject["project"]
    texts = chain(
        project["dependencies"], *project["optional-dependencies"].values(), pyproject["dependency-groups"][GROUP]
    )
    found: dict[str, str] = {}
    for text in texts:
        wanted = Requirement(text)
        if wanted.name == project["name"]:
            continue
        versions = [each.version for each in wanted.specifier if each.operator in (">=", "==")]
        if len(versions) != 1:
            raise ValueError(f"{text!r} must have exactly one floor, such as {wanted.name}>=1.0")
        found[canonicalize_name(wanted.name)] = versions[0]
    return found


def above_floors(installed: Mapping[str, str], floors: Mapping[str, str]) -> dict[str, str]:
    """The installed versions that are not the floors of their packages.

    Args:
        installed: the versions of packages.
        floors: the oldest versions of some of them.
    """
    return {name: installed[name] for name, floor in floors.items() if Version(installed[name]) != Version(floor)}


def interpreters(supported: str) -> dict[str, Path]:
    """The interpreters of this machine by their minor version, oldest first; the newest patch release of each.

    Args:
        supported: the versions, such as `">=3.11"`.
    """
    found: dict[tuple[int, ...], Path] = {}
    for path in candidates():
        version = version_of(path)
        if version is not None and SpecifierSet(supported).contains(".".join(map(str, version))):
            found.setdefault(version, path)
    return {f"{major}.{minor}": found[major, minor, patch] for major, minor, patch in sorted(found)}


def chosen(environments: Sequence[Environment], words: Iterable[str]) -> Iterator[Environment]:
    """Yield the environments that any of the words names; all of them if there are no words.

    Raises:
        ValueError: for a word that names none.
    """
    wanted = set(words)
    known = {name for each in environments for name in (each.versions, each.minor, each.name)}
    if unknown := wanted - known:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(sorted(known))}")
    yield from (each for each in environments if not wanted or wanted & {each.versions, each.minor, each.name})


def make(environment: Environment, folder: Path) -> dict[str, str]:
    """Make an environment in a folder, and return the versions of all packages in it by their normalized names."""
    python = make_environment(folder, environment.python)
    resolution = ("--resolution", RESOLUTIONS[environment.versions], "--only-binary", ":all:")
    install(python, *resolution, "--requirements", "pyproject.toml", "--extra", EXTRA, "--group", GROUP, folder=ROOT)
    install(python, "--no-deps", "--editable", ".", folder=ROOT)
    listed = subprocess.check_output([*UV, "pip", "list", "--quiet", "--python", python, "--format=json"])
    return {canonicalize_name(each["name"]): each["version"] for each in json.loads(listed)}


def check(environment: Environment, oldest: Mapping[str, str], *, exact: bool) -> str:
    """Run the fast tests in an environment, and return what is wrong; nothing if all is well.

    Args:
        environment: the environment.
        oldest: the floors.
        exact: whether the floors themselves must be installed.
    """
    folder = ROOT / "out/versions" / environment.name
    folder.parent.mkdir(parents=True, exist_ok=True)
    installed = make(environment, folder)
    print(f"== {environment.name}:", ", ".join(f"{name} {installed[name]}" for name in oldest), flush=True)
    above = above_floors(installed, oldest) if environment.versions == "oldest" else {}
    if above:
        print("   above their floors:", ", ".join(f"{name} ({oldest[name]})" for name in above), flush=True)
    # An old version may use what its own dependencies deprecated since.
    lenient = ["-W", "default::DeprecationWarning"] if environment.versions == "oldest" else []
    command = [folder / "bin/python", "-m", "pytest", "-q", "-n", "auto", "--dist=worksteal", "-m", "not slow"]
    if subprocess.run([*command, *lenient], cwd=ROOT, env=VARIABLES).returncode:
        return "some tests failed"
    return f"raise the floors of {', '.join(above)}, which cannot be installed" if exact and above else ""


def main(words: Sequence[str]) -> int:
    """Run the wanted environments, or all, and return 1 if any fails, else 0."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    oldest, supported = floors(pyproject), pyproject["project"]["requires-python"]
    found = interpreters(supported)
    environments = [Environment(versions, *each) for each in found.items() for versions in RESOLUTIONS]
    try:
        wanted = [*chosen(environments, words)]
    except ValueError as error:
        print(error)
        return 2
    # Old versions have no wheels for newer interpreters than the oldest one.
    wrong = {each.name: check(each, oldest, exact=f">={each.minor}" == supported) for each in wanted}
    for name, fault in wrong.items():
        print(f"{name}: {fault or 'passed'}")
    return any(wrong.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
