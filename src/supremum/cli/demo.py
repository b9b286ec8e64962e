"""`supremum demo`: watch what float16 loses, and what mixed precision does about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TextColumn
from rich.table import Table

from supremum.argument_checks import chosen
from supremum.atomic_files import check_writable
from supremum.cli.exit_codes import loading
from supremum.cli.output import STANDARD_OUTPUT, checked_output, json_text, put_text

if TYPE_CHECKING:
    from supremum.demo import DemoRun, Digits, Experiment


def demo(
    case: Annotated[
        str | None,
        typer.Option(
            help="'underflow' shows what float16 loses and how to keep it; 'digits' trains a network in float32 and in "
            "mixed precision; 'master-weights' compares ways to keep small steps in 16-bit weights, for a minute. "
            "Default: the first two."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Where weights and shuffling start from.")] = 0,
    epochs: Annotated[int | None, typer.Option(min=1, help="How often to go through the data.")] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", callback=checked_output, help="Write the figures there as well."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/demo"),
) -> None:
    """See what float16 loses, and how mixed precision keeps it.

    Networks train on handwritten digits in float32, float16 and bfloat16; a picture compares them.
    """
    with loading():  # JAX, which most commands do not need
        from supremum import demo

    console = Console(stderr=json_file == STANDARD_OUTPUT)  # standard output has only the JSON
    default = [name for name, each in demo.CASES.items() if each.by_default]
    names = default if case is None else [chosen("case", case, demo.CASES)]
    picture = out / "underflow.png"
    check_writable(picture)
    digits = demo.load_digits()
    figures: dict[str, Any] = {}
    for name in names:
        trained = demo.CASES[name]
        console.print(f"[bold]{name}[/]: {trained.summary}")
        reports = _train(console, digits, trained, seed, epochs)
        console.print(_result_table(reports), "")
        figures[name] = {"runs": [report.figures() for report in reports.values()]}
        if name == "underflow":
            gradients = demo.first_gradients(digits, trained, seed=seed)
            caption = Table.grid("", "", padding=(0, 2))
            for label, sentence in demo.underflow_caption(trained, reports, gradients).items():
                caption.add_row(label, escape(sentence))
            console.print(caption)
            demo.draw_underflow(picture, trained, reports, gradients)
            figures[name]["underflowing_gradients"] = demo.underflowing(gradients)
            console.print(f"\nPicture: {escape(str(picture))}\n", soft_wrap=True)
    if json_file is not None:
        put_text(json_text(figures), json_file)
        if json_file != STANDARD_OUTPUT:
            console.print(f"Figures: {escape(str(json_file))}", soft_wrap=True)


def _train(console: Console, digits: Digits, case: Experiment, seed: int, epochs: int | None) -> dict[str, DemoRun]:
    from supremum import demo

    reports: dict[str, DemoRun] = {}
    length = epochs or case.epochs
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[status]}"))
    with Progress(*columns, console=console) as progress:
        for label in case.runs:
            task = progress.add_task(label, total=length, status="compiling")

            def show(epoch: int, logs: Mapping[str, float], task: Any = task) -> None:
                progress.update(task, completed=epoch + 1, status=f"loss {logs['loss'] / case.weight:.3f}")

            options: Any = {"seed": seed, "epochs": length, "on_epoch": show}
            reports[label] = demo.train_classifier(digits, case, label, **options)
    return reports


def _result_table(reports: Mapping[str, DemoRun]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    table.add_column("run", no_wrap=True)
    columns: dict[str, Callable[[DemoRun], str]] = {
        "test accuracy": lambda report: f"{100 * report.test_accuracy:.1f} %",
        "weights that moved": lambda report: f"{100 * report.moved:.0f} %",
        "bytes of variables": lambda report: f"{report.variable_bytes:,}",
    }
    if any(report.loss_scale is not None for report in reports.values()):
        columns["steps skipped"] = lambda report: str(report.history.skipped_steps)
        columns["last loss scale"] = _last_loss_scale
    else:
        columns["bytes per parameter"] = lambda report: f"{report.bytes_per_parameter:.2f}"
    for heading in columns:
        table.add_column(heading, justify="right", min_width=max(map(len, heading.split())))
    for report in reports.values():
        table.add_row(report.label, *(column(report) for column in columns.values()))
    return table


def _last_loss_scale(report: DemoRun) -> str:
    return "-" if report.loss_scale is None else f"2**{math.log2(report.loss_scale):.0f}"
