"""`supremum lattice`: the Hasse diagram of a rule set."""

from __future__ import annotations

from typing import Annotated

import typer

from supremum.analysis import lattice_dot, lattice_png, lattice_svg
from supremum.cli.output import Output, checked_format, put_bytes, put_text
from supremum.errors import ArgumentError, shortened

_FORMATS = ("svg", "png", "dot")


def lattice(
    others: Annotated[list[str] | None, typer.Argument(metavar="[TYPE]...", help="More types for --path.")] = None,
    rules: Annotated[str | None, typer.Option(help="Name of the rule set. Default: the rules in force, jax.")] = None,
    types: Annotated[str, typer.Option(help="'standard', 'all', or names separated by commas.")] = "all",
    path: Annotated[
        str | None, typer.Option(metavar="TYPE TYPE...", help="Highlight the lines from these types to their result.")
    ] = None,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(help=f"One of {', '.join(_FORMATS)}. Default: the ending of the output, else svg."),
    ] = None,
    output: Output = None,
) -> None:
    """Draw the Hasse diagram of a framework's rules, or if they are not a lattice, their table and the reason."""
    if others and path is None:
        raise ArgumentError(f"Types must come after an option such as --path, got {shortened(' '.join(others))} alone.")
    names = [name for text in (path or "", *(others or ())) for name in text.split(",") if name]
    ending = output.suffix[1:].lower() if output is not None else ""
    chosen = checked_format(format or ending or "svg", _FORMATS)
    if chosen == "png":
        if output is None:
            raise ArgumentError("A PNG needs an output, such as -o lattice.png, or -o - for standard output.")
        put_bytes(lattice_png(rules, types=types, path=names), output)
    else:
        draw = lattice_svg if chosen == "svg" else lattice_dot
        put_text(draw(rules, types=types, path=names), output)
