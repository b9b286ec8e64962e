"""`supremum demo`: watch a classifier train in three formats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from supremum.argument_checks import chosen
from supremum.atomic_files import check_writable
from supremum.cli.exit_codes import loading
from supremum.cli.output import STANDARD_OUTPUT, checked_output, json_text, put_text
from supremum.errors import ArgumentError

if TYPE_CHECKING:
    from supremum.demo import Report, Shares


def demo(
    case: Annotated[
        str,
        typer.Option(
            help="'policies' compares dtype policies, 'underflow' shows why float16 needs loss scaling, "
            "'master-weights' why it needs float32 weights."
        ),
    ] = "policies",
    policy: Annotated[
        list[str] | None, typer.Option(help="A policy to train under; repeat for several. Default: all of the case.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Where weights and shuffling start from.")] = 0,
    epochs: Annotated[int | None, typer.Option(min=1, help="How often to go through the data.")] = None,
    weight: Annotated[float | None, typer.Option(help="Factor of the loss in the case 'underflow'.")] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", callback=checked_output, help="Write the figures there as well."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/demo"),
) -> None:
    """Train on handwritten digits under several policies.

    The model is a small convolutional network; its accuracy, skipped steps and memory are compared.
    """
    with loading():  # JAX, which most commands do not need
        from supremum import demo

    console = Console(stderr=json_file == STANDARD_OUTPUT)  # standard output has only the JSON
    trained = demo.CASES[chosen("case", case, demo.CASES)]
    if weight is not None and (case != "underflow" or not 0 < weight <= 1):
        raise ArgumentError(f"--weight must be above 0, at most 1, and used with --case underflow, got {weight:g}.")
    runs = trained.runs if not policy else tuple((name, "auto") for name in policy)
    policies = [demo.demonstration_policy(name, scale) for name, scale in runs]
    factor = trained.weight if weight is None else weight
    length = epochs or trained.epochs
    picture = out / trained.picture
    check_writable(picture)
    digits = demo.load_digits()
    sizes = f"{len(digits.x_train)} to learn from, {len(digits.x_test)} to test"
    console.print(f"Handwritten digits, {trained.summary}: {sizes}.")

    reports: list[Report] = []
    columns = (
        TextColumn("{task.description:<25}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[status]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        for each in policies:
            task = progress.add_task(demo.label_of(each), total=length, status="compiling")
            skipped = [0]

            def show(epoch: int, logs: Mapping[str, float], task: Any = task, skipped: list[int] = skipped) -> None:
                skipped[0] += int(logs.get("skipped_steps", 0))
                suffix = f", {skipped[0]} skipped" if skipped[0] else ""
                progress.update(task, completed=epoch + 1, status=f"loss {logs['loss']:.2e}{suffix}")

            options: Any = {"seed": seed, "epochs": length, "weight": factor, "on_epoch": show}
            reports.append(demo.train_classifier(digits, each, trained, **options))

    console.print(_result_table(reports))
    figures: dict[str, Any] = {"case": case, "runs": [report.figures() for report in reports]}
    if case == "underflow":
        underflow = demo.measure_underflow(digits, weight=factor, seed=seed)
        title = f"Gradient entries that are zero on the first batch, loss weighted by {underflow.weight:g}"
        weights = {f"{weight:g}": shares for weight, shares in underflow.weights.items()}
        console.print(_share_table(title, "layer", underflow.layers))
        console.print(_share_table("The same over all layers, by weight", "weight of the loss", weights))
        figures["zero_gradient_entries"] = underflow.figures()
        demo.draw_underflow(picture, reports, underflow)
    else:
        demo.draw_training(picture, reports)
    console.print(f"\nPicture: {picture}", soft_wrap=True)
    if json_file is not None:
        put_text(json_text(figures), json_file)
        if json_file != STANDARD_OUTPUT:
            console.print(f"Figures: {json_file}", soft_wrap=True)


def _result_table(reports: list[Report]) -> Table:
    table = Table(title="Results", title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    table.add_column("policy", no_wrap=True)
    for heading in ("test accuracy", "steps skipped", "last loss scale", "bytes of variables", "seconds per epoch"):
        table.add_column(heading, justify="right", min_width=max(map(len, heading.split())))
    for report in reports:
        table.add_row(
            report.label,
            f"{100 * report.test_accuracy:.2f} %",
            str(report.history.skipped_steps),
            "-" if report.loss_scale is None else f"{report.loss_scale:,.0f}",
            f"{report.variable_bytes:,}",
            f"{report.seconds_per_epoch:.3f}",
        )
    return table


def _share_table(title: str, first: str, rows: dict[str, Shares]) -> Table:
    shares = [Column(heading, justify="right") for heading in ("float32", "float16", "float16, loss scaled")]
    table = Table(first, *shares, title=f"\n{title}", title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for name, row in rows.items():
        table.add_row(name, *(f"{100 * share:.1f} %" for share in row))
    return table
