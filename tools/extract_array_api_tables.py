"""Convert the promotion table in the test suite of the Python array API standard to JSON, for the conformance tests.

    python tools/extract_array_api_tables.py PATH/TO/array-api-tests

The argument is a checkout of https://github.com/data-apis/array-api-tests. The program writes
tests/conformance/oracles/array-api-promotion.json: the commit, and the result of every pair of dtypes, in both orders,
that the standard defines. The suite has each pair in one order only.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "tests/conformance/oracles/array-api-promotion.json"


def pairs_of(source: str) -> dict[tuple[str, str], str]:
    """Return the table from a module's source; to import the module, a library to test would have to be installed."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_promotion_table" and node.value:
            return ast.literal_eval(node.value)
    raise SystemExit("dtype_helpers.py has no _promotion_table")


def main() -> None:
    """Read the checkout that the command line names, and write the JSON."""
    checkout = Path(sys.argv[1])
    commit = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    pairs = pairs_of((checkout / "array_api_tests/dtype_helpers.py").read_text("utf-8"))
    pairs |= {(b, a): result for (a, b), result in pairs.items()}
    table: dict[str, dict[str, str]] = {}
    for (a, b), result in sorted(pairs.items()):
        table.setdefault(a, {})[b] = result
    rows = ",\n".join(f"    {json.dumps(a)}: {json.dumps(cells)}" for a, cells in table.items())
    TARGET.write_text(f'{{\n  "commit": {json.dumps(commit)},\n  "table": {{\n{rows}\n  }}\n}}\n', "utf-8")
    print(TARGET)


if __name__ == "__main__":
    main()
