"""The programs of examples/arrays run and print the expected results."""

import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

import supremum

EXAMPLES = Path(__file__).parents[2] / "examples/arrays"


@pytest.fixture
def printed(capsys):
    def run(name):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    yield run
    supremum.set_default_rules("jax")


def test_one_program_gives_one_dtype_on_every_library(printed):
    lines = {line.split()[0]: line for line in printed("one_program").splitlines()}
    assert list(lines) == ["numpy", "jax", *(["torch"] if find_spec("torch") else [])]
    assert len({line.partition("under")[0].split()[-1] for line in lines.values()}) == 2  # by themselves they differ
    for rules, dtype in {"jax-x32": "float16", "numpy": "float64", "torch": "float16"}.items():
        found = {line.partition(f"under {rules}: ")[2].split()[0] for line in lines.values()}
        assert found <= {dtype, "refused"}
    # Only a dtype that the runtime cannot represent is refused.
    assert "under numpy: refused" in lines["jax"]
    assert sum(line.count("refused") for line in lines.values()) == 1


def test_a_tensorflow_snippet_shows_its_refusals(printed):
    text = printed("porting_tensorflow")
    assert text.count("refused") == 4
    assert text.count("  fix  ") == 4
    assert "labels + 1: Array([1, 2, 2], dtype=uint8)" in text
    assert "out of range: b; uint8 goes from 0 to 255" in text
    assert "weights.assign_add(1.5): ArrayVariable([2.5, 2.5, 2.5], dtype=float32, name='weights')" in text
