"""The documents that the code cites are on docs/sources.md, by name and section, and nothing cites a private folder."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/sources.md").read_text()
DOCUMENTS = (
    "JAX type promotion (JEP 9407)",
    "TensorFlow RFC 431, promotion modes",
    "Keras RFC 293, mixed precision",
    "Flax FLIP, default dtypes",
    "Paddle type promotion",
)


def tracked_paths() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return listed.rstrip("\0").split("\0")


def unpacked_paths() -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]


def tracked_texts() -> dict[str, str]:
    """Return the contents of the text files that git tracks, by path; of all in an unpacked sdist."""
    found = {}
    for path in tracked_paths() if (ROOT / ".git").exists() else unpacked_paths():
        place = ROOT / path
        if place.suffix in {".py", ".md", ".json", ".toml", ".yml", ".css", ".js", ".html"} and place.exists():
            found[path] = place.read_text()
    return found


def section_of(name: str) -> str:
    return PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]


def plain(text: str) -> str:
    """Join the lines of a comment or docstring to one line without backticks."""
    return " ".join(re.sub(r"\n *(# )?", " ", text.replace("`", "")).split())


def test_no_file_cites_a_folder_that_the_repository_lacks():
    texts = tracked_texts()
    assert len(texts) > 500
    cited = re.compile(r"\bspec/[\w-]+\.?")
    own = "tests/docs/test_sources.py"
    assert [path for path, text in texts.items() if path != own and cited.search(text)] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_document_has_an_address_and_is_cited(name):
    section = section_of(name)
    assert re.search(r"^\* <https://\S+>$", section, flags=re.MULTILINE)
    assert "**Cited for:**" in section
    assert "**Read differently:**" in section
    sources = [plain(text) for path, text in tracked_texts().items() if path.startswith("src/")]
    assert any(name in text for text in sources)


def test_the_sections_cited_in_the_source_are_on_the_page():
    cited = {
        (name, quoted)
        for path, text in tracked_texts().items()
        if path.startswith("src/")
        for name in DOCUMENTS
        for tail in re.findall(rf'{re.escape(name)}((?:,? (?:and )?"[^"]+")+)', plain(text))
        for quoted in re.findall(r'"([^"]+)"', tail)
    }
    assert len(cited) > 15
    assert [(name, quoted) for name, quoted in sorted(cited) if f'"{quoted}' not in plain(section_of(name))] == []


def test_the_page_has_no_other_documents_with_readings():
    titles = re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    assert titles == [*DOCUMENTS, "Other sources"]
