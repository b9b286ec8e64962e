"""Output in terminals of several widths, in pipes, and in pipes that their readers close."""

import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress

import pytest

from supremum.rules import rule_names

pytest.importorskip("pty", reason="Windows has no pseudo terminals")
import pty
import struct
from fcntl import ioctl
from termios import TIOCSWINSZ

pytestmark = pytest.mark.slow
COMMANDS = {
    "table": "table --rules jax-x64",
    "marked table": "table --rules jax-x64 --against numpy",
    "diff": "diff jax-x64 torch",
    "rules": "rules",
    "explain": "explain uint8 256 --operation add --rules all",
    "lattice": "lattice --rules jax-x64 --types int8,int16",
    "casts": "casts program.py",
    "help": "table -h",
    "error": "tabel",
}
COLOURED = ("table", "marked table", "diff", "rules", "casts")
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
START = [sys.executable, "-m", "supremum"]


@pytest.fixture
def folder(tmp_path):
    program = (
        "import jax, jax.numpy as jnp\njax.jit(lambda x: x.astype(float) * 2)(jnp.ones(2, 'bfloat16'))\nprint('ok')\n"
    )
    (tmp_path / "program.py").write_text(program)
    return tmp_path


def environment(**changes):
    return os.environ | {"TERM": "xterm-256color"} | changes


def in_terminal(folder, line, columns, **changes):
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [*START, *shlex.split(line)]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(**changes), stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    parts = []
    with suppress(OSError):  # Linux raises when the last writer closes
        while part := os.read(ours, 65536):
            parts.append(part)
    os.close(ours)
    process.wait(60)
    return b"".join(parts).decode()


def in_pipe(folder, line, **changes):
    command = [*START, *shlex.split(line)]
    done = subprocess.run(command, cwd=folder, env=environment(**changes), capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_pipes_have_no_escapes_and_terminals_have_colours(folder, command):
    line = COMMANDS[command]
    assert "\x1b" not in in_pipe(folder, line)
    assert (ESCAPE.search(in_terminal(folder, line, 80)) is not None) == (command in COLOURED)
    plain = in_terminal(folder, line, 80, NO_COLOR="1")
    # Without colours text may still be bold, dim, or reversed.
    codes = {int(code or 0) for each in ESCAPE.findall(plain) for code in each.split(";")}
    assert codes <= {0, 1, 2, 7, 22, 27}
    assert ("\x1b" in in_pipe(folder, line, FORCE_COLOR="1")) == (command in COLOURED)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What commands print into a pipe."""
    folder = tmp_path_factory.mktemp("pipes")
    return {command: in_pipe(folder, COMMANDS[command]) for command in ("explain", "table", "rules")}


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_nothing_is_cut_off_in_a_terminal(folder, whole, columns):
    def words(text):
        return re.sub(r"[─\s]+", "", ESCAPE.sub("", text))

    assert words(in_terminal(folder, COMMANDS["explain"], columns)) == words(whole["explain"])
    # Columns that do not fit come below the others, with the labels of the rows again.
    shown = ESCAPE.sub("", in_terminal(folder, COMMANDS["table"], columns)).split()
    printed = whole["table"].split()
    assert {*shown} == {*printed}
    assert (len(shown) > len(printed)) == (columns < 100)
    for command in ("rules", "diff"):
        shown = ESCAPE.sub("", in_terminal(folder, COMMANDS[command], columns))
        assert "…" not in shown
        assert max(map(len, shown.splitlines())) <= columns


def test_the_names_of_rule_sets_are_whole_in_a_narrow_terminal(folder):
    shown = ESCAPE.sub("", in_terminal(folder, COMMANDS["rules"], 40))
    # The first column, in which long names take several lines.
    names = "".join(row[:14].strip() for row in shown.splitlines())
    assert all(name in names for name in rule_names())


def test_rows_in_pipes_are_lines_without_trailing_spaces(folder, whole):
    lines = whole["rules"].splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(rule_names())
    assert all(line == line.rstrip() for line in lines)
    assert max(map(len, in_pipe(folder, "rules", COLUMNS="60").splitlines())) <= 60
    (folder / "a.txt").write_text("")
    in_pipe(folder, "rules -o a.txt", FORCE_COLOR="1")
    assert (folder / "a.txt").read_text().splitlines() == lines


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_pipe_ends_the_command_without_a_message(folder, command):
    with subprocess.Popen(
        [*START, *shlex.split(COMMANDS[command])], cwd=folder, env=environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdout.close()
        errors = process.stderr.read()
    if command == "error":
        assert (process.returncode, errors.count("\n")) == (2, 1)
    else:
        assert (process.returncode, errors) == (141, "")
