"""Continuous integration tests the newest JAX with the newest Python on the machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/newest_python.py"


def found(path, pyenv):
    environment = os.environ | {"PATH": str(path), "PYENV_ROOT": str(pyenv)}
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


@pytest.fixture
def interpreters(tmp_path):
    """A function that makes programs that answer like an interpreter of some version."""

    def make(folder, name, answer):
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{answer}\n")
        path.chmod(0o755)
        return path

    return make


def test_the_newest_python_on_the_path_and_in_pyenv_is_found(interpreters, tmp_path):
    interpreters("bin", "python3", "echo 3 99 7")
    best = interpreters("pyenv/versions/3.100.0/bin", "python3", "echo 3 100 0")
    interpreters("bin", "python3.101", "exit 1")  # like a pyenv shim for a version that is not selected
    interpreters("bin", "python3.102", "true")  # a prerelease, or without venv
    interpreters("bin", "python3-config", "echo 3 103 0")
    assert found(tmp_path / "bin", tmp_path / "pyenv") == str(best)


def test_the_running_python_is_found_if_there_is_no_newer_one(interpreters, tmp_path):
    interpreters("bin", "python3", "echo 3 9 0")
    assert found(tmp_path / "bin", tmp_path / "nothing") == sys.executable
    assert found(tmp_path / "nothing", tmp_path / "nothing") == sys.executable
