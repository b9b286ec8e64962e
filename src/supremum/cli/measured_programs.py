"""Measuring the functions of a program, and their results as text, JSON and picture, for several commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from supremum.cli.output import json_text, put_text
from supremum.cli.programs import call_of, check_target, printing_to_errors, run_script, tried, with_values
from supremum.errors import ArgumentError, SupremumError

if TYPE_CHECKING:
    from supremum.tracing import JittedCall


def measure_program(
    target: str,
    args: str | None,
    script_arguments: Sequence[str],
    measure: Callable[..., Any],
    *,
    hides_output: bool,
    again: Callable[[JittedCall, Any], bool] | None = None,
) -> tuple[dict[str, Any], BaseException | None]:
    """Measure a function, or the jitted functions that a script calls, each at its first call with arguments of a type.

    Args:
        target: a script, or `module:function`.
        args: the description of the function's arguments; None for a script.
        script_arguments: the arguments of the script.
        measure: measures a call; it takes the function and its arguments.
        hides_output: whether what the program prints goes to standard error, because standard output has the result.
        again: asked at later calls of a program, with its last result, whether to measure that call too; None for
            never.

    Returns:
        The results by the name of the call, and the error that the user's program raised.

    Raises:
        ArgumentError: for a function without `args`.
        SupremumError: if a function cannot be measured. A call in a script that cannot be is left out, with a message.
    """
    check_target(target, args)
    with printing_to_errors() if hides_output else nullcontext():
        if args is not None:
            return _measure_function(target, args, measure)
        return _measure_script(target, script_arguments, measure, again)


def _measure_function(
    target: str, args: str, measure: Callable[..., Any]
) -> tuple[dict[str, Any], BaseException | None]:
    call, error = call_of(target, args)
    if call is None:
        return {}, error
    found, error = tried(lambda: measure(call.function, *with_values(call.arguments)))
    if isinstance(error, SupremumError):
        raise error
    return ({} if found is None else {f"{call.name}({args.strip()})": found}), error


def _measure_script(
    script: str,
    arguments: Sequence[str],
    measure: Callable[..., Any],
    again: Callable[[JittedCall, Any], bool] | None,
) -> tuple[dict[str, Any], BaseException | None]:
    from supremum.tracing import watch_jitted

    found: dict[str, Any] = {}
    names: dict[int, str] = {}

    def seen(call: JittedCall) -> None:
        is_new = id(call.program) not in names
        if is_new:
            name = str(call)
            names[id(call.program)] = name if name not in names.values() else f"{name}, program {len(names) + 1}"
        name = names[id(call.program)]
        if is_new or (again is not None and name in found and again(call, found[name])):
            try:
                found[name] = measure(call.function, *call.args, **call.kwargs)
            except SupremumError as error:
                typer.echo(f"supremum: {call} is left out: {error}", err=True)

    with watch_jitted(seen, every=again is not None):
        error = run_script(script, arguments)
    return found, error


def put_results(
    found: Mapping[str, Any], wanted: str, page: Callable[[Mapping[str, Any]], str], output: Path | None
) -> None:
    """Print the results of a program, or write them to a file.

    Args:
        found: the results by the name of the call.
        wanted: the format: `"terminal"`, `"json"`, `"html"` or `"svg"`.
        page: makes the HTML page.
        output: the file; None for standard output.

    Raises:
        ArgumentError: for an SVG, if there are several results, or none.
    """
    makers = {"terminal": results_text, "json": results_json, "html": page, "svg": only_svg}
    put_text(makers[wanted](found), output)


def results_text(found: Mapping[str, Any]) -> str:
    """The results of a program, as text for a terminal."""
    if not found:
        return "no jitted function was called\n"
    return "\n\n".join(f"{name}: {each}" for name, each in found.items()) + "\n"


def results_json(found: Mapping[str, Any]) -> str:
    """The results of a program as JSON: a list with what `to_dict` returns and the name of each function."""
    return json_text({"functions": [{"function": name} | each.to_dict() for name, each in found.items()]})


def only_svg(found: Mapping[str, Any]) -> str:
    """The picture of the only result of a program.

    Raises:
        ArgumentError: if there are several results, or none.
    """
    if len(found) != 1:
        raise ArgumentError(f"An SVG shows one function, and this program has {len(found)}; write to a .html file.")
    (only,) = found.values()
    return only.to_svg()
