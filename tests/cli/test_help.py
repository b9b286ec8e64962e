"""The help of each command: its two names, its width, and its examples."""

import shlex
import sys
from pathlib import Path

import pytest
import typer

from documents import commands
from slowly import exhaustive, mostly_slow
from supremum.cli.app import app
from supremum.cli.examples import EXAMPLES
from supremum.cli.exit_codes import EXIT_CODES

ROOT = Path(__file__).parents[2]
COMMANDS = typer.main.get_command(app).commands
# The programs that the examples are about. They take the arguments in the examples.
PROGRAMS = {
    "train.py": """
import sys
import jax, jax.numpy as jnp

assert sys.argv[1:] in ([], ["--epochs", "1"]), sys.argv
jax.jit(lambda x: x.astype("float32").sum())(jnp.ones(8, "bfloat16"))
print("trained")
""",
    "model.py": """
import jax.numpy as jnp

def forward(x, w):
    return x @ w

def loss(x):
    return jnp.mean(jnp.tanh(x @ x.T) ** 2)

def make_args():
    return (jnp.ones((8, 128)),)
""",
}


@pytest.mark.parametrize("command", [None, *COMMANDS])
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_help_has_two_names_and_fits_the_terminal(monkeypatch, capsys, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = []
    for name in ("-h", "--help"):
        with pytest.raises(SystemExit) as ended:
            app([name] if command is None else [command, name], prog_name="supremum")
        assert ended.value.code == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "\x1b" not in shown[0]
    described, _, examples = shown[0].partition("Exit codes:" if command is None else "Examples:")
    assert examples
    # click does not wrap below 50 columns, nor above 80.
    assert max(map(len, described.splitlines())) <= min(max(columns, 50), 80)
    if columns >= 80:
        assert "..." not in described.partition("Commands:")[2]
        assert max(map(len, examples.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_the_examples_of_the_command(run, command):
    shown = run(command, "-h", env={"COLUMNS": "40"}).stdout
    lines = [line.strip() for line in shown.partition("Examples:\n")[2].splitlines()]
    assert tuple(filter(None, lines)) == EXAMPLES[command]
    assert all(line.startswith(f"supremum {command}") for line in EXAMPLES[command])


def test_every_command_has_examples_and_every_exit_code_a_meaning(run):
    assert EXAMPLES.keys() == COMMANDS.keys()
    shown = run("-h").stdout
    for code, meaning in EXIT_CODES.items():
        assert f"{code:3}  {meaning}\n" in shown
    assert [*EXIT_CODES] == [0, 1, 2, 130, 141]
    documented = (ROOT / "docs/errors.md").read_text()
    assert all(f"| {code} | {meaning} |\n" in documented for code, meaning in EXIT_CODES.items())


def test_the_command_alone_prints_the_help_and_ends_as_a_usage_error(run):
    result = run()
    assert (result.exit_code, result.stdout) == (2, run("-h").stdout)


# The fixtures of tests/explorer and `make docs` write the page of the explorer with the same options.
OTHERS = [command for command in COMMANDS if command != "explore"]


@pytest.mark.parametrize(
    "command", [*mostly_slow(OTHERS, "explain", "table", "lattice", "rules"), exhaustive("explore")]
)
def test_examples_run(run, tmp_path, capfd, command):
    """Run the examples of a command, except those of the README, which `make release-check` runs."""
    elsewhere = commands((ROOT / "README.md").read_text("utf-8"), "supremum")
    # An example may use what the one before it wrote.
    for line in EXAMPLES[command]:
        if line in elsewhere:
            continue
        words = shlex.split(line)
        result = run(*words[1:])
        sys.modules.pop("model", None)
        assert result.exit_code == 0, (line, result.output)
        written = [words[words.index(option) + 1] for option in ("-o", "--json", "--write-baseline") if option in words]
        assert written or result.output or capfd.readouterr().out, line
        assert all((tmp_path / name).stat().st_size > 100 for name in written), line
