"""Find programs that tests start and that do not come with the packages of the tests."""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

PROGRAMS = {"chromium": "make browser", "node": "make .venv/.developed, which installs Playwright with its own Node"}
"""How to install each program."""


def find_program(name):
    """Return the path of a program; without it, skip the test, or fail it in continuous integration.

    Args:
        name: one of `PROGRAMS`.
    """
    __tracebackhide__ = True  # a skip is reported at the line of the caller
    path = shutil.which(name) or (_node_of_playwright() if name == "node" else None)
    if path is not None:
        return path
    reason = f"needs {name}, which is not installed: {PROGRAMS[name]}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _node_of_playwright():
    """Return the path of the Node that Playwright runs on; None without it."""
    found = importlib.util.find_spec("playwright")
    node = None if found is None else Path(found.origin).parent / "driver/node"
    return str(node) if node is not None and node.exists() else None
