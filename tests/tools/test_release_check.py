"""`make release-check` finds links to nothing."""

import importlib.util
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
pytest.importorskip("markdown_it", reason="part of the group dev")


@pytest.fixture
def release_check(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(TOOLS))
    spec = importlib.util.spec_from_file_location("release_check", TOOLS / "release_check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_of_all_kinds_are_found_with_their_lines(release_check):
    text = '[a](docs/a.md#b)\n\n![p](p.svg)\n\n<picture><source srcset="dark.svg"></picture>\n\n`[no](code.md)`\n'
    assert list(release_check.links(text)) == [(1, "docs/a.md#b"), (3, "p.svg"), (5, "dark.svg")]


def test_anchors_are_those_of_github(release_check):
    text = "# What `x + y` is, and *why*\n\n```\n# not a heading\n```\n\n(a-label)=\n## B\n"
    assert release_check.anchors(text) == {"what-x--y-is-and-why", "b", "a-label"}


def test_links_to_missing_files_and_headings_are_reported(release_check, monkeypatch, tmp_path):
    (tmp_path / "docs").mkdir()
    fine = "[x](docs/a.md#here) " * 20
    (tmp_path / "README.md").write_text(
        fine + f"[a](docs/b.md) [b](docs/a.md#there) [c]({release_check.OURS}/blob/main/LICENCE) [d](https://a.org/x)"
    )
    (tmp_path / "docs/a.md").write_text("# Here\n")
    monkeypatch.setattr(release_check, "ROOT", tmp_path)
    monkeypatch.setattr(release_check, "tracked_files", lambda _: ["README.md", "docs/a.md"])
    release_check.check_links()
    assert [line.partition(": ")[2] for line in release_check.wrong] == [
        "docs/b.md: there is no such file",
        "docs/a.md#there: there is no such heading",
        f"{release_check.OURS}/blob/main/LICENCE: there is no such file",
    ]


def test_the_checked_documents_have_no_broken_links(release_check):
    release_check.check_links()
    assert release_check.wrong == []
