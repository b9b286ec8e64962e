"""Measure the functions of a program, and write the results as text, JSON, page or picture, for several commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from supremum.cli.exit_codes import FAILURE
from supremum.cli.output import json_text, put_text
from supremum.cli.programs import call_of, check_target, program_output, run_script, shown_error, tried, with_values
from supremum.errors import ArgumentError, SupremumError

if TYPE_CHECKING:
    from supremum.tracing import JittedCall


def report_program(
    target: str,
    args: str | None,
    script_arguments: Sequence[str] | None,
    measure: Callable[..., Any],
    page: Callable[[Mapping[str, Any]], str],
    form: str,
    output: Path | None,
    *,
    again: Callable[[JittedCall, Any], bool] | None = None,
) -> dict[str, Any]:
    """Measure a function, or the jitted functions that a script calls, each at its first call with arguments of a type.

    Args:
        target: a script, or `module:function`.
        args: the description of the function's arguments; None for a script.
        script_arguments: the arguments of the script.
        measure: measures a call; it takes the function and its arguments.
        page: makes the HTML page of the results.
        form: the format of the output: `"terminal"`, `"json"`, `"html"` or `"svg"`.
        output: the file; None for standard output.
        again: returns for later calls of a program, and its last result, whether to measure that call too; None for
            never.

    Returns:
        The results by the name of the call, which are also printed or written.

    Raises:
        ArgumentError: for a function without `args`, and for an SVG of several results or none.
        SupremumError: if a function cannot be measured. A call in a script that cannot be is left out, with a message.
        typer.Exit: if the user's program raises an error, which is printed.
    """
    check_target(target, args)
    with program_output(form, output):
        if args is not None:
            results, error = _measure_function(target, args, measure)
        else:
            results, error = _measure_script(target, script_arguments or (), measure, again)
    writers = {"terminal": _results_text, "json": _results_json, "html": page, "svg": _only_svg}
    put_text(writers[form](results), output)
    if error is not None:
        typer.echo(shown_error(error), err=True)
        raise typer.Exit(FAILURE)
    return results


def _measure_function(
    target: str, args: str, measure: Callable[..., Any]
) -> tuple[dict[str, Any], BaseException | None]:
    call, error = call_of(target, args)
    if call is None:
        return {}, error
    result, error = tried(lambda: measure(call.function, *with_values(call.arguments)))
    if isinstance(error, SupremumError):
        raise error
    return ({} if result is None else {f"{call.name}({args.strip()})": result}), error


def _measure_script(
    script: str,
    arguments: Sequence[str],
    measure: Callable[..., Any],
    again: Callable[[JittedCall, Any], bool] | None,
) -> tuple[dict[str, Any], BaseException | None]:
    from supremum.tracing import watch_jitted

    results: dict[str, Any] = {}
    names: dict[int, str] = {}

    def measure_call(call: JittedCall) -> None:
        is_new = id(call.program) not in names
        if is_new:
            name = str(call)
            names[id(call.program)] = name if name not in names.values() else f"{name}, program {len(names) + 1}"
        name = names[id(call.program)]
        if is_new or (again is not None and name in results and again(call, results[name])):
            try:
                results[name] = measure(call.function, *call.args, **call.kwargs)
            except SupremumError as error:
                typer.echo(f"supremum: {call} is left out: {error}", err=True)

    with watch_jitted(measure_call, every=again is not None):
        error = run_script(script, arguments)
    return results, error


def _results_text(results: Mapping[str, Any]) -> str:
    if not results:
        return "no jitted function was called\n"
    return "\n\n".join(f"{name}: {each}" for name, each in results.items()) + "\n"


def _results_json(results: Mapping[str, Any]) -> str:
    return json_text({"functions": [{"function": name} | each.to_dict() for name, each in results.items()]})


def _only_svg(results: Mapping[str, Any]) -> str:
    if len(results) != 1:
        raise ArgumentError(f"An SVG shows one function, and this program has {len(results)}; write to a .html file.")
    (only,) = results.values()
    return only.to_svg()
