"""The commands, their formats and their errors."""

import io
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from rich.console import Console

import supremum
from pages import read
from supremum import demo
from supremum.analysis.diagrams import lattice_dot, lattice_svg
from supremum.analysis.tables import ALL_TYPES, STANDARD_TYPES, rule_table, short_name
from supremum.cli import demo as cli_demo
from supremum.rules.names import HOMES


def test_the_table_in_the_terminal_fits_eighty_columns_and_is_colored_by_category(run):
    plain = run("table", "--rules", "jax").stdout
    lines = plain.splitlines()
    assert lines[0] == "result_type under jax-x32"
    assert lines[2].split() == [short_name(name) for name in STANDARD_TYPES]
    assert " ".join(lines[8].split()) == "i8 i8 i16 i32 i32 i32 i8 i16 i32 i32 bf16 f16 f32 f32 c64 c64 i8 f* c*"
    assert "\x1b" not in plain
    assert "u8 uint8, u16 uint16," in lines[-1]
    assert lines[-1].endswith("i* int* (weak), f* float* (weak), c* complex* (weak)")
    terminal = {"FORCE_COLOR": "1", "COLUMNS": "80"}
    coloured = run("table", "--rules", "jax-x32", env=terminal)
    assert all(code in coloured.stdout for code in ("\x1b[36m", "\x1b[32m", "\x1b[35m"))
    # A terminal of 80 columns has the columns that do not fit below the others.
    blocks = re.sub(r"\x1b\[\d+m", "", coloured.stdout).split("\n\n")[1:-1]
    assert max(len(line) for block in blocks for line in block.splitlines()) <= 80
    read = [[line.split() for line in block.splitlines()] for block in blocks]
    assert len(read) == 2
    joined = [[*one, *other[bool(place) :]] for place, (one, other) in enumerate(zip(*read, strict=True))]
    assert joined == [line.split() for line in lines[2:21]]


def test_the_json_table_has_every_pair_in_both_orders(run):
    result = run("table", "--rules", "jax-x64", "--format", "json")
    data = json.loads(result.stdout)
    assert (data["rules"], data["operation"]) == ("jax-x64", "result_type")
    assert data["types"] == list(ALL_TYPES)
    table = data["table"]
    assert list(table) == data["types"]
    assert all(list(row) == data["types"] for row in table.values())
    assert table["int8"]["uint8"] == table["uint8"]["int8"] == "int16"
    assert table["int8"]["float*"] == "float*"
    assert table["float8_e4m3fn"]["float16"] is None


@pytest.mark.parametrize(
    ("types", "expected"), [("standard", STANDARD_TYPES), ("int8,f32, float*", ("int8", "float32", "float*"))]
)
def test_types_selects_the_rows(run, types, expected):
    data = json.loads(run("table", "--types", types, "--format", "json").stdout)
    assert tuple(data["types"]) == expected


def test_markdown_and_html_show_the_same_cells(run):
    markdown = run("table", "--format", "markdown").stdout
    rows = [line for line in markdown.splitlines() if line.startswith("| **i8**")]
    assert rows[0].count("|") == 20
    assert r"f\*" in rows[0]
    assert "i8 int8" in markdown.splitlines()[-1]
    html = run("table", "--format", "html").stdout
    assert html.startswith("<!doctype html>")
    assert html.count("<td") == 324
    assert 'class="integer"' in html
    assert "least upper bound" in html
    assert "http" not in html.replace("http-equiv", "")


def test_output_is_written_to_a_complete_file(run, tmp_path):
    (tmp_path / "sub").mkdir()
    for form in ("terminal", "json", "markdown", "html"):
        printed = run("table", "--format", form).stdout
        assert run("table", "--format", form, "-o", f"sub/{form}").stdout == ""
        assert (tmp_path / "sub" / form).read_text() == printed
    assert len(list((tmp_path / "sub").iterdir())) == 4


def test_drawings_contain_the_explanation_of_each_cell():
    drawn = rule_table("jax-x64", types="int8,uint8,float8_e5m2,float16").drawing()
    (label, cells) = drawn.rows[0]
    assert (label, [cell.text for cell in cells]) == ("i8", ["i8", "i16", "f8_e5m2", "f16"])
    assert drawn.rows[2][1][3].style == "refused"
    assert "least upper bound" in cells[1].hint


def test_against_marks_the_cells_that_differ(run):
    args = ["table", "--rules", "jax-x64", "--against", "numpy"]
    plain = run(*args).stdout
    assert "44 of 324 cells differ from numpy" in plain
    assert plain.count("!") == 44 + 1  # and the legend
    data = json.loads(run(*args, "--format", "json", "--types", "standard").stdout)
    assert len(data["differing"]) == 44
    assert data["against"]["rules"] == "numpy"
    assert run(*args, "--format", "markdown").stdout.count("**") == 2 * (44 + 18 + 1)
    assert run(*args, "--format", "html").stdout.count(' marked"') == 44


def test_operations_have_separate_tables(run):
    data = json.loads(run("table", "--rules", "paddle", "--operation", "divide", "--format", "json").stdout)
    assert (data["operation"], data["table"]["int8"]["int8"]) == ("divide", "float32")


def test_diff_shows_the_same_cells_counts_and_triples_in_every_format(run):
    line = ("diff", "jax-x64", "numpy", "--format")
    text, data, html, svg = (run(*line, form).stdout for form in ("terminal", "json", "html", "svg"))
    for shown in (
        "44 of 324 cells differ", "30  wider in numpy", "i16, f16 and back", "i16 int16, ",
        "numpy: 508, 508 of them only here",
    ):  # fmt: skip
        assert shown in text
    data = json.loads(data)
    assert (data["rules"], data["differing"]) == (["jax-x64", "numpy"], 44)
    assert data["counts"] == {"wider": 30, "refused": 14}
    assert data["non_associative"] == {"jax-x64": 0, "numpy": 508}
    assert ["int8", "uint8", "float16"] in data["non_associative_only_in"]["numpy"]
    few = json.loads(run(*line, "json", "--types", "int8,uint8,float16").stdout)
    assert (few["differing"], few["non_associative"]) == (0, {"jax-x64": 0, "numpy": 4})
    assert "0 of 1 cells differ" in run("diff", "torch", "torch", "--types", "int8").stdout
    tables, entries = read(html)
    assert entries == {"wider": "▲ 30 wider in numpy", "refused": "✕ 14 refused by numpy"}
    assert [sum("data-mark" in cell.attributes for cell in table.cells().values()) for table in tables] == [44, 44]
    signs = [text.text for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert (signs.count("▲"), signs.count("✕")) == (60, 28)


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (["int8", "uint8", "--rules", "tf-rfc-safe"], ["-> refused", "would be wider than all tensors", "fix"]),
        (["uint8", "256", "--rules", "tf-rfc-safe"], ["-> refused", "int* (256)", "uint8 goes from 0 to 255"]),
        (["int8", "-5"], ["-> int8", "int* (-5)"]),
        (["int8[]", "int16", "--rules", "torch"], ["-> int16"]),
        (["int16[]", "int8", "--rules", "torch"], ["-> int8"]),
        (["int8", "1000", "--operation", "add", "--rules", "jax-x64"], ["-> int8", "wraps it around"]),
        (["True", "1.5", "float*"], ["-> float*"]),
        (
            ["float32", "float64", "--operation", "add", "--into", "float32", "--rules", "torch"],
            ["into=float32) -> float32", "float64 -> float32, not every value survives"],
        ),
        (["int8", "uint8", "float16", "--rules", "numpy"], ["-> float16"]),
    ],
)
def test_explain_takes_dtypes_numbers_and_0d_arrays(run, args, lines):
    result = run("explain", *args)
    assert result.exit_code == 0, result.output
    assert all(line in result.stdout for line in lines), result.stdout


def test_explain_accepts_all_rule_sets(run):
    text = run("explain", "uint8", "256", "--rules", "all").stdout
    assert text.count("[rules ") == len(HOMES)
    assert "[rules torch]" in run("explain", "int8", "--rules", "torch", "--rules", "numpy").stdout


def test_rules_are_listed_with_source_and_summary(run):
    text = run("rules").stdout
    assert all(name in text for name in supremum.rules.rule_names())
    listed = json.loads(run("rules", "--format", "json").stdout)
    assert [row["name"] for row in listed] == list(supremum.rules.rule_names())
    assert all(row["summary"] and row["source"] for row in listed)


def test_version_prints_the_version(run):
    assert run("--version").stdout.strip() == supremum.__version__


def test_a_missing_package_is_named_in_the_error(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    result = run("demo")
    assert result.exit_code == 2
    assert result.stderr.endswith(" needs sklearn; install with: pip install 'supremum[examples]'\n")


def test_a_demo_in_a_terminal_shows_the_progress_of_each_run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    trained = []

    def train_classifier(digits, case, label, *, seed, epochs, on_epoch):
        trained.append(label)
        on_epoch(0, {"loss": 0.5 * case.weight})

    monkeypatch.setattr(demo, "train_classifier", train_classifier)
    case, shown = demo.CASES["digits"], io.StringIO()
    reports = cli_demo._train(Console(file=shown, force_terminal=True), None, case, 0, 3)
    assert [*reports] == trained == [*case.runs]
    assert shown.getvalue().count("compiling") >= len(case.runs)
    assert shown.getvalue().count("loss 0.500") >= len(case.runs)


@pytest.mark.slow
def test_a_demo_prints_the_caption_and_writes_its_picture_and_figures(run, tmp_path):
    result = run("demo", "--epochs", "2", "--seed", "3", "--json", "d.json")
    assert result.exit_code == 0, result.output
    assert "Picture: out/demo/underflow.png" in result.stdout
    assert 'Policy("mixed_float16")' in result.stdout
    assert (tmp_path / "out/demo/underflow.png").read_bytes().startswith(b"\x89PNG")
    data = json.loads((tmp_path / "d.json").read_text())
    assert list(data) == ["underflow", "digits"]  # the case that takes a minute is only for those who name it
    assert 0.99 < data["underflow"]["underflowing_gradients"] < 1
    runs = [*data["underflow"]["runs"], *data["digits"]["runs"]]
    assert "loss scale" in " ".join(result.stdout.split())
    policies = ["float32", "mixed_float16", "mixed_float16", "mixed_bfloat16", "float16", "float32", "mixed_float16"]
    assert [r["policy"] for r in runs] == policies
    assert [r["loss_scaling"] for r in runs] == [False, False, True, False, True, False, True]
    assert [r["weights_moved"] == 0 for r in runs] == [False, True, False, False, False, False, False]
    assert all(r["seed"] == 3 and r["epochs"] == 2 and r["steps"] == 44 for r in runs)
    assert all(0 < r["test_accuracy"] <= 1 and r["variable_bytes"] > 0 and r["seconds_per_epoch"] > 0 for r in runs)


@pytest.mark.slow
def test_the_case_of_master_weights_has_the_bytes_per_parameter(run):
    result = run("demo", "--case", "master-weights", "--epochs", "1", "--json", "figures.json")
    assert result.exit_code == 0, result.output
    (case,) = json.loads(Path("figures.json").read_text()).values()
    assert [round(run["bytes_per_parameter"], 2) for run in case["runs"]] == [4, 2, 2, 4, 6]
    for stored in ("4.00", "2.00", "6.00"):
        assert stored in result.stdout
    assert "loss scale" not in " ".join(result.stdout.split())


@pytest.mark.slow
def test_a_demo_of_one_case_writes_json_alone_to_standard_output(run, tmp_path):
    result = run("demo", "--case", "digits", "--epochs", "1", "--json", "-")
    assert result.exit_code == 0, result.output
    assert list(json.loads(result.stdout)) == ["digits"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_that_fails_leaves_no_half_written_file(run, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def fails(self, target, **kwargs):
        target.write_bytes(b"half a picture")
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", fails)
    result = run("demo", "--case", "underflow", "--epochs", "1", "--json", "d.json")
    assert (result.exit_code, result.stderr) == (1, "supremum: out/demo/underflow.png: cannot be written: disk full\n")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_triples_limits_the_triples_below_the_tables(run):
    for form in ("terminal", "html", "svg"):
        texts = [run("diff", "torch", "numpy", "--triples", str(count), "--format", form).stdout for count in (0, 2)]
        assert ["(bf16, bool), i*" in text for text in texts] == [False, True], form


def test_the_picture_of_a_lattice_is_printed_or_written(run, tmp_path):
    line, picture = ("lattice", "--rules", "jax-x64"), lattice_svg("jax-x64")
    assert run(*line).stdout == picture
    assert run(*line, "--format", "dot").stdout == lattice_dot("jax-x64")
    result = run(*line, "-o", "lattice.svg")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "lattice.svg").read_text() == picture


@pytest.mark.parametrize("path", ["int8 float16 uint8", "int8,float16,uint8", "int8 float16 --types standard uint8"])
def test_the_path_of_a_lattice_takes_several_types(run, path):
    expected = lattice_svg("jax-x64", types="standard", path=("int8", "float16", "uint8"))
    line = ("lattice", "--rules", "jax-x64", "--types", "standard", "--path")
    assert run(*line, *path.split()).stdout == expected
