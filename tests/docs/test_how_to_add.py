"""The edits of each "How to add" in docs/how-to-add.md, made in a copy of the source, do what the page says."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from documents import fences

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to-add.md").read_text()


@dataclass(frozen=True)
class Edit:
    """One file of a `diff` block: lines to find and lines to put in their place; a new file has nothing to find."""

    path: str
    before: str
    after: str

    @classmethod
    def of(cls, block: str) -> "Edit":
        head, *lines = block.splitlines()
        path = head.removeprefix("--- ")
        if path == "/dev/null":
            path = lines.pop(0).removeprefix("+++ ")
        before, after = (
            "".join(f"{line[1:]}\n" for line in lines if line[:1] in signs) for signs in (("-", " "), ("+", " "))
        )
        return cls(path, before, after)

    def apply(self, root: Path) -> None:
        place = root / self.path
        if not self.before:
            assert not place.exists()
            place.write_text(self.after)
            return
        text = place.read_text()
        assert text.count(self.before) == 1, f"{self.path} must have these lines once:\n{self.before}"
        place.write_text(text.replace(self.before, self.after))

    def reverted(self) -> "Edit":
        return Edit(self.path, self.after, self.before)


def sections() -> dict[str, tuple[list[Edit], str]]:
    """The edits and the program of each section, by what it adds."""
    found = {}
    for title, text in re.findall(
        r"^## How to add an? ([\w ]+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE
    ):
        edits = [Edit.of(code) for language, code in fences(text) if language == "diff"]
        (program,) = (code for language, code in fences(text) if language == "python")
        found[title] = edits, program
    return found


SECTIONS = sections()


def run(program: str, root: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "JAX_PLATFORMS": "cpu"}
    return subprocess.run([sys.executable, "-c", program], env=environment, cwd=root, capture_output=True, text=True)


def test_the_page_has_six_sections_with_edits_and_a_program():
    assert list(SECTIONS) == ["format", "operation", "rule set", "layer", "autocast row", "command"]
    assert all(edits and "assert" in program for edits, program in SECTIONS.values())


@pytest.mark.slow
@pytest.mark.parametrize("title", SECTIONS)
def test_the_program_fails_without_the_edits_and_passes_with_them(title, tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    edits, program = SECTIONS[title]
    if title == "format":  # the source has all formats there are, so the one on the page is removed first
        for edit in edits:
            edit.reverted().apply(tmp_path)
    before = run(program, tmp_path)
    assert before.returncode == 1
    assert "SyntaxError" not in before.stderr
    for edit in edits:
        edit.apply(tmp_path)
    after = run(f"import supremum; assert {str(tmp_path)!r} in supremum.__file__\n{program}", tmp_path)
    assert after.returncode == 0, after.stderr
