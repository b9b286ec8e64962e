"""The workflows run pinned actions with few permissions."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / ".github/workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
if not FOLDER.is_dir():
    pytest.skip("an sdist has no workflows", allow_module_level=True)


def test_every_action_is_pinned_to_a_commit_and_names_its_release():
    used = [line.split("uses: ")[1] for path in WORKFLOWS for line in path.read_text().splitlines() if "uses: " in line]
    assert len(used) > 10
    others = [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)]
    assert others == ["./.github/workflows/tests.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_can_only_read_and_keep_no_credentials(path):
    text = path.read_text()
    assert re.search(r"^permissions:\n  contents: read\n\n", text, re.MULTILINE)
    written = re.findall(r"(\w[\w-]*): write", text)
    assert written == (["id-token", "attestations"] if path.stem == "publish" else [])
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert text.count("runs-on:") == text.count("timeout-minutes:")


def test_what_is_published_was_checked():
    text = (FOLDER / "publish.yml").read_text()
    build, publish = text.partition("\n  build:\n")[2].split("\n  publish:\n")
    assert "run: make release-check-full" in build
    assert "path: dist/" in build
    assert "needs: [tests, build]" in publish
    assert "run:" not in publish
