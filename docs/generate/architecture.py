"""Parts of the page on the architecture: a drawing of the import contract, and every file with its first sentence."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from generate.markup import raw_html

_WIDTH = 350  # fits a page on a phone
_LEFT, _PADDING, _GAP = 26, 6, 6
_CHARACTER, _BOX_HEIGHT = 7.3, 22


def architecture_parts(root: Path) -> dict[str, str]:
    """Return the parts by their paths under docs/generated/.

    Args:
        root: the repository.
    """
    return {"parts/layers.md": layers_drawing(root), "parts/files.md": file_lists(root)}


def layers(root: Path) -> list[list[str]]:
    """Return the rows of the import contract, from the top, without the name of the package.

    Args:
        root: the repository.
    """
    contract = next(each for each in _contracts(root) if each["type"] == "layers")
    return [[_short(module) for module in row.split(" | ")] for row in contract["layers"]]


def without_jax(root: Path) -> set[str]:
    """Return the modules that must not import JAX, by a contract.

    Args:
        root: the repository.
    """
    contracts = [each for each in _contracts(root) if "jax" in each.get("forbidden_modules", ())]
    return {_short(module) for contract in contracts for module in contract["source_modules"]}


def _contracts(root: Path) -> list[dict[str, Any]]:
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    return settings["tool"]["importlinter"]["contracts"]


def _short(module: str) -> str:
    return module.removeprefix("supremum.")


def layers_drawing(root: Path) -> str:
    """Return the import contract as a picture, in the colours of the theme.

    Args:
        root: the repository.
    """
    shaded, top = without_jax(root), _GAP
    shapes: list[str] = []
    for row in layers(root):
        lines = list(_wrapped(row))
        height = len(lines) * (_BOX_HEIGHT + _GAP) - _GAP + 2 * _PADDING
        shapes.append(
            f'<rect class="row" x="{_LEFT}" y="{top}" width="{_WIDTH - _LEFT - 1}" height="{height}" rx="4"/>'
        )
        for place, line in enumerate(lines):
            y = top + _PADDING + place * (_BOX_HEIGHT + _GAP)
            shapes += [_box(name, x, y, shaded=name in shaded) for name, x in line]
        top += height + _GAP
    arrow = f"M10 {_GAP} V{top - _GAP - 2} m-5 -8 l5 8 l5 -8"
    return raw_html(
        f'<svg class="layers" viewBox="0 0 {_WIDTH} {top}" role="img" aria-label="which modules may import which">'
        f'<path d="{arrow}"/>{"".join(shapes)}</svg>'
    )


def _wrapped(row: list[str]) -> Iterator[list[tuple[str, float]]]:
    """Yield the boxes of a row line by line, each with its left edge."""
    line: list[tuple[str, float]] = []
    x: float = _LEFT + _PADDING
    for name in row:
        if line and x + _width(name) + _PADDING > _WIDTH:
            yield line
            line, x = [], _LEFT + _PADDING
        line.append((name, x))
        x += _width(name) + _GAP
    yield line


def _width(name: str) -> float:
    return round(len(name) * _CHARACTER + 14, 1)


def _box(name: str, x: float, y: float, *, shaded: bool) -> str:
    style = ' class="shaded"' if shaded else ""
    return (
        f'<rect{style} x="{x:.1f}" y="{y}" width="{_width(name)}" height="{_BOX_HEIGHT}" rx="3"/>'
        f'<text x="{x + 7:.1f}" y="{y + 15}">{escape(name)}</text>'
    )


def file_lists(root: Path) -> str:
    """Return a collapsed list for each package, of its files and the first paragraphs of their docstrings.

    Args:
        root: the repository.
    """
    source = root / "src/supremum"
    packages = sorted(place.parent for place in source.glob("*/__init__.py"))
    return raw_html("\n".join(map(_file_list, packages)))


def _file_list(package: Path) -> str:
    rows = "".join(
        f"<tr><td><code>{place.relative_to(package).as_posix()}</code></td><td>{_summary(place)}</td></tr>\n"
        for place in sorted(package.rglob("*.py"))
        if place != package / "__init__.py"
    )
    head = f"<summary><code>{package.name}/</code> {_summary(package / '__init__.py')}</summary>"
    return f'<details class="files">{head}\n<table>\n{rows}</table></details>'


def _summary(place: Path) -> str:
    """Return the first paragraph of a file's docstring, in HTML."""
    text = ast.get_docstring(ast.parse(place.read_text())) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(first))
