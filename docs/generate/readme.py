"""Pages made from Markdown outside of docs/, with links to the corresponding pages of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

_PROGRAM = re.compile(r"examples/(.+\.py)")
_PICTURE = re.compile(
    r'<picture>\n  <source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\n'
    r'  <img src="(?P<light>[^"]+)" alt="(?P<alt>[^"]+)">\n</picture>'
)
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_PAGES = {
    "README.md": "generated/start.md",
    "CHANGELOG.md": "generated/changelog.md",
    "CONTRIBUTING.md": "generated/contributing.md",
    "examples": "generated/examples.md",
    "tests/conformance/departures.py": "generated/departures.md",
}
"""The page of the site for a file of the repository, both from their roots."""


def relinked(text: str, folder: str, page: str) -> str:
    """Return a text with its relative links replaced by links to pages of the site.

    Args:
        text: Markdown.
        folder: the folder of the text, from the repository's root.
        page: the text's page on the site, from docs/.

    >>> relinked(
    ...     "[Casts](docs/casts.md), [examples](examples/), [x](https://x.org/a.md)",
    ...     "",
    ...     "generated/start.md",
    ... )
    '[Casts](../casts.md), [examples](examples.md), [x](https://x.org/a.md)'
    """

    def target(match: re.Match[str]) -> str:
        link = match[2]
        if ":" in link:
            return match[0]
        source = posixpath.normpath(posixpath.join(folder, link))
        if program := _PROGRAM.fullmatch(source):
            place, fragment = _PAGES["examples"], f"#{anchor(program[1])})"
        else:
            place, fragment = _PAGES.get(source, posixpath.relpath(source, "docs")), match[3]
        return match[1] + posixpath.relpath(place, posixpath.dirname(page) or ".") + fragment

    return _LINK.sub(target, text)


def readme_pages(root: Path) -> dict[str, str]:
    """Return README, CHANGELOG and CONTRIBUTING as pages.

    Args:
        root: the repository.
    """
    pages = {
        name: relinked(closed((root / source).read_text()), "", f"generated/{name}")
        for source, name in (
            ("README.md", "start.md"),
            ("CHANGELOG.md", "changelog.md"),
            ("CONTRIBUTING.md", "contributing.md"),
        )
    }
    start = switched(pages["start.md"], "generated/start.md").replace("# Supremum\n", "# Start here\n", 1)
    return pages | {"start.md": start}


def switched(text: str, page: str) -> str:
    """Return a text whose pictures follow the theme of the site, which readers can switch.

    Args:
        text: Markdown.
        page: the text's page on the site, from docs/.
    """

    def images(match: re.Match[str]) -> str:
        return "\n\n".join(
            f"```{{image}} {_from_page(match[theme], page)}\n:alt: {match['alt']}\n:class: only-{theme}\n```"
            for theme in ("light", "dark")
        )

    return _PICTURE.sub(images, text)


def _from_page(source: str, page: str) -> str:
    return posixpath.relpath(posixpath.relpath(source, "docs"), posixpath.dirname(page) or ".")


def examples_page(root: Path) -> str:
    """Return the page of the examples: their README, followed by each program.

    Args:
        root: the repository.
    """
    folder = root / "examples"
    parts = [relinked((folder / "README.md").read_text(), "examples", "generated/examples.md")]
    for program in sorted(folder.rglob("*.py")):
        name = program.relative_to(folder).as_posix()
        parts.append(f"## {name}\n\n```{{literalinclude}} ../../examples/{name}\n```\n")
    return "\n".join(parts)


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as on GitHub.

    >>> anchor("arrays/one_program.py")
    'arraysone_programpy'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def closed(text: str) -> str:
    r"""Return Markdown without the empty line at the end of each example, which only doctest needs.

    >>> closed("```python\n>>> 1\n1\n\n```\n")
    '```python\n>>> 1\n1\n```\n'
    """
    return re.sub(r"(?<=\n)(```python\n>>> .*?\n)\n+(?=```)", r"\1", f"\n{text}", flags=re.DOTALL)[1:]
