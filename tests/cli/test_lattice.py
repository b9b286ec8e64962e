"""`supremum lattice`."""

import sys
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from supremum.analysis.diagrams import lattice_dot, lattice_png, lattice_svg
from supremum.cli.app import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, ["lattice", *args])


def test_the_picture_is_printed_or_written(run, tmp_path):
    assert run("--rules", "jax-x64").stdout == lattice_svg("jax-x64")
    result = run("--rules", "jax-x64", "-o", "pictures/lattice.svg")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "pictures/lattice.svg").read_text() == lattice_svg("jax-x64")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rules", ["jax-x64", "numpy-legacy"])
def test_the_format_is_that_of_the_file(run, tmp_path, rules):
    types = "int8,uint8,float16"
    run("--rules", rules, "--types", types, "-o", "a.png")
    run("--rules", rules, "--types", types, "-o", "B.PNG")
    run("--rules", rules, "--types", types, "-o", "c", "--format", "png")
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "B.PNG", "c"}
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {lattice_png(rules, types=types)}


@pytest.mark.slow
def test_dot_is_written(run, tmp_path):
    run("--rules", "jax-x64", "-o", "a.dot")
    assert (tmp_path / "a.dot").read_text() == lattice_dot("jax-x64")
    assert run("--rules", "jax-x64", "--format", "dot").stdout == lattice_dot("jax-x64")
    run("--rules", "jax-x64", "-o", "plain")
    assert (tmp_path / "plain").read_text() == lattice_svg("jax-x64")


@pytest.mark.parametrize(
    "given",
    [
        ("--path", "int8", "float16", "uint8"),
        ("--path", "int8,float16,uint8"),
        ("--path", "int8", "float16", "--types", "all", "uint8"),
    ],
)
def test_path_takes_several_types(run, given):
    assert run("--rules", "jax-x64", *given).stdout == lattice_svg("jax-x64", path=("int8", "float16", "uint8"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("int8",), "supremum: Types must come after an option such as --path, got int8 alone."),
        (("--path", "int8"), "supremum: A path must have at least two types, got only int8"),
        (("--format", "png"), "supremum: A PNG needs an output, such as -o lattice.png"),
        (("-o", "a.jpg"), "supremum: The output must end with .svg, .png, .dot, .gv, got a.jpg"),
        (("--rules", "nunpy"), "supremum: unknown rule set 'nunpy': did you mean 'numpy'?"),
        (("--rules", "numpy-legacy", "-o", "a.dot"), "supremum: numpy-legacy is not a lattice: (uint8, int8), float16"),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_line_and_leaves_no_file(run, tmp_path, given, message):
    result = run(*given)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_png_without_matplotlib_names_the_package(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "supremum.render.png", raising=False)
    result = run("-o", "a.png")
    assert result.exit_code == 2
    assert result.stderr == "supremum: A PNG needs matplotlib; install with: pip install 'supremum[plot]'\n"
    assert list(tmp_path.iterdir()) == []
    assert ET.fromstring(run().stdout).get("role") == "img"
