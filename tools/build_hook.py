"""The build hook that puts the finished explorer page into releases, so that `supremum explore` only copies it.

The page takes a minute to compute, so `pip install .` does not run this hook; without the page, the command computes
it. `HATCH_BUILD_HOOKS_ENABLE=1 python -m build` runs the hook for the sdist; a wheel built from this sdist copies its
page.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = "supremum/explorer"
# The pool of processes imports the main module again, so this code is guarded.
_PROGRAM = """
import os, sys
from pathlib import Path
from supremum.explorer import explorer_page, finished_page

if __name__ == "__main__":
    path = Path(sys.argv[1], finished_page().name)
    path.write_text(explorer_page(processes=os.cpu_count() or 1), "utf-8")
"""


class FinishedPage(BuildHookInterface[Any]):
    """Computes the explorer page with the code that is built."""

    def dependencies(self) -> list[str]:
        """What the page needs: the dependencies of the package, and those of the command."""
        extras = self.metadata.core.optional_dependencies
        return [] if self._source is None else [*self.metadata.core.dependencies, *extras["cli"]]

    @property
    def _source(self) -> Path | None:
        """The folder of the code; None if it already has the page, as in an sdist."""
        folder = Path(self.root, "src")
        return None if list(folder.glob(f"{_FOLDER}/finished-*.html")) else folder

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compute the page and add it to what is built."""
        if version == "editable" or self._source is None:
            return
        self._made = tempfile.TemporaryDirectory()
        program = Path(self._made.name, "program.py")
        program.write_text(_PROGRAM)
        # The page shows the rules of a fresh JAX; flags in this environment must not change it.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
        subprocess.run(
            [sys.executable, program, self._made.name],
            env=environment | {"PYTHONPATH": str(self._source)},
            check=True,
        )
        (page,) = Path(self._made.name).glob("*.html")
        base = "src/" if self.target_name == "sdist" else ""
        build_data["force_include"][str(page)] = f"{base}{_FOLDER}/{page.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary page."""
        del version, build_data, artifact_path
        if hasattr(self, "_made"):
            self._made.cleanup()
