"""The tools read commands and links of documents, and find links that lead nowhere."""

from pathlib import Path

from documents import anchors, broken_links, commands, links

ROOT = Path(__file__).parents[2]
HOME = "https://github.com/supremum-py/supremum"


def test_commands_of_console_blocks_and_sentences_are_found_once():
    text = "`supremum demo` and `supremum`, `pip list`\n\n```console\n$ make run\nsome output\n$ supremum demo\n```\n"
    text += "\n| a | b |\n|---|---|\n| `supremum rules` | c |\n\n```python\n$ not a command\n```\n"
    assert commands(text, "supremum") == ["make run", "supremum demo", "supremum rules"]


def test_links_of_all_kinds_are_found_with_their_lines():
    text = '[a](docs/a.md#b)\n\n![p](p.svg)\n\n<picture><source srcset="dark.svg"></picture>\n\n`[no](code.md)`\n'
    assert list(links(text)) == [(1, "docs/a.md#b"), (3, "p.svg"), (5, "dark.svg")]


def test_anchors_are_those_of_github():
    text = "# What `x + y` is, and *why*\n\n```\n# not a heading\n```\n\n(a-label)=\n## B\n"
    assert anchors(text) == {"what-x--y-is-and-why", "b", "a-label"}


def test_links_to_missing_files_and_headings_are_reported(tmp_path):
    (tmp_path / "docs").mkdir()
    page = tmp_path / "page.md"
    page.write_text(
        f"[x](docs/a.md#here) [y]({HOME}/tree/main/docs) [z]({HOME}/issues) [g](docs/generated/b.md)\n\n"
        f"[a](docs/b.md) [b](docs/a.md#there)\n\n[c]({HOME}/blob/main/LICENCE) [d](https://a.org/x) [e](#top)\n"
    )
    (tmp_path / "docs/a.md").write_text("# Here\n")
    assert list(broken_links(tmp_path, [page, tmp_path / "docs/a.md"], HOME)) == [
        "page.md:3: docs/b.md: there is no such file",
        "page.md:3: docs/a.md#there: there is no such heading",
        f"page.md:5: {HOME}/blob/main/LICENCE: there is no such file",
        "page.md:5: #top: there is no such heading",
    ]


def test_the_documents_have_no_broken_links():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")]
    assert sum(len(list(links(page.read_text("utf-8")))) for page in pages) > 100
    assert list(broken_links(ROOT, pages, HOME)) == []
