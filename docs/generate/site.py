"""All generated files, and a function that writes them for Sphinx."""

from __future__ import annotations

from pathlib import Path

from generate.api import api_pages
from generate.architecture import architecture_parts
from generate.departing import departures_page
from generate.markup import kinds_css
from generate.matrix import matrix_page
from generate.migration_pages import migration_pages
from generate.pictures import lattice_files
from generate.question import question_table
from generate.readme import examples_page, readme_pages
from generate.rule_pages import rule_pages


def site_files(root: Path) -> dict[str, str]:
    """Return every generated file by its path under docs/generated/, except the explorer, which takes longer.

    Args:
        root: the repository.
    """
    pages = {
        "examples.md": examples_page(root),
        "departures.md": departures_page(),
        "rules/distances.md": matrix_page(),
        "parts/question.md": question_table(),
        "static/kinds.css": kinds_css(),
    }
    pages |= architecture_parts(root)
    return pages | lattice_files() | readme_pages(root) | rule_pages() | migration_pages() | api_pages()


def write_site(files: dict[str, str], folder: Path) -> None:
    """Write files into a folder and remove all others; unchanged files keep their times, so Sphinx does not read them.

    Args:
        files: contents by path.
        folder: the folder, which is created if it is missing.
    """
    for path, text in files.items():
        place = folder / path
        if not place.exists() or place.read_text() != text:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    for place in [*folder.rglob("*")]:
        if place.is_file() and place.relative_to(folder).as_posix() not in files:
            place.unlink()
