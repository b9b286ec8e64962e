"""Turn the table of spec/jax-type-promotion.rst into JSON for the conformance tests.

    python tools/extract_spec_tables.py PATH/TO/jax-type-promotion.rst

It writes tests/conformance/oracles/jax-type-promotion-rst.json: every cell of the page in full names, and the cells
the page marks as different from NumPy.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

CODES = {
    "b1": "bool", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "bf": "bfloat16", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
    "i*": "int*", "f*": "float*", "c*": "complex*",
}  # fmt: skip
TARGET = Path(__file__).parent.parent / "tests/conformance/oracles/jax-type-promotion-rst.json"


def main() -> None:
    """Read the page named on the command line, write the JSON."""
    lines = [line for line in Path(sys.argv[1]).read_text().splitlines() if line.strip().startswith("<tr>")]
    columns = [CODES[code] for code in re.findall(r"<th>([^<]+)</th>", lines[0])]
    table: dict[str, dict[str, str]] = {}
    marked: list[str] = []
    for line in lines[1:]:
        cells = re.findall(r'<td( class="d")?>(.+?)</td>', line)
        row = CODES[cells[0][1]]
        table[row] = {column: CODES[code] for column, (_, code) in zip(columns, cells[1:], strict=True)}
        marked += [f"{row},{column}" for column, (mark, _) in zip(columns, cells[1:], strict=True) if mark]
    rows = ",\n".join(f"    {json.dumps(row)}: {json.dumps(cells)}" for row, cells in table.items())
    TARGET.write_text(f'{{\n  "marked": {json.dumps(marked)},\n  "table": {{\n{rows}\n  }}\n}}\n')
    print(f"{len(columns) * len(table)} cells, {len(marked)} marked: {TARGET}")


if __name__ == "__main__":
    main()
