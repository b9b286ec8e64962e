"""`supremum lattice`."""

import pytest
from typer.testing import CliRunner

from supremum.analysis.diagrams import lattice_dot, lattice_svg
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
def test_the_format_is_that_of_the_file(run, tmp_path):
    types = "int8,uint8,float16"
    run("--rules", "jax-x64", "--types", types, "-o", "a.dot")
    run("--rules", "jax-x64", "--types", types, "-o", "B.GV")
    run("--rules", "jax-x64", "--types", types, "-o", "c", "--format", "dot")
    assert {path.name for path in tmp_path.iterdir()} == {"a.dot", "B.GV", "c"}
    assert {path.read_text() for path in tmp_path.iterdir()} == {lattice_dot("jax-x64", types=types)}


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
        (("--format", "png"), "supremum: unknown format 'png': "),
        (("-o", "a.png"), "supremum: The output must end with .svg, .dot, .gv, got a.png"),
        (("--rules", "nunpy"), "supremum: unknown rule set 'nunpy': did you mean 'numpy'?"),
        (("--rules", "numpy-legacy", "-o", "a.dot"), "supremum: numpy-legacy is not a lattice: (uint8, int8), float16"),
        (("--rules", "numpy-legacy"), "supremum: numpy-legacy is not a lattice: (uint8, int8), float16"),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_line_and_leaves_no_file(run, tmp_path, given, message):
    result = run(*given)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
