"""Check that git tracks no binary files, and no files over 1 MB except oracles.

`make lint` runs this, because `git add -A` once added 22 wheels.

    python tools/check_tracked_files.py [FOLDER]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MAX_BYTES = 1_000_000
ORACLES = "tests/conformance/oracles/"
"""The folder of the tables that were measured from other frameworks, which may have any size."""


def tracked_files(root: Path) -> list[str]:
    """Return the paths of the files that git tracks, relative to the root; staged files count.

    Args:
        root: a folder in a git checkout.
    """
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True).stdout
    return [name for name in names.split("\0") if name and (root / name).is_file()]


def faults(root: Path) -> list[str]:
    """Return one line for each tracked file that must not be tracked.

    Args:
        root: a folder in a git checkout.
    """
    found: list[str] = []
    for name in tracked_files(root):
        content = (root / name).read_bytes()
        if b"\0" in content[:8000]:  # git's test for binary files
            found.append(f"{name} is binary ({len(content):,} bytes)")
        elif len(content) > MAX_BYTES and not name.startswith(ORACLES):
            found.append(f"{name} has {len(content):,} bytes, more than {MAX_BYTES:,}")
    return found


def main(root: Path) -> int:
    """Print the faults, and return 1 if there are any, else 0."""
    if not (root / ".git").exists():
        print("This is not a git checkout, so nothing is tracked.")
        return 0
    found = faults(root)
    for line in found:
        print(line)
    if found:
        print("Only text of up to 1 MB belongs in the repository: git rm --cached FILE, and add it to .gitignore")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
