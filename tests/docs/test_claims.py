"""What the documentation says without exception is still on its page, and is shown by a test that exists."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLAIMS = tomllib.loads((Path(__file__).parent / "claims.toml").read_text())


@pytest.mark.parametrize("page", CLAIMS)
def test_each_claim_of_a_page_has_a_test(page):
    text = " ".join((ROOT / page).read_text().split())
    faults = []
    for sentence, test in CLAIMS[page].items():
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / "tests" / file).read_text())
        tests = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        if sentence not in text:
            faults.append(f"not on the page: {sentence}")
        if name not in tests:
            faults.append(f"no such test: {test}")
    assert not faults
