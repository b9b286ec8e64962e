"""The code, the commands and the links of Markdown documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token


@cache
def _parsed(text: str) -> Sequence[Token]:
    return MarkdownIt().enable("table").parse(text)


def fences(text: str) -> list[tuple[str, str]]:
    """Return the blocks of code of a document, each with its language.

    Args:
        text: the document.
    """
    return [(each.info.strip(), each.content) for each in _parsed(text) if each.type == "fence"]


def commands(text: str, program: str) -> list[str]:
    """Return the command lines of the console blocks of a document, then those of a program in its sentences.

    Args:
        text: the document.
        program: the name of the program.
    """
    lines = [line for language, code in fences(text) if language == "console" for line in code.splitlines()]
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    tokens = [token for block in _parsed(text) for token in _tokens(block)]
    inline = [token.content for token in tokens if token.type == "code_inline"]
    return list(dict.fromkeys((*typed, *(line for line in inline if line.startswith(f"{program} ")))))


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yield the links and pictures of a document, each with its line.

    Args:
        text: the document.
    """
    for block in _parsed(text):
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
    """Return the anchors of the headings of a document, as GitHub makes them, and its own labels.

    Args:
        text: the document.
    """
    tokens = _parsed(text)
    titles = [after.content for before, after in pairwise(tokens) if before.type == "heading_open"]
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def broken_links(root: Path, documents: Iterable[Path], home: str) -> Iterator[str]:
    """Yield one line for each link of the project that leads to no file or to no heading.

    Links to other sites are not followed, nor those to generated pages, which the documentation build checks.

    Args:
        root: the folder of the repository.
        documents: the documents to check.
        home: the address of the repository, whose files links may name.
    """
    for document in documents:
        for line, link in links(document.read_text("utf-8")):
            target, _, anchor = link.partition("#")
            target = re.sub(rf"^{re.escape(home)}(/(blob|tree)/[^/]+/|$)", f"{root}/", target)
            path = document.parent / target if target else document
            if re.match(r"\w+:", target) or path.is_relative_to(root / "docs/generated"):
                continue
            where = f"{document.relative_to(root)}:{line}: {link}"
            if not path.exists():
                yield f"{where}: there is no such file"
            elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text("utf-8")):
                yield f"{where}: there is no such heading"
