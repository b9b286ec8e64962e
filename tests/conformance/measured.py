"""Read the oracles of tools/extract_oracles.py as cells: a call and its outcome."""

import json
import pathlib

from supremum.operations import as_operation

ORACLES = pathlib.Path(__file__).parent / "oracles"


def document(framework):
    """The tables measured from a framework."""
    return json.loads((ORACLES / f"{framework}.json").read_text())


def cells(tables, columns):
    """List ((operation, form, left, right), cell); operands are codes, `right` is empty for one operand."""
    columns = columns.split()
    for table in tables:
        for measured in table["measured"]:
            name, form = measured.split()
            for row, answers in table["rows"].items():
                for column, cell in zip(columns, answers.split(), strict=True):
                    if cell == ".":
                        continue
                    if name == "unary":
                        yield (as_operation(row).name, form, column, ""), cell
                    else:
                        yield (as_operation(name).name, form, row, column), cell


def triples(rows, columns):
    """List ((a, b, c), cell) of a table of three operands."""
    for pair, answers in rows.items():
        for column, cell in zip(columns.split(), answers.split(), strict=True):
            yield (*pair.split(), column), cell
