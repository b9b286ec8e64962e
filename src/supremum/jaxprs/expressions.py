"""The expressions that positions in source files stand for, read with Python's own parser."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, TypeAlias

from supremum.jaxprs.positions import Position

Node: TypeAlias = "ast.expr | ast.stmt"
UNRESOLVED: Any = object()
"""What a name stands for that only the run could say."""


class Source:
    """A source file as it is now, which is as it was imported unless somebody has edited it since.

    Args:
        file: its name, as code objects have it; a cell of a notebook has one too.
    """

    def __init__(self, file: str) -> None:
        linecache.checkcache(file)
        self._lines = linecache.getlines(file)
        self._nodes: dict[tuple[int, int, int, int], Node] = {}
        self._ends: dict[tuple[int, int], list[Node]] = {}
        self.names = _names_of(file)
        try:
            tree = ast.parse("".join(self._lines))
        except (SyntaxError, ValueError):  # a cell with magics, a file that is no Python
            return
        for node in ast.walk(tree):
            if isinstance(node, (ast.expr, ast.stmt)):
                end = node.end_lineno or 0, node.end_col_offset or 0
                place = (node.lineno, node.col_offset, *end)
                # A statement that is only an expression stands where the expression does, and comes before it.
                self._nodes[place] = node
                self._ends.setdefault(end, []).append(node)

    def node(self, position: Position) -> Node | None:
        """The expression or statement at a position; None where there is none."""
        end = position.end_line, position.end_column
        exact = self._nodes.get((position.line, position.column, *end))
        if exact is not None:
            return exact
        # Of a chain of methods over several lines Python keeps only where the last one begins.
        around = (
            node
            for node in self._ends.get(end, ())
            if isinstance(node, ast.Call) and (node.lineno, node.col_offset) <= (position.line, position.column)
        )
        return next(around, None)

    def text(self, node: Node) -> str:
        """What the user wrote, on one line."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines = [line.encode() for line in self._lines[first : last + 1]]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return " ".join(b"".join(lines).decode(errors="replace").split())

    def line(self, number: int) -> str:
        """A line of the file, without the space around it; empty where there is none."""
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""

    def value(self, node: ast.AST) -> Any:
        """What a name or a dotted name of the module stands for, or a constant; else `UNRESOLVED`.

        Only modules and classes are asked for attributes: those of anything else may run a program.
        """
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.names.get(node.id, UNRESOLVED)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, (ModuleType, type)):
                return getattr(owner, node.attr, UNRESOLVED)
        return UNRESOLVED


def _names_of(file: str) -> Mapping[str, Any]:
    """The global names of the module that a file was imported as."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            return vars(module)
    main = sys.modules.get("__main__")
    return vars(main) if main is not None and file.startswith("<") else {}


class Sources:
    """The files that positions are in, each read once."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._nodes: dict[Position, Node | None] = {}
        self._texts: dict[Position, str] = {}

    def source(self, file: str) -> Source:
        """A file."""
        if file not in self._sources:
            self._sources[file] = Source(file)
        return self._sources[file]

    def node(self, position: Position) -> Node | None:
        """The expression or statement at a position."""
        if position not in self._nodes:
            self._nodes[position] = self.source(position.file).node(position)
        return self._nodes[position]

    def text(self, position: Position) -> str:
        """What stands at a position, on one line; the line where it is no expression."""
        if position not in self._texts:
            node, source = self.node(position), self.source(position.file)
            self._texts[position] = source.line(position.line) if node is None else source.text(node)
        return self._texts[position]
