"""All tests of the command share one command: typer would build it, with all of its options, for each line."""

import functools

import typer.main
import typer.testing

typer.testing._get_command = functools.cache(typer.main.get_command)
