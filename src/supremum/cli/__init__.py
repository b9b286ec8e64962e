"""The `supremum` command."""

from __future__ import annotations

import sys

from supremum.public_names import public_names

__all__ = ["main"]


def main() -> None:
    """Run the command line, or exit with a message if a package that it needs is missing."""
    try:
        from supremum.cli.app import app
    except ModuleNotFoundError as missing:
        sys.exit(f"The supremum command needs {missing.name}; install it with: pip install 'supremum[cli]'")
    from supremum.cli.exit_codes import run

    sys.exit(run(app))


def __dir__() -> list[str]:
    return public_names(globals())
