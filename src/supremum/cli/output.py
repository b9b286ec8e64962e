"""The output of commands: its format, and where it goes. A file is either complete or absent."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from supremum.argument_checks import chosen
from supremum.atomic_files import as_path, check_writable, whole_file, writing_error

STANDARD_OUTPUT = Path("-")


def checked_output(path: Path | None) -> Path | None:
    """Check that the path of an option can be written to, before the command does its work.

    Raises:
        FileError: if it cannot be written to.
    """
    if path is None or path == STANDARD_OUTPUT:
        return path
    path = as_path(path)
    check_writable(path)
    return path


Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", callback=checked_output, help="Write to this file instead; - is standard output.",
    ),
]  # fmt: skip


def chosen_format(name: str | None, output: Path | None, formats: tuple[str, ...]) -> str:
    """The given format; otherwise that of the file's ending, or the first one.

    Args:
        name: the name of a format, or None.
        output: the file.
        formats: the formats, which are also the endings of files.

    Raises:
        UnknownNameError: for an unknown format.
    """
    if name is not None:
        return chosen("format", name, formats)
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    return ending if ending in formats else formats[0]


def json_text(data: Any) -> str:
    """Plain data as JSON, ending with a newline."""
    return json.dumps(data, indent=2) + "\n"


def put_text(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file."""
    put_bytes(text.encode(), output)


def put_bytes(data: bytes, output: Path | None) -> None:
    """Print bytes, or write them to a file."""
    if output is None or output == STANDARD_OUTPUT:
        typer.echo(data, nl=False)
        return
    try:
        with whole_file(output) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise writing_error(output, error) from error


def put_drawn(draw: Callable[[Console], None], output: Path | None) -> None:
    """Draw on the terminal, or as plain text into a file."""
    if output is None or output == STANDARD_OUTPUT:
        draw(Console())
    else:
        text = StringIO()
        draw(Console(file=text))
        put_text(text.getvalue(), output)
