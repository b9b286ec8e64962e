"""The documents of tools/extract_oracles.py as cells: what was asked, and what came out."""

import json
import pathlib

from supremum.operations import as_operation

ORACLES = pathlib.Path(__file__).parent / "oracles"


def document(framework):
    """The tables measured from a framework."""
    return json.loads((ORACLES / f"{framework}.json").read_text())


def cells(tables, columns):
    """(operation, form, left, right): cell, operands by their codes; `right` is empty for operations of one operand."""
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
    """(a, b, c): cell."""
    for pair, answers in rows.items():
        for column, cell in zip(columns.split(), answers.split(), strict=True):
            yield (*pair.split(), column), cell
