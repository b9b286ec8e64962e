"""Count the parameters of functions that are annotated with `Any`, and all parameters, for each package.

An alias of `Any` counts as well, except `PyTree`. `public` counts functions without a leading underscore, whether of a
module or of a class without one, and the methods `__init__`, `__call__` and `__new__`; `self` and `cls` do not count.

    python tools/count_any.py [PACKAGE ...]

Names the public ones of each package that is given.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "src/supremum"
_CALLED_BY_USERS = {"__init__", "__call__", "__new__"}


class Parameter(NamedTuple):
    """A parameter of a function.

    Args:
        place: its function and its name, as `file:line function(name)`.
        is_public: whether its function has no leading underscore.
        is_any: whether it is annotated with `Any`.
    """

    place: str
    is_public: bool
    is_any: bool


def parameters(source: str, file: str, aliases: Collection[str]) -> Iterator[Parameter]:
    """Find the parameters of all functions in a file.

    Args:
        source: its content.
        file: its name.
        aliases: the names of `Any`.
    """
    todo: list[tuple[ast.AST, bool]] = [(ast.parse(source), True)]
    while todo:
        parent, is_public = todo.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef):
                todo.append((node, is_public and not node.name.startswith("_")))
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                is_named = not node.name.startswith("_") or node.name in _CALLED_BY_USERS
                for each in arguments(node.args):
                    place = f"{file}:{node.lineno} {node.name}({each.arg})"
                    yield Parameter(place, is_public and is_named, is_any(each.annotation, aliases))
            else:
                todo.append((node, is_public))


def arguments(node: ast.arguments) -> list[ast.arg]:
    """Return the parameters of a function except `self` and `cls`."""
    found = [*node.posonlyargs, *node.args, *node.kwonlyargs, *filter(None, (node.vararg, node.kwarg))]
    return [each for each in found if each.arg not in {"self", "cls"}]


def is_any(annotation: ast.expr | None, aliases: Collection[str]) -> bool:
    """Whether an annotation is `Any`, or `Any | None`."""
    return annotation is not None and ast.unparse(annotation).replace(" | None", "") in aliases


def aliases_of_any(sources: Iterable[str]) -> set[str]:
    """Return `Any`, and the names that files give it, except `PyTree`."""
    names = {"Any"}
    for source in sources:
        for node in ast.parse(source).body:
            name, _, value = ast.unparse(node).partition(": TypeAlias = ")
            if value == "Any":
                names.add(name)
    return names - {"PyTree"}


def count(folder: Path = PACKAGE) -> dict[str, list[Parameter]]:
    """Return the parameters in each package and file of a folder."""
    sources = {path.relative_to(folder): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}
    aliases = aliases_of_any(sources.values())
    packages: dict[str, list[Parameter]] = {}
    for path, source in sources.items():
        packages.setdefault(path.parts[0], []).extend(parameters(source, path.as_posix(), aliases))
    return packages


def share(rows: Collection[Parameter]) -> float:
    """Return which share of some parameters are annotated with `Any`; 0 if there are none."""
    return sum(row.is_any for row in rows) / max(1, len(rows))


def main(named: Iterable[str]) -> int:
    """Print one line for each package, then the total; return 2 if a package is unknown, else 0.

    Args:
        named: the packages of which to list the public parameters that are annotated with `Any`.
    """
    packages = count()
    for name in named:
        if name not in packages:
            print(f"unknown package {name}; use one of {', '.join(packages)}", file=sys.stderr)
            return 2
        print(*(row.place for row in packages[name] if row.is_any and row.is_public), sep="\n")
    packages["total"] = [row for rows in packages.values() for row in rows]
    for name, rows in packages.items():
        public = [row for row in rows if row.is_public]
        print(f"{name:22} all {_text(rows)}   public {_text(public)}")
    return 0


def _text(rows: Collection[Parameter]) -> str:
    return f"{sum(row.is_any for row in rows):5,} of {len(rows):5,} {share(rows):6.1%}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
