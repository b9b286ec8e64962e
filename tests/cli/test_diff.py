"""`supremum diff`."""

import json
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from pages import read
from supremum.cli.app import app

SVG = "{http://www.w3.org/2000/svg}"
TYPES = ["--types", "int8,int32,uint32,float16,float32"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, ["diff", *args])


def test_every_format_counts_the_same_differences(run):
    data = json.loads(run("jax-x64", "numpy", "--format", "json").stdout)
    tables, entries = read(run("jax-x64", "numpy", "--format", "html").stdout)
    signs = [text.text for text in ET.fromstring(run("jax-x64", "numpy", "--format", "svg").stdout).iter(f"{SVG}text")]
    assert data["counts"] == {"wider": 30, "refused": 14}
    assert entries == {"wider": "▲ 30 wider in numpy", "refused": "✕ 14 refused by numpy"}
    assert [sum("data-mark" in cell.attributes for cell in table.cells().values()) for table in tables] == [44, 44]
    assert (signs.count("▲"), signs.count("✕")) == (60, 28)


def test_the_suffix_of_the_file_sets_the_format(run, tmp_path):
    for name, start in [
        ("a.html", "<!doctype"),
        ("a.SVG", "<svg"),
        ("a.json", "{"),
        ("a.txt", "result_type:"),
        ("a", "res"),
    ]:
        assert run("jax-x64", "numpy", *TYPES, "-o", name).exit_code == 0
        assert (tmp_path / name).read_text().startswith(start), name


@pytest.mark.slow
def test_triples_limits_the_triples_below_the_tables(run):
    for form in ("terminal", "html", "svg"):
        texts = [run("torch", "numpy", "--triples", str(number), "--format", form).stdout for number in (0, 2)]
        assert ["(bf16, bool), i*" in text for text in texts] == [False, True], form


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ([], "Name two rule sets, as in supremum diff jax-x64 numpy."),
        (["torch"], "Name a second rule set to compare torch with, as in supremum diff torch numpy."),
        (["numpy"], "Name a second rule set to compare numpy with, as in supremum diff numpy jax-x64."),
        (["torch", "numpy", "--format", "htm"], "unknown format 'htm': did you mean 'html'?"),
        (["torch", "numpy", "--operation", "sin"], "unknown operation of two operands 'sin'"),
        (["torch", "numpy", "--types", "int9"], "unknown dtype 'int9'"),
    ],
)
def test_a_usage_error_is_one_line_and_writes_nothing(run, tmp_path, args, line):
    result = run(*args, "-o", "never.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"supremum: {line}")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
