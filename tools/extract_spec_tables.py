"""Convert the tables of three documents in docs/sources.md to JSON, for the conformance tests.

    python tools/extract_spec_tables.py PATH/TO/jax-type-promotion.rst
    python tools/extract_spec_tables.py PATH/TO/paddle-type-promotion.md
    python tools/extract_spec_tables.py PATH/TO/array-api-tests

The last one is a checkout of https://github.com/data-apis/array-api-tests. The program writes one of three files into
tests/conformance/oracles/:

    jax-type-promotion-rst.json    every cell of the page, with full names, and the cells that the page marks as
                                   different from NumPy
    paddle-type-promotion-md.json  every cell of the page's two tables, misprints included; and for each function that
                                   the page lists, its rules for two tensors and for a tensor and a scalar
    array-api-promotion.json       the commit, and the result of every pair of dtypes, in both orders, that the standard
                                   defines; the suite has each pair in one order only
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from oracles.tables import INTEGERS, codes, names

CODES = codes(f"{INTEGERS} bf f2 f4 f8 c8 c16") | names("i*:int* f*:float* c*:complex*")
PADDLE_CODES = names(
    "bool u8:uint8 i8:int8 i16:int16 i32:int32 i64:int64"
    " bf16:bfloat16 f16:float16 f32:float32 f64:float64 c64:complex64 c128:complex128 -"
)
PADDLE_SCALARS = {"bool": "bool()", "int": "int*", "float": "float*", "complex": "complex*"}
ORACLES = Path(__file__).parent.parent / "tests/conformance/oracles"


def jax_page(path: Path) -> dict[str, Any]:
    """Return the cells of "JAX type promotion" (JEP 9407)."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip().startswith("<tr>")]
    columns = [CODES[code] for code in re.findall(r"<th>([^<]+)</th>", lines[0])]
    table: dict[str, dict[str, str]] = {}
    marked: list[str] = []
    for line in lines[1:]:
        cells = re.findall(r'<td( class="d")?>(.+?)</td>', line)
        row = CODES[cells[0][1]]
        table[row] = {column: CODES[code] for column, (_, code) in zip(columns, cells[1:], strict=True)}
        marked += [f"{row},{column}" for column, (mark, _) in zip(columns, cells[1:], strict=True) if mark]
    return {"marked": marked, "table": table}


def paddle_page(path: Path) -> dict[str, Any]:
    """Return the cells and the functions of "Paddle type promotion"."""
    page = path.read_text("utf-8")
    blocks = re.findall(r"^\+/-/\* (.+)\n((?:\w+(?: [\w-]+)+\n)+)", page, re.MULTILINE)
    tables = [
        {
            PADDLE_CODES[row]: dict(zip(columns.split(), (PADDLE_CODES[cell] for cell in cells), strict=True))
            for row, *cells in map(str.split, rows.splitlines())
        }
        for columns, rows in blocks
    ]
    functions = {
        name: re.findall(r"Common|Divide|Logic|-", rules)
        for name, rules in re.findall(r"^\d+ (\w+)(?:\(mod\))? (.+)$", page, re.MULTILINE)
    }
    tensors, scalars = (
        {row: {codes[column]: cell for column, cell in cells.items()} for row, cells in table.items()}
        for table, codes in zip(tables, (PADDLE_CODES, PADDLE_SCALARS), strict=True)
    )
    return {"tensors": tensors, "scalars": scalars, "functions": functions}


def array_api_suite(checkout: Path) -> dict[str, Any]:
    """Return the cells of the promotion table in the test suite of the Python array API standard."""
    # To import the module, a library to test would have to be installed.
    source = (checkout / "array_api_tests/dtype_helpers.py").read_text("utf-8")
    (pairs,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_promotion_table" and node.value
    )
    table: dict[str, dict[str, str]] = {}
    for (a, b), result in sorted((pairs | {(b, a): result for (a, b), result in pairs.items()}).items()):
        table.setdefault(a, {})[b] = result
    commit = subprocess.check_output(["git", "-C", str(checkout), "rev-parse", "HEAD"], text=True).strip()
    return {"commit": commit, "table": table}


DOCUMENTS = {
    "jax-type-promotion.rst": ("jax-type-promotion-rst", jax_page),
    "paddle-type-promotion.md": ("paddle-type-promotion-md", paddle_page),
    "array-api-tests": ("array-api-promotion", array_api_suite),
}
"""The JSON document of each source, and the function that reads the source."""


def dump(document: dict[str, Any]) -> str:
    """Return JSON with one line for each row of a table."""
    parts = []
    for key, value in document.items():
        if isinstance(value, dict):
            rows = ",\n".join(f"    {json.dumps(row)}: {json.dumps(cells)}" for row, cells in value.items())
            parts.append(f'  "{key}": {{\n{rows}\n  }}')
        else:
            parts.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Read the document that the command line names, and write the JSON."""
    source = Path(sys.argv[1])
    name, read = DOCUMENTS[source.name]
    target = ORACLES / f"{name}.json"
    target.write_text(dump(read(source)), "utf-8")
    print(target)


if __name__ == "__main__":
    main()
