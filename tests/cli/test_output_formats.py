"""`-o FILE` takes the format from the suffix, in every command that writes a file."""

import itertools
import json

import pytest
from typer.testing import CliRunner

from supremum.cli import rule_sets
from supremum.cli.app import app
from supremum.cli.output import SUFFIXES, chosen_format

# The formats of each command, and arguments that make it do a little work.
COMMANDS = {
    "explain": (rule_sets._TEXT_FORMATS, ["int8", "uint8"]),
    "rules": (rule_sets._TEXT_FORMATS, []),
    "table": (rule_sets._TABLE_FORMATS, ["--types", "int8,float32"]),
    "diff": (rule_sets._DIFF_FORMATS, ["jax-x64", "numpy", "--types", "int8,float32"]),
    "lattice": (rule_sets._LATTICE_FORMATS, ["--rules", "jax-x64", "--types", "int8,int16"]),
    "casts": (("terminal", "json", "html"), ["program.py"]),
}
STARTS = {
    "json": (b"{", b"["), "markdown": (b"|", b"**", b"#"), "html": (b"<",), "svg": (b"<svg",),
    "dot": (b"digraph", b"graph"),
}  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text("import jax, jax.numpy as jnp\njax.jit(lambda x: x + 1.5)(jnp.ones(2, int))\n")
    return lambda *args: CliRunner().invoke(app, args)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_suffix_sets_the_format(run, tmp_path, command):
    formats, arguments = COMMANDS[command]
    asked = 0
    for form in formats:
        for suffix in SUFFIXES[form]:
            for name in (f"a{suffix}", f"B{suffix.upper()}"):
                result = run(command, *arguments, "-o", name)
                assert (result.exit_code, result.output) == (0, ""), result.output
                written = (tmp_path / name).read_bytes()
                other = f"{form}{asked}"
                assert run(command, *arguments, "--format", form, "-o", other).exit_code == 0
                assert (tmp_path / other).read_bytes() == written, name
                if form in STARTS:
                    assert written.startswith(STARTS[form]), (name, written[:20])
                asked += 1
    assert asked == 2 * sum(len(SUFFIXES[form]) for form in formats)


def test_a_file_without_a_suffix_has_the_first_format(run, tmp_path):
    run("table", "--types", "int8", "-o", "a")
    assert (tmp_path / "a").read_text().startswith("result_type under")
    run("lattice", "--types", "int8", "-o", ".html")  # a hidden file, not a suffix
    assert (tmp_path / ".html").read_text().startswith("<svg")


@pytest.mark.parametrize("command", [*COMMANDS, "explore"])
def test_an_unknown_suffix_is_a_usage_error_that_lists_the_known_ones(run, tmp_path, command):
    formats, arguments = COMMANDS.get(command, (("html",), []))
    before = sorted(tmp_path.iterdir())
    for name in ("a.jpg", "b.tar.gz", "c.xhtml"):
        result = run(command, *arguments, "-o", name)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.count("\n") == 1
        known = ", ".join(suffix for form in formats for suffix in SUFFIXES[form])
        assert result.stderr.startswith(f"supremum: The output must end with {known}, got {name}; give one of them")
    assert sorted(tmp_path.iterdir()) == before


def test_a_suffix_of_another_command_is_unknown(run, tmp_path):
    assert ", got a.svg" in run("table", "-o", "a.svg").stderr
    assert ", got a.md" in run("diff", "jax-x64", "numpy", "-o", "a.md").stderr
    assert [*tmp_path.iterdir()] == [tmp_path / "program.py"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_format_that_contradicts_the_suffix_is_a_usage_error(run, tmp_path, command):
    formats, arguments = COMMANDS[command]
    before = sorted(tmp_path.iterdir())
    asked = 0
    for form, other in itertools.product(formats, SUFFIXES):
        for suffix in SUFFIXES[other] if other != form else ():
            result = run(command, *arguments, "--format", form, "-o", f"a{suffix}")
            assert (result.exit_code, result.stdout) == (2, "")
            assert result.stderr == (
                f"supremum: --format {form} contradicts the suffix of a{suffix}, which means {other}; "
                f"leave out --format, or write to a{SUFFIXES[form][0]}.\n"
            )
            asked += 1
    assert asked >= 2 * (sum(map(len, SUFFIXES.values())) - 3)
    assert sorted(tmp_path.iterdir()) == before


def test_a_format_that_is_given_may_have_any_other_suffix(run, tmp_path):
    assert run("table", "--types", "int8", "--format", "json", "-o", "table.data").exit_code == 0
    assert json.loads((tmp_path / "table.data").read_text())["types"] == ["int8"]


def test_every_format_of_a_command_has_a_suffix():
    assert {form for formats, _ in COMMANDS.values() for form in formats} == SUFFIXES.keys()
    suffixes = [suffix for each in SUFFIXES.values() for suffix in each]
    assert len(set(suffixes)) == len(suffixes)
    assert chosen_format(None, None, ("json", "html")) == "json"
