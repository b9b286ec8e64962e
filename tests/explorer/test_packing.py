"""Packed tables and texts are unpacked to what they were."""

import json
import random
import shutil
import subprocess
from importlib.resources import files
from itertools import accumulate

import pytest

from supremum.explorer import packing
from supremum.explorer.packing import packed_rows, packed_texts, steps


def unpacked_rows(packed, widths):
    rows, places, cells = [], iter(packed["places"]), iter(packed["cells"])
    for back, changed in zip(packed["back"], packed["changed"], strict=True):
        row = dict(rows[len(rows) - back]) if back else {}
        changes = [(next(places), next(cells)) for _ in range(changed)]
        row |= zip(accumulate(place for place, _ in changes), accumulate(cell for _, cell in changes), strict=True)
        rows.append(row)
    return [[row[place] for place in range(width)] for row, width in zip(rows, widths, strict=True)]


def similar_rows(seed):
    chosen = random.Random(seed)
    rows = [[chosen.randrange(70_000) for _ in range(9)]]
    for _ in range(60):
        row = list(chosen.choice(rows))[: chosen.randrange(1, 12)]
        row += chosen.choices(range(70_000), k=chosen.randrange(3))
        row[chosen.randrange(len(row))] = chosen.randrange(70_000)
        rows.append(row)
    return rows


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("earlier", [3, 1000])
def test_rows_of_any_lengths_are_unpacked(seed, earlier, monkeypatch):
    monkeypatch.setattr(packing, "_EARLIER_ROWS", earlier)
    rows = similar_rows(seed)
    packed = packed_rows(rows)
    assert unpacked_rows(packed, [len(row) for row in rows]) == rows
    assert sum(packed["changed"]) < 0.9 * sum(map(len, rows))
    assert max(packed["back"]) <= earlier


def test_nothing_is_packed_as_nothing():
    assert packed_rows([]) == {"back": [], "changed": [], "places": [], "cells": []}
    assert packed_texts([]) == {"lines": [], "columns": []}


def test_the_explorer_unpacks_rows_and_texts(tmp_path):
    """Run the explorer's script in Node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed; the tests of the page in a browser say the same")
    rows = [(row * 12)[:12] for row in similar_rows(0)]
    tables, texts = [[0, 5, 3], [60, 7]], ["a\tb\nc", "c", "", "a\tb\nd\nc"]
    data = {
        "rows": packed_rows(rows),
        "tables": list(map(steps, tables)),
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
    assert [[row[:12] for row in table] for table in shown] == [[rows[number] for number in table] for table in tables]
    assert told == texts
