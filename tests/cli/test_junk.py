"""Junk on the command line gives one line and an exit code, and leaves no incomplete file.

The tests find all options and arguments of all commands themselves, and give each junk of its type.
"""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from supremum.cli.app import app
from supremum.cli.output import STANDARD_OUTPUT

COMMANDS = typer.main.get_command(app).commands
# Arguments that make each command do a little work.
WORK = {
    "casts": ["program.py"],
    # These two take long, but fail before they begin.
    "demo": ["--case", "nothing"],
    "explore": ["--operation", "nothing"],
    "diff": ["jax-x64", "numpy", "--types", "int8"],
    "explain": ["int8"],
    "lattice": ["--types", "int8,int16"],
    "attribute": ["program.py"],
    "nans": ["program.py"],
    "profile": ["program.py"],
    "table": ["--types", "int8"],
}

TEXTS = [
    "", " ", "x" * 100_000, "~nouser/x", "[red]x[/]", "a\nb", "<img src=x>", "💥", "\udcff", "-", "=", "0", ",",
]  # fmt: skip
NUMBERS = [str(10**30), "9" * 5000, "-1", "0", "x", "", "nan", "1e400", "0x10", "1_0"]
PATHS = [
    "", ".", "folder", "folder/", "file/below", "x" * 300, "x" * 245, "/proc/x", "~nouser/x", "a\nb",
    "<img src=x>.html", "💥.svg", "/dev/full",
]  # fmt: skip


def junk_for(command, parameter):
    taken = str(get_type_hints(COMMANDS[command].callback)[parameter.name])
    if "bool" in taken:
        return []
    return PATHS if "Path" in taken else NUMBERS if "int" in taken or "float" in taken else TEXTS


def asked(command, parameter, junk):
    """The command line with junk for the parameter."""
    name = parameter.opts[0]
    # The last value of an option counts.
    return [command, junk] if not name.startswith("-") else [command, *WORK.get(command, []), name, junk]


CASES = [
    pytest.param(name, parameter, id=f"{name} {parameter.opts[0]}")
    for name, command in COMMANDS.items()
    for parameter in command.params
    if junk_for(name, parameter)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    (tmp_path / "program.py").write_text("print('hello')\n")
    return tmp_path


def test_every_command_with_required_arguments_is_given_some():
    required = {name for name, command in COMMANDS.items() if any(each.required for each in command.params)}
    assert required <= WORK.keys() <= COMMANDS.keys()


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("command", "parameter"), CASES)
def test_junk_gives_one_line_and_an_exit_code(folder, command, parameter):
    for junk in junk_for(command, parameter):
        args = asked(command, parameter, junk)
        result = CliRunner().invoke(app, args)
        assert result.exception is None or isinstance(result.exception, SystemExit), (args, result.exception)
        assert result.exit_code in (0, 1, 2)
        assert (result.exit_code == 0) or result.stderr, args
        assert "Traceback" not in result.output
        lines = result.stderr.splitlines()
        if result.exit_code and not lines[0].startswith("Usage: "):
            assert len(lines) == 1, (args, lines)
            assert lines[0].startswith("supremum")
            assert len(lines[0]) < 1500, args
        assert not list(folder.rglob(".*partial*"))
        assert (folder / "file").read_text() == "old"


def run(folder, *args, **options):
    command = [sys.executable, "-m", "supremum", *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, **options)


OUTPUTS = [name for name, command in COMMANDS.items() for each in command.params if "--output" in each.opts]
OUTPUTS.remove("explore")  # which would work for a minute, and writes as the others do


@pytest.mark.parametrize("command", OUTPUTS)
def test_outputs_are_written_where_the_user_says(folder, command):
    def put(path):
        result = CliRunner().invoke(app, [command, *WORK.get(command, []), "-o", str(path)])
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout_bytes

    put("new")
    written = (folder / "new").read_bytes()
    assert written
    (folder / "link").symlink_to("file")
    (folder / "file").chmod(0o640)
    put("link")
    assert (folder / "link").is_symlink()
    assert (folder / "file").read_bytes() == written
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o640
    (folder / "dangling").symlink_to("folder/made")
    put("dangling")
    assert (folder / "folder" / "made").read_bytes() == written
    os.mkfifo(folder / "fifo")
    read = []
    reader = threading.Thread(target=lambda: read.append((folder / "fifo").read_bytes()))
    reader.start()
    put("fifo")
    reader.join(10)
    assert stat.S_ISFIFO((folder / "fifo").stat().st_mode)
    assert read == [written]
    put(os.devnull)
    assert Path(os.devnull).is_char_device()
    assert put(STANDARD_OUTPUT).endswith(written)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux has them all")
def test_output_may_be_an_open_handle(folder, path):
    expected = CliRunner().invoke(app, ["table", "--types", "int8"]).stdout
    assert run(folder, "table", "--types", "int8", "-o", path).stdout == expected
    with (folder / "redirected").open("w") as file:
        command = [sys.executable, "-m", "supremum", "table", "--types", "int8", "-o", path]
        subprocess.run(command, cwd=folder, stdout=file, check=True)
    assert (folder / "redirected").read_text() == expected


@pytest.mark.slow
def test_a_full_standard_output_gives_one_line(folder):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "supremum", "table"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "No space left" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["explore", "-o", "folder"], ["demo", "--out", "file"], ["demo", "--json", "folder"],
        ["explain", "i8", "-o", "missing/x.json"], ["demo", "--json", "missing/x.json"],
        ["casts", "file", "--write-baseline", "missing/x.json"],
    ],
)  # fmt: skip
def test_the_output_is_checked_before_the_work(folder, args):
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "cannot be written" in result.stderr
    assert not Path("missing").exists()


NAME = "a\x1b[31mb\x07"


@pytest.mark.parametrize(
    "args",
    [
        ["casts", f"{NAME}.py"], ["casts", f"{NAME}.py", "--write-baseline", f"{NAME}.json"],
        ["casts", f"{NAME}.py", "--format", "github"], ["casts", f"{NAME}.py", "-o", f"{NAME}.exe"],
        ["casts", f"no{NAME}.py"], ["casts", "file", "--baseline", NAME], ["casts", f"no{NAME}:f", "--args", "f32[2]"],
        ["explain", NAME], ["explain", "i8", "-o", f"no{NAME}/x.json"], [NAME], ["table", f"--{NAME}"],
        ["profile", f"{NAME}.py"],
    ],
)  # fmt: skip
def test_control_characters_in_names_are_escaped(folder, args):
    program = "import jax, jax.numpy as jnp\njax.jit(lambda x, y: x * y)(jnp.ones(2, 'bfloat16'), jnp.ones(2))\n"
    (folder / f"{NAME}.py").write_text(program)
    output = CliRunner().invoke(app, args, color=True).output
    assert "\x1b[31m" not in output
    assert "\x07" not in output
    assert r"a\x1b[31mb\x07" in output, output


PROGRAMS = {
    "exits while it is traced": "import sys\ndef f(x): sys.exit(0)\n",
    "exits on import": "import sys\nsys.exit()\n",
    "ends with an error of its own kind": "class E(BaseException): pass\ndef f(x): raise E\n",
    "raises on import": "1 / 0\n",
    "raises while it is traced": "def f(x): return x @ x @ x\n",
    "raises where it is looked up": "def __getattr__(name): raise ZeroDivisionError\n",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_fail_on_fails_if_the_program_fails(folder, monkeypatch, program):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (folder / "a_program.py").write_text(program)
    done = CliRunner().invoke(app, ["casts", "a_program:f", "--args", "f32[2]", "--fail-on", "promotion"])
    sys.modules.pop("a_program", None)
    assert done.exit_code == 1
    assert done.stdout == "no call of a jitted function was measured\n"
    assert done.stderr
    assert "supremum/cli" not in done.stderr


def test_fail_on_fails_if_the_script_jits_nothing(folder):
    done = CliRunner().invoke(app, ["casts", "program.py", "--fail-on", "promotion"])
    assert done.exit_code == 1
    assert (
        done.stderr == "supremum: --fail-on checked nothing: no call of a jitted function was measured in program.py\n"
    )


@pytest.mark.parametrize("target", [":f", ".f:f", "m:", "m:f.", "a b:f", "m:f:g", "x" * 100_000, "x" * 100_000 + ":f"])
def test_wrong_targets_are_refused(folder, target):
    result = CliRunner().invoke(app, ["casts", target, "--args", "1.0"])
    assert result.exit_code == 2
    assert len(result.stderr) < 600


@pytest.mark.slow
def test_the_output_of_the_program_is_not_part_of_the_report(folder):
    (folder / "program.py").write_text(
        "import os, jax\nprint('from Python', flush=True)\nos.system('echo from a process')\n"
        "jax.jit(lambda x: x + 1)(2)\n"
    )
    done = run(folder, "casts", "program.py", "--format", "json")
    assert done.stdout.startswith("{")
    assert "from Python" in done.stderr
    assert "from a process" in done.stderr
