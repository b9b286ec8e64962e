"""Count lines of code: all but blank lines, comments, and docstrings of modules, classes and functions.

Every count of lines in the project is this one. Each line of a statement or of a string that is not a docstring counts.

    python tools/count_code.py [FILE OR FOLDER ...]
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path

DEFAULT = ("src", "tests", "tools", "docs/generate", "benchmarks")
_LAYOUT = {
    *(tokenize.ENCODING, tokenize.ENDMARKER, tokenize.COMMENT),
    *(tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
}
"""The types of tokens that make no line a line of code."""


def count_code(source: bytes) -> int:
    """Return the number of lines of code.

    Args:
        source: the content of a Python file.

    Raises:
        SyntaxError: if it is not valid Python.
    """
    docstrings = docstring_lines(ast.parse(source))
    lines: set[int] = set()
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        is_docstring = token.type == tokenize.STRING and token.start[0] in docstrings
        if token.type not in _LAYOUT and not is_docstring:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the lines of the docstrings of a module, and of its classes and functions."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        can_have_one = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if can_have_one and ast.get_docstring(node, clean=False) is not None:
            lines.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def count_files(place: Path) -> tuple[int, int]:
    """Return how many Python files there are, and their lines of code.

    Args:
        place: a file, or a folder with all that it contains.
    """
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    counts = []
    for path in files:
        try:
            counts.append(count_code(path.read_bytes()))
        except SyntaxError as error:
            raise SyntaxError(f"{path}:{error.lineno}: {error.msg}") from error
    return len(counts), sum(counts)


def main(places: Iterable[str]) -> int:
    """Print one line for each place, then the total; return 2 if a file cannot be read, else 0.

    Args:
        places: the paths of files and folders.
    """
    try:
        counts = {place: count_files(Path(place)) for place in places}
    except (OSError, SyntaxError) as error:
        print(error, file=sys.stderr)
        return 2
    counts["total"] = tuple(map(sum, zip(*counts.values(), strict=True)))
    for place, (files, lines) in counts.items():
        print(f"{place:15} {files:5,} files {lines:8,} lines of code")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or DEFAULT))
