"""The `supremum` command.

It reads arguments and prints; what it prints comes from the other packages.
"""

from __future__ import annotations

import sys

from supremum.cli.exit_codes import USAGE_ERROR, run
from supremum.extras import missing_packages
from supremum.public_names import public_names

__all__ = ["main"]


def main() -> None:
    """Run the command line, or exit with a message if a package that it needs is missing."""
    try:
        from supremum.cli.app import app
    except ModuleNotFoundError as missing:
        print(missing_packages("The supremum command", [missing.name or str(missing)]), file=sys.stderr)
        sys.exit(USAGE_ERROR)
    sys.exit(run(app))


def __dir__() -> list[str]:
    return public_names(globals())
