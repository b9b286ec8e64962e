"""The build hook that puts the data of the explorer page into releases, so that `supremum explore` computes none.

The data take minutes to compute, so `pip install .` does not run this hook; without them, the command computes them.
`HATCH_BUILD_HOOKS_ENABLE=1 python -m build` runs the hook for the sdist; a wheel built from this sdist copies its data.
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
from supremum.explorer import explorer_data, finished_data, packed_data

if __name__ == "__main__":
    path = Path(sys.argv[1], finished_data().name)
    path.write_bytes(packed_data(explorer_data(processes=os.cpu_count() or 1)))
"""


class ExplorerData(BuildHookInterface[Any]):
    """Computes the data of the explorer page with the code that is built."""

    def dependencies(self) -> list[str]:
        """What computing the data needs: the dependencies of the package, and those of the command."""
        extras = self.metadata.core.optional_dependencies
        return [] if self._source is None else [*self.metadata.core.dependencies, *extras["cli"]]

    @property
    def _source(self) -> Path | None:
        """The folder of the code; None if it already has the data, as in an sdist."""
        folder = Path(self.root, "src")
        return None if list(folder.glob(f"{_FOLDER}/finished-*.json.xz")) else folder

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compute the data and add them to what is built."""
        if version == "editable" or self._source is None:
            return
        self._made = tempfile.TemporaryDirectory()
        program = Path(self._made.name, "program.py")
        program.write_text(_PROGRAM)
        # The data have the rules of a fresh JAX; flags in this environment must not change it.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
        subprocess.run(
            [sys.executable, program, self._made.name],
            env=environment | {"PYTHONPATH": str(self._source)},
            check=True,
        )
        (data,) = Path(self._made.name).glob("*.json.xz")
        base = "src/" if self.target_name == "sdist" else ""
        build_data["force_include"][str(data)] = f"{base}{_FOLDER}/{data.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary file."""
        del version, build_data, artifact_path
        if hasattr(self, "_made"):
            self._made.cleanup()
