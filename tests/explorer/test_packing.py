"""Packed tables and texts are unpacked to what they were."""

import json
import random
import shutil
import subprocess
from importlib.resources import files
from itertools import accumulate

import pytest

from supremum.explorer import packing
from supremum.explorer.packing import packed_tables, packed_texts


def unpacked_tables(packed, order):
    rows, swapped, recent, tables = [], {}, [], []
    places, cells = iter(packed["places"]), iter(packed["cells"])
    for steps in packed["tables"]:
        table = []
        for number in accumulate(steps):
            if number == len(rows):
                back = packed["back"][number]
                row = dict(enumerate(rows[number - back][: len(steps)])) if back else {}
                if packed["swaps"][number]:
                    predicted = ((place, swapped.get(above[len(table)])) for place, above in enumerate(table))
                    row |= {place: cell for place, cell in predicted if cell is not None}
                place = 0
                for _ in range(packed["changed"][number]):
                    place += next(places)
                    since = next(cells)
                    recent.append(recent.pop(-since) if since else len(recent))
                    row[place] = recent[-1]
                rows.append([row[place] for place in range(len(steps))])
            for place, above in enumerate(table):
                swapped[above[len(table)]] = rows[number][place]
            table.append(rows[number])
        tables.append([[order[cell] for cell in row] for row in table])
    return tables


def similar_tables(seed):
    """Tables of which each resembles an earlier one; most cells depend on the cell of the swapped operands."""
    chosen = random.Random(seed)
    tables = []
    for _ in range(20):
        width = chosen.randrange(1, 9)
        table = [[chosen.randrange(70_000) for _ in range(width)] for _ in range(width)]
        if tables:
            similar = chosen.choice(tables)
            for i, row in enumerate(similar[:width]):
                table[i][: len(row)] = row[:width]
        for i in range(width):
            table[i][:i] = [table[j][i] + 1 for j in range(i)]
        table[chosen.randrange(width)][chosen.randrange(width)] = chosen.randrange(70_000)
        tables.append(table)
    return tables


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("earlier", [3, 1000])
def test_tables_of_any_widths_are_unpacked(seed, earlier, monkeypatch):
    monkeypatch.setattr(packing, "_EARLIER_ROWS", earlier)
    tables = similar_tables(seed)
    packed, order = packed_tables(tables)
    assert unpacked_tables(packed, order) == tables
    assert sum(packed["changed"]) < 0.9 * sum(len(row) for table in tables for row in table)
    assert any(packed["swaps"]) or earlier == 1000  # else a similar row is near
    assert max(packed["back"]) <= earlier
    assert len(order) == len(set(order))


def test_nothing_is_packed_as_nothing():
    assert packed_tables([]) == ({name: [] for name in ("tables", "back", "swaps", "changed", "places", "cells")}, [])
    assert packed_texts([]) == {"lines": [], "columns": []}


def test_the_explorer_unpacks_tables_and_texts(tmp_path):
    """Run the explorer's script in Node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed; the tests of the page in a browser say the same")
    tables, texts = similar_tables(0), ["a\tb\nc", "c", "", "a\tb\nd\nc"]
    packed, order = packed_tables(tables)
    data = {
        "tables": packed,
        "texts": packed_texts(texts),
        "cells": [],
        "rules": [],
        "operations": [["result_type"]],
        "formats": [],
        "kinds": [],
    }
    program = tmp_path / "program.js"
    program.write_text(
        f"{(files('supremum.explorer') / 'answers.js').read_text()}\nconst decided = new Decided({json.dumps(data)});\n"
        f"const texts = [0, 1, 2, 3].map((number) => decided.text(number));\n"
        f"console.log(JSON.stringify([decided.tables, texts]));"
    )
    result = subprocess.run([node, program], capture_output=True, text=True, check=True)
    shown, told = json.loads(result.stdout)
    assert [[[order[cell] for cell in row] for row in table] for table in shown] == tables
    assert told == texts
