"""Run the fast tests with the oldest and the newest versions of all dependencies.

The oldest versions are the floors in pyproject.toml, on the oldest Python; the newest are what the package index has,
on every Python of this machine that is new enough.

    python tools/check_versions.py [oldest|newest|3.12 ...] [-- PYTEST ARGUMENTS]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

from newest_python import candidates, version_of
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
UV = (sys.executable, "-m", "uv")


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def oldest_versions(table: dict[str, Any]) -> list[str]:
    """The constraints that pin every dependency of every extra to its floor.

    Args:
        table: the table `project` of a pyproject.toml.

    Raises:
        ValueError: for a dependency without a floor.
    """
    pins: dict[str, str] = {}
    for text in chain(table["dependencies"], *table["optional-dependencies"].values()):
        wanted = Requirement(text)
        if wanted.name == table["name"]:
            continue
        floors = [each.version for each in wanted.specifier if each.operator in (">=", "==")]
        if len(floors) != 1:
            raise ValueError(f"{text!r} must have exactly one floor, such as {wanted.name}>=1.0")
        pins[wanted.name] = f"{wanted.name}=={floors[0]}"
    return list(pins.values())


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


def run(name: str, python: Path, pins: list[str], arguments: list[str]) -> bool:
    """Make an environment, run the fast tests in it, and return whether they passed.

    Args:
        name: of the environment.
        python: its interpreter.
        pins: constraints; without any, the newest versions are installed.
        arguments: more arguments for pytest.
    """
    print(f"== {name}: {python}", *pins, flush=True)
    folder = ROOT / "out/versions" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    constraints = folder.with_suffix(".txt")
    constraints.write_text("".join(f"{pin}\n" for pin in pins))
    subprocess.run([*UV, "venv", "--quiet", "--clear", "--python", python, folder], check=True)
    install = [*UV, "pip", "install", "--quiet", "--python", folder, "--constraint", constraints]
    subprocess.run([*install, "--editable", ".[all]", "--group", "test"], cwd=ROOT, check=True)
    # An old version may use what its own dependencies deprecated since.
    lenient = ["-W", "default::DeprecationWarning"] if pins else []
    # Without CI, tests of packages that are not installed, such as PyTorch, are skipped.
    environment = {key: value for key, value in os.environ.items() if key not in ("CI", "PYTHONPATH")}
    command = [
        folder / "bin/python",
        "-m",
        "pytest",
        "-q",
        "-n",
        "auto",
        "--dist=worksteal",
        "-m",
        "not slow",
        *lenient,
    ]
    return subprocess.run([*command, *arguments], cwd=ROOT, env=environment).returncode == 0


def main(wanted: list[str], arguments: list[str]) -> int:
    """Run the wanted environments, or all, and return 1 if any fails, else 0."""
    table = project()
    found = interpreters(table["requires-python"])
    environments = {"oldest": (next(iter(found.values())), oldest_versions(table))}
    environments |= {version: (path, list[str]()) for version, path in found.items()}
    names = [*environments] if not wanted else [*found] if wanted == ["newest"] else wanted
    if unknown := set(names) - set(environments):
        print(f"unknown: {', '.join(sorted(unknown))}; choose from newest, {', '.join(environments)}")
        return 2
    failed = [name for name in names if not run(name, *environments[name], arguments)]
    print(f"passed: {len(names) - len(failed)} of {len(names)}", *failed)
    return bool(failed)


if __name__ == "__main__":
    before, _, after = " ".join(sys.argv[1:]).partition("--")
    sys.exit(main(before.split(), after.split()))
