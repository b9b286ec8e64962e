"""The workflows run pinned actions with few permissions."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

yaml = pytest.importorskip("yaml", reason="it comes with Flax")
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github/workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
if not FOLDER.is_dir():
    pytest.skip("an sdist has no workflows", allow_module_level=True)


def test_every_action_is_pinned_to_a_commit_and_names_its_release():
    used = [line.split("uses: ")[1] for path in WORKFLOWS for line in path.read_text().splitlines() if "uses: " in line]
    assert len(used) > 10
    others = [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)]
    assert others == ["./.github/workflows/tests.yml", "./.github/workflows/exhaustive.yml"]


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
    assert "run: make release-check OPTIONS=--full" in build
    assert "path: dist/" in build
    assert "needs: [tests, exhaustive, build]" in publish
    assert "run:" not in publish


def commands_of(path):
    """The shell commands of a workflow, line by line."""
    steps = yaml.safe_load(path.read_text())["jobs"].values()
    return [line for job in steps for step in job.get("steps", []) for line in step.get("run", "").splitlines()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_target_and_script_of_a_workflow_exists(path):
    makefile, lines = (ROOT / "Makefile").read_text(), commands_of(path)
    targets = [
        word
        for line in lines
        if (found := re.search(r"\bmake (.*?)(?:  #|$)", line))
        for word in found[1].split()
        if "=" not in word
    ]
    scripts = [word for line in lines for word in re.findall(r"\b(?:tools|tests|benchmarks)/[\w./-]+", line)]
    assert targets or scripts
    names = [target.replace(".venv", "$(VENV)") for target in targets]
    known = dict(re.findall(r"^(\w+) := (.*)$", makefile, re.MULTILINE))
    rules = {
        name.strip()
        for head in re.findall(r"^([^\s#:][^:=\n]*):(?!=)", makefile, re.MULTILINE)
        for name in head.split()
    }
    rules |= {known[name[2:-1]] for name in rules if name.startswith("$(")}
    assert [name for name in names if name not in rules] == []
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


def test_the_environments_of_the_workflow_are_those_that_the_script_knows():
    matrix = yaml.safe_load((FOLDER / "tests.yml").read_text())["jobs"]["versions"]["strategy"]["matrix"]
    script = (ROOT / "tools/check_versions.py").read_text()
    assert [versions for versions in matrix["versions"] if f'"{versions}": ' not in script] == []
    supported = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert all(SpecifierSet(supported).contains(f"{minor}.0") for minor in matrix["python"])
