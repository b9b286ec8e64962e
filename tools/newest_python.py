"""Print the path of the newest Python on this machine that can make virtual environments.

Continuous integration runs the tests on this Python, for which pip installs newer versions of JAX, and on the oldest
supported one. Prereleases are ignored, because JAX has no wheels for them.

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
    """Yield the interpreters in the folders of PATH and those of pyenv, whether or not they run."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for path in sorted(Path(folder or ".").glob("python3*")):
            if re.fullmatch(r"python3(\.\d+)?", path.name):
                yield path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob("versions/*/bin/python3"))


def version_of(python: Path) -> tuple[int, ...] | None:
    """Return the version of an interpreter; None if it does not run, has no venv, or is a prerelease.

    Args:
        python: the path of the interpreter.
    """
    try:
        asked = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tuple(map(int, asked.stdout.split())) or None


def newest() -> Path:
    """Return the newest interpreter, which is at least as new as the one that runs this program."""
    found = {path: version for path in candidates() if (version := version_of(path)) is not None}
    best = max(found, key=lambda path: found[path], default=None)
    return Path(sys.executable) if best is None or found[best] <= sys.version_info[:3] else best


if __name__ == "__main__":
    print(newest())
