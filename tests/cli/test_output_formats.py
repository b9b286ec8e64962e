"""`-o FILE` takes the format from the suffix, in every command that writes a file."""

import itertools
import re

import pytest

from supremum.cli import attribute, casts, nans, profile, rule_sets
from supremum.cli.output import SUFFIXES, chosen_format
from supremum.errors import ArgumentError

# The formats of each command, and arguments that make it do a little work.
COMMANDS = {
    "explain": (rule_sets._TEXT_FORMATS, ["int8", "uint8"]),
    "rules": (rule_sets._TEXT_FORMATS, []),
    "table": (rule_sets._TABLE_FORMATS, ["--types", "int8,float32"]),
    "diff": (rule_sets._DIFF_FORMATS, ["jax-x64", "numpy", "--types", "int8,float32"]),
    "lattice": (rule_sets._LATTICE_FORMATS, ["--rules", "jax-x64", "--types", "int8,int16"]),
    "casts": (casts._FORMATS, ["program.py"]),
    "profile": (profile._FORMATS, ["program.py"]),
    "nans": (nans._FORMATS, ["program.py"]),
    "attribute": (attribute._FORMATS, ["program.py"]),
}
PROGRAMS = {"program.py": "import jax, jax.numpy as jnp\njax.jit(lambda x: x + 1.5)(jnp.ones(2, int))\n"}
STARTS = {
    "json": (b"{", b"["), "markdown": (b"|", b"**", b"#"), "html": (b"<",), "svg": (b"<svg",),
    "dot": (b"digraph", b"graph"),
}  # fmt: skip
of_each_command = pytest.mark.parametrize("formats", [*{formats for formats, _ in COMMANDS.values()}, ("html",)])


def suffixes(formats):
    """The suffixes of some formats, each with its format; `github` has none."""
    return [(form, suffix) for form in formats for suffix in SUFFIXES.get(form, ())]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_suffix_sets_the_format(run, tmp_path, command):
    formats, arguments = COMMANDS[command]
    for form in filter(SUFFIXES.get, formats):
        name = f"a{SUFFIXES[form][-1].upper()}"
        result = run(command, *arguments, "-o", name)
        assert (result.exit_code, result.stdout) == (0, ""), result.output
        written = (tmp_path / name).read_bytes()
        assert written
        assert written.lstrip().startswith(STARTS.get(form, b"")), (name, written[:20])
        # What a file without a suffix has; reports on programs are not computed again.
        if command not in ("profile", "nans", "attribute"):
            assert run(command, *arguments, "--format", form, "-o", f"{form} without").exit_code == 0
            assert (tmp_path / f"{form} without").read_bytes() == written


@of_each_command
def test_every_suffix_of_the_formats_is_known_in_either_case(tmp_path, formats):
    for form, suffix in suffixes(formats):
        names = (f"a{suffix}", f"B{suffix.upper()}")
        assert [chosen_format(None, tmp_path / name, formats) for name in names] == [form, form]
    # A hidden file has no suffix.
    assert {chosen_format(None, path, formats) for path in (None, tmp_path / "a", tmp_path / ".svg")} == {formats[0]}


@of_each_command
def test_an_unknown_suffix_is_an_error_that_lists_the_known_ones(tmp_path, formats):
    known = [suffix for _, suffix in suffixes(formats)]
    others = [suffix for _, suffix in suffixes(SUFFIXES) if suffix not in known]
    for suffix in (".jpg", ".tar.gz", ".xhtml", *others):
        path = tmp_path / f"a{suffix}"
        expected = f"The output must end with {', '.join(known)}, got {path}; give one of them"
        with pytest.raises(ArgumentError, match=f"^{re.escape(expected)}"):
            chosen_format(None, path, formats)


@of_each_command
def test_a_format_that_contradicts_the_suffix_is_an_error(tmp_path, formats):
    for form, (other, suffix) in itertools.product(formats, suffixes(SUFFIXES)):
        path = tmp_path / f"a{suffix}"
        if form == other:
            assert chosen_format(form, path, formats) == form
            continue
        with pytest.raises(ArgumentError) as raised:
            chosen_format(form, path, formats)
        assert str(raised.value) == (
            f"--format {form} contradicts the suffix of {path}, which means {other}; "
            f"leave out --format, or write to {path.with_suffix(SUFFIXES.get(form, ('',))[0])}."
        )
    assert chosen_format(formats[0], tmp_path / "a.data", formats) == formats[0]


@pytest.mark.parametrize("command", [*COMMANDS, "explore"])
def test_the_suffix_is_checked_before_the_work(run, tmp_path, command):
    _, arguments = COMMANDS.get(command, ((), []))
    result = run(command, *arguments, "-o", "a.jpg")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("supremum: The output must end with .")
    assert [path.name for path in tmp_path.iterdir()] == [*PROGRAMS]


def test_every_format_of_a_command_has_a_suffix():
    assert {form for formats, _ in COMMANDS.values() for form in formats} == SUFFIXES.keys() | {"github"}
    listed = [suffix for _, suffix in suffixes(SUFFIXES)]
    assert len(set(listed)) == len(listed)
