"""Check what a release would contain: the files, their installation, the README and the links.

This builds the sdist and the wheel, installs each with each extra into an empty environment, runs every line of code
and every command of the README there, and checks every link of README, CONTRIBUTING, CHANGELOG and the guides.

    python tools/release_check.py
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import BytesParser
from itertools import pairwise
from pathlib import Path

from check_tracked_files import tracked_files
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
UV = (sys.executable, "-m", "uv")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = PROJECT["urls"]["Homepage"]
MAX_WHEEL = 1_000_000
MAX_SECONDS = 1.0
"""How long `supremum explore` may take, because a release has the finished page."""

IMPORTS = {
    "": "import supremum",
    "jax": "import supremum.tracing, supremum.mixed_precision, supremum.nn, supremum.optimizers, supremum.training",
    "cli": "import supremum.cli",
    "plot": "import supremum; supremum.analysis.lattice_png('jax-x64')",
    "orbax": "import orbax.checkpoint, supremum.training",
    "tensorboard": "import tensorboardX, supremum.training",
    "examples": "import sklearn, scipy, einops, supremum",
    "all": "import supremum.cli, supremum.training, sklearn, matplotlib, orbax.checkpoint, tensorboardX",
}
"""What must work after an installation with each extra."""

# The programs that the commands of the README are about.
_PROGRAMS = {
    "train.py": """
import jax, jax.numpy as jnp
print(jax.jit(lambda w, x: (x @ w).sum())(jnp.ones((3, 2), "bfloat16"), jnp.ones((4, 3))))
""",
    "model.py": "def forward(w, x):\n    return w * x\n",
}
# These start from a clone or from a package index, which other steps do.
_NOT_RUN = ("make", "pip", "git", "cd", "python", "uv")

wrong: list[str] = []
"""What is wrong, one line each."""


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Print the name of a step, how long it takes, and what it finds wrong."""
    start, before = time.perf_counter(), len(wrong)
    yield
    print(f"{time.perf_counter() - start:6.1f} s  {name}", flush=True)
    for line in wrong[before:]:
        print(f"          {line}", flush=True)


def require(holds: object, message: str) -> None:
    """Note what is wrong if something does not hold."""
    if not holds:
        wrong.append(message)


def run(*command: str | Path, folder: Path = ROOT, expected: tuple[int, ...] = (0,), **more: str) -> float:
    """Run a command, note if it fails, and return how many seconds it took.

    Args:
        command: the program and its arguments.
        folder: where it runs.
        expected: the exit codes of a success.
        more: environment variables.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment | more, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    shown = shlex.join(map(str, command))
    require(done.returncode in expected, f"{shown}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return seconds


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and from it the wheel."""
    run(*UV, "build", "--quiet", "--out-dir", folder, ROOT, HATCH_BUILD_HOOKS_ENABLE="1")
    if wrong:
        sys.exit("\n".join(wrong))
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    """Check that the sdist has every file of the repository, and the wheel the package and nothing else."""
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    missing = [each for each in tracked_files(ROOT) if not each.startswith((".ci/", ".github/")) and each not in packed]
    require(not missing, f"the sdist lacks {', '.join(missing)}")
    require(wheel.stat().st_size < MAX_WHEEL, f"the wheel has {wheel.stat().st_size:,} bytes, more than {MAX_WHEEL:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        described = BytesParser().parsebytes(archive.read(metadata))
    require("supremum/py.typed" in names, "the wheel lacks py.typed")
    pages = [name for name in names if name.startswith("supremum/explorer/finished-")]
    require(len(pages) == 1, f"the wheel must have one finished explorer page, got {pages}")
    own = ("supremum/", "supremum_command.py", "supremum_pytest.py", f"supremum-{described['Version']}.dist-info/")
    require(not (other := [name for name in names if not name.startswith(own)]), f"the wheel has {other}")
    relative = [link for _, link in links(str(described.get_payload())) if not link.startswith(("http", "#"))]
    require(not relative, f"the description for PyPI has relative links: {', '.join(relative)}")


def install(python: Path, *packages: str) -> None:
    """Install packages into an environment."""
    run(*UV, "pip", "install", "--quiet", "--python", python, *packages)


def check_installation(extra: str, sdist: Path, wheel: Path, folder: Path) -> Path:
    """Install wheel and sdist with an extra into an empty environment, import what it is for, and return its Python."""
    run(*UV, "venv", "--quiet", "--python", sys.executable, folder)
    python = folder / "bin/python"
    suffix = f"[{extra}]" if extra else ""
    for package in (wheel, sdist):
        install(python, "--reinstall-package", "supremum", f"supremum{suffix} @ {package.as_uri()}")
        run(python, "-c", IMPORTS[extra], folder=folder)
    return python


def check_speed(core: Path, command: Path, scratch: Path) -> None:
    """Print how long the first answers take."""
    ask = "import supremum; print(supremum.explain('int32', 'float16'))"
    print(f"          {run(core, '-c', ask, folder=scratch):.2f} s to the first explain in a new process")
    print(f"          {run(command, 'explain', 'int32', 'float16', folder=scratch):.2f} s for supremum explain")
    seconds = min(run(command, "explore", folder=scratch) for _ in range(3))
    print(f"          {seconds:.2f} s for supremum explore")
    require(seconds < MAX_SECONDS, f"supremum explore took {seconds:.2f} s, more than {MAX_SECONDS}")


def fences(text: str) -> list[tuple[str, str]]:
    """The blocks of code of a document, each with its language."""
    return [(each.info.strip(), each.content) for each in MarkdownIt().parse(text) if each.type == "fence"]


def check_readme(python: Path, scratch: Path) -> None:
    """Run all Python code of the README in one process, in its order, and each of its commands."""
    for name, program in _PROGRAMS.items():
        (scratch / name).write_text(program)
    blocks = fences((ROOT / "README.md").read_text())
    known = {"python", "console", "bash", "shell", "sh", "text", ""}
    require({info for info, _ in blocks} <= known, f"the README has blocks in unknown languages: {blocks}")
    # A line of a session starts with >>>; a block without one is a program.
    sources = [code if ">>>" in code else _as_session(code) for info, code in blocks if info == "python"]
    require(sources, "the README has no Python code")
    (scratch / "readme.txt").write_text("\n".join(sources))
    run(python, "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "readme.txt", folder=scratch)
    commands = [
        line.removeprefix("$ ")
        for info, code in blocks
        for line in code.splitlines()
        if info in ("console", "bash", "shell", "sh") and (line.startswith("$ ") or info != "console")
    ]
    makefile = (ROOT / "Makefile").read_text()
    for line in commands:
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] == "make":
            for target in words[1:]:
                require(re.search(rf"^{target}:", makefile, re.MULTILINE), f"{line}: the Makefile has no such target")
        if words[0] in _NOT_RUN:
            continue
        require(words[0] == "supremum", f"the README has a command that this check does not know: {line}")
        short = ["--epochs", "1"] if words[1] == "demo" and "--epochs" not in words else []
        expected = (0, 1) if "--fail-on" in words else (0,)
        run(python.parent / words[0], *words[1:], *short, folder=scratch, expected=expected)


def _as_session(code: str) -> str:
    """A program as the lines of one session, so that doctest runs it."""
    return f">>> exec({code!r})\n"


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yield the links and pictures of a document, each with its line."""
    for block in MarkdownIt().enable("table").parse(text):
        line = (block.map or [0])[0] + 1
        for token in _tokens(block):
            if target := token.attrGet("href") or token.attrGet("src"):
                yield line, str(target)
            if token.type in ("html_block", "html_inline"):
                for found in re.findall(r"(?:href|src|srcset)=\"([^\"]+)\"", token.content):
                    yield line, found


def _tokens(block: Token) -> Iterator[Token]:
    yield block
    for child in block.children or ():
        yield from _tokens(child)


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a document, as GitHub makes them, and its own labels."""
    tokens = MarkdownIt().parse(text)
    titles = [after.content for before, after in pairwise(tokens) if before.type == "heading_open"]
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def check_links() -> None:
    """Check that the target of each link that is ours exists, with its anchor."""
    count = 0
    documents = [ROOT / name for name in tracked_files(ROOT) if re.fullmatch(r"([A-Z_]+|docs/[\w-]+)\.md", name)]
    for document in documents:
        for line, link in links(document.read_text()):
            count += 1
            target, _, anchor = link.partition("#")
            if target.startswith(OURS):
                target = re.sub(rf"^{OURS}(/(blob|tree)/[^/]+/|$)", f"{ROOT}/", target)
                if target.startswith(OURS):  # the pages of the project, such as its issues
                    continue
            elif re.match(r"\w+:", target):
                continue
            path = document.parent / target if target else document
            where = f"{document.relative_to(ROOT)}:{line}: {link}"
            if path.is_relative_to(ROOT / "docs/generated"):
                continue  # made when the documentation is built, which checks these links itself
            require(path.exists(), f"{where}: there is no such file")
            if anchor and path.suffix == ".md" and path.exists():
                require(anchor in anchors(path.read_text()), f"{where}: there is no such heading")
    require(count > 20, f"the documents have only {count} links")


def main() -> int:
    """Run all checks, and return 1 if anything is wrong, else 0."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="supremum-release-") as name:
        folder = Path(name)
        scratch = folder / "scratch"
        scratch.mkdir()
        with step("links"):
            check_links()
        with step("build sdist and wheel"):
            sdist, wheel = build(folder / "dist")
            print(f"          {wheel.name}: {wheel.stat().st_size:,} bytes; sdist: {sdist.stat().st_size:,} bytes")
        with step("contents"):
            check_contents(sdist, wheel)
        require(set(IMPORTS) == {"", *PROJECT["optional-dependencies"]}, "IMPORTS must have each extra")
        pythons: dict[str, Path] = {}
        for extra in IMPORTS:
            with step(f"install {extra or 'without extras'}"):
                pythons[extra] = check_installation(extra, sdist, wheel, folder / f"env-{extra}")
        with step("first answers"):
            check_speed(pythons[""], pythons["cli"].parent / "supremum", scratch)
        with step("README"):
            check_readme(pythons["all"], scratch)
    print(f"{time.perf_counter() - start:6.1f} s  in total; {len(wrong)} faults")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
