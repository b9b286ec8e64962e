"""A part of the page on the architecture: every module in the order of the import contract, with its sentence."""

from __future__ import annotations

import ast
import re
import tomllib
from html import escape
from pathlib import Path
from typing import Any

from generate.markup import raw_html


def architecture_parts(root: Path) -> dict[str, str]:
    """Return the part by its path under docs/generated/.

    Args:
        root: the repository.
    """
    return {"parts/house.md": house(root)}


def layers(root: Path) -> list[list[str]]:
    """Return the rows of the import contract, from the top, without the name of the package.

    Args:
        root: the repository.
    """
    contract = next(each for each in _contracts(root) if each["containers"] == ["supremum"])
    return [row.split(" | ") for row in contract["layers"]]


def without_jax(root: Path) -> set[str]:
    """Return the modules that must not import JAX, by a contract.

    Args:
        root: the repository.
    """
    contracts = [each for each in _contracts(root) if "jax" in each.get("forbidden_modules", ())]
    return {module.removeprefix("supremum.") for contract in contracts for module in contract["source_modules"]}


def _contracts(root: Path) -> list[dict[str, Any]]:
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    return [{"containers": None} | contract for contract in settings["tool"]["importlinter"]["contracts"]]


def house(root: Path) -> str:
    """Return the rows of the import contract as HTML; a package opens to the list of its files.

    Args:
        root: the repository.
    """
    source, shaded = root / "src/supremum", without_jax(root)
    rows = ("".join(_module(source, name, shaded=name in shaded) for name in row) for row in layers(root))
    return raw_html("".join(f'<div class="row">{row}</div>\n' for row in rows))


def _module(source: Path, name: str, *, shaded: bool) -> str:
    """Return a file with its sentence, or a package with a list of its files."""
    style, place = ' class="shaded"' if shaded else "", source / f"{name}.py"
    if place.exists():
        return f"<p{style}><code>{name}.py</code> {_sentence(place)}</p>"
    package = source / name
    files = "".join(
        f"<tr><td><code>{place.relative_to(package).as_posix()}</code></td><td>{_sentence(place)}</td></tr>\n"
        for place in sorted(package.rglob("*.py"))
        if place != package / "__init__.py"
    )
    head = f"<summary{style}><code>{name}/</code> {_sentence(package / '__init__.py')}</summary>"
    return f"<details>{head}\n<table>\n{files}</table></details>"


def _sentence(place: Path) -> str:
    """Return the first paragraph of a file's docstring, in HTML."""
    text = ast.get_docstring(ast.parse(place.read_text())) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(first))
