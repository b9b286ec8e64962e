"""Virtual environments in which other scripts install and test the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

UV = (sys.executable, "-m", "uv")
VARIABLES = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "CI")}
"""The variables of tests in an environment. Without CI, tests of missing packages, such as PyTorch, are skipped."""


def make_environment(folder: Path, python: str | Path = sys.executable) -> Path:
    """Make an empty environment in a folder, and return its Python.

    Args:
        folder: where the environment is; one that is there is removed.
        python: the interpreter.
    """
    subprocess.run([*UV, "venv", "--quiet", "--clear", "--python", python, folder], check=True)
    return folder / "bin/python"


def install(python: Path, *arguments: str, folder: Path) -> None:
    """Install packages into an environment.

    Args:
        python: the Python of the environment.
        arguments: packages and options.
        folder: the folder that relative paths refer to.
    """
    subprocess.run([*UV, "pip", "install", "--quiet", "--python", python, *arguments], cwd=folder, check=True)
