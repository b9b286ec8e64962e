"""Print the newest Python on this machine that can make virtual environments: one line, its path.

Continuous integration runs the tests on it and on the oldest supported Python, because pip installs newer versions of
JAX on it. Prereleases are ignored, because JAX has no wheels for them.

    python tools/newest_python.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_ASK = (
    "import ensurepip, sys, venv; v = sys.version_info; "
    "print(v.major, v.minor, v.micro) if v.releaselevel == 'final' and sys.implementation.name == 'cpython' else None"
)


def candidates() -> Iterator[Path]:
    """Yield the interpreters on the path and those of pyenv, whether or not they run."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for path in sorted(Path(folder or ".").glob("python3*")):
            if re.fullmatch(r"python3(\.\d+)?", path.name):
                yield path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob("versions/*/bin/python3"))


def version_of(python: Path) -> tuple[int, ...] | None:
    """Return the version of an interpreter; None if it does not run, has no venv, or is a prerelease.

    Args:
        python: its path.
    """
    try:
        asked = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tuple(map(int, asked.stdout.split())) or None


def newest() -> Path:
    """The newest interpreter; at least the one that runs this."""
    found = {path: version for path in candidates() if (version := version_of(path)) is not None}
    best = max(found, key=lambda path: found[path], default=None)
    return Path(sys.executable) if best is None or found[best] <= sys.version_info[:3] else best


if __name__ == "__main__":
    print(newest())
