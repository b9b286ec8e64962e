"""Where commands print: a format by name, to the terminal or into a file that is whole or absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import typer
from rich.console import Console

from supremum.errors import UnknownNameError
from supremum.files import whole_file


def checked_format(name: str, formats: Mapping[str, object] | tuple[str, ...]) -> str:
    """The name of a format, if it is one of those.

    Raises:
        UnknownNameError: if it is not.
    """
    if name not in formats:
        raise UnknownNameError("format", name, formats)
    return name


def chosen_format(name: str | None, output: Path | None, formats: Mapping[str, object] | tuple[str, ...]) -> str:
    """The format asked for; where none is, the one that the file is named by, else the first.

    Args:
        name: what was asked for.
        output: the file.
        formats: those there are, by the names that files end in.

    Raises:
        UnknownNameError: for a format that is none of those.
    """
    if name is not None:
        return checked_format(name, formats)
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    return ending if ending in formats else next(iter(formats))


def put_text(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file."""
    if output is None:
        typer.echo(text, nl=False)
        return
    with whole_file(output) as temporary:
        temporary.write_text(text)


def put_bytes(data: bytes, output: Path) -> None:
    """Write what is no text to a file."""
    with whole_file(output) as temporary:
        temporary.write_bytes(data)


def put_drawn(draw: Callable[[Console], None], output: Path | None) -> None:
    """Draw on the terminal, or as plain text into a file."""
    if output is None:
        draw(Console())
        return
    with whole_file(output) as temporary, temporary.open("w") as file:
        draw(Console(file=file))
