"""`supremum diff`."""

import json
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from pages import read
from supremum.analysis.comparison import compare
from supremum.analysis.distance import distances
from supremum.cli.app import app
from supremum.rules.names import HOMES

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
        assert run("--all", *TYPES, "-o", name).exit_code == 0
        assert (tmp_path / name).read_text().startswith("Distances" if start.startswith("res") else start), name


@pytest.mark.slow
def test_triples_limits_the_triples_below_the_tables(run):
    for form in ("terminal", "html", "svg"):
        texts = [run("torch", "numpy", "--triples", str(number), "--format", form).stdout for number in (0, 2)]
        assert ["(bf16, bool), i*" in text for text in texts] == [False, True], form


@pytest.mark.slow
def test_all_prints_the_matrix_of_every_pair(run):
    lines = run("--all", *TYPES).stdout.splitlines()
    found = distances(types=TYPES[1])
    assert lines[0] == "Distances between rule sets: how many of 25 cells differ, result_type"
    rows = [line.split() for line in lines[3:]]
    assert tuple(name for *_, name in rows) == found.names
    assert len(found.names) == len(HOMES)
    for place, (*counts, name) in enumerate(rows):
        before = found.names[:place]
        for pairs in ([(name, other) for other in before], [(other, name) for other in before]):
            assert list(map(int, counts)) == [len(compare(*pair, types=TYPES[1]).differing) for pair in pairs]
    lines = run("--all").stdout.splitlines()
    # Each name begins at its column.
    assert [line.index(name) for name, line in zip(distances().names, lines[3:], strict=True)] == [
        4 * place for place in range(len(HOMES))
    ]


@pytest.mark.slow
def test_columns_that_do_not_fit_follow_below(run, monkeypatch):
    whole = [line.split() for line in run("--all", *TYPES).stdout.splitlines()[3:]]
    monkeypatch.setenv("COLUMNS", "60")
    text = run("--all", *TYPES).stdout
    assert max(map(len, text.splitlines()[1:])) <= 60
    joined = {name: [] for *_, name in whole}
    for part in text.split("\n\n")[1:]:
        for *counts, name in map(str.split, part.splitlines()):
            joined[name] += counts
    assert [[*counts, name] for name, counts in joined.items()] == whole


@pytest.mark.slow
def test_all_in_every_format_has_the_same_numbers(run):
    data = json.loads(run("--all", "--operation", "divide", "--format", "json").stdout)
    ((table,), _) = read(run("--all", "--operation", "divide", "--format", "html").stdout)
    numbers = {a: {b: table.cells()[a, b].text for b in table.columns} for a in table.rows}
    assert data["operation"] == "divide"
    assert data["rules"] == table.columns == list(table.rows)
    assert numbers == {a: {b: str(count) for b, count in row.items()} for a, row in data["differing"].items()}
    svg = ET.fromstring(run("--all", "--operation", "divide", "--format", "svg").stdout)
    cells = [text.text for text in svg.iter(f"{SVG}text") if text.get("class") == "mono end"]
    assert cells == [numbers[a][b] for a in table.rows for b in table.columns]
    hints = [title.text for title in svg.iter(f"{SVG}title")][1:]
    assert hints == [table.cells()[a, b].parts["hint"] for a in table.rows for b in table.columns]


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ([], "Name two rule sets, as in supremum diff jax-x64 numpy, or give --all for all of them."),
        (["torch"], "Name a second rule set to compare torch with, as in supremum diff torch numpy."),
        (["numpy"], "Name a second rule set to compare numpy with, as in supremum diff numpy jax-x64."),
        (["torch", "--all"], "--all compares all rule sets; leave out either --all or torch."),
        (
            ["torch", "numpy", "--all"],
            "--all compares all rule sets; leave out either --all or torch numpy.",
        ),
        (["--all", "--triples", "3"], "--triples needs two rule sets; leave it out with --all."),
        (["--all", "--format", "htm"], "unknown format 'htm': did you mean 'html'?"),
        (["--all", "--operation", "sin"], "unknown operation of two operands 'sin'"),
        (["--all", "--types", "int9"], "unknown dtype 'int9'"),
    ],
)
def test_a_usage_error_is_one_line_and_writes_nothing(run, tmp_path, args, line):
    result = run(*args, "-o", "never.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"supremum: {line}")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_matrix_uses_the_width_of_the_terminal_and_never_more(monkeypatch):
    groups = []
    for width in (40, 58, 59, 60, 61, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = CliRunner().invoke(app, ["diff", "--all", "--types", "int8,float32"]).output.splitlines()
        matrix = lines[2 : lines.index("array-api") if "array-api" in lines else None]
        assert max(len(line) for line in matrix if line.endswith("jax-strict-explicit-x64")) <= width
        groups.append(sum(line == "" for line in matrix))
    assert groups == sorted(groups, reverse=True)
    assert groups[0] > groups[-1]
