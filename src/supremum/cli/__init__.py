"""The `supremum` command."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without the packages it needs, say which."""
    try:
        from supremum.cli.app import app
    except ModuleNotFoundError as missing:
        sys.exit(f"the supremum command needs {missing.name}: pip install 'supremum[cli]'")
    from supremum.cli.exit_codes import run

    sys.exit(run(app))
