"""All tests of the command share one command: typer would build it, with all of its options, for each line."""

import functools
import sys
import textwrap
from pathlib import Path

import pytest
import typer.main
import typer.testing
from typer.testing import CliRunner

from supremum.cli.app import app

typer.testing._get_command = functools.cache(typer.main.get_command)


@pytest.fixture
def run(request, tmp_path, monkeypatch):
    """A function that runs a command line in a folder with the `PROGRAMS` of the test's module.

    If the module names a `COMMAND`, the line has only the arguments.
    """
    programs, command = (getattr(request.module, name, ()) for name in ("PROGRAMS", "COMMAND"))
    for name in programs:
        (tmp_path / name).write_text(textwrap.dedent(programs[name]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield lambda *args, **options: CliRunner().invoke(app, [*command, *args], **options)
    for name in programs:
        sys.modules.pop(Path(name).stem, None)
