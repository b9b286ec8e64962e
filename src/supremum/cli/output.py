"""The output of commands: its format, and where it goes. A file is either complete or absent."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from supremum.argument_checks import chosen
from supremum.atomic_files import as_path, check_writable, whole_file, writing_error
from supremum.errors import ArgumentError, FileError, printable, shortened

STANDARD_OUTPUT = Path("-")
_UNLIMITED = 10_000


def checked_output(path: Path | None) -> Path | None:
    """Check that the path of an option can be written to, before the command does its work.

    Raises:
        FileError: if it cannot be written to, or its folder does not exist: a mistyped path makes no folders.
    """
    if path is None or path == STANDARD_OUTPUT:
        return path
    path = as_path(path)
    check_writable(path)
    if not path.parent.exists():
        name, folder = (shortened(str(each)) for each in (path, path.parent))
        raise FileError(f"{name} cannot be written: there is no folder {folder}; run mkdir -p {shlex.quote(folder)}")
    return path


Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", callback=checked_output,
        help="Write to this file; its suffix sets the format. - is standard output.",
    ),
]  # fmt: skip
SUFFIXES: dict[str, tuple[str, ...]] = {
    "terminal": (".txt",), "json": (".json",), "markdown": (".md", ".markdown"), "html": (".html", ".htm"),
    "svg": (".svg",), "dot": (".dot", ".gv"),
}  # fmt: skip
"""The suffixes of files by the format that they stand for."""


def format_option(formats: tuple[str, ...]) -> Any:
    """The option `--format` of a command.

    Args:
        formats: the formats of the command; the first is the default.
    """
    choices = f"One of {', '.join(formats)}. Default: by the suffix of the output, else {formats[0]}."
    return typer.Option(metavar="FORMAT", help=choices)


def chosen_format(name: str | None, output: Path | None, formats: tuple[str, ...]) -> str:
    """The given format; otherwise the format of the file's suffix, or the first one if it has none.

    Args:
        name: the name of a format, or None.
        output: the file.
        formats: the formats of the command.

    Raises:
        UnknownNameError: for an unknown format.
        ArgumentError: for an unknown suffix, unless the format is given, and for a suffix that contradicts the format.
    """
    if name is not None:
        chosen("format", name, formats)
    suffix = "" if output is None else output.suffix.lower()
    if output is None or not suffix:
        return name or formats[0]
    if name is None:
        known = {each: one for one in formats for each in SUFFIXES.get(one, ())}
        if suffix not in known:
            fix = "give one of them, or --format" if formats[1:] else "give one of them"
            raise ArgumentError(f"The output must end with {', '.join(known)}, got {shortened(str(output))}; {fix}.")
        return known[suffix]
    meant = [one for one, suffixes in SUFFIXES.items() if suffix in suffixes and one != name]
    if meant:
        path, other = (shortened(str(each)) for each in (output, output.with_suffix(SUFFIXES.get(name, ("",))[0])))
        wrong = f"--format {name} contradicts the suffix of {path}, which means {meant[0]}"
        raise ArgumentError(f"{wrong}; leave out --format, or write to {other}.")
    return name


def json_text(data: object) -> str:
    """Plain data as JSON, ending with a newline."""
    return json.dumps(data, indent=2) + "\n"


def put_text(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file."""
    data = printable(text).encode()
    if output is None or output == STANDARD_OUTPUT:
        typer.echo(data, nl=False)
        return
    try:
        with whole_file(output) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise writing_error(output, error) from error


def folding_table(*headings: str) -> Table:
    """A table whose cells are folded in narrow terminals; nothing is cut off."""
    columns = (Column(heading, overflow="fold") for heading in headings)
    return Table(*columns, box=SIMPLE_HEAD, show_edge=False)


def put_drawn(draw: Callable[[Console], None], output: Path | None) -> None:
    """Draw on the terminal, or as plain text into a file or a pipe.

    Lines fit the terminal. In files and pipes each row of a table is one line, unless `COLUMNS` is set.
    """
    console = Console()
    if output in (None, STANDARD_OUTPUT) and console.is_terminal:
        draw(console)
        return
    text = StringIO()
    width = console.width if "COLUMNS" in os.environ else _UNLIMITED
    draw(Console(file=text, width=width, force_terminal=False))
    put_text("".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines()), output)
