"""Check sdist and wheel: their files, their installation, and the README.

Both are installed into empty environments, without extras and with all of them. There, all code and commands of the
README run, and the tests whose results depend on what is installed. With `--full`, both are also installed with each
extra alone, and all fast tests of the sdist run.

    python -m uv build --clear
    python tools/release_check.py [--full]
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from email.parser import BytesParser
from functools import partial
from pathlib import Path

from check_tracked_files import tracked_files
from documents import commands, fences, links
from environments import UV, VARIABLES, install, make_environment

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAX_WHEEL = 1_250_000
"""A wheel must have fewer bytes. It was to have less than 10**6, which it had before numerics grew by 140,000."""
_TIMEOUT = 1800
"""How many seconds a command may take."""

IMPORTS = {
    "": "import supremum",
    "jax": "import supremum.tracing, supremum.mixed_precision, supremum.nn, supremum.optimizers, supremum.training",
    "cli": "import supremum.cli",
    "plot": "import matplotlib, supremum",
    "orbax": "import orbax.checkpoint, supremum.training",
    "tensorboard": "import tensorboardX, supremum.training",
    "examples": "import sklearn, scipy, einops, supremum",
    "all": "import supremum.cli, supremum.training, sklearn, matplotlib, orbax.checkpoint, tensorboardX",
}
"""What must work after an installation with each extra."""

# The program that the commands of the README are about.
_PROGRAM = """
import jax, jax.numpy as jnp

jax.jit(lambda x: x.astype("float32").sum())(jnp.ones(8, "bfloat16"))
"""
# A test of a user, whose fixture pytest finds by the entry point of the wheel.
_USER_TEST = """
import operator
import jax.numpy as jnp
import pytest
from supremum import tracing

def test_a_step_casts_nothing(forbid_casts):
    with pytest.raises(tracing.ForbiddenCastError):
        forbid_casts(operator.add, jnp.ones(2, "bfloat16"), jnp.ones(2, "float32"))
"""
# The tests that may fail in an unpacked sdist although they pass in a checkout, because they look for one.
_OF_SDIST = ("tests/test_pytest_plugin.py", "tests/docs/test_sources.py", "tests/tools")

wrong: list[str] = []
"""What is wrong, one entry each."""


def require(holds: object, message: str) -> None:
    """Print and note what is wrong if something does not hold."""
    if not holds:
        print(f"WRONG: {message}", flush=True)
        wrong.append(message)


def run(*command: str | Path, folder: Path) -> None:
    """Run a command, and note if it fails.

    Args:
        command: the program and its arguments.
        folder: where it runs.
    """
    shown = shlex.join(map(str, command))
    print(f"{folder.name}$ {shown}", flush=True)
    done = subprocess.run(command, cwd=folder, env=VARIABLES, capture_output=True, text=True, timeout=_TIMEOUT)
    require(not done.returncode, f"{shown}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")


def check_contents(sdist: Path, wheel: Path) -> None:
    """Check that the sdist has the files of the repository, and the wheel the package, and both nothing else."""
    with tarfile.open(sdist) as archive:
        packed = {each.name.partition("/")[2] for each in archive.getmembers() if each.isfile()}
    tracked = {name for name in tracked_files(ROOT) if not name.startswith((".ci/", ".github/"))}
    require(not (missing := tracked - packed), f"the sdist lacks {', '.join(sorted(missing))}")
    other = packed - tracked - {"PKG-INFO"}
    require(not other, f"the sdist has files that git does not track: {', '.join(sorted(other))}")

    size = wheel.stat().st_size
    require(size < MAX_WHEEL, f"the wheel must have less than {MAX_WHEEL:,} bytes, it has {size:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (folder,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        described = BytesParser().parsebytes(archive.read(f"{folder}/METADATA"))
        entry_points = archive.read(f"{folder}/entry_points.txt").decode()
    expected = {name.removeprefix("src/") for name in packed if name.startswith("src/")}
    found = {name for name in names if not name.startswith(f"{folder}/")}
    require(found == expected, f"the wheel must have the files in src/, differs in {sorted(found ^ expected)}")
    require("supremum/py.typed" in found, "the wheel lacks py.typed")
    for section, entry in (("console_scripts", "supremum_command:main"), ("pytest11", "supremum_pytest")):
        require(
            f"[{section}]\nsupremum = {entry}\n" in f"{entry_points}\n", f"the wheel lacks the entry point {section}"
        )
    relative = [link for _, link in links(str(described.get_payload())) if not link.startswith(("http", "#"))]
    require(not relative, f"the description for PyPI has relative links: {', '.join(relative)}")


def check_installation(sdist: Path, wheel: Path, extra: str, folder: Path) -> Path:
    """Install sdist and wheel with an extra into an empty environment, import what it is for, and return its Python."""
    python = make_environment(folder)
    for package in (sdist, wheel):
        wanted = f"supremum[{extra}] @ {package.as_uri()}" if extra else f"supremum @ {package.as_uri()}"
        install(python, "--reinstall-package", "supremum", wanted, folder=ROOT)
        run(python, "-c", IMPORTS[extra], folder=folder)
    return python


def check_readme_code(python: Path, scratch: Path) -> None:
    """Run all Python code of the README in one process, in its order."""
    blocks = fences((ROOT / "README.md").read_text("utf-8"))
    sessions = [code for language, code in blocks if language == "python"]
    require({language for language, _ in blocks} == {"python", "console"}, f"the README has other blocks: {blocks}")
    require(all(">>> " in code for code in sessions), "each block of Python code in the README must be a session")
    (scratch / "README.txt").write_text("\n".join(sessions), "utf-8")
    run(python, "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "README.txt", folder=scratch)


def check_commands(command: Path, unpacked: Path, folder: Path) -> None:
    """Run all commands of the README. Tests run the examples in the help of each command."""
    lines = commands((ROOT / "README.md").read_text("utf-8"), "supremum")
    require(len(lines) > 4, f"the README has only the commands {lines}")
    makefile = (ROOT / "Makefile").read_text()
    (folder / "train.py").write_text(_PROGRAM)
    for line in lines:
        program, *arguments = shlex.split(line)
        if program == "supremum":
            run(command, *arguments, folder=folder)
            if "-o" in arguments:
                written = folder / arguments[arguments.index("-o") + 1]
                require(written.is_file() and written.stat().st_size > 100, f"{line}: wrote no {written.name}")
        elif program == "make":
            for target in arguments:
                require(re.search(rf"^{target}:", makefile, re.MULTILINE), f"{line}: the Makefile has no such target")
        elif program == "pip":
            run(*UV, *shlex.split(line), "--quiet", "--python", command.parent / "python", folder=unpacked)
        else:
            require(False, f"the README has a command that this check does not know: {line}")


def check_tests(python: Path, unpacked: Path, *, full: bool) -> None:
    """Run tests of the unpacked sdist: a few with the installed wheel, or all fast ones with the code of the sdist."""
    if full:
        install(python, "--editable", ".[all]", "--group", "test", folder=unpacked)
        run(python, "-m", "pytest", "-q", "-n", "auto", "--dist=worksteal", "-m", "not slow", folder=unpacked)
    else:
        install(python, "pytest", folder=unpacked)
        run(python, "-m", "pytest", "-q", "-m", "not slow", *_OF_SDIST, folder=unpacked)
        (unpacked.parent / "test_user.py").write_text(_USER_TEST)
        run(python, "-m", "pytest", "-q", "test_user.py", folder=unpacked.parent)


def main(*, full: bool) -> int:
    """Run all checks, and return 1 if anything is wrong, else 0.

    Args:
        full: whether to install with each extra alone, and to run all fast tests of the sdist.
    """
    with tempfile.TemporaryDirectory(prefix="supremum-release-") as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(name)
        (sdist,), (wheel,) = (ROOT / "dist").glob("*.tar.gz"), (ROOT / "dist").glob("*.whl")
        check_contents(sdist, wheel)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        unpacked = folder / sdist.name.removesuffix(".tar.gz")
        require(set(IMPORTS) == {"", *PROJECT["optional-dependencies"]}, "IMPORTS must have each extra")
        extras = list(IMPORTS) if full else ["", "all"]
        places = [folder / f"env-{extra}" for extra in extras]
        found = pool.map(partial(check_installation, sdist, wheel), extras, places)
        python = dict(zip(extras, found, strict=True))["all"]
        scratch = folder / "scratch"
        scratch.mkdir()
        check_readme_code(python, scratch)
        check_commands(python.parent / "supremum", unpacked, scratch)
        check_tests(python, unpacked, full=full)
    print(f"{len(wrong)} faults")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(full="--full" in sys.argv[1:]))
